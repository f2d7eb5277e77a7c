"""Diving: a feasible point of a covering program by rounding its relaxation up, a few columns at a time, with rows in between.

Columns near one are fixed there, with the largest fractional one at least, and the program is solved again with what the separator finds.
All ones is feasible, so every program on the way is, and the dive ends at a feasible point. Chance in what is fixed makes every dive a different one.

Reference: T. Berthold, "Primal heuristics for mixed integer programs", diploma thesis, TU Berlin (2006), on fractional and guided diving.
"""

from __future__ import annotations

import numpy as np

from tabprotect.solve.branch import Program, Separate
from tabprotect.solve.cutting import Row
from tabprotect.solve.relaxation import Columns, Relaxation, RowPool, most_violated
from tabprotect.solve.stop import Stop
from tabprotect.types import FloatArray

NEAR = (0.55, 0.85)
"""Columns from a value between these on are fixed at one together."""
NOISE = 0.15
"""How far chance may move a column in the order of values."""
AT_ONCE = 100
"""Rows added at a time."""


class Diver:
    """One warm program for many dives; rows that one of them needed are there for the next."""

    def __init__(self, program: Program, separate: Separate, seed: int) -> None:
        self.separate = separate
        self.columns = Columns(program.allowed)
        rows = [self.columns.local(row) for row in program.rows]
        self.pool = RowPool(len(self.columns.outside))
        self.pool.add(rows)
        self.lp = Relaxation(program.cost[self.columns.outside], self.pool, rows, seed)
        self.rng = np.random.default_rng([seed, 7])

    def dive(self, stop: Stop, most: float, x: FloatArray | None = None) -> FloatArray | None:
        """A feasible point that costs at most ``most``; None where the dive gets dearer, or time is up.

        It begins at the relaxation, or where a point ``x`` of it has ones.
        """
        near, noise = self.rng.uniform(*NEAR), self.rng.uniform(-NOISE, NOISE, self.lp.k)
        lower, upper = np.zeros(self.lp.k), np.ones(self.lp.k)
        if x is not None:
            lower[x[self.columns.outside] > 1 - 1e-6] = 1.0
        while not stop.done:
            self.lp.bounds(lower, upper)
            status, _ = self.lp.solve(most, stop.left)
            if status != "optimal":
                return None
            y, _ = self.lp.solution()
            if self.lp.recall(y):
                continue
            integral = bool((np.minimum(y, 1 - y) < 1e-6).all())
            point = self.columns.full(np.rint(y) if integral else y)
            rows = self.separate(point, integral, False)
            if integral and not rows:
                return point
            new = self._learn([self.columns.local(row) for row in most_violated(rows, point, AT_ONCE)])
            if integral and not new:
                return None
            if not integral:
                lower = np.where(y > near, 1.0, lower)
                lower[int(np.argmax(np.where((y > 1e-6) & (lower < 1), y + noise, -1.0)))] = 1.0
        return None

    def _learn(self, rows: list[Row]) -> int:
        self.pool.add(rows)
        self.pool.settle()
        self.lp.tidy()
        return self.lp.add(rows)
