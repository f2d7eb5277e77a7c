"""Lower bounds for network tables: the cutting-plane loop at the root, with patterns guided by its solutions."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tabprotect.solve.cutting import CuttingLP
from tabprotect.solve.knapsack import RowSet, strengthen
from tabprotect.solve.knapsack_exact import facets
from tabprotect.solve.stop import Stop
from tabprotect.suppression.network_construct import build, search
from tabprotect.suppression.network_cuts import Separator
from tabprotect.suppression.network_model import NetworkModel
from tabprotect.types import BoolArray, FloatArray


@dataclass
class Root:
    """The root of a search: program, separator, best pattern so far and proven bound (weights of secondaries only)."""

    model: NetworkModel
    lp: CuttingLP
    separator: Separator
    hidden: BoolArray
    cost: float
    bound: float = 0.0
    integral: bool = False
    rounds: int = 0
    trace: list[tuple[float, float]] = field(default_factory=list)

    @property
    def rounded(self) -> float:
        """The bound, rounded up when all weights are integers."""
        return float(np.ceil(self.bound - 1e-6)) if self.integral else self.bound

    @property
    def closed(self) -> bool:
        return self.rounded >= self.cost - 1e-9 * max(1.0, self.cost)

    def offer(self, hidden: BoolArray) -> bool:
        """Take over a safe pattern if it is cheaper, and fix what can then no longer be in a better one."""
        cost = self.model.cost(hidden) - self.model.fixed_cost
        if cost >= self.cost - 1e-12:
            return False
        self.hidden, self.cost = hidden, cost
        self.fix()
        return True

    def fix(self) -> None:
        """Reduced-cost fixing: a column that would lift the bound to the best cost is never hidden."""
        step = 1.0 - 1e-6 if self.integral else 1e-9
        reduced = self.lp.reduced
        out = self.lp.allowed & (self.lp.x < 1e-9) & (self.lp.bound + reduced > self.cost - step)
        self.lp.forbid(np.flatnonzero(out))


def start_root(model: NetworkModel, hidden: BoolArray) -> Root:
    """The root program with the inequalities of single relations."""
    cost = model.cost(hidden) - model.fixed_cost
    usable = model.candidate.copy()
    active = usable & (hidden | _cheap(model))
    lp = CuttingLP(np.where(usable, model.weight, 0.0), active)
    lp.forbid(np.flatnonzero(~usable))
    separator = Separator(model)
    lp.add(separator.equations())
    integral = bool((model.weight[usable] == np.rint(model.weight[usable])).all())
    return Root(model, lp, separator, hidden, cost, integral=integral)


def _cheap(model: NetworkModel, per_node: int = 25) -> BoolArray:
    """The cheapest candidates at every node: enough columns to begin with, the others are priced."""
    chosen = np.zeros(model.network.n_arcs, bool)
    candidates = np.flatnonzero(model.candidate)
    order = candidates[np.argsort(model.weight[candidates], kind="stable")]
    for end in (model.network.tail[order], model.network.head[order]):
        by_node = np.argsort(end, kind="stable")
        nodes = end[by_node]
        rank = np.arange(len(nodes)) - np.searchsorted(nodes, nodes)
        chosen[order[by_node[rank < per_node]]] = True
    return chosen


def run_root(root: Root, stop: Stop, seed: int, *, rounds: int = 200, effort: float = 1.0) -> None:
    """Cut until nothing is violated, the bound stalls, or it meets the cost."""
    _cut(root, stop, seed, rounds, effort)
    if not root.closed and not stop.done and not root.lp.infeasible:
        guided(root, stop, seed, effort=effort)


def _cut(root: Root, stop: Stop, seed: int, rounds: int, effort: float) -> None:
    model, lp = root.model, root.lp
    needs = np.arange(model.n_needs)
    stall, last, tried = 0, 0.0, -1
    base = RowSet([r for r in lp.rows if r.kind == "capacity"])
    for _ in range(rounds):
        if stop.done:
            return
        root.rounds += 1
        bound = lp.solve(stop.left)
        if bound is None:
            if lp.infeasible:
                root.bound = root.cost
            return
        root.bound = max(root.bound, bound)
        stop.tell("root", cost=root.cost + model.fixed_cost, bound=root.rounded + model.fixed_cost)
        root.fix()
        if root.closed or stop.done:
            return
        rows, failing = root.separator.capacity(lp.x, needs)
        if failing == 0 and is_integral(lp.x):
            root.offer(model.fixed | (lp.x > 0.5))
            return
        base.extend(rows)
        rows += strengthen(base, lp.x)
        rows += facets(base, lp.x)
        rows += root.separator.bridgeless(lp.x)
        gain = bound - last
        stall = 0 if gain > 2e-4 * max(bound, 1.0) else stall + 1
        last = max(last, bound)
        if stall in (3, 8) and tried != len(lp.pool):
            tried = len(lp.pool)
            guided(root, stop, seed + root.rounds, effort=effort)
            if root.closed:
                return
        recalled = lp.recall()
        if (lp.add(rows) == 0 and recalled == 0) or stall > 10:
            return
        lp.tidy()


def guided(root: Root, stop: Stop, seed: int, *, effort: float = 1.0) -> bool:
    """Construct a pattern along the fractional solution and improve it, among the columns that can still be in a better one."""
    if stop.done:
        return False
    lp = root.lp
    model = replace(root.model, candidate=root.model.candidate & (lp.allowed | root.hidden))
    price = model.weight * (1.0 - 0.999 * lp.x) + 1e-6
    root.offer(build(model, stop, seed, price=price))
    model = replace(model, candidate=root.model.candidate & (lp.allowed | root.hidden))
    return root.offer(search(model, stop, seed, start=root.hidden, effort=effort))


def is_integral(x: FloatArray) -> bool:
    return bool((np.minimum(x, 1.0 - x) < 1e-6).all())
