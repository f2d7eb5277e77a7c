"""Moves: differences between the truth and tables an outsider cannot rule out, and the linear program that finds cheap ones.

A move is a vector y with ``matrix @ y = 0`` and ``−down ≤ y ≤ up``; hiding its support lets the outsider's interval of every cell p it
moves reach from ``a_p`` to ``a_p + y_p``. A move inside ``min(down, up)`` works both ways. Hiding the supports of moves that reach all
levels is a safe pattern, and the moves are its proof.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.solve.lp import PersistentLP
from tabprotect.suppression.preprocess import Reduced
from tabprotect.types import BoolArray, FloatArray, IntArray

BOTH = 2
"""Sense of a need that one move, taken forwards and backwards, meets on both sides."""
FAR = 1e4
"""No cell is moved further than this many levels: it keeps the linear programs well scaled and costs nothing in practice."""
TINY = 1e-9
SHORT = 1e-8
"""Linear programs aim this much short of a level and keep this much (or the solver's tolerance) inside the bounds."""
EXACT = {
    "primal_feasibility_tolerance": 1e-9,
    "dual_feasibility_tolerance": 1e-9,
    "presolve": "off",
    "solver": "simplex",
}


def measured(room: FloatArray, level: float) -> FloatArray:
    """Room in units of a level, drawn in by what the solver's tolerance may add, and cut where it is far more than needed."""
    share = np.minimum(room / level, FAR)
    return np.where(share >= 0.1, share * (1 - SHORT), np.maximum(share - 2e-9, 0.0))


@dataclass(frozen=True)
class Need:
    """Something one move can meet: group ``cell`` moved by ``level`` up (sense +1), down (−1) or, forwards and backwards, both (2)."""

    cell: int
    sense: int
    level: float


@dataclass(frozen=True)
class Move:
    """A sparse move: cells and by how much each of them moves."""

    cells: IntArray
    steps: FloatArray

    @property
    def back(self) -> Move:
        """The same move the other way."""
        return Move(self.cells, -self.steps)

    def at(self, cell: int) -> float:
        found = np.flatnonzero(self.cells == cell)
        return float(self.steps[found[0]]) if len(found) else 0.0


def clean(problem: Reduced, y: FloatArray, *, both: bool, scale: float) -> Move | None:
    """The move without numerical dust, or None where plain arithmetic finds it outside its bounds or off balance."""
    cells = np.flatnonzero(np.abs(y) > TINY * scale)
    steps = y[cells]
    up = problem.room[cells] if both else problem.up[cells]
    down = problem.room[cells] if both else problem.down[cells]
    with np.errstate(invalid="ignore", divide="ignore"):
        over = float(np.max(np.where(steps > 0, steps / up, -steps / down), initial=1.0))
    if over > 1 + 1e-6:
        return None
    steps = steps / over
    full = np.zeros(problem.n)
    full[cells] = steps
    off = np.abs(problem.matrix @ full)
    allowed = 1e-7 * np.maximum(abs(problem.matrix) @ np.abs(full), scale * 1e-2)
    return Move(cells, steps) if (off <= allowed).all() else None


def meets(need: Need, move: Move, tolerance: float = 1e-7) -> bool:
    """Whether a move is long enough for a need (in the need's direction, either one when it works both ways)."""
    step = move.at(need.cell)
    reach = abs(step) if need.sense == BOTH else step * need.sense
    return reach >= need.level * (1 - tolerance)


def stack(moves: Sequence[Move], n: int) -> Any:
    """Moves as a sparse matrix, moves × cells."""
    if not moves:
        return sp.csr_array((0, n))
    indptr = np.concatenate([[0], np.cumsum([len(m.cells) for m in moves])])
    return sp.csr_array(
        (np.concatenate([m.steps for m in moves]), np.concatenate([m.cells for m in moves]), indptr),
        shape=(len(moves), n),
    )


def rows_of(moves: Any) -> list[Move]:
    """The rows of a sparse matrix as moves, without numerical dust."""
    rows = sp.csr_array(moves)
    found = []
    for k in range(rows.shape[0]):
        part = slice(rows.indptr[k], rows.indptr[k + 1])
        steps = rows.data[part]
        real = np.abs(steps) > TINY * np.abs(steps).max(initial=0.0)
        if real.any():
            order = np.argsort(rows.indices[part][real])
            found.append(Move(rows.indices[part][real][order].astype(np.int64), steps[real][order]))
    return found


def needs_of(problem: Reduced) -> list[Need]:
    """The needs that cover all requirements: one two-way need for each cell where its room allows, one-way needs elsewhere.

    A width (sense 0) that no two-way move can give is split between the two sides in proportion to the cell's own room.
    """
    levels: dict[int, dict[int, float]] = {}
    for r in problem.requirements:
        levels.setdefault(r.cell, {})[r.sense] = r.level
    needs = []
    for cell, wanted in levels.items():
        up, down, width = wanted.get(1, 0.0), wanted.get(-1, 0.0), wanted.get(0, 0.0)
        both = max(up, down, width / 2)
        if problem.room[cell] >= both:
            needs.append(Need(cell, BOTH, both))
            continue
        if up + down < width:
            reach_up, reach_down = min(problem.up[cell], width), min(problem.down[cell], width)
            up = max(up, min(reach_up, width * reach_up / (reach_up + reach_down)))
            down = max(down, width - up)
        needs += [Need(cell, sense, level) for sense, level in ((1, up), (-1, down)) if level > 0]
    return sorted(needs, key=_largest_first)


def directed(problem: Reduced) -> list[Need]:
    """The needs that cover all requirements, two-way ones split where two moves can do with less than one that works both ways.

    A hidden cell of value 4 may rise by any level but fall by 4 only: a move both ways through it is worth no more than 4, while two moves
    can both raise it.
    """
    one_sided = problem.free & (np.maximum(problem.up, problem.down) > problem.room)
    wanted: dict[int, dict[int, float]] = {}
    for r in problem.requirements:
        wanted.setdefault(r.cell, {})[r.sense] = r.level
    needs = []
    for need in needs_of(problem):
        narrow = one_sided & (problem.room < need.level)
        narrow[need.cell] = False
        if need.sense != BOTH or 0 in wanted[need.cell] or not narrow.any():
            needs.append(need)
        else:
            needs += [Need(need.cell, sense, level) for sense, level in wanted[need.cell].items()]
    return sorted(needs, key=_largest_first)


def _largest_first(need: Need) -> tuple[float, int, int]:
    return -need.level, need.cell, need.sense


class Router:
    """Cheapest moves over some of the cells: min Σ c|y| with the relations, the bounds and one or more cells moved by a given amount."""

    def __init__(
        self, problem: Reduced, columns: IntArray | None = None, options: dict[str, Any] | None = None
    ) -> None:
        self.problem = problem
        self.columns = np.arange(problem.n) if columns is None else columns
        self.position = np.full(problem.n, -1)
        self.position[self.columns] = np.arange(len(self.columns))
        part = sp.csc_array(problem.matrix)[:, self.columns]
        rows = np.flatnonzero(np.diff(sp.csr_array(part).indptr))
        part = sp.csc_array(sp.csr_array(part)[rows, :])
        self.k = len(self.columns)
        zero = np.zeros(len(rows))
        self.lp = PersistentLP(
            sp.hstack([part, -part]),
            np.zeros(2 * self.k),
            np.zeros(2 * self.k),
            zero,
            zero,
            options={**EXACT, **(options or {})},
        )

    def route(
        self,
        need: Need,
        cost: FloatArray,
        *,
        barred: BoolArray | None = None,
        time_limit: float = float("inf"),
        cutoff: float = float("inf"),
    ) -> Move | None:
        """Cheapest move for one need at these costs of moving each cell (of the whole problem) by the full level; None if there is none.

        None also where the limit came first or every move costs more than ``cutoff``.
        """
        c, r = self.columns, need.level
        both = need.sense == BOTH
        up = measured((self.problem.room if both else self.problem.up)[c], r)
        down = measured((self.problem.room if both else self.problem.down)[c], r)
        rise, fall = (cost[c] / np.clip(room, 0.05, 1.0) for room in (up, down))
        if barred is not None:
            up, down = np.where(barred[c], 0.0, up), np.where(barred[c], 0.0, down)
        at = int(self.position[need.cell])
        if at < 0:
            return None
        lower, upper = np.zeros(2 * self.k), np.concatenate([up, down])
        forward, backward = (at + self.k, at) if need.sense == -1 else (at, at + self.k)
        lower[forward] = upper[forward] = 1.0 - SHORT
        upper[backward] = 0.0
        self.lp.set_bounds(lower, upper)
        answer = self.lp.solve_fresh(np.concatenate([rise, fall]), time_limit=time_limit, cutoff=cutoff)
        if answer.status != "optimal":
            return None
        y = np.zeros(self.problem.n)
        y[c] = (answer.x[: self.k] - answer.x[self.k :]) * r
        return clean(self.problem, y, both=both, scale=r)
