"""Many good patterns, and the best pattern inside the union of some of them.

Starts guided by the linear relaxation (cells it hides are cheap) and disturbed at random descend to patterns that differ; the union of a few
of them is a small table on which the exact method gets further. What it finds is good for the whole table, and joins the others.

D. Applegate, R. Bixby, V. Chvátal and W. Cook, "Finding tours in the TSP" (1999), for tour merging, from which the idea is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tabprotect.solve.stop import Stop
from tabprotect.suppression.heuristic import rebuild
from tabprotect.suppression.heuristic_library import Library
from tabprotect.suppression.heuristic_local import improve, reroute
from tabprotect.suppression.heuristic_state import Witnessed, witnessed
from tabprotect.suppression.moves import Router
from tabprotect.suppression.preprocess import reduce
from tabprotect.suppression.problem import Pattern, Problem
from tabprotect.suppression.settle import settle
from tabprotect.types import FloatArray

Exact = Callable[[Problem, Stop, int, Pattern], Pattern]
BROOD = 3
"""New patterns before each merging."""
PARENTS = (3, 5, 4)
"""How many of the best patterns are merged, in turn."""


def search_core(
    state: Witnessed,
    x: FloatArray,
    reduced: FloatArray,
    exact: Exact,
    stop: Stop,
    seed: int,
    bound: float,
    rounds: int,
) -> Witnessed:
    """Improve and merge on the core of the problem: the cells whose reduced costs in the relaxation are low.

    Others are too dear to be likely, and programs over fewer cells take less time.
    """
    problem = state.problem
    count = 2 * int((x > 1e-6).sum()) + 100
    core = state.hidden
    core[np.argsort(reduced + 1e-9 * problem.weights, kind="stable")[:count]] = True
    small = replace(problem.origin, candidates=problem.origin.candidates & problem.expand(core))
    inner = settle(reduce(small), stop.part(0.1), seed)
    start = witnessed(inner, state.pattern(bound=0.0))
    if start is None:
        return state
    cells = np.flatnonzero((problem.group >= 0) & (inner.group >= 0))
    guide = np.zeros(inner.n)
    np.maximum.at(guide, inner.group[cells], x[problem.group[cells]])
    if len({id(move) for move in start.moves}) < len(start.needs) / 2:
        # one move for many needs leaves nothing to exchange: a move of its own for each, inside the pattern
        inside = np.flatnonzero(start.hidden)
        single = rebuild(start, range(len(start.needs) - 1, -1, -1), stop.part(0.4), seed, inside)
        start = single if single.cost <= start.cost else start
    improve(start, Router(inner), stop.part(0.15), seed, patience=150, bound=bound)
    best = Merging(start, guide, exact, stop, seed).run(bound, rounds)
    found = witnessed(problem, best.pattern(bound=0.0))
    return found if found is not None and found.cost < state.cost else state


class Merging:
    """The best patterns so far, in order of cost; ``exact`` solves the problem on their union."""

    def __init__(self, state: Witnessed, guide: FloatArray, exact: Exact, stop: Stop, seed: int) -> None:
        self.problem, self.guide, self.exact = state.problem, guide, exact
        self.stop, self.seed = stop, seed
        self.router = Router(state.problem)
        self.best: list[Witnessed] = [state]
        self.tried: set[bytes] = set()
        self.born = 0

    def run(self, bound: float, rounds: int) -> Witnessed:
        """Until the stop, the bound, or three rounds in a row that bring nothing."""
        idle = 0
        for turn in range(rounds):
            before, part = self.best[0].cost, self.stop.part(0.3)
            for _ in range(BROOD):
                if self._over(bound):
                    return self.best[0]
                self._keep(self.descend())
                if part.done:
                    break
            if self._over(bound):
                return self.best[0]
            self.merge(PARENTS[turn % len(PARENTS)])
            gained = self.best[0].cost < before - 1e-9 * abs(before)
            idle = 0 if gained else idle + 1
            if gained:
                self.stop.tell("merging", cost=self.best[0].cost, bound=bound)
            if idle >= 3:
                break
        return self.best[0]

    def _over(self, bound: float) -> bool:
        return self.stop.done or self.stop.enough(self.best[0].cost, bound)

    def descend(self) -> Witnessed:
        """A new pattern: needs routed in some order at prices the relaxation and chance have changed, then destroy and repair."""
        k = self.born = self.born + 1
        rng = np.random.default_rng([self.seed, k])
        first = self.best[0]
        new = Witnessed(self.problem, list(first.needs))
        price, n = new.price, len(first.needs)
        noise = (0.0, 0.2, 0.4)[(k - 1) % 3]
        new.price = price * np.maximum(1.0 - self.guide, 0.02) * rng.uniform(1 - noise, 1 + noise, self.problem.n)
        order = (range(n), range(n - 1, -1, -1), rng.permutation(n))[(k - 1) % 3]
        for i in order:
            move = None
            if not self.stop.done:
                limit = min(5.0, self.stop.left)
                move = reroute(new, self.router, new.needs[int(i)], new.hidden, rng, limit=limit)
            new.put(int(i), move if move is not None else first.moves[int(i)])
        new.price = price
        library = Library(self.problem, list(first.needs))
        part = replace(self.stop.part(0.1), listener=None)  # its costs are not those of the best pattern
        return improve(new, self.router, part, k, patience=80, library=library)

    def _keep(self, new: Witnessed) -> None:
        if any((new.hidden == old.hidden).all() for old in self.best):
            return
        self.best = sorted([*self.best, new], key=lambda s: s.cost)[: max(PARENTS) + 1]

    def merge(self, parents: int) -> None:
        """The best pattern inside the union of some patterns, as far as the exact method gets in its share of the time."""
        union = np.any([s.hidden for s in self.best[:parents]], axis=0)
        key = np.packbits(union).tobytes()
        if key in self.tried or len(self.best) < 2:
            return
        self.tried.add(key)
        origin = self.problem.origin
        small = replace(origin, candidates=origin.candidates & self.problem.expand(union))
        part = replace(self.stop.part(0.25), listener=None)
        if part.time_limit is None:
            part = replace(part, time_limit=part.seconds + 60.0)
        found = self.exact(small, part, self.seed, self.best[0].pattern(bound=0.0))
        if origin.cost(found.suppressed) >= self.best[0].cost * (1 - 1e-12):
            return
        new = witnessed(self.problem, found)
        if new is not None:
            self._keep(new)
