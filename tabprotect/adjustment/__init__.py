"""tabprotect.adjustment"""
