"""``python -m tabprotect`` is the command line."""

from tabprotect.cli.main import run

run()
