"""tabprotect.substitution"""
