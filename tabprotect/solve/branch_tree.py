"""Branch-and-cut on warm HiGHS linear programs: best bound first, reliability branching, rows from a separator.

Every row is valid everywhere, so a thread needs one program: a node is a set of fixed columns, and moving to another node changes column
bounds only, which keeps the basis dual feasible.

Several threads work in step: each takes a few of the best nodes, and what they found is put together in a fixed order before the next
ones are taken. So the tree is the same in every run with the same number of threads, as long as no time limit ends it.

Reference: T. Achterberg, T. Koch and A. Martin, "Branching rules revisited", Operations Research Letters 33 (2005).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tabprotect.solve.branch import Program, Separate, TreeAnswer
from tabprotect.solve.cutting import Row
from tabprotect.solve.relaxation import Basis, Columns, Relaxation, RowPool, most_violated
from tabprotect.solve.stop import Stop
from tabprotect.types import BoolArray, FloatArray, IntArray

RELIABLE = 4
"""Trials of a column in a direction before its average gain is believed."""

TRIALS = 8
"""Columns tried in a node before one is branched on."""

TRIAL_STEPS = 30
"""Simplex iterations of one trial."""

REPAIR_EVERY = 25
"""Nodes between two calls of the caller's repair."""

BUNDLE = 8
"""Nodes a thread takes at a time where there are several threads."""


@dataclass(order=True)
class _Node:
    bound: float
    order: int
    zero: IntArray = field(compare=False)
    one: IntArray = field(compare=False)
    basis: Basis | None = field(compare=False, default=None)


@dataclass(frozen=True)
class _Gains:
    """What fixing columns has brought so far, as one thread sees it while it works: rows are directions."""

    gain: FloatArray
    tried: FloatArray


@dataclass
class _Found:
    """What came out of one node."""

    children: list[tuple[float, IntArray, IntArray]] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    trials: list[tuple[int, int, float]] = field(default_factory=list)
    feasible: FloatArray | None = None
    root: tuple[float, FloatArray] | None = None
    x: FloatArray | None = None
    cut_short: bool = False
    basis: Basis | None = None


class _Worker:
    """One thread's program and separator, at work on one node at a time."""

    def __init__(self, relaxation: Relaxation, separate: Separate, columns: Columns, stop: Stop) -> None:
        self.lp, self.separate, self.columns, self.stop = relaxation, separate, columns, stop
        self.last: Basis | None = None

    def visit(self, node: _Node, cutoff: float, closed: BoolArray, gains: _Gains, first: bool) -> _Found:
        """Bound, cut and branch."""
        found = _Found()
        lower, upper = np.zeros(self.lp.k), np.where(closed, 0.0, 1.0)
        upper[node.zero] = 0.0
        lower[node.one] = 1.0
        if (lower > upper).any():
            return found
        self.lp.bounds(lower, upper)
        if node.basis is not None and node.basis is not self.last:
            self.lp.resume(node.basis)
        answer = self._cut(found, cutoff, first)
        if answer is None:
            return found
        value, x, reduced = answer
        found.x = x
        if first:
            found.root = (value, reduced)
        spare = cutoff - value
        zero = np.flatnonzero((x < 1e-9) & ((reduced > spare) | (upper == 0.0)))
        one = np.flatnonzero((x > 1 - 1e-9) & ((-reduced > spare) | (lower == 1.0)))
        fractional = np.flatnonzero((x > 1e-6) & (x < 1 - 1e-6))
        if len(fractional) == 0:
            raise RuntimeError("the separator refuses an integral point without giving a new row")
        found.basis = self.last = self.lp.basis()
        branch = self._branch(found, x, value, fractional, cutoff, gains)
        if branch is not None:
            j, down, up = branch
            found.children = [(down, np.append(zero, j), one), (up, zero, np.append(one, j))]
        self.lp.tidy()
        return found

    def _cut(self, found: _Found, cutoff: float, first: bool) -> tuple[float, FloatArray, FloatArray] | None:
        """Solve and separate: bound, point and reduced costs, or None when the node is done with (or time is up)."""
        last = -np.inf
        rounds = 0
        while True:
            status, value = self.lp.solve(cutoff, self.stop.left)
            if status != "optimal" or self.stop.done:
                found.cut_short = status == "limit" or self.stop.done
                return None
            x, reduced = self.lp.solution()
            integral = bool((np.minimum(x, 1 - x) < 1e-6).all())
            rounds += 1
            stalled = rounds > (20 if first else 2) and value - last < 1e-4 * abs(value)
            if not integral and (stalled or rounds > (40 if first else 6)):
                return value, x, reduced
            last = max(last, value)
            if self.lp.recall(x):
                continue
            point = self.columns.full(np.rint(x) if integral else x)
            rows = self.separate(point, integral, first)
            if integral and not rows:
                found.feasible = point
                return None
            local = [self.columns.local(row) for row in most_violated(rows, point, 200 if first else 60)]
            found.rows += local
            if self.lp.add(local) == 0:
                return value, x, reduced

    def _branch(
        self, found: _Found, x: FloatArray, value: float, fractional: IntArray, cutoff: float, gains: _Gains
    ) -> tuple[int, float, float] | None:
        """The column to branch on with bounds of both sides; None when time ran out."""
        distance = np.vstack([x[fractional], 1 - x[fractional]])
        known = gains.tried[:, fractional]
        mean = gains.gain.sum(axis=1) / np.maximum(gains.tried.sum(axis=1), 1)
        rate = np.where(known > 0, gains.gain[:, fractional] / np.maximum(known, 1), mean[:, None])
        score = _score(distance * rate)
        order = fractional[np.lexsort((fractional, -score))]
        scores = dict(zip(fractional.tolist(), score.tolist(), strict=True))
        best, best_score, bounds = int(order[0]), -1.0, (value, value)
        basis = self.lp.h.getBasis()
        trials = 0
        for j in order.tolist():
            trusted = gains.tried[:, j].min() >= RELIABLE
            if not trusted and trials < TRIALS:
                trials += 1
                down, up = self._try(found, basis, x, value, j, cutoff)
                if self.stop.done:
                    found.cut_short = True
                    return None
                if np.isinf(down) or np.isinf(up):
                    return j, down, up
                this = float(_score(np.minimum(np.array([down, up]) - value, cutoff - value)))
                sides = (down, up)
            else:
                this, sides = scores[j], (value, value)
            if this > best_score:
                best, best_score, bounds = j, this, sides
            if trials >= TRIALS and trusted:
                break
        return best, *bounds

    def _try(
        self, found: _Found, basis: Any, x: FloatArray, value: float, j: int, cutoff: float
    ) -> tuple[float, float]:
        """Bounds with column j at zero and at one after a few steps."""
        lower, upper = self.lp.lower, self.lp.upper
        after = [value, value]
        for side in (0, 1):
            low, high = lower.copy(), upper.copy()
            (high if side == 0 else low)[j] = float(side)
            self.lp.bounds(low, high)
            status, reached = self.lp.solve(cutoff, self.stop.left, TRIAL_STEPS)
            if status == "cutoff":
                after[side] = np.inf
            elif status in ("optimal", "steps"):
                after[side] = max(reached, value)
            if np.isfinite(after[side]):
                found.trials.append((side, j, (after[side] - value) / max(x[j] if side == 0 else 1 - x[j], 1e-6)))
            self.lp.bounds(lower, upper)
            self.lp.h.setBasis(basis)
        return after[0], after[1]


class _Tree:
    """Open nodes, incumbent and branching statistics."""

    def __init__(self, program: Program, stop: Stop, seed: int) -> None:
        self.program, self.stop, self.seed = program, stop, seed
        self.columns = Columns(program.allowed)
        self.k = len(self.columns.outside)
        self.pool = RowPool(self.k)
        self.rows = [self.columns.local(row) for row in program.rows]
        self.pool.add(self.rows + [self.columns.local(row) for row in program.known])
        self.workers = [self._worker(program.separate)]
        self.best, self.cost = program.start, float(program.cost @ program.start)
        self.gains = _Gains(np.zeros((2, self.k)), np.zeros((2, self.k)))
        self.closed = np.zeros(self.k, bool)
        self.open: list[_Node] = []
        self.nodes = self.made = 0
        self.root: tuple[float, FloatArray] | None = None
        self.bound = program.bound
        self.repair: Future[FloatArray | None] | None = None
        self.due = 0

    def _worker(self, separate: Separate) -> _Worker:
        lp = Relaxation(self.program.cost[self.columns.outside], self.pool, self.rows, self.seed)
        return _Worker(lp, separate, self.columns, self.stop)

    @property
    def cutoff(self) -> float:
        """Nodes above this hold nothing better than the incumbent."""
        return self.cost - 1.0 + 1e-6 if self.program.integral else self.cost * (1 - 1e-9) - 1e-12

    def offer(self, point: FloatArray | None) -> None:
        """Take over a feasible point; a better one closes more columns by the root's reduced costs."""
        if point is None or float(self.program.cost @ point) >= self.cost - 1e-12:
            return
        self.best, self.cost = point, float(self.program.cost @ point)
        self._close()

    def _close(self) -> None:
        if self.root is not None:
            value, reduced = self.root
            self.closed = self.closed | (value + np.maximum(reduced, 0.0) > self.cutoff)

    def push(self, bound: float, zero: IntArray, one: IntArray, basis: Basis | None = None) -> None:
        if bound <= self.cutoff:
            self.made += 1
            heapq.heappush(self.open, _Node(bound, -self.made, zero, one, basis))

    def run(self) -> bool:
        """Work until the tree is empty (True) or the stop says so."""
        self.push(self.program.bound, np.zeros(0, np.int64), np.zeros(0, np.int64))
        with ThreadPoolExecutor(1 + len(self.program.beside)) as threads:
            while bundles := self._take():
                if self.stop.done or self._enough() or not self._step(bundles, threads):
                    self.offer(None if self.repair is None else self.repair.result())
                    return False
        self.bound = self.cost
        return True

    def _step(self, bundles: list[list[_Node]], threads: ThreadPoolExecutor) -> bool:
        """One bundle of nodes for each thread; False where time ran out in one of them."""
        cutoff, closed, first = self.cutoff, self.closed, self.nodes == 0
        work = [
            self._bundle(worker, nodes, cutoff, closed, first)
            for worker, nodes in zip(self.workers, bundles, strict=False)
        ]
        waiting = [threads.submit(w) for w in work[1:]]
        answers = [found for bundle in (work[0](), *(w.result() for w in waiting)) for found in bundle]
        for found in answers:
            self._settle(found, threads)
        self.pool.settle()
        self.offer(self.program.news(self.bound) if self.program.news is not None else None)
        shift = self.program.offset
        self.stop.tell("tree", cost=self.cost + shift, bound=self.bound + shift, done=self.nodes)
        return not any(found.cut_short for found in answers)

    def _enough(self) -> bool:
        if self.program.most is not None and self.nodes >= self.program.most:
            return True
        shift = self.program.offset
        return self.stop.gap > 0 and self.stop.enough(self.cost + shift, self.bound + shift)

    def _take(self) -> list[list[_Node]]:
        """The best nodes, a few for each thread; empty when there is none left."""
        if len(self.workers) < 1 + len(self.program.beside) and len(self.open) >= 2:
            self.workers += [self._worker(separate) for separate in self.program.beside]
        n = len(self.workers) if self.program.busy is None else max(1, min(len(self.workers), self.program.busy()))
        most = 1 if n == 1 else min(BUNDLE * n, max(1, len(self.open)))
        nodes: list[_Node] = []
        while self.open and len(nodes) < most:
            node = heapq.heappop(self.open)
            if node.bound <= self.cutoff:
                nodes.append(node)
        if nodes:
            self.bound = max(self.bound, nodes[0].bound)
        return [part for i in range(n) if (part := nodes[i::n])]

    def _bundle(
        self, worker: _Worker, nodes: list[_Node], cutoff: float, closed: BoolArray, first: bool
    ) -> Callable[[], list[_Found]]:
        return lambda: [worker.visit(node, cutoff, closed, self.gains, first) for node in nodes]

    def _settle(self, found: _Found, threads: ThreadPoolExecutor) -> None:
        """Put what came out of a node to the rest."""
        self.nodes += 1
        self.pool.add(found.rows)
        for side, j, gain in found.trials:
            self.gains.gain[side, j] += gain
            self.gains.tried[side, j] += 1
        self.offer(found.feasible)
        if found.x is not None and self.program.watch is not None:
            self.program.watch(self.columns.full(found.x))
        if found.root is not None:
            self.root = found.root
            self._close()
        for child in found.children:
            self.push(*child, found.basis)
        if self.program.repair is not None:
            self._mend(self.program.repair, found.x, threads)

    def _mend(self, repair: Any, x: FloatArray | None, threads: ThreadPoolExecutor) -> None:
        """Have a fractional point made feasible now and then: beside the next nodes where there are threads, and taken over at a fixed one."""
        if self.repair is not None and self.nodes >= self.due:
            self.offer(self.repair.result())
            self.repair = None
        if self.repair is not None or x is None or self.nodes % REPAIR_EVERY != 1:
            return
        point = self.columns.full(x)
        if self.nodes == 1 or not self.program.beside:
            self.offer(repair(point, self.nodes))
            return
        self.due = self.nodes + REPAIR_EVERY - 1
        self.repair = threads.submit(repair, point, self.nodes)


def _score(gains: Any) -> Any:
    """Product rule over the two sides."""
    return np.maximum(gains[0], 1e-6) * np.maximum(gains[1], 1e-6)


def solve_tree(program: Program, stop: Stop, seed: int) -> TreeAnswer:
    """Solve a program in this module's own tree."""
    tree = _Tree(program, stop, seed)
    done = tree.run()
    return TreeAnswer(tree.best, tree.cost if done else min(tree.bound, tree.cost), done, tree.nodes, "tree")
