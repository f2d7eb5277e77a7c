"""Finding violated cuts: the outsider's linear programs at a fractional or whole pattern."""

from __future__ import annotations

import numpy as np

from tabprotect.solve.lp import Pusher
from tabprotect.suppression.cuts import Cut, bridge_cut, requirement_cut
from tabprotect.suppression.moves import EXACT, FAR
from tabprotect.suppression.preprocess import Reduced
from tabprotect.suppression.problem import Requirement
from tabprotect.types import BoolArray, FloatArray

VIOLATED = 1e-4
WHOLE = 1e-7
"""Least violation, in levels, at a whole pattern: what is closer counts as met."""


class Separator:
    """One persistent linear program over all cells, bounds scaled by the pattern x.

    With ``capped`` the outsider may move no cell further than the level itself times x. That is only a way of finding multipliers: the
    cut is always rebuilt from them with true capacities and clipped, which any multipliers allow; capped ones give cuts that are
    stronger after clipping.
    """

    def __init__(self, problem: Reduced) -> None:
        self.problem = problem
        zero = np.zeros(problem.matrix.shape[0])
        self.lp = Pusher(problem.matrix, np.zeros(problem.n), np.zeros(problem.n), zero, zero, options=EXACT)
        self.calls = 0

    def push(
        self, x: FloatArray, cell: int, sense: int, level: float, cap: float, time_limit: float
    ) -> tuple[float, FloatArray, FloatArray] | None:
        """How many levels the cell can be moved (at most 1), the movement in levels, and the multipliers; None at the limit."""
        up = np.minimum(self.problem.up / level, cap) * x
        down = np.minimum(self.problem.down / level, cap) * x
        if sense > 0:
            up[cell] = min(1.0, self.problem.up[cell] / level)
        else:
            down[cell] = min(1.0, self.problem.down[cell] / level)
        self.calls += 1
        return self.lp.push(cell, float(sense), -down, up, time_limit)

    def requirement(
        self,
        x: FloatArray,
        r: Requirement,
        *,
        capped: bool,
        least: float = VIOLATED,
        time_limit: float = float("inf"),
    ) -> tuple[Cut | None, list[FloatArray]]:
        """A cut for one requirement that x violates, if there is one, and the movements found on the way."""
        duals: dict[int, FloatArray] = {}
        moves: list[FloatArray] = []
        reached = 0.0
        for sense in (1, -1) if r.sense == 0 else (r.sense,):
            level = r.level
            found = self.push(x, r.cell, sense, level, 1.0 if capped else FAR, time_limit)
            if found is None:
                return None, moves
            reached += found[0]
            moves.append(found[1] * level)
            duals[sense] = found[2]
        if reached >= 1 - least and not capped:
            return None, moves
        cut = requirement_cut(self.problem, r, duals)
        return (cut if cut is not None and cut.violation(x) > least else None), moves

    def bridge(self, x: FloatArray, cell: int, time_limit: float = float("inf")) -> Cut | None:
        """A cut that says the cell must not be deducible exactly, if x violates one."""
        bound = x.copy()
        bound[cell] = max(float(x[cell]), 1e-3)
        self.calls += 1
        answer = self.lp.push(cell, 1.0, -bound, bound, time_limit)
        if answer is None or answer[0] >= x[cell] - VIOLATED:
            return None
        duals = answer[2]
        delta = -(self.problem.by_cell @ duals)
        delta[cell] += 1.0
        support = np.flatnonzero(np.abs(delta) > 1e-7)
        cut = bridge_cut(self.problem, cell, support)
        return cut if cut is not None and cut.violation(x) > VIOLATED else None


def satisfied(requirements: list[Requirement], moves: list[FloatArray]) -> BoolArray:
    """Which requirements single movements meet (widths are left to their own programs)."""
    done = np.zeros(len(requirements), bool)
    for y in moves:
        for i, r in enumerate(requirements):
            if r.sense != 0 and r.sense * y[r.cell] >= r.level * (1 - 1e-7):
                done[i] = True
    return done
