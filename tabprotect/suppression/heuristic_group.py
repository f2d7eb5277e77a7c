"""One move for many needs: a linear program whose answer certifies all its targets on both sides at once.

With b = min(down, up), find y with ``matrix @ y = 0``, |y| ≤ b and |y_p| ≥ level_p for all targets p at least Σ c|y|. Both a + y and
a − y are tables the outsider cannot rule out, so hiding the support of y protects every target. The directions of the targets
are chosen in stages, the largest levels first: later targets keep the direction in which the move takes them already. Costs
w/(|y| + ε) in further rounds turn the linear program towards few cells (reweighted ℓ1 for the fixed charge).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.solve.lp import PersistentLP
from tabprotect.solve.stop import Stop
from tabprotect.suppression.moves import BOTH, EXACT, SHORT, Move, Need, clean, measured
from tabprotect.suppression.preprocess import Reduced
from tabprotect.types import BoolArray, FloatArray, IntArray


@dataclass
class GroupAnswer:
    """The move as an array over all cells, and which targets it reaches."""

    y: FloatArray
    met: BoolArray


class GroupRouter:
    """Columns y⁺, y⁻ of the given cells; targets are rewarded, not forced, so that the program is never infeasible."""

    def __init__(
        self, problem: Reduced, columns: IntArray | None = None, options: dict[str, Any] | None = None
    ) -> None:
        self.problem = problem
        self.columns = np.flatnonzero(problem.room > 0) if columns is None else columns[problem.room[columns] > 0]
        self.position = np.full(problem.n, -1)
        self.position[self.columns] = np.arange(len(self.columns))
        part = sp.csr_array(sp.csc_array(problem.matrix)[:, self.columns])
        part = sp.csc_array(part[np.flatnonzero(np.diff(part.indptr)), :])
        self.k = len(self.columns)
        zero = np.zeros(part.shape[0])
        self.lp = PersistentLP(
            sp.hstack([part, -part, part]),
            np.zeros(3 * self.k),
            np.zeros(3 * self.k),
            zero,
            zero,
            options={**EXACT, **(options or {})},
        )

    def route(
        self,
        cells: IntArray,
        levels: FloatArray,
        signs: FloatArray,
        cost: FloatArray,
        *,
        barred: BoolArray | None = None,
        time_limit: float = float("inf"),
    ) -> GroupAnswer | None:
        """Cheapest move (cost per unit of each cell of the problem) that takes target cells by their levels in the given directions."""
        k, scale = self.k, float(np.median(levels)) if len(levels) else 1.0
        room = measured(self.problem.room[self.columns], scale)
        if barred is not None:
            room = np.where(barred[self.columns], 0.0, room)
        plus, minus, goal_low, goal_high = room.copy(), room.copy(), np.zeros(k), np.zeros(k)
        at = self.position[cells]
        inside = at >= 0
        at, sign = at[inside], signs[inside]
        level = np.minimum(levels[inside] / scale * (1 - SHORT), room[at])
        # the first `level` units of a target are a column of their own, with the reward; its opposite direction is closed
        goal_low[at], goal_high[at] = np.where(sign < 0, -level, 0.0), np.where(sign > 0, level, 0.0)
        plus[at] = np.where(sign > 0, np.maximum(room[at] - level, 0.0), 0.0)
        minus[at] = np.where(sign < 0, np.maximum(room[at] - level, 0.0), 0.0)
        price = cost[self.columns]
        reward = np.zeros(k)
        big = 50.0 * float(np.sort(price)[-max(1, k // 20)]) + 1.0
        reward[at] = -sign * big / np.minimum(level, 1.0)
        lower = np.concatenate([np.zeros(2 * k), goal_low])
        upper = np.concatenate([plus, minus, goal_high])
        self.lp.set_bounds(lower, upper)
        answer = self.lp.solve_fresh(np.concatenate([price, price, reward]), time_limit=time_limit)
        if answer.status != "optimal":
            return None
        x = answer.x
        y = np.zeros(self.problem.n)
        y[self.columns] = (x[:k] - x[k : 2 * k] + x[2 * k :]) * scale
        return GroupAnswer(y, signs * y[cells] >= levels * (1 - 1e-7))


def unit_cost(problem: Reduced, hidden: BoolArray, level: float) -> FloatArray:
    """Cost per unit of movement: hidden cells almost free, others their weight over what they typically carry."""
    price = np.where(hidden, 0.0, problem.weights)
    carry = np.minimum(np.maximum(problem.room, 0.05 * level), level)
    return price / carry + 1e-6 * (1.0 + np.where(hidden, 0.0, problem.weights)) / level


def build(
    problem: Reduced,
    needs: list[Need],
    router: GroupRouter,
    stop: Stop,
    rng: np.random.Generator,
    *,
    stages: int = 3,
    rounds: int = 4,
    hidden: BoolArray | None = None,
    guide: FloatArray | None = None,
    limit: float = 20.0,
) -> tuple[list[Move], BoolArray]:
    """Moves that meet the two-way needs as far as one linear program after another can, and which needs they meet."""
    hidden = problem.free.copy() if hidden is None else hidden
    cells = np.array([n.cell for n in needs], dtype=np.int64)
    levels = np.array([n.level for n in needs])
    left = np.array([n.sense == BOTH for n in needs])
    met = np.zeros(len(needs), bool)
    moves: list[Move] = []
    for _ in range(6):
        if not left.any() or stop.done:
            break
        ids = np.flatnonzero(left)
        y = _staged(problem, router, cells[ids], levels[ids], hidden, stop, rng, stages, rounds, guide, limit)
        if y is None:
            break
        move = clean(problem, y, both=True, scale=float(levels[ids].min()))
        if move is None:
            break
        full = np.zeros(problem.n)
        full[move.cells] = move.steps
        reached = np.abs(full[cells]) >= levels * (1 - 1e-7)
        new = reached & left
        if not new.any():
            break
        moves.append(move)
        met |= reached & np.array([n.sense == BOTH for n in needs])
        left &= ~met
        hidden = hidden | (full != 0)
        stages = 1
    return moves, met


def _staged(
    problem: Reduced,
    router: GroupRouter,
    cells: IntArray,
    levels: FloatArray,
    hidden: BoolArray,
    stop: Stop,
    rng: np.random.Generator,
    stages: int,
    rounds: int,
    guide: FloatArray | None,
    limit: float,
) -> FloatArray | None:
    order = np.argsort(-levels + 1e-9 * rng.random(len(levels)), kind="stable")
    signs = rng.choice([-1.0, 1.0], len(cells))
    typical = float(np.median(levels))
    base = unit_cost(problem, hidden, typical)
    if guide is not None:
        base = base * (1.02 - guide)
    y: FloatArray | None = None
    for stage in range(1, stages + 1):
        part = order[: int(np.ceil(len(order) * stage / stages))]
        if y is not None:
            moving = np.abs(y[cells]) > 1e-6 * typical
            signs = np.where(moving, np.sign(y[cells]), signs)
        answer = router.route(cells[part], levels[part], signs[part], base, time_limit=min(limit, stop.left))
        if answer is None:
            return y
        y = answer.y
    if y is None:
        return None
    best, best_cost, best_met = y, float(problem.weights[(np.abs(y) > 1e-9 * typical) & ~hidden].sum()), -1
    best_met = int((np.abs(y[cells]) >= levels * (1 - 1e-7)).sum())
    epsilon = 0.5
    for _ in range(rounds):
        if stop.done:
            break
        moving = np.abs(y[cells]) > 1e-6 * typical
        signs = np.where(moving, np.sign(y[cells]), signs)
        price = np.where(hidden, 0.0, problem.weights) / (np.abs(y) + epsilon * typical) + 1e-6 / typical
        answer = router.route(cells, levels, signs, price, time_limit=min(limit, stop.left))
        if answer is None:
            break
        y = answer.y
        epsilon = max(0.02, epsilon / 2)
        cost = float(problem.weights[(np.abs(y) > 1e-9 * typical) & ~hidden].sum())
        met = int(answer.met.sum())
        if (met, -cost) > (best_met, -best_cost):
            best, best_cost, best_met = y, cost, met
    return best
