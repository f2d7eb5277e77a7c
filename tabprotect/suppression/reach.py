"""How far a cell can be moved when given cells are hidden: the outsider's linear program, asked with true bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.solve.lp import PersistentLP
from tabprotect.suppression.moves import BOTH, EXACT, Move, Need, clean, measured
from tabprotect.suppression.preprocess import Reduced
from tabprotect.types import BoolArray, FloatArray, IntArray


class Attack:
    """Largest and smallest movement of cells when only ``hidden`` ones move; bounds are measured in levels of the cell asked for."""

    def __init__(self, problem: Reduced, hidden: BoolArray, options: dict[str, Any] | None = None) -> None:
        self.problem = problem
        self.columns: IntArray = np.flatnonzero(hidden)
        self.position = np.full(problem.n, -1)
        self.position[self.columns] = np.arange(len(self.columns))
        part = sp.csr_array(sp.csc_array(problem.matrix)[:, self.columns])
        part = sp.csc_array(part[np.flatnonzero(np.diff(part.indptr)), :])
        zero, k = np.zeros(part.shape[0]), len(self.columns)
        self.lp = PersistentLP(part, np.zeros(k), np.zeros(k), zero, zero, options={**EXACT, **(options or {})})

    def push(
        self, cell: int, sense: int, level: float, time_limit: float = float("inf")
    ) -> tuple[float, FloatArray | None]:
        """How far the cell goes (at most ``level``), and the movement of all cells that takes it there; −1 where the limit stopped it."""
        at = int(self.position[cell])
        if at < 0:
            return 0.0, None
        up = measured(self.problem.up[self.columns], level)
        down = measured(self.problem.down[self.columns], level)
        if sense > 0:
            up[at] = min(up[at], 1.0)
        else:
            down[at] = min(down[at], 1.0)
        self.lp.set_bounds(-down, up)
        answer = self.lp.solve({at: float(sense)}, maximize=True, time_limit=time_limit)
        if answer.status != "optimal":
            return -1.0, None
        y = np.zeros(self.problem.n)
        y[self.columns] = answer.x * level
        return float(answer.objective) * level, y


def reaches(problem: Reduced, need: Need, hidden: BoolArray) -> float | list[tuple[int, float, Move]]:
    """One-way moves (sense, level, move) that meet the requirements behind a need inside ``hidden``; else how much room is missing."""
    attack = Attack(problem, hidden)
    wanted = {r.sense: r.level for r in problem.requirements if r.cell == need.cell}
    if need.sense != BOTH:
        wanted = {s: level for s, level in wanted.items() if s in (need.sense, 0)}
    found: dict[int, tuple[float, Move]] = {}
    missing = 0.0
    for sense in (1, -1):
        level = max(wanted.get(sense, 0.0), wanted.get(0, 0.0))
        if level <= 0:
            continue
        reach, y = attack.push(need.cell, sense, level)
        move = None if y is None else clean(problem, y, both=False, scale=level)
        if move is not None:
            found[sense] = (reach, move)
        missing = max(missing, wanted.get(sense, 0.0) - reach)
    width = sum(reach for reach, _ in found.values())
    missing = max(missing, wanted.get(0, 0.0) - width)
    scale = max(wanted.values(), default=1.0)
    if missing > 1e-7 * scale or not found:
        return float(missing)
    return [(sense, abs(move.at(need.cell)), move) for sense, (_, move) in found.items()]
