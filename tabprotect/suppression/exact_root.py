"""The root of the branch-and-cut: cutting planes on the linear relaxation, from cheap to dear, with cells fixed by reduced costs.

Order of the cuts (each stage until it stalls): single relations of the requirements, bridge cuts from single relations, the outsider's
programs with true capacities, then with capacities capped at the level together with bridge cuts from programs of their own. What capacity
cuts say of whole patterns alone (`Pool.facets`) is added all along.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from tabprotect.solve.stop import Stop
from tabprotect.suppression.cuts import Cut, Pool, line_bridges, line_cuts
from tabprotect.suppression.master import Master, fixable
from tabprotect.suppression.preprocess import Reduced
from tabprotect.suppression.problem import Requirement
from tabprotect.suppression.separation import Separator, satisfied
from tabprotect.types import FloatArray


@dataclass
class Root:
    """The relaxation at its best, and everything a tree or a neighbourhood search can go on with.

    ``value``, ``x`` and ``reduced`` belong to one linear program, so cells are fixed by them; ``bound`` is the best lower bound from wherever it came.
    """

    problem: Reduced
    pool: Pool
    master: Master
    separator: Separator
    bound: float
    value: float
    x: FloatArray
    reduced: FloatArray
    requirements: list[Requirement] = field(default_factory=list)
    capped: bool = False
    finished: bool = False

    def lift(self, value: float) -> float:
        """A bound rounded up where costs are whole numbers."""
        return round_up(self.problem, value)

    def fix(self, best: float) -> int:
        """Fix what no cheaper pattern can contain or lack; how many cells are still open."""
        step = 1.0 if self.problem.origin.integer_weights else 0.0
        self.master.fix(*fixable(self.value, self.reduced, self.x, best, step))
        return int((~self.problem.free & ~self.master.fixed_out & ~self.master.fixed_in).sum())


def round_up(problem: Reduced, value: float) -> float:
    """The next whole number (less a tolerance) where all costs are whole, else the value less a tolerance."""
    slack = 1e-6 * max(1.0, abs(value) * 1e-3)
    return float(np.ceil(value - slack)) if problem.origin.integer_weights else value - slack


def start_root(problem: Reduced) -> Root:
    """The relaxation with nothing but single relations."""
    requirements = sorted(problem.requirements, key=lambda r: (-r.level, r.cell, r.sense))
    x, reduced = problem.free.astype(float), np.zeros(problem.n)
    base = problem.base
    root = Root(problem, Pool(), Master(problem), Separator(problem), base, base, x, reduced, requirements)
    root.master.add(root.pool.add(line_cuts(problem)))
    return root


class Best(Protocol):
    """Whoever knows what the best pattern costs."""

    @property
    def cost(self) -> float: ...


def cut_root(root: Root, state: Best, stop: Stop) -> Root:
    """Cut until no stage finds anything worth its time; what was cut short can be gone on with."""
    problem, master, pool = root.problem, root.master, root.pool
    history: list[float] = []
    capped = root.capped
    while True:
        answer = master.solve(stop.left)
        if answer is None:
            break
        root.value, root.x, root.reduced = answer
        root.bound = max(root.bound, root.value)
        history.append(root.value)
        stop.tell("root", cost=state.cost, bound=root.lift(root.bound))
        if root.lift(root.bound) >= state.cost - 1e-9 * abs(state.cost) or stop.done:
            break
        root.fix(state.cost)
        master.purge()
        known = pool.violated(root.x, 50)  # rows dropped too early
        new = known + pool.add(line_bridges(problem, root.x)) + pool.add(_round(root, capped, stop))
        new += pool.add(pool.facets(root.x))
        stalled = len(history) > 6 and history[-1] - history[-6] < 4e-4 * max(1.0, abs(history[-1]))
        if (not new or stalled) and not stop.done:
            if capped:
                root.finished = True
                break
            capped = root.capped = True
            history = []
        if stop.done:
            break
        master.add(new)
    return root


def _round(root: Root, capped: bool, stop: Stop) -> list[Cut]:
    """One pass over all requirements, and over the cells that are partly hidden once capacities are capped."""
    cuts: list[Cut] = []
    done = np.zeros(len(root.requirements), bool)
    for i, r in enumerate(root.requirements):
        if stop.done:
            return cuts
        if done[i]:
            continue
        cut, moves = root.separator.requirement(root.x, r, capped=capped, time_limit=min(5.0, stop.left))
        if cut is not None:
            cuts.append(cut)
        elif not capped:
            done |= satisfied(root.requirements, moves)
    if capped:
        open_cells = np.flatnonzero((root.x > 0.1) & ~root.problem.free)
        for j in open_cells[np.argsort(-root.x[open_cells], kind="stable")][:150]:
            if stop.done:
                break
            bridge = root.separator.bridge(root.x, int(j), time_limit=min(5.0, stop.left))
            if bridge is not None:
                cuts.append(bridge)
    return cuts
