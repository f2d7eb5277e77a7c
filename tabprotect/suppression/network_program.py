"""The program that a tree or a dive works on: the columns of a network table that are still open, and separators for any number of threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tabprotect.solve.branch import Program, Separate
from tabprotect.solve.cutting import Row
from tabprotect.solve.knapsack import RowSet, strengthen
from tabprotect.solve.knapsack_exact import facets
from tabprotect.suppression.network_cuts import Separator
from tabprotect.suppression.network_root import Root
from tabprotect.types import BoolArray, FloatArray


class Open:
    """What the root could not fix (of the cells ``within``, where they are given), with the best pattern as its start."""

    def __init__(self, root: Root, within: BoolArray | None = None) -> None:
        model, lp = root.model, root.lp
        start = root.hidden & ~model.fixed
        allowed = model.candidate & (lp.allowed | start)
        if within is not None:
            allowed &= within | start
        self.model = replace(model, candidate=allowed)
        self._separator = Separator(self.model)
        self._needs = np.arange(model.n_needs)
        self._capacity = [_restricted(r, allowed) for r in lp.rows if r.kind == "capacity"]
        self.program = Program(
            np.where(allowed, model.weight, 0.0),
            allowed,
            [_restricted(m.row, allowed) for m in lp.inside],
            self.separate(),
            start.astype(float),
            root.integral,
            offset=model.fixed_cost,
        )

    def separate(self) -> Separate:
        """One for each thread: it remembers the capacity rows it has seen."""
        known, model = RowSet(self._capacity), self.model

        def separate(x: FloatArray, integral: bool, at_root: bool) -> list[Row]:
            if integral and model.is_safe(self.pattern(x)):
                return []
            rows, _ = self._separator.capacity(x, self._needs)
            if integral:
                return rows
            known.extend(rows)
            return rows + strengthen(known, x) + facets(known, x) + self._separator.bridgeless(x)

        return separate

    def pattern(self, x: FloatArray) -> BoolArray:
        """The pattern of a 0–1 point."""
        hidden: BoolArray = self.model.fixed | (x > 0.5)
        return hidden

    def point(self, hidden: BoolArray) -> FloatArray:
        """The 0–1 point of a pattern."""
        return (hidden & ~self.model.fixed).astype(float)


def _restricted(row: Row, allowed: BoolArray) -> Row:
    """The row without columns that are fixed at zero."""
    keep = allowed[row.columns]
    return Row(row.columns[keep], row.values[keep], row.rhs, row.kind)
