"""Ambiguity rules: the runner-up must not be able to estimate the largest contribution too closely."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tabprotect.errors import InputError
from tabprotect.sensitivity.respondents import CLOSE, Unit, check_unit, first, remainder, views
from tabprotect.sensitivity.rule import SensitivityRule, check_number, check_whole, join, two_sided
from tabprotect.table.table import Marks, Table


@dataclass(frozen=True)
class PriorPosterior(SensitivityRule):
    """Prior-posterior (p, q) ambiguity: sensitive when x₁ − (q/p)·R > 0, R the cell total without x₁ and the intruders' x₂ … xₙ₊₁.

    Outsiders know every contribution to within q percent beforehand and must not know the largest to within p percent afterwards; ``n``
    contributors may pool what they know. Level: (p/q)·x₁ − R above and below, the least amount for which an intruder who subtracts the own
    contribution from the upper end of the cell's interval overestimates x₁ by p percent.

    References: L. Willenborg, T. de Waal, Elements of Statistical Disclosure Control (2001); A. Hundepool et al., Statistical Disclosure
    Control (2012).

    >>> from tabprotect.sensitivity import Contributions
    >>> known = Contributions(count=[3], top=[[100.0, 20.0, 5.0]], total=[125.0])
    >>> table = Table([125.0], np.zeros((0, 1)), contributions=known).mark(PriorPosterior(10, 50))
    >>> table.upl.tolist()
    [15.0]
    """

    p: float
    q: float = 100.0
    n: int = 1
    unit: Unit = "all"

    def __post_init__(self) -> None:
        check_number(self.p, "p")
        check_number(self.q, "q")
        if self.q <= self.p:
            raise InputError(
                f"q must be larger than p (prior knowledge is vaguer than the allowed one), not p={self.p:g}, q={self.q:g}"
            )
        check_whole(self.n, "the number of intruders n")
        check_unit(self.unit)

    @property
    def name(self) -> str:
        return f"pq({self.p:g},{self.q:g}{_more(self.n)})"

    def assess(self, table: Table) -> Marks:
        return _ambiguity(self, self.p, self.q, table)


@dataclass(frozen=True)
class PPercent(SensitivityRule):
    """p% rule: sensitive when the runner-up (or ``n`` together) can estimate x₁ to within p percent, R = X − x₁ − … − xₙ₊₁ < (p/100)·x₁.

    Level: (p/100)·x₁ − R above and below. It is the (p, q) rule with q = 100.

    >>> from tabprotect.sensitivity import Contributions
    >>> known = Contributions(count=[3], top=[[100.0, 20.0, 5.0]], total=[125.0])
    >>> table = Table([125.0], np.zeros((0, 1)), contributions=known).mark(PPercent(10))
    >>> table.upl.tolist(), table.reason.tolist()
    ([5.0], ['p%(10)'])
    """

    p: float
    n: int = 1
    unit: Unit = "all"

    def __post_init__(self) -> None:
        check_number(self.p, "p")
        check_whole(self.n, "the number of intruders n")
        check_unit(self.unit)

    @property
    def name(self) -> str:
        return f"p%({self.p:g}{_more(self.n)})"

    def assess(self, table: Table) -> Marks:
        return _ambiguity(self, self.p, 100.0, table)


def _more(n: int) -> str:
    return "" if n == 1 else f",{n}"


def _ambiguity(rule: PPercent | PriorPosterior, p: float, q: float, table: Table) -> Marks:
    marks = []
    for suffix, known in views(table, rule.unit, rule.n + 1, rule.name):
        # p·x₁ against q·R rather than quotients: exact for whole numbers, so that the boundary is where the definition says
        lacking = p * first(known) - q * remainder(known, rule.n + 1)
        primary = lacking > q * CLOSE * np.abs(known.total)
        marks.append(two_sided(table, primary, lacking / q, rule.name + suffix))
    return marks[0] if len(marks) == 1 else join(marks, table)
