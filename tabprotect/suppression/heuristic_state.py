"""A safe pattern under improvement: one witness move for every need, and the hidden cells as the union of their supports."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import scipy.sparse as sp

from tabprotect.suppression.heuristic_library import Library
from tabprotect.suppression.moves import BOTH, Move, Need, Router, directed, needs_of, rows_of, stack
from tabprotect.suppression.preprocess import Reduced
from tabprotect.suppression.problem import Pattern
from tabprotect.suppression.reach import reaches
from tabprotect.types import BoolArray, FloatArray, IntArray


class Witnessed:
    """Needs with their moves; ``uses[j]`` counts the moves through cell j, so taking a move out frees cells at once."""

    def __init__(self, problem: Reduced, needs: list[Need]) -> None:
        self.problem = problem
        self.needs = needs
        self.moves: list[Move | None] = [None] * len(needs)
        self.uses = np.zeros(problem.n, np.int64)
        self.price = np.where(problem.free, 0.0, problem.weights)

    def put(self, index: int, move: Move | None) -> None:
        """Give a need another witness."""
        old = self.moves[index]
        if old is not None:
            self.uses[old.cells] -= 1
        if move is not None:
            self.uses[move.cells] += 1
        self.moves[index] = move

    def replace(self, index: int, parts: list[tuple[Need, Move]]) -> None:
        """Put several needs with their moves in the place of one."""
        self.put(index, None)
        self.needs[index] = parts[0][0]
        self.put(index, parts[0][1])
        for need, move in parts[1:]:
            self.needs.append(need)
            self.moves.append(None)
            self.put(len(self.needs) - 1, move)

    @property
    def hidden(self) -> BoolArray:
        return (self.uses > 0) | self.problem.free

    @property
    def cost(self) -> float:
        return self.problem.base + float(self.price[self.uses > 0].sum())

    @property
    def secondaries(self) -> IntArray:
        """Cells hidden at a price."""
        return np.flatnonzero((self.uses > 0) & (self.price > 0))

    def users(self, cells: Iterable[int]) -> list[int]:
        """Needs whose move goes through one of these cells."""
        mask = np.zeros(self.problem.n, bool)
        mask[list(cells)] = True
        return [i for i, m in enumerate(self.moves) if m is not None and mask[m.cells].any()]

    def copy(self) -> Witnessed:
        other = Witnessed(self.problem, list(self.needs))
        other.moves, other.uses = list(self.moves), self.uses.copy()
        return other

    def adopt(self, other: Witnessed) -> None:
        """Become a copy of another state of the same problem."""
        self.needs, self.moves, self.uses = list(other.needs), list(other.moves), other.uses.copy()

    def pattern(self, bound: float, optimal: bool = False, **info: object) -> Pattern:
        """The answer in original cells, with every distinct move (and its reverse where it goes both ways)."""
        signed, seen = [], set()
        for need, move in zip(self.needs, self.moves, strict=True):
            if move is None or id(move) in seen:
                continue
            seen.add(id(move))
            signed.append(move)
            if need.sense == BOTH:
                signed.append(move.back)
        rows = stack(signed, self.problem.n)
        if self.problem.proofs is not None:
            rows = sp.vstack([rows, self.problem.proofs])
        return Pattern(
            suppressed=self.problem.expand(self.hidden),
            bound=bound,
            optimal=optimal,
            moves=self.problem.expand_moves(rows),
            info=dict(info),
        )


def witnessed(problem: Reduced, pattern: Pattern, needs: list[Need] | None = None) -> Witnessed | None:
    """Witnesses for all ``needs`` (two-way ones where possible) inside a pattern: its own moves where they do, else by programs; None where a need has none."""
    state = Witnessed(problem, needs_of(problem) if needs is None else list(needs))
    hidden = problem.contract(pattern.suppressed) | problem.free
    library = Library(problem, list(state.needs))
    if pattern.moves is not None:
        for offered in rows_of(problem.contract_moves(pattern.moves)):
            library.add(offered)
    router: Router | None = None
    cost = 1e-3 + state.price / max(1.0, float(state.price.max(initial=0.0)))
    for i in range(len(state.needs)):
        known = library.cheapest(i, cost, ~hidden)
        if known is not None:
            state.put(i, known[0])
            continue
        router = router or Router(problem, np.flatnonzero(hidden))
        move = router.route(state.needs[i], cost)
        if move is not None:
            state.put(i, move)
            continue
        found = reaches(problem, state.needs[i], hidden)
        if isinstance(found, float):
            return None
        state.replace(i, [(Need(state.needs[i].cell, sense, level), m) for sense, level, m in found])
    return state


def one_way(state: Witnessed) -> Witnessed:
    """The same pattern with directed needs, which leave more room for better ones."""
    found = witnessed(state.problem, state.pattern(bound=0.0), directed(state.problem))
    return found if found is not None and found.cost <= state.cost else state


def adjacent(problem: Reduced, cells: IntArray) -> IntArray:
    """Cells in a relation with one of these."""
    rows = problem.matrix
    mark: FloatArray = np.zeros(problem.n)
    mark[cells] = 1.0
    touched = abs(rows) @ mark > 0
    return np.flatnonzero(abs(rows).T @ touched.astype(float) > 0)
