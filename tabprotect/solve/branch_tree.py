"""Branch-and-cut on one warm HiGHS linear program: best bound first, reliability branching, rows from a separator.

Every row is valid everywhere, so the tree shares one program: a node is a set of fixed columns, and moving to another node changes column
bounds only, which keeps the basis dual feasible.

Reference: T. Achterberg, T. Koch and A. Martin, "Branching rules revisited", Operations Research Letters 33 (2005).
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tabprotect.solve.branch import Program, TreeAnswer
from tabprotect.solve.cutting import Row
from tabprotect.solve.stop import Stop
from tabprotect.types import FloatArray, IntArray

RELIABLE = 4
"""Trials of a column in a direction before its average gain is believed."""

TRIALS = 8
"""Columns tried in a node before one is branched on."""

TRIAL_STEPS = 30
"""Simplex iterations of one trial."""

REPAIR_EVERY = 25
"""Nodes between two calls of the caller's repair."""


@dataclass(order=True)
class _Node:
    bound: float
    order: int
    zero: IntArray = field(compare=False)
    one: IntArray = field(compare=False)


class _Relaxation:
    """The linear program over the allowed columns, numbered 0…k−1 here."""

    def __init__(self, program: Program, columns: IntArray, seed: int) -> None:
        import highspy

        self.kind = highspy
        self.columns, self.k = columns, len(columns)
        self.at = np.full(len(program.cost), -1, np.int64)
        self.at[columns] = np.arange(self.k)
        self.cost = program.cost[columns]
        self.h = highspy.Highs()
        options = {"output_flag": False, "threads": 1, "presolve": "off", "random_seed": seed % 2**31}
        for name, value in options.items():
            self.h.setOptionValue(name, value)
        empty = np.zeros(0, np.int32)
        self.h.addCols(self.k, self.cost, np.zeros(self.k), np.ones(self.k), 0, empty, empty, np.zeros(0))
        self.lower, self.upper = np.zeros(self.k), np.ones(self.k)
        self.pool: dict[bytes, int] = {}
        self.rows: list[Row] = []
        self.inside: list[int] = []
        self.idle: list[int] = []
        self._start, self._cols = np.zeros(1, np.int64), np.zeros(0, np.int64)
        self._vals, self._rhs = np.zeros(0), np.zeros(0)
        self.add(program.rows)

    def add(self, rows: list[Row]) -> int:
        """New rows into pool and program."""
        fresh = []
        for row in rows:
            here = self.at[row.columns]
            keep = here >= 0
            local = Row(here[keep], row.values[keep], row.rhs, row.kind)
            key = local.key
            if key not in self.pool:
                self.pool[key] = len(self.rows)
                fresh.append(len(self.rows))
                self.rows.append(local)
        self._insert(fresh)
        return len(fresh)

    def recall(self, x: FloatArray) -> int:
        """Bring back rows of the pool that x violates."""
        if len(self.rows) > len(self._rhs):
            fresh = self.rows[len(self._rhs) :]
            self._start = np.concatenate([self._start, self._start[-1:] + np.cumsum([len(r.columns) for r in fresh])])
            self._cols = np.concatenate([self._cols, *[r.columns for r in fresh]])
            self._vals = np.concatenate([self._vals, *[r.values for r in fresh]])
            self._rhs = np.concatenate([self._rhs, [r.rhs for r in fresh]])
        running = np.concatenate([[0.0], np.cumsum(self._vals * x[self._cols])])
        slack = running[self._start[1:]] - running[self._start[:-1]] - self._rhs
        slack[self.inside] = 0.0
        back = np.flatnonzero(slack < -1e-4 * np.maximum(1.0, np.abs(self._rhs))).tolist()
        self._insert(back)
        return len(back)

    def _insert(self, which: list[int]) -> None:
        if not which:
            return
        rows = [self.rows[i] for i in which]
        starts = np.concatenate([[0], np.cumsum([len(r.columns) for r in rows])])
        self.h.addRows(
            len(rows), np.array([r.rhs for r in rows]), np.full(len(rows), np.inf), int(starts[-1]),
            starts[:-1].astype(np.int32), np.concatenate([r.columns for r in rows]).astype(np.int32),
            np.concatenate([r.values for r in rows]),
        )  # fmt: skip
        self.inside += which
        self.idle += [0] * len(which)

    def tidy(self, limit: int = 6) -> None:
        """Leave out rows that have been slack for long."""
        out = [i for i, idle in enumerate(self.idle) if idle > limit]
        if len(out) > 20:
            self.h.deleteRows(len(out), np.array(out, np.int32))
            gone = set(out)
            self.inside = [r for i, r in enumerate(self.inside) if i not in gone]
            self.idle = [r for i, r in enumerate(self.idle) if i not in gone]

    def bounds(self, lower: FloatArray, upper: FloatArray) -> None:
        """Column bounds of the next solves."""
        changed = np.flatnonzero((lower != self.lower) | (upper != self.upper)).astype(np.int32)
        if len(changed):
            self.h.changeColsBounds(len(changed), changed, lower[changed], upper[changed])
        self.lower, self.upper = lower, upper

    def solve(self, cutoff: float, time_limit: float, steps: int | None = None) -> tuple[str, float]:
        """Solve; (``optimal`` | ``cutoff`` | ``steps`` | ``limit``, objective)."""
        h, status = self.h, self.kind.HighsModelStatus
        h.setOptionValue("objective_bound", cutoff)
        h.setOptionValue("simplex_iteration_limit", 2**31 - 1 if steps is None else steps)
        h.setOptionValue("time_limit", h.getRunTime() + time_limit if np.isfinite(time_limit) else float("inf"))
        h.run()
        found = h.getModelStatus()
        if found == status.kInfeasible or found == status.kObjectiveBound:
            return "cutoff", float("inf")
        value = float(h.getInfo().objective_function_value)
        if found == status.kOptimal:
            return ("cutoff", value) if value > cutoff else ("optimal", value)
        return ("steps", value) if found == status.kIterationLimit else ("limit", value)

    def solution(self) -> tuple[FloatArray, FloatArray]:
        """Values and reduced costs, after an optimal solve; notes which rows are slack."""
        answer = self.h.getSolution()
        duals = np.array(answer.row_dual)
        self.idle = np.where(np.abs(duals) > 1e-9, 0, np.array(self.idle, np.int64) + 1).tolist()
        return np.clip(np.array(answer.col_value), 0.0, 1.0), np.array(answer.col_dual)


class _Tree:
    """Open nodes, incumbent and branching statistics."""

    def __init__(self, program: Program, stop: Stop, seed: int) -> None:
        self.program, self.stop = program, stop
        columns = np.flatnonzero(program.allowed)
        self.lp = _Relaxation(program, columns, seed)
        self.best, self.cost = program.start, float(program.cost @ program.start)
        self.gain = np.zeros((2, self.lp.k))
        self.tried = np.zeros((2, self.lp.k))
        self.closed_zero = np.zeros(self.lp.k, bool)
        self.open: list[_Node] = []
        self.nodes = self.made = 0
        self.root: tuple[float, FloatArray] | None = None
        self.bound = program.bound

    @property
    def cutoff(self) -> float:
        """Nodes above this hold nothing better than the incumbent."""
        return self.cost - 1.0 + 1e-6 if self.program.integral else self.cost * (1 - 1e-9) - 1e-12

    def full(self, x: FloatArray) -> FloatArray:
        point = np.zeros(len(self.program.cost))
        point[self.lp.columns] = x
        return point

    def offer(self, point: FloatArray) -> None:
        """Take over a feasible point; a better one closes more columns by the root's reduced costs."""
        cost = float(self.program.cost @ point)
        if cost < self.cost - 1e-12:
            self.best, self.cost = point, cost
            if self.root is not None:
                value, reduced = self.root
                self.closed_zero |= value + np.maximum(reduced, 0.0) > self.cutoff

    def push(self, bound: float, zero: IntArray, one: IntArray) -> None:
        if bound <= self.cutoff:
            self.made += 1
            heapq.heappush(self.open, _Node(bound, -self.made, zero, one))

    def run(self) -> bool:
        """Work until the tree is empty (True) or the stop says so."""
        self.push(self.program.bound, np.zeros(0, np.int64), np.zeros(0, np.int64))
        while self.open:
            node = heapq.heappop(self.open)
            if node.bound > self.cutoff:
                continue
            self.bound = max(self.bound, node.bound)
            gap = (self.cost - self.bound) / max(self.cost, 1e-12)
            if self.stop.done or (self.stop.gap > 0 and gap <= self.stop.gap) or not self._visit(node):
                return False
            self.stop.tell("tree", cost=self.cost, bound=self.bound, done=self.nodes)
        self.bound = self.cost
        return True

    def _visit(self, node: _Node) -> bool:
        """Bound, cut, and branch one node; False when time ran out inside it."""
        self.nodes += 1
        lower, upper = np.zeros(self.lp.k), np.where(self.closed_zero, 0.0, 1.0)
        upper[node.zero] = 0.0
        lower[node.one] = 1.0
        if (lower > upper).any():
            return True
        self.lp.bounds(lower, upper)
        found = self._cut(first=self.nodes == 1)
        if found is None:
            return not self.stop.done
        value, x, reduced = found
        if self.nodes == 1:
            self.root = (value, reduced)
        if self.program.repair is not None and self.nodes % REPAIR_EVERY == 1:
            point = self.program.repair(self.full(x), self.nodes)
            if point is not None:
                self.offer(point)
        spare = self.cutoff - value
        zero = np.flatnonzero((x < 1e-9) & ((reduced > spare) | (upper == 0.0)))
        one = np.flatnonzero((x > 1 - 1e-9) & ((-reduced > spare) | (lower == 1.0)))
        fractional = np.flatnonzero((x > 1e-6) & (x < 1 - 1e-6))
        if len(fractional) == 0:
            raise RuntimeError("the separator refuses an integral point without giving a new row")
        j, down, up = self._branch(x, value, fractional, zero, one)
        if j < 0:
            return not self.stop.done
        self.push(down, np.append(zero, j), one)
        self.push(up, zero, np.append(one, j))
        self.lp.tidy()
        return True

    def _cut(self, first: bool) -> tuple[float, FloatArray, FloatArray] | None:
        """Solve and separate at a node: bound, point and reduced costs, or None when the node is done with (or time is up)."""
        last = -np.inf
        rounds = 0
        while True:
            status, value = self.lp.solve(self.cutoff, self.stop.left)
            if status != "optimal" or self.stop.done:
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
            point = self.full(np.rint(x) if integral else x)
            rows = self.program.separate(point, integral, first)
            if integral and not rows:
                self.offer(point)
                return None
            if self.lp.add(_best(rows, point, 200 if first else 60)) == 0:
                return value, x, reduced

    def _branch(
        self, x: FloatArray, value: float, fractional: IntArray, zero: IntArray, one: IntArray
    ) -> tuple[int, float, float]:
        """The column to branch on with bounds of both sides (−1: the node is closed)."""
        distance = np.vstack([x[fractional], 1 - x[fractional]])
        known = self.tried[:, fractional]
        mean = self.gain.sum(axis=1) / np.maximum(self.tried.sum(axis=1), 1)
        rate = np.where(known > 0, self.gain[:, fractional] / np.maximum(known, 1), mean[:, None])
        score = _score(distance * rate)
        order = fractional[np.lexsort((fractional, -score))]
        scores = dict(zip(fractional.tolist(), score.tolist(), strict=True))
        best, best_score, bounds = int(order[0]), -1.0, (value, value)
        basis = self.lp.h.getBasis()
        lower, upper = self.lp.lower, self.lp.upper
        trials = 0
        for j in order.tolist():
            trusted = self.tried[:, j].min() >= RELIABLE
            if not trusted and trials < TRIALS:
                trials += 1
                found = []
                for side in (0, 1):
                    low, high = lower.copy(), upper.copy()
                    (high if side == 0 else low)[j] = float(side)
                    self.lp.bounds(low, high)
                    status, after = self.lp.solve(self.cutoff, self.stop.left, TRIAL_STEPS)
                    after = (
                        np.inf if status == "cutoff" else max(after, value) if status in ("optimal", "steps") else value
                    )
                    found.append(after)
                    if np.isfinite(after):
                        self.gain[side, j] += (after - value) / max(x[j] if side == 0 else 1 - x[j], 1e-6)
                        self.tried[side, j] += 1
                    self.lp.bounds(lower, upper)
                    self.lp.h.setBasis(basis)
                if self.stop.done:
                    return -1, value, value
                top = self.cutoff - value
                this = float(_score(np.minimum(np.array(found) - value, top)))
                if np.isinf(found[0]) or np.isinf(found[1]):
                    return j, found[0], found[1]
                sides = (found[0], found[1])
            else:
                this, sides = scores[j], (value, value)
            if this > best_score:
                best, best_score, bounds = j, this, sides
            if trials >= TRIALS and trusted:
                break
        return best, *bounds


def _score(gains: Any) -> Any:
    """Product rule over the two sides."""
    return np.maximum(gains[0], 1e-6) * np.maximum(gains[1], 1e-6)


def _best(rows: list[Row], x: FloatArray, most: int) -> list[Row]:
    """The rows that x violates most, by distance."""
    if len(rows) <= most:
        return rows
    return sorted(rows, key=lambda r: r.slack(x) / float(np.sqrt(r.values @ r.values)))[:most]


def solve_tree(program: Program, stop: Stop, seed: int) -> TreeAnswer:
    """Solve a program in this module's own tree."""
    tree = _Tree(program, stop, seed)
    done = tree.run()
    return TreeAnswer(tree.best, tree.cost if done else min(tree.bound, tree.cost), done, tree.nodes, "tree")
