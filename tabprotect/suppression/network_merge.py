"""Good patterns of a network table from dives into the relaxation, and the best pattern inside the union of some of them.

Dives end in patterns that differ in places; the tree over the few cells that any of the best ones hides is soon finished.

D. Applegate, R. Bixby, V. Chvátal and W. Cook, "Finding tours in the TSP" (1999), for tour merging, from which the idea is taken.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from tabprotect.solve.branch import Repair, branch_and_cut
from tabprotect.solve.dive import Diver
from tabprotect.solve.stop import Stop
from tabprotect.suppression.network_construct import search
from tabprotect.suppression.network_program import Open
from tabprotect.suppression.network_root import Root
from tabprotect.types import BoolArray, FloatArray

DEARER = 1.05
"""A dive is given up where its bound is so much above the best cost."""
QUIET, SHARE = 4, 0.5
"""Dives in a row at the root that may bring nothing; and dives in all as a share of open columns times gap: small trees do not wait for better patterns."""
OFTEN, RARELY = 100, 1600
"""Nodes of the tree between two dives: at first, and after many that brought nothing."""
KEPT = 16
"""Patterns to unite."""
NODES = 60
"""Nodes of the tree over a union: fewer, and the next union is of more patterns; three times as many at most."""


class Merging:
    """The best patterns so far, in order of cost."""

    def __init__(self, root: Root, stop: Stop, seed: int) -> None:
        self.root, self.seed = root, seed
        self.stop = replace(stop, listener=None)
        self.best: list[BoolArray] = [root.hidden]
        self.parents = 3
        self.tried: set[bytes] = set()

    def run(self, stop: Stop, threads: int) -> None:
        """Dives from the root, one in each thread at a time, and unions, until some in a row bring nothing."""
        root, quiet, number = self.root, 0, 0
        most = max(QUIET, int(SHARE * root.lp.allowed.sum() * (1.0 - root.bound / root.cost)))
        divers: list[tuple[Open, Diver]] = []
        with ThreadPoolExecutor(threads) as pool:
            while quiet < QUIET and number < most and not root.closed and not stop.done:
                if not divers or root.lp.allowed.sum() < 0.7 * divers[0][0].program.allowed.sum():
                    divers = [self._diver(number + k) for k in range(threads)]
                before = root.cost
                waiting = [pool.submit(self._dive, *d, before, number + k, stop) for k, d in enumerate(divers)]
                number += threads
                for answer in waiting:
                    self._keep(answer.result())
                root.offer(self.best[0])
                self._keep(self._unite(stop))
                root.offer(self.best[0])
                quiet = 0 if root.cost < before else quiet + threads
                base = root.model.fixed_cost
                stop.tell("dives", cost=root.cost + base, bound=root.rounded + base)

    def _diver(self, number: int) -> tuple[Open, Diver]:
        work = Open(self.root)
        return work, Diver(work.program, work.separate(), self.seed + number)

    def _dive(
        self, work: Open, diver: Diver, cost: float, number: int, stop: Stop, x: FloatArray | None = None
    ) -> BoolArray | None:
        """A pattern from one dive, made better by local search; None where it would be much dearer than ``cost``."""
        quiet = replace(stop, listener=None)  # the cost of a dive is not that of the best pattern
        point = diver.dive(quiet, DEARER * cost, x)
        if point is None:
            return None
        return search(work.model, quiet, self.seed + number, start=work.pattern(point), effort=0.1)

    def _cost(self, hidden: BoolArray) -> float:
        return self.root.model.cost(hidden) - self.root.model.fixed_cost

    def _keep(self, new: BoolArray | None) -> None:
        if new is not None and not any((new == old).all() for old in self.best):
            self.best = sorted([*self.best, new], key=self._cost)[:KEPT]

    def _unite(self, stop: Stop) -> BoolArray | None:
        """The best pattern inside the union of the best ones, as far as the tree gets."""
        union = np.any(self.best[: self.parents], axis=0)
        key = np.packbits(union).tobytes()
        if key in self.tried or len(self.best) < 2 or stop.done:
            return None
        self.tried.add(key)
        work = Open(self.root, union)
        program = replace(work.program, start=work.point(self.best[0]), most=3 * NODES)
        answer = branch_and_cut(program, replace(stop, listener=None), solver="tree", seed=self.seed)
        self.parents = min(KEPT, self.parents + 2) if answer.nodes < NODES else max(3, self.parents - 1)
        return work.pattern(answer.x)

    def repair(self) -> Repair:
        """Dives from the points of the tree, now and then."""
        work, diver = self._diver(0)
        due, pause = OFTEN, OFTEN

        def repair(x: FloatArray, call: int) -> FloatArray | None:
            nonlocal due, pause
            if self.stop.done or call < due:
                return None
            before = self._cost(self.best[0])
            self._keep(self._dive(work, diver, before, call, self.stop, x))
            self._keep(self._unite(self.stop))
            pause = OFTEN if self._cost(self.best[0]) < before else min(2 * pause, RARELY)
            due = call + pause
            return work.point(self.best[0])

        return repair
