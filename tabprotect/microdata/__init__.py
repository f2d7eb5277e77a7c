"""tabprotect.microdata"""
