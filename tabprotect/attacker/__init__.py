"""tabprotect.attacker"""
