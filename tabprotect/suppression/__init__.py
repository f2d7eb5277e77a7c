"""tabprotect.suppression"""
