"""The studies of the two sources, each one function that returns its table, its figure and its checked claims."""

from __future__ import annotations

from tabprotect.microdata.anonymity_study import AnonymityStudy, anonymity_study
from tabprotect.microdata.theta_study import ThetaStudy, theta_study

__all__ = ["AnonymityStudy", "ThetaStudy", "anonymity_study", "theta_study"]
