"""Moves seen so far: a need that loses a cell may be met by a move that was found for something else, without another linear program."""

from __future__ import annotations

from typing import Any

import numpy as np

from tabprotect.suppression.moves import BOTH, Move, Need, meets, stack
from tabprotect.suppression.preprocess import Reduced
from tabprotect.types import BoolArray, FloatArray, IntArray

_BARRED = 1e18
_FAR = 1e12


class Library:
    """Moves with the needs each of them can meet, taken as far as its cells have room; the oldest make room when there are too many."""

    def __init__(self, problem: Reduced, needs: list[Need], most: int = 800) -> None:
        self.problem, self.needs, self.most = problem, needs, most
        self._cell = np.array([need.cell for need in needs], dtype=np.int64)
        self._sense = np.array([need.sense for need in needs], dtype=np.int64)
        self._level = np.array([need.level for need in needs])
        self.moves: list[Move] = []
        self._met: list[BoolArray] = []
        self._seen: set[bytes] = set()
        self._matrix: Any = None
        self._table: BoolArray = np.zeros((0, len(needs)), bool)

    def add(self, move: Move) -> None:
        """Remember a move (one for each support)."""
        key = move.cells.tobytes()
        if key in self._seen:
            return
        up, down, y = self.problem.up[move.cells], self.problem.down[move.cells], move.steps
        forth = float((np.where(y > 0, up, down) / np.abs(y)).min(initial=_FAR))
        back = float((np.where(y > 0, down, up) / np.abs(y)).min(initial=_FAR))
        full = np.zeros(self.problem.n)
        full[move.cells] = y
        step = full[self._cell]
        both = np.abs(step) * min(forth, back)
        along = step * self._sense
        reach = np.where(self._sense == BOTH, both, np.where(along > 0, along * forth, -along * back))
        met = reach >= self._level * (1 - 1e-8)
        if not met.any():
            return
        self._seen.add(key)
        self.moves.append(move)
        self._met.append(met)
        self._matrix = None

    def _ready(self) -> None:
        if self._matrix is not None:
            return
        if len(self.moves) > self.most:
            keep = self.most // 2
            self.moves, self._met = self.moves[-keep:], self._met[-keep:]
            self._seen = {m.cells.tobytes() for m in self.moves}
        self._matrix = stack(self.moves, self.problem.n)
        self._matrix.data[:] = 1.0
        self._table = np.array(self._met).reshape(-1, len(self.needs))

    def inside(self, allowed: BoolArray) -> BoolArray:
        """For every need whether a known move within these cells meets it."""
        self._ready()
        if not len(self.moves):
            return np.zeros(len(self.needs), bool)
        fits = self._matrix @ (~allowed).astype(float) == 0
        return np.asarray(self._table[fits].any(axis=0))

    def cheapest(self, index: int, price: FloatArray, barred: BoolArray | None = None) -> tuple[Move, float] | None:
        """The known move that meets a need at the least price of its cells."""
        self._ready()
        able: IntArray = np.flatnonzero(self._table[:, index]) if len(self.moves) else np.zeros(0, np.int64)
        if not len(able):
            return None
        cost = self._matrix @ (price if barred is None else np.where(barred, _BARRED, price))
        best = int(able[np.argmin(cost[able])])
        return (self._scaled(best, index), float(cost[best])) if cost[best] < _BARRED else None

    def near(self, price: FloatArray, rng: np.random.Generator, count: int) -> list[Move]:
        """Moves that cost little at these prices, but something; chance decides among the cheap ones."""
        self._ready()
        if not len(self.moves):
            return []
        cost = self._matrix @ price
        some = np.flatnonzero(cost > 0)
        order = np.argsort(cost[some] * rng.uniform(0.2, 1.8, len(some)), kind="stable")
        return [self.moves[k] for k in some[order[:count]]]

    def _scaled(self, k: int, index: int) -> Move:
        """The move itself where it is long enough (many needs can then share one proof), else as long as the need asks for."""
        need, move = self.needs[index], self.moves[k]
        step = move.at(need.cell)
        if meets(need, move) and (need.sense != BOTH or self._inside(move)):
            return move
        factor = need.level / abs(step) if need.sense == BOTH else need.level / (step * need.sense)
        return Move(move.cells, move.steps * (factor * (1 - 1e-8)))

    def _inside(self, move: Move) -> bool:
        """Whether a move may be taken both ways as it is."""
        return bool((np.abs(move.steps) <= self.problem.room[move.cells] * (1 + 1e-9)).all())
