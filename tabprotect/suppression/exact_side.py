"""Bounds in a process of their own, beside the search for better patterns: root and tree there, patterns here.

The two share only the best pattern and the bound, and the relaxation's point that guides the search.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from tabprotect.solve.side import Heard, Send, Side
from tabprotect.solve.stop import Progress, Stop
from tabprotect.suppression import exact_scip
from tabprotect.suppression.cuts import Cut, Pool
from tabprotect.suppression.exact_root import Root, cut_root
from tabprotect.suppression.exact_tree import grow
from tabprotect.suppression.heuristic_mip import useful
from tabprotect.suppression.master import Master, fixable
from tabprotect.suppression.preprocess import Reduced
from tabprotect.suppression.problem import Requirement
from tabprotect.suppression.separation import Separator
from tabprotect.types import BoolArray, FloatArray

ANEW = 0.6
"""The tree begins anew where so small a part of the cells is still open."""
EVERY = 0.3
"""Seconds between two messages about the bound."""
GUIDED = 2.0
"""Seconds between two guides from the tree."""
RECENT = 300
"""Nodes whose points the mean is over, more or less."""


@dataclass(frozen=True)
class Job:
    """The root as far as it has been cut, the best pattern, and when to end (seconds since the epoch)."""

    problem: Reduced
    requirements: list[Requirement]
    rows: list[Cut]
    pool: list[Cut]
    fixed: tuple[BoolArray, BoolArray]
    capped: bool
    finished: bool
    bound: float
    value: float
    x: FloatArray
    reduced: FloatArray
    hidden: BoolArray
    deadline: float
    gap: float
    seed: int

    @classmethod
    def of(cls, root: Root, hidden: BoolArray, stop: Stop, seed: int) -> Job:
        master = root.master
        return cls(
            root.problem,
            root.requirements,
            master.active(),
            list(root.pool.cuts),
            (master.fixed_out.copy(), master.fixed_in.copy()),
            root.capped,
            root.finished,
            root.bound,
            root.value,
            root.x,
            root.reduced,
            hidden,
            time.time() + min(stop.left, 1e9),
            stop.gap,
            seed,
        )

    def root(self) -> Root:
        """The same root in the other process."""
        master, pool = Master(self.problem), Pool()
        master.add(self.rows)
        master.fix(*self.fixed)
        pool.add(self.pool)
        root = Root(
            self.problem, pool, master, Separator(self.problem),
            self.bound, self.value, self.x, self.reduced, self.requirements,
        )  # fmt: skip
        root.capped, root.finished = self.capped, self.finished
        return root


@dataclass(frozen=True)
class Guide:
    """Value, point and reduced costs of the relaxation, the best bound, short cuts once it is at its best, and how likely each cell is hidden.

    That is the mean of the tree's latest points, and the root's point before there is a tree.
    """

    value: float
    x: FloatArray
    reduced: FloatArray
    bound: float
    cuts: list[Cut]
    likely: FloatArray

    @classmethod
    def of(cls, root: Root, likely: FloatArray | None = None) -> Guide:
        cuts = useful(root.pool.cuts) if root.finished else []
        return cls(root.value, root.x, root.reduced, root.bound, cuts, root.x if likely is None else likely)


@dataclass(frozen=True)
class News:
    """From the bounds: how far they are, whether they are finished, and a pattern where they have a cheaper one."""

    bound: float
    finished: bool = False
    hidden: BoolArray | None = None
    nodes: int = 0


@dataclass(frozen=True)
class Rest:
    """To the bounds: the search for patterns rests, its core is theirs (or not any more)."""

    over: bool = False


def work(job: Job, send: Send) -> tuple[Heard, Callable[[], None]]:
    """The task of the other process: it takes cheaper patterns, and runs root and tree."""
    bounds = _Bounds(job, send)
    return bounds.hear, bounds.run


class _Bounds:
    """Root and tree. Where a cheaper pattern fixes many cells, the tree is begun anew without them; its cuts stay."""

    def __init__(self, job: Job, send: Send) -> None:
        self.problem, self.seed, self.send = job.problem, job.seed, send
        self.offered: list[BoolArray] = []
        self.hidden, self.given = job.hidden, job.problem.cost(job.hidden)
        self.stop = Stop(max(0.1, job.deadline - time.time()), job.gap, self._cutting)
        self.root = job.root()
        self.told, self.open, self.busy = 0.0, 0, 1
        self.mean, self.points, self.guided = self.root.x, 0, 0.0
        self.anew = threading.Event()
        self.anew.set()

    @property
    def cost(self) -> float:
        return self.problem.cost(self.hidden)

    def _take(self) -> bool:
        """Take what was offered; whether it is cheaper."""
        before = self.cost
        while self.offered:
            new = self.offered.pop()
            if self.problem.cost(new) < self.cost:
                self.hidden = new
        return self.cost < before

    def _due(self) -> bool:
        if self.stop.seconds < self.told + EVERY:
            return False
        self.told = self.stop.seconds
        return True

    def _cutting(self, _: Progress) -> None:
        """Between the rounds of the root."""
        self._take()
        if self._due():
            self.send(Guide.of(self.root))

    def hear(self, message: BoolArray | Rest) -> None:
        if isinstance(message, Rest):
            self.busy = 1 if message.over else 2
        else:
            self.offered.append(message)

    def _between(self, bound: float) -> BoolArray | None:
        """Between the nodes of the tree."""
        if self._due():
            self.send(News(max(self.root.bound, bound)))
        if self.points and self.stop.seconds > self.guided + GUIDED:
            self.guided = self.stop.seconds
            self.send(Guide.of(self.root, np.where(self.problem.free, 1.0, self.mean)))
        if not self._take():
            return None
        if self.root.fix(self.cost) < ANEW * self.open:
            self.anew.set()
        return self.hidden

    def _watch(self, x: FloatArray) -> None:
        """The mean of the last points, of all of them at first."""
        self.points += 1
        self.mean = self.mean + (x - self.mean) / min(self.points, RECENT)

    def run(self) -> None:
        root, stop = self.root, self.stop
        if not root.finished:
            cut_root(root, self, stop)
        self.send(Guide.of(root))
        bound, nodes = root.bound, 0
        finished = root.lift(bound) >= self.cost
        while self.anew.is_set() and not finished and not stop.done:
            self.anew.clear()
            self.open = root.fix(self.cost)
            part = replace(stop.until(self.anew), listener=None)
            if exact_scip.suits(self.problem):
                tree = exact_scip.grow(root, self.hidden, part, self.seed, self._between, watch=self._watch)
            else:
                tree = grow(
                    root,
                    self.hidden,
                    part,
                    self.seed,
                    self._between,
                    threads=2,
                    busy=lambda: self.busy,
                    watch=self._watch,
                )
            if self.problem.cost(tree.hidden) < self.cost:
                self.hidden = tree.hidden
            bound, nodes, finished = max(bound, tree.bound), nodes + tree.nodes, tree.finished
        self.send(News(bound, finished, self.hidden if self.cost < self.given else None, nodes))


class Beside:
    """The bounds as this process sees them, for a ``with`` block: ``over`` is set when there is nothing more to expect of them."""

    def __init__(self, root: Root, hidden: BoolArray, stop: Stop, seed: int) -> None:
        self.root, self.news = root, News(root.bound)
        self.guide: Guide | None = Guide.of(root) if root.finished else None
        self.best = hidden
        self.over = threading.Event()
        self._outer = stop
        job = Job.of(root, hidden, stop, seed)
        self._side = Side("tabprotect.suppression.exact_side:work", job, self._hear, self.over.set)

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, *error: object) -> None:
        self._side.__exit__(*error)

    @property
    def bound(self) -> float:
        return self.root.lift(self.news.bound)

    @property
    def cost(self) -> float:
        return self.root.problem.cost(self.best)

    @property
    def stop(self) -> Stop:
        """The stop for work beside the bounds: it ends with them, and its progress shows them."""
        listener = None if self._outer.listener is None else self._tell
        return replace(self._outer.until(self.over), listener=listener)

    def likely(self) -> FloatArray:
        """How likely each cell is to be hidden, as far as the bounds know."""
        return self.root.x if self.guide is None else self.guide.likely

    def closed(self, guide: Guide) -> BoolArray:
        """Cells that no pattern cheaper than the best one contains."""
        step = 1.0 if self.root.problem.origin.integer_weights else 0.0
        return fixable(guide.value, guide.reduced, guide.x, self.cost, step)[0]

    def _tell(self, news: Progress) -> None:
        assert self._outer.listener is not None
        bound = min(self.bound, self.cost)
        self._outer.listener(replace(news, bound=max(bound, news.bound or bound)))

    def _hear(self, news: News | Guide) -> None:
        bound = max(self.news.bound, news.bound)
        if isinstance(news, Guide):
            self.guide, self.news = news, replace(self.news, bound=bound)
        else:
            self.news = replace(news, bound=bound)
        self._close()

    def offer(self, hidden: BoolArray) -> None:
        """The best pattern now, for the bounds to cut off by."""
        if self.root.problem.cost(hidden) < self.cost:
            self.best = hidden
            self._side.send(hidden)
            self._close()

    def rest(self, seconds: float) -> None:
        """Leave this core to the bounds for a while."""
        self._side.send(Rest())
        end = self._outer.seconds + seconds
        while not self.stop.done and self._outer.seconds < end:  # Ctrl-C must not wait
            self.over.wait(0.1)
        self._side.send(Rest(over=True))

    def _close(self) -> None:
        if self.news.finished or self._outer.enough(self.cost, self.bound):
            self.over.set()
