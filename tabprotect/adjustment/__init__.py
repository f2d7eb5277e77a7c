"""Controlled tabular adjustment (CTA)."""

from tabprotect.adjustment.attack import adjustment_intervals as adjustment_intervals
from tabprotect.adjustment.repair import NoAdjustment as NoAdjustment
from tabprotect.adjustment.repair import Proposal as Proposal
from tabprotect.adjustment.verb import adjust as adjust
from tabprotect.attacker.attack import VIEWS

VIEWS["adjust"] = adjustment_intervals

__all__ = ["NoAdjustment", "Proposal", "adjust", "adjustment_intervals"]
