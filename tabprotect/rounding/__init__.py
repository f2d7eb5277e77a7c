"""Rounding of tables to a base: controlled, nearest, 50/50, unbiased, small counts."""

from tabprotect.attacker.attack import VIEWS
from tabprotect.rounding.attack import rounding_intervals as rounding_intervals
from tabprotect.rounding.verb import round_table as round_table

VIEWS["round"] = rounding_intervals

__all__ = ["round_table", "rounding_intervals"]
