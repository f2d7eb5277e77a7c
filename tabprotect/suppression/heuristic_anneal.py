"""Better group moves for tables where routing every need by itself takes too long.

Some targets are dropped, the move is found again at costs w/(|y| + ε) that favour the cells it uses already, and the dropped targets are
restored in the directions the new move takes them: a destroy-and-repair step on the whole table in two or three linear programs.
"""

from __future__ import annotations

import numpy as np

from tabprotect.solve.stop import Stop
from tabprotect.suppression.heuristic_group import GroupRouter
from tabprotect.suppression.moves import BOTH, Move, Need, clean
from tabprotect.suppression.preprocess import Reduced
from tabprotect.types import FloatArray, IntArray


class Annealer:
    """A group move that meets all two-way needs, and its cost; `step` tries to make it cheaper."""

    def __init__(self, problem: Reduced, needs: list[Need], move: Move, seed: int) -> None:
        two_way = [n for n in needs if n.sense == BOTH]
        self.problem = problem
        self.cells: IntArray = np.array([n.cell for n in two_way], dtype=np.int64)
        self.levels = np.array([n.level for n in two_way])
        self.typical = float(np.median(self.levels))
        self.price = np.where(problem.free, 0.0, problem.weights)
        self.y = np.zeros(problem.n)
        self.y[move.cells] = move.steps
        self.move = move
        self.rng = np.random.default_rng(seed)
        self.cost = self._cost(self.y)
        used = self.price[np.abs(self.y) > 0]
        dearest = max(float(np.quantile(self.price, 0.35)), float(np.quantile(used, 0.8)) if len(used) else 0.0)
        self.router = GroupRouter(problem, np.flatnonzero((self.price <= dearest) | (self.y != 0)))

    def _cost(self, y: FloatArray) -> float:
        return float(self.price[np.abs(y) > 1e-9 * self.typical].sum())

    def _reweighted(self, y: FloatArray, epsilon: float, noise: float) -> FloatArray:
        price = self.price / (np.abs(y) + epsilon * self.typical) + 1e-6 / self.typical
        return price * self.rng.uniform(1 - noise, 1 + noise, len(price))

    def _signs(self, y: FloatArray, other: FloatArray) -> FloatArray:
        moving = np.abs(y[self.cells]) > 1e-6 * self.typical
        return np.where(moving, np.sign(y[self.cells]), np.where(other[self.cells] < 0, -1.0, 1.0))

    def step(self, stop: Stop, limit: float = 10.0) -> bool:
        """Drop, find again, restore; whether the move became cheaper."""
        share = self.rng.choice([0.0, 0.1, 0.3, 0.5])
        kept = self.rng.random(len(self.cells)) >= share
        y = self.y
        if share > 0 and kept.any():
            answer = self.router.route(
                self.cells[kept], self.levels[kept], self._signs(y, y)[kept], self._reweighted(y, 0.1, 0.2),
                time_limit=min(limit, stop.left),
            )  # fmt: skip
            if answer is None:
                return False
            y = answer.y
        signs = self._signs(y, self.y if self.rng.random() < 0.5 else self.rng.standard_normal(self.problem.n))
        for epsilon in (0.2, 0.05):
            if stop.done:
                return False
            price = self._reweighted(y, epsilon, 0.1 if epsilon > 0.1 else 0.0)
            answer = self.router.route(self.cells, self.levels, signs, price, time_limit=min(limit, stop.left))
            if answer is None or not answer.met.all():
                return False
            y = answer.y
            signs = self._signs(y, y)
        cost = self._cost(y)
        if cost >= self.cost:
            return False
        move = clean(self.problem, y, both=True, scale=float(self.levels.min()))
        full = np.zeros(self.problem.n)
        if move is not None:
            full[move.cells] = move.steps
        if move is None or not (np.abs(full[self.cells]) >= self.levels * (1 - 1e-7)).all():
            return False
        self.y, self.move, self.cost = full, move, cost
        return True


def anneal(problem: Reduced, needs: list[Need], move: Move, stop: Stop, seed: int, patience: int = 25) -> Move:
    """Cheaper group moves until the stop, or until ``patience`` steps in a row bring nothing."""
    state = Annealer(problem, needs, move, seed)
    quiet = 0
    while not stop.done and quiet < patience:
        if state.step(stop):
            quiet = 0
            stop.tell("group moves", cost=problem.base + state.cost)
        else:
            quiet += 1
    return state.move
