"""tabprotect.linalg"""
