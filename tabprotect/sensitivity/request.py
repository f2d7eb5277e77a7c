"""The request rule: contributors who asked for protection are protected."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.sensitivity.locate import locate
from tabprotect.sensitivity.rule import SensitivityRule, check_number, percent_of_value, two_sided
from tabprotect.table.table import Marks, Table


@dataclass(frozen=True)
class Request(SensitivityRule):
    """Sensitive when a contributor who asked for protection has more than ``share`` percent of the cell (any part of it unless given).

    Who asked is read from ``table.contributions.asked``, or the cells are given as ``cells`` (mask, indices or codes). Level: ``range`` percent of the value. In
    trade statistics this is passive confidentiality; τ-ARGUS calls it the request rule.

    >>> table = Table([5.0, 100.0], np.zeros((0, 2))).mark(Request(cells=[1]))
    >>> table.primary.tolist(), table.upl.tolist()
    ([False, True], [0.0, 10.0])
    """

    share: float = 0.0
    range: float = 10.0
    cells: Any = field(default=None, compare=False)

    def __post_init__(self) -> None:
        check_number(self.range, "the safety range in percent")
        if not 0 <= self.share <= 100:
            raise InputError(f"the share must be between 0 and 100 percent, not {self.share!r}")

    @property
    def name(self) -> str:
        return "request" if not self.share else f"request({self.share:g})"

    def assess(self, table: Table) -> Marks:
        if self.cells is not None:
            primary = np.zeros(table.n_cells, bool)
            primary[locate(table, self.cells)] = True
        else:
            known = table.contributions
            if known is None or known.asked is None:
                raise InputError(
                    "the request rule needs to know who asked: give Request(cells=…), or set contributions.asked "
                    "(cells × k, true where a top contributor asked)"
                )
            if np.shape(known.asked) != np.shape(known.top):
                raise InputError("contributions.asked must have one entry for every top contribution")
            own = np.where(known.asked, known.top, 0.0)
            weight = 1.0 if known.weights is None else known.weights
            asking = (own * weight).max(axis=1, initial=0.0)
            primary = (asking > 0) & (100.0 * asking > self.share * np.asarray(known.total))
        return two_sided(table, primary, percent_of_value(table, self.range), self.name)
