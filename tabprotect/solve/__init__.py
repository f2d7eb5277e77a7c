"""tabprotect.solve"""
