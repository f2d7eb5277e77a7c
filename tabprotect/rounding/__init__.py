"""tabprotect.rounding"""
