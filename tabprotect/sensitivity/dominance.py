"""The (n, k) dominance rule: a few contributors must not make up most of a cell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from tabprotect.errors import InputError
from tabprotect.sensitivity.respondents import CLOSE, Unit, check_unit, largest, occupied, views
from tabprotect.sensitivity.rule import SensitivityRule, check_number, check_whole, join, two_sided
from tabprotect.table.table import Marks, Table


@dataclass(frozen=True)
class Dominance(SensitivityRule):
    """Sensitive when the n largest contributions make up k percent of the total: x₁ + … + xₙ ≥ (k/100)·X.

    ``boundary`` is ``">="`` (the report of 2008) or ``">"`` (τ-ARGUS). Level: (100/k)·(x₁ + … + xₙ) − X above and below, the amount that added to the rest of
    the cell brings the share down to k percent; with ``">="`` a hair (1e-9 of it) more, because k percent itself is still too much.

    Reference: A. Hundepool et al., Statistical Disclosure Control (2012).

    >>> from tabprotect.sensitivity import Contributions
    >>> known = Contributions(count=[3], top=[[90.0, 6.0]], total=[100.0])
    >>> table = Table([100.0], np.zeros((0, 1)), contributions=known)
    >>> table.mark(Dominance(n=1, k=75, boundary=">")).upl.tolist()
    [20.0]
    """

    n: int
    k: float
    boundary: Literal[">=", ">"] = ">="
    unit: Unit = "all"

    def __post_init__(self) -> None:
        check_whole(self.n, "n")
        check_number(self.k, "k", at_most=100)
        if self.boundary not in (">=", ">"):
            raise InputError(f"unknown boundary {self.boundary!r}: use '>=' or '>'")
        check_unit(self.unit)

    @property
    def name(self) -> str:
        return f"nk({self.n},{self.k:g})"

    def assess(self, table: Table) -> Marks:
        marks = []
        for suffix, known in views(table, self.unit, self.n, self.name):
            head = largest(known, self.n)
            excess, close = 100.0 * head - self.k * known.total, 100.0 * CLOSE * np.abs(known.total)
            level = excess / self.k
            if self.boundary == ">=":
                primary = occupied(known) & (excess >= -close)
                level = np.maximum(level, 0.0) + np.maximum(1e-6 * 10.0**-table.decimals, 1e-9 * known.total)
            else:
                primary = occupied(known) & (excess > close)
            marks.append(two_sided(table, primary, level, self.name + suffix))
        return marks[0] if len(marks) == 1 else join(marks, table)
