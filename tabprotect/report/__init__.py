"""tabprotect.report"""
