"""Exact bounds of hidden cells on any table: one persistent LP per connected component.

Every solution is used for all cells: it raises what is known to be attainable, and a cell whose attainable value meets its own
bound (or the bound implied by its relations) needs no LP of its own.

M. Fischetti and J.J. Salazar González, Models and algorithms for the 2-dimensional cell suppression problem in statistical disclosure
control, Mathematical Programming 84 (1999) 283–312: the attacker subproblems.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.attacker.system import Component, peel
from tabprotect.solve.lp import PersistentLP
from tabprotect.solve.stop import Stop
from tabprotect.types import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-7
"""Relative to the size of the numbers in a component: two bounds closer than this are the same."""


@dataclass
class Reach:
    """How far each cell of a component can go down and up (as found so far), and the moves that show it."""

    down: FloatArray
    up: FloatArray
    down_move: IntArray
    up_move: IntArray
    moves: list[FloatArray] = field(default_factory=list)
    proved_down: BoolArray = field(default_factory=lambda: np.zeros(0, bool))
    proved_up: BoolArray = field(default_factory=lambda: np.zeros(0, bool))

    @classmethod
    def empty(cls, n: int) -> Reach:
        return cls(np.zeros(n), np.zeros(n), np.full(n, -1), np.full(n, -1), [], np.zeros(n, bool), np.zeros(n, bool))

    def add(self, y: FloatArray) -> None:
        """Take a new move into account."""
        better_up, better_down = y > self.up, -y > self.down
        if not (better_up.any() or better_down.any()):
            return
        self.moves.append(y)
        self.up[better_up], self.up_move[better_up] = y[better_up], len(self.moves) - 1
        self.down[better_down], self.down_move[better_down] = -y[better_down], len(self.moves) - 1


def implied_room(c: Component, rounds: int = 3) -> tuple[FloatArray, FloatArray]:
    """Room of each cell cut down to what its relations leave (bound propagation); never smaller than the true range."""
    down, up = c.down.copy(), c.up.copy()
    a = sp.coo_array(c.matrix)
    row, col = a.coords
    m = c.matrix.shape[0]
    for _ in range(rounds):
        # largest and smallest value of coefficient × y over each entry's range
        most = np.where(a.data > 0, a.data * up[col], -a.data * down[col])
        least = np.where(a.data > 0, a.data * down[col], -a.data * up[col])
        changed = False
        for gain, flip in ((most, False), (least, True)):
            finite = np.isfinite(gain)
            total = np.bincount(row, np.where(finite, gain, 0.0), m)
            infinite = np.bincount(row, ~finite, m)
            rest = np.where(infinite[row] - ~finite == 0, total[row] - np.where(finite, gain, 0.0), np.inf)
            # a·y_j = −Σ others, so what the others can give bounds y_j on the other side
            limit = np.maximum(rest, 0.0) / np.abs(a.data)
            side = (a.data > 0) != flip
            for mask, target in ((side, down), (~side, up)):
                before = target.copy()
                np.minimum.at(target, col[mask], limit[mask])
                changed |= bool((target < before * (1 - 1e-12)).any())
        if not changed:
            break
    return down, up


class ComponentLP:
    """The attacker on one component: ask how far single cells go, in any order, always with the same answers."""

    def __init__(self, component: Component, stop: Stop | None = None) -> None:
        self.component = component
        self.stop = stop or Stop()
        finite = np.concatenate([component.down[np.isfinite(component.down)], component.up[np.isfinite(component.up)]])
        positive = finite[finite > 0]
        # one scale for the whole component keeps HiGHS's absolute tolerances meaningful
        self.scale = float(np.exp(np.log(positive).mean())) if len(positive) else 1.0
        self.room_down, self.room_up = implied_room(component)
        zeros = np.zeros(component.matrix.shape[0])
        self._lp = PersistentLP(
            component.matrix,
            -self.room_down / self.scale,
            self.room_up / self.scale,
            zeros,
            zeros,
            options={
                "simplex_strategy": 4,
                "presolve": "off",
                "primal_feasibility_tolerance": 1e-9,
                "dual_feasibility_tolerance": 1e-9,
            },
        )
        self.reach = Reach.empty(component.n)
        determined = peel(component.matrix)
        self.reach.proved_down |= determined
        self.reach.proved_up |= determined
        self.calls = 0

    def _tolerance(self, room: FloatArray | float) -> Any:
        return TOLERANCE * np.maximum(np.where(np.isfinite(room), room, 0.0), 1e-6 * self.scale)

    def _note_full(self) -> None:
        """Cells that already reach their implied bound are finished."""
        r = self.reach
        r.proved_up |= np.isfinite(self.room_up) & (r.up >= self.room_up - self._tolerance(self.room_up))
        r.proved_down |= np.isfinite(self.room_down) & (r.down >= self.room_down - self._tolerance(self.room_down))

    def push(self, objective: Any, maximize: bool = True) -> FloatArray | None:
        """One LP; its solution is noted for all cells. None when unbounded or out of time."""
        self.calls += 1
        left = self.stop.left
        answer = self._lp.solve(objective, maximize=maximize, time_limit=left if left < float("inf") else float("inf"))
        if answer.status != "optimal":
            self.last_status = answer.status
            return None
        self.last_status = "optimal"
        y = answer.x * self.scale
        y[np.abs(y) <= 1e-9 * self.scale] = 0.0
        self.reach.add(y)
        return y

    def ask(self, j: int, up: bool) -> None:
        """Settle how far cell ``j`` goes in one direction."""
        r = self.reach
        y = self.push({int(j): 1.0}, maximize=up)
        if y is None and self.last_status == "unbounded":
            if up:
                r.up[j] = np.inf
            else:
                r.down[j] = np.inf
        if y is not None or self.last_status == "unbounded":
            (r.proved_up if up else r.proved_down)[j] = True

    def solve_all(self) -> Reach:
        """Exact range of every cell (until the time is over: what is not proved then is only attained)."""
        r = self.reach
        self._note_full()
        rng = np.random.default_rng(0)
        for sign in (1.0, -1.0):
            if (
                self.component.n > 2
                and not (r.proved_up.all() and r.proved_down.all())
                and np.isfinite(self.room_up).all()
            ):
                self.push(sign * (0.5 + rng.random(self.component.n)) / np.maximum(self.room_up + self.room_down, 1e-9))
        for j in np.argsort(-np.where(np.isfinite(self.room_up), self.room_up, 0.0), kind="stable"):
            for up, proved in ((True, r.proved_up), (False, r.proved_down)):
                if self.stop.done:
                    return r
                self._note_full()
                if not proved[j]:
                    self.ask(int(j), up)
        return r

    def solve_needed(self, need_down: FloatArray, need_up: FloatArray, need_width: FloatArray) -> Reach:
        """Go on until every cell reaches what it needs or is proved not to."""
        r = self.reach
        self._note_full()
        wanted = np.flatnonzero((need_down > 0) | (need_up > 0) | (need_width > 0))
        for j in wanted[np.argsort(-np.maximum(need_up[wanted], need_down[wanted]), kind="stable")]:
            for up in (True, False):
                if self.stop.done:
                    return r
                reached, need = (r.up[j], need_up[j]) if up else (r.down[j], need_down[j])
                narrow = r.up[j] + r.down[j] < need_width[j]
                proved = (r.proved_up if up else r.proved_down)[j]
                if (reached < need or narrow) and not proved:
                    self.ask(int(j), up)
        return r
