"""Complementary cell suppression: one problem, many methods, every answer audited."""

from tabprotect.suppression.circuit import circuits as circuits
from tabprotect.suppression.explain import explain as explain
from tabprotect.suppression.suppress import METHODS as METHODS
from tabprotect.suppression.suppress import suppress as suppress

__all__ = ["METHODS", "circuits", "explain", "suppress"]
