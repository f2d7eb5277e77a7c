"""Finding violated cuts: the outsider's linear programs at a fractional or whole pattern."""

from __future__ import annotations

import numpy as np

from tabprotect.solve.lp import Pusher
from tabprotect.suppression.cuts import Cut, bridge_cut, reach, requirement_cut
from tabprotect.suppression.moves import EXACT, FAR
from tabprotect.suppression.preprocess import Reduced
from tabprotect.suppression.problem import Requirement
from tabprotect.types import BoolArray, FloatArray

VIOLATED = 1e-4
WHOLE = 1e-7
"""Least violation, in levels, at a whole pattern: what is closer counts as met."""
NARROW = 3
"""Programs with cells of little room left out, for one requirement."""


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
        self,
        x: FloatArray,
        cell: int,
        sense: int,
        level: float,
        cap: float,
        time_limit: float,
        left_out: BoolArray | None = None,
    ) -> tuple[float, FloatArray, FloatArray] | None:
        """How many levels the cell can be moved (at most 1), the movement in levels, and the multipliers; None at the limit.

        Cells ``left_out`` are not moved in directions where they have less room than the level.
        """
        up = np.minimum(self.problem.up / level, cap) * x
        down = np.minimum(self.problem.down / level, cap) * x
        if left_out is not None:
            up[left_out & (self.problem.up < level)] = 0.0
            down[left_out & (self.problem.down < level)] = 0.0
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
        if cut is not None and cut.violation(x) > least:
            return cut, moves
        return (self._narrow(x, r, least, time_limit) if capped and r.sense != 0 else None), moves

    def _narrow(self, x: FloatArray, r: Requirement, least: float, time_limit: float) -> Cut | None:
        """A violated cut through hidden cells with little room, if there is one.

        Free cells that together have less room than the level do not help to meet it: a cut through them still asks for a whole cell,
        but the program counts their room and takes the cut for satisfied. So they are left out, and those of which a cut would have too
        many are put back, the roomiest first.
        """
        problem = self.problem
        out = problem.free & (problem.room < r.level)
        out[r.cell] = False
        for _ in range(NARROW):
            if not out.any():
                return None
            found = self.push(x, r.cell, r.sense, r.level, 1.0, time_limit, out)
            if found is None or found[0] >= 1 - least:
                return None
            cut = requirement_cut(problem, r, {r.sense: found[2]})
            if cut is not None and cut.violation(x) > least:
                return cut
            delta = -(problem.by_cell @ found[2])
            delta[r.cell] += r.sense
            taken = np.where(out, np.minimum(reach(problem, delta), r.level), 0.0)
            if taken.max() <= 0.0:
                return None
            out[int(taken.argmax())] = False
        return None

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
