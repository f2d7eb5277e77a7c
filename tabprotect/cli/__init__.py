"""tabprotect.cli"""
