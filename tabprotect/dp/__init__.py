"""Differential privacy: noisy counts and tables, and tests that know of the noise.

>>> import tabprotect as tp
>>> noisy = tp.dp.release([31, 12, 0, 7], epsilon=1.0)
>>> noisy.values.shape
(4,)
"""

from __future__ import annotations

import importlib
from typing import Any

from tabprotect.dp.budget import Budget
from tabprotect.dp.homogeneity import TestResult, goodness_of_fit, homogeneity_test, homogeneity_test_many
from tabprotect.dp.noise import Noise
from tabprotect.dp.release import Release, release, release_histogram
from tabprotect.dp.tables import TableRelease, release_table

__all__ = [
    "Budget",
    "Noise",
    "Release",
    "TableRelease",
    "TestResult",
    "goodness_of_fit",
    "homogeneity_test",
    "homogeneity_test_many",
    "release",
    "release_histogram",
    "release_table",
]


def __getattr__(name: str) -> Any:
    """``tp.dp.study`` is imported when it is asked for."""
    if name == "study":
        return importlib.import_module("tabprotect.dp.study")
    raise AttributeError(f"module 'tabprotect.dp' has no attribute {name!r}")
