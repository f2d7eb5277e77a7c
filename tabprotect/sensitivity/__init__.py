"""tabprotect.sensitivity"""
