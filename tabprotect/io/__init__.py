"""tabprotect.io"""
