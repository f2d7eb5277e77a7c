"""The studies of the source, and power as a measure of what a mechanism leaves of the data.

Each study is one function that returns a `Study` (table, figure, note). ``quick=True`` runs a small slice,
``executor`` spreads the settings, ``populations`` is the path of a CSV file with real age distributions (a seeded
stand-in otherwise).
"""

from __future__ import annotations

from collections.abc import Callable

from tabprotect.dp.study.errors import error_rates, null_distribution
from tabprotect.dp.study.power import power, unequal
from tabprotect.dp.study.result import Study, write_html
from tabprotect.dp.study.utility import utility

STUDIES: dict[str, Callable[..., Study]] = {
    "null": null_distribution,
    "errors": error_rates,
    "power": power,
    "unequal": unequal,
    "utility": utility,
}

__all__ = ["STUDIES", "Study", "error_rates", "null_distribution", "power", "unequal", "utility", "write_html"]
