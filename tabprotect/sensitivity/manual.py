"""A-priori information: what is decided of single cells by people, whatever the rules say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.sensitivity.locate import locate, locate_each
from tabprotect.sensitivity.rule import SensitivityRule, check_number, percent_of_value, two_sided
from tabprotect.table.table import Apriori, Marks, Table
from tabprotect.types import FloatArray


@dataclass(frozen=True)
class Manual(SensitivityRule):
    """Force cells unsafe or safe, protect them from suppression, give them own costs or own protection levels.

    Cells are masks, indices, or codes (see `locate.locate`). ``cost`` and ``levels`` map a cell (its number or its tuple of codes) to a cost and to a
    level or a pair (LPL, UPL); an array with one entry per cell (NaN: none) is taken too. Joined by ``|`` with other rules, this one has the last
    word. A cell forced unsafe gets ``range`` percent of its value as level unless levels are given. ``missing="ignore"`` leaves out codes that the
    table does not have. Own levels apply to cells that are primary in the end.

    >>> from tabprotect.table.examples import d272
    >>> from tabprotect.sensitivity import Threshold
    >>> rule = Threshold(2) | Manual(safe=[("100-199", "D2729")], unsafe=[("50-99", "D2729")], levels={("50-99", "D2729"): (1, 2)})
    >>> table = d272().mark(rule)
    >>> [table.label(int(i)) for i in table.primary.nonzero()[0]][:1], table.upl[table.primary].tolist()
    (['size=50-99, industry=D2729'], [2.0, 2.0, 1.0, 1.0])
    """

    unsafe: Any = field(default=(), compare=False)
    safe: Any = field(default=(), compare=False)
    protect: Any = field(default=(), compare=False)
    cost: Any = field(default=None, compare=False)
    levels: Any = field(default=None, compare=False)
    range: float = 10.0
    missing: str = "error"

    def __post_init__(self) -> None:
        check_number(self.range, "the safety range in percent")
        if self.missing not in ("error", "ignore"):
            raise InputError(f"missing must be 'error' or 'ignore', not {self.missing!r}")

    @property
    def name(self) -> str:
        return "manual"

    def assess(self, table: Table) -> Marks:
        status = np.zeros(table.n_cells, "U1")
        for letter, cells in (("u", self.unsafe), ("s", self.safe), ("z", self.protect)):
            chosen = locate(table, cells, missing=self.missing)
            again = chosen[(status[chosen] != "") & (status[chosen] != letter)]
            if len(again):
                raise InputError(f"cell {table.label(int(again[0]))} is given two different statuses")
            status[chosen] = letter
        (cost,) = self._columns(table, self.cost, "cost", 1)
        lpl, upl = self._columns(table, self.levels, "levels", 2)
        marks = two_sided(table, status == "u", percent_of_value(table, self.range), self.name)
        return Marks(marks.primary, marks.lpl, marks.upl, marks.spl, marks.reason, Apriori(status, cost, lpl, upl))

    def _columns(self, table: Table, given: Any, what: str, width: int) -> list[FloatArray]:
        """One column per number that a cell is given, NaN where it is given none."""
        columns = np.full((table.n_cells, width), np.nan)
        if given is None:
            return list(columns.T)
        if isinstance(given, Mapping):
            cells = locate_each(table, list(given), missing=self.missing)
            for cell, numbers in zip(cells.tolist(), given.values(), strict=True):
                if cell >= 0:
                    columns[cell] = _numbers(numbers, what, width)
        else:
            array = np.asarray(given, float)
            if array.shape[0] != table.n_cells or array.ndim > 2:
                raise InputError(
                    f"{what} must map cells to numbers or have one entry for each of {table.n_cells} cells"
                )
            columns[:] = array if array.ndim == 2 else array[:, None]
        if (columns < 0).any() or np.isinf(columns).any():
            raise InputError(f"{what} must be finite and not negative")
        return [np.ascontiguousarray(c) for c in columns.T]


def _numbers(given: Any, what: str, width: int) -> FloatArray:
    try:
        return np.broadcast_to(np.asarray(given, float), (width,))
    except (TypeError, ValueError):
        raise InputError(
            f"{what} of a cell must be {'a number' if width == 1 else 'a number or a pair'}, not {given!r}"
        ) from None
