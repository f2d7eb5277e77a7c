"""Many good patterns, and the best pattern inside the span of the moves of some of them.

Starts guided by the linear relaxation (cells it hides are cheap) and disturbed at random descend to patterns that differ; what the moves of
two or three of them span has few dimensions, and its cheapest subspace is cheap to find (`flats`). It joins the others.

D. Applegate, R. Bixby, V. Chvátal and W. Cook, "Finding tours in the TSP" (1999), for tour merging, from which the idea is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tabprotect.solve.stop import Stop
from tabprotect.solve.work import worked
from tabprotect.suppression.heuristic_combine import WIDE, combine, neighbours
from tabprotect.suppression.heuristic_exchange import Exchange
from tabprotect.suppression.heuristic_library import Library
from tabprotect.suppression.heuristic_local import improve, reroute
from tabprotect.suppression.heuristic_start import rebuild
from tabprotect.suppression.heuristic_state import Witnessed, witnessed
from tabprotect.suppression.moves import Router, directed
from tabprotect.suppression.preprocess import reduce
from tabprotect.suppression.problem import Pattern, Problem
from tabprotect.suppression.settle import settle
from tabprotect.types import FloatArray

Exact = Callable[[Problem, Stop, int, Pattern], Pattern]
Guide = Callable[[], FloatArray]
"""How likely each cell is to be hidden, as far as is known now: the relaxation's point, or better."""
UNIONS = 0.25
"""Share of the work for the exact method on unions of patterns."""
PATIENCE = (150, 30, 60)
"""Steps without gain before a descent ends, in turn: long ones find good patterns, short ones different ones."""
DEARER = 1.5
"""How much dearer a step of a descent may be, in average costs of a need."""
GRAFTS = (4, 8, 14)
"""Known moves that are combined with the best pattern at a time, in turn."""
TRIES = 100
"""Such combinations after each new pattern."""
BROOD = 3
"""Patterns made before the first union."""
WALKS = 2
"""Walks without gain before another pattern is taken."""
SMALL = 450
"""Up to so many cells walks are short enough to begin one at every new pattern."""
LARGE = 1500
"""Beyond so many cells new patterns take long, so that more of the time goes to the given one."""
KEPT = 12
"""Patterns to combine with."""


def search_core(
    state: Witnessed,
    likely: Guide,
    reduced: FloatArray,
    exact: Exact | None,
    stop: Stop,
    seed: int,
    bound: float,
    patience: int,
    better: Callable[[Pattern], None] | None = None,
    *,
    fresh: bool = False,
) -> Witnessed:
    """Improve and merge on the core of the problem: the cells whose reduced costs in the relaxation are low.

    Others are too dear to be likely, and programs over fewer cells take less time. ``better`` hears of every pattern that is the best. A ``fresh`` search begins elsewhere and joins what it finds with the given pattern in the end.
    """
    problem = state.problem
    count = 2 * int((likely() > 1e-6).sum()) + 100
    core = state.hidden
    core[np.argsort(reduced + 1e-9 * problem.weights, kind="stable")[:count]] = True
    small = replace(problem.origin, candidates=problem.origin.candidates & problem.expand(core))
    inner = settle(reduce(small), stop.part(0.1), seed)
    start = witnessed(inner, state.pattern(bound=0.0), directed(inner))
    if start is None:
        return state
    cells = np.flatnonzero((problem.group >= 0) & (inner.group >= 0))

    def guide() -> FloatArray:
        here = np.zeros(inner.n)
        np.maximum.at(here, inner.group[cells], likely()[problem.group[cells]])
        return here

    if len({id(move) for move in start.moves}) < len(start.needs) / 2:
        # one move for many needs leaves nothing to exchange: a move of its own for each, inside the pattern
        inside = np.flatnonzero(start.hidden)
        single = rebuild(start, range(len(start.needs) - 1, -1, -1), stop.part(0.4), seed, inside)
        start = single if single.cost <= start.cost else start
    if not fresh:
        share = 0.15 if problem.n > LARGE else 0.03
        improve(start, Router(inner), stop.part(share), seed, patience=150, bound=bound, dearer=DEARER)
    merging = Merging(start, guide, exact, stop, seed)
    if fresh:
        merging.leave()
    best = merging.run(bound, patience, better)
    found = witnessed(problem, best.pattern(bound=0.0), directed(problem))
    return found if found is not None and found.cost < state.cost else state


class Merging:
    """The best patterns so far, in order of cost, and how they are combined."""

    def __init__(self, state: Witnessed, guide: Guide, exact: Exact | None, stop: Stop, seed: int) -> None:
        self.problem, self.guide, self.exact = state.problem, guide, exact
        self.stop, self.seed = stop, seed
        self.router = Router(state.problem)
        self.best: list[Witnessed] = [state]
        self.rng = np.random.default_rng([seed, 1])
        self.library = Library(self.problem, list(state.needs), most=3000)
        self.size = len(state.needs)
        self.born = 0
        self.tried: set[bytes] = set()
        self.parents = 4
        self.founders: list[Witnessed] = [state]
        self.left: Witnessed | None = None
        self.exchange = Exchange(self.router, seed)

    def run(self, bound: float, patience: int, better: Callable[[Pattern], None] | None = None) -> Witnessed:
        """Until the stop, the bound, or so many new patterns in a row that bring nothing.

        A quarter of the work goes to unions for the exact method.
        """
        idle, began, spent = 0, worked(), 0.0
        while idle < patience and not self._over(bound):
            before = self.best[0].cost
            new = self.descend()
            if self.problem.n <= SMALL:
                self.walk(new)
            self._keep(new)
            self.combine(new)
            child = self.best[0].copy()
            if self.walk(child):
                self._keep(child)
            else:
                self.graft(TRIES)
            start = worked()
            if self.born >= BROOD and spent <= UNIONS * (start - began) and not self._over(bound):
                self.merge()
                spent += worked() - start
            gained = self.best[0].cost < before - 1e-9 * abs(before)
            idle = 0 if gained else idle + 1
            if gained:
                self._tell(bound, better)
        self._return()
        self._tell(bound, better)
        return self.best[0]

    def _tell(self, bound: float, better: Callable[[Pattern], None] | None) -> None:
        """Progress, with the best pattern unless a better one was left."""
        best = self.best[0] if self.left is None or self.best[0].cost <= self.left.cost else self.left
        self.stop.tell("merging", cost=best.cost, bound=bound)
        if better is not None and best is not self.left:
            better(best.pattern(bound=0.0))

    def leave(self) -> None:
        """Go on from a new pattern; the given one comes back in the end."""
        self.left = self.best[0]
        new = self.descend()
        self.best, self.founders = [new], [new]

    def _return(self) -> None:
        """Combine with the pattern that was left."""
        left = self.left
        if left is None:
            return
        if left.needs == self.best[0].needs:
            self._keep(left)
            self.combine(left)
            self.graft(TRIES)
        elif left.cost < self.best[0].cost:
            self._adopt(left)

    def _over(self, bound: float) -> bool:
        return self.stop.done or self.stop.enough(self.best[0].cost, bound)

    def descend(self) -> Witnessed:
        """A new pattern: needs routed in some order at prices the relaxation and chance have changed, then destroy and repair.

        The first ones know nothing of each other, so that they end in different places. Later every other time only the needs of one part of
        the table are routed anew and the others keep the moves of the best pattern, and moves found before are used again.
        """
        k = self.born = self.born + 1
        alone = k <= BROOD or k % 4 == 1
        rng = np.random.default_rng([self.seed, k])
        first = self.best[0]
        new = Witnessed(self.problem, list(first.needs))
        price, n = new.price, len(first.needs)
        order = (list(range(n)), list(range(n - 1, -1, -1)), [int(i) for i in rng.permutation(n)])[(k - 1) % 3]
        if k > BROOD and k % 2 == 0:
            chosen = set(neighbours(first, int(rng.integers(n)), max(2, n // 3)))
            for i in range(n):
                new.put(i, None if i in chosen else first.moves[i])
            order = [i for i in order if i in chosen]
        noise = (0.0 if self.left is None else 0.3, 0.2, 0.4)[(k - 1) % 3]
        new.price = price * np.maximum(1.0 - self.guide(), 0.02) * rng.uniform(1 - noise, 1 + noise, self.problem.n)
        if len(order) < n:
            own = first.secondaries
            new.price[own[rng.random(len(own)) < 0.5]] *= 3.0  # or it would come back to where it was
        for i in order:
            move = None
            if not self.stop.done:
                limit = min(5.0, self.stop.left)
                move = reroute(new, self.router, new.needs[i], new.hidden, rng, limit=limit)
            new.put(i, move if move is not None else first.moves[i])
        new.price = price
        part = replace(self.stop.part(0.1), listener=None)  # its costs are not those of the best pattern
        library = Library(self.problem, list(first.needs)) if alone else self.library
        patience = PATIENCE[0] if k <= BROOD else PATIENCE[k % len(PATIENCE)]
        improve(new, self.router, part, k, patience=patience, library=library, dearer=DEARER)
        if alone:
            for known in library.moves:
                self.library.add(known)
            self.founders = sorted([*self.founders, new], key=lambda s: s.cost)[:KEPT]
        return new

    def _keep(self, new: Witnessed) -> None:
        if any((new.hidden == old.hidden).all() for old in self.best):
            return
        self.best = sorted([*self.best, new], key=lambda s: s.cost)[:KEPT]

    def _adopt(self, new: Witnessed) -> None:
        """Go on from a pattern with other needs (some were split): moves of the others are still known, their order is not."""
        known = self.library.moves
        self.library = Library(self.problem, list(new.needs), most=self.library.most)
        for move in known:
            self.library.add(move)
        self.best, self.founders, self.size = [new], [new], len(new.needs)

    def combine(self, new: Witnessed) -> None:
        """Cross the best pattern with the new one, alone and with each other; after a gain with all of them again."""
        parents: list[tuple[Witnessed, ...]] = [(new,), *((new, other) for other in self.best)]
        while parents and not self.stop.done:
            first = self.best[0]
            child = self.cross(first, parents.pop(0))
            if child.cost < first.cost - 1e-9 * abs(first.cost):
                self._keep(child)
                parents = [(other,) for other in self.best[1:]]

    def graft(self, tries: int) -> None:
        """Combine the best pattern with known moves that would add little to it, taken from all that was ever tried."""
        for k in range(tries):
            if self.stop.done:
                return
            child = self.best[0].copy()
            n = len(child.needs)
            some = neighbours(child, int(self.rng.integers(n)), self.size)
            moves = self.library.near(np.where(child.hidden, 0.0, child.price), self.rng, GRAFTS[k % len(GRAFTS)])
            found = combine(child, some, moves)
            self._fit(found)
            if child.cost < self.best[0].cost * (1 - 1e-9):
                self._keep(child)

    def walk(self, state: Witnessed) -> bool:
        """Exchange circuits of a pattern as long as that makes it cheaper; False where its space is too wide."""
        self.exchange.add(self.library.moves)
        idle = 0
        while idle < WALKS and not self.stop.done:
            gained = self.exchange.improve(state, self.guide(), self.stop)
            if gained is None:
                return False
            idle = 0 if gained else idle + 1
        return True

    def _fit(self, found: int) -> None:
        """Fewer needs at a time where the span was too wide, more where there was room."""
        if found < 0:
            self.size = max(2, self.size * 2 // 3)
        elif found < 0.7 * WIDE:
            self.size = min(len(self.best[0].needs), self.size + 1)

    def merge(self) -> None:
        """The best pattern inside the union of some patterns, as far as the exact method gets; of more the next time, if it gets to the end."""
        others = [s for s in self.founders[: self.parents] if s is not self.best[0]]
        union = np.any([s.hidden for s in (self.best[0], *others)], axis=0)
        key = np.packbits(union).tobytes()
        if self.exact is None or key in self.tried or not others:
            return
        self.tried.add(key)
        origin = self.problem.origin
        small = replace(origin, candidates=origin.candidates & self.problem.expand(union))
        part = replace(self.stop.part(0.15), listener=None)
        found = self.exact(small, part, self.seed, self.best[0].pattern(bound=0.0))
        self.parents = min(KEPT, self.parents + 1) if found.optimal else max(2, self.parents - 1)
        if origin.cost(found.suppressed) >= self.best[0].cost * (1 - 1e-12):
            return
        new = witnessed(self.problem, found, self.best[0].needs)
        if new is not None and new.needs == self.best[0].needs:
            self._keep(new)
        elif new is not None and new.cost < self.best[0].cost:
            self._adopt(new)

    def cross(self, first: Witnessed, others: tuple[Witnessed, ...]) -> Witnessed:
        """A copy of a pattern with cheaper moves out of the span with those of others: all needs at once, or parts where that is too wide."""
        child, n = first.copy(), len(first.needs)
        for _ in range(-(-2 * n // self.size) if self.size < n else 1):
            if self.stop.done:
                break
            some = neighbours(child, int(self.rng.integers(n)), self.size)
            moves = [m for other in others if other is not first for i in some if (m := other.moves[i]) is not None]
            found = combine(child, some, moves)
            if len(others) == 1 or found > 0:
                self._fit(found)
        return child
