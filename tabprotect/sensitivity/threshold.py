"""Frequency rules: a cell with too few contributors is sensitive."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tabprotect.sensitivity.respondents import Unit, check_unit, counts
from tabprotect.sensitivity.rule import SensitivityRule, check_number, check_whole, join, percent_of_value, two_sided
from tabprotect.table.table import Marks, Table


@dataclass(frozen=True)
class Threshold(SensitivityRule):
    """Sensitive when 1 ≤ count ≤ base (the report's base value); zeros only with ``zeros=True``.

    Levels of a count table: the outsider must believe base + 1 possible, UPL = base + 1 − count, and as much below, but not less than nothing:
    LPL = min(UPL, count). Levels of a magnitude table, where a count implies none: ``range`` percent of the value (10 unless given; the
    safety range of τ-ARGUS). A mixed table gets both. A given ``range`` is also used for counts. ``unit`` says whose number counts (`respondents.Unit`).

    >>> from tabprotect.table.examples import d272
    >>> table = d272().mark(Threshold(2))
    >>> table.upl[table.primary].tolist()
    [2.0, 2.0, 1.0, 1.0]
    """

    base: int
    zeros: bool = False
    range: float | None = None
    unit: Unit = "all"

    def __post_init__(self) -> None:
        check_whole(self.base, "the base value", least=0 if self.zeros else 1)
        if self.range is not None:
            check_number(self.range, "the safety range in percent")
        check_unit(self.unit)

    @property
    def name(self) -> str:
        return f"threshold({self.base})"

    def assess(self, table: Table) -> Marks:
        marks = []
        for suffix, count in counts(table, self.unit, self.name):
            primary = (count <= self.base) & (count >= (0 if self.zeros else 1))
            up = percent_of_value(table, 10.0 if self.range is None else self.range)
            if self.range is None:
                # a weighted count stands for value/count respondents each
                each = np.where(count > 0, table.values / np.maximum(count, 1), 1.0)
                are_counts = table.counts if table.count_cells is None else table.count_cells
                up = np.where(are_counts, (self.base + 1 - count) * each, up)
            marks.append(two_sided(table, primary, up, self.name + suffix))
        return marks[0] if len(marks) == 1 else join(marks, table)


def MinFrequency(n: int, range: float | None = None, *, zeros: bool = False, unit: Unit = "all") -> Threshold:
    """The threshold rule in τ-ARGUS's words: sensitive when count < n, with a safety range in percent.

    >>> MinFrequency(3) == Threshold(2)
    True
    """
    check_whole(n, "the minimum frequency", least=1 if zeros else 2)
    return Threshold(n - 1, zeros=zeros, range=range, unit=unit)


@dataclass(frozen=True)
class ZeroValue(SensitivityRule):
    """Sensitive when the total is zero although there are contributors: everybody learns that each of them reported zero.

    ``level`` is how far, in units of the value, the cell must be blurred; one unit of the last decimal unless given (τ-ARGUS's zero rule).
    """

    level: float | None = None
    unit: Unit = "contributor"

    def __post_init__(self) -> None:
        if self.level is not None:
            check_number(self.level, "the level of zero cells")
        check_unit(self.unit)

    @property
    def name(self) -> str:
        return "zero" if self.level is None else f"zero({self.level:g})"

    def assess(self, table: Table) -> Marks:
        present = np.logical_or.reduce([count > 0 for _, count in counts(table, self.unit, self.name)])
        up = np.full(table.n_cells, self.level or 0.0)
        return two_sided(table, present & (table.values == 0), up, self.name)
