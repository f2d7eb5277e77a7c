"""tabprotect.table"""
