"""tabprotect.dp"""
