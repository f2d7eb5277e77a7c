"""The tree over any table: `solve.branch_tree` with cuts from the outsider's programs, in one or more threads."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tabprotect.solve.branch import Program, branch_and_cut
from tabprotect.solve.cutting import Row
from tabprotect.solve.stop import Stop
from tabprotect.solve.work import worked
from tabprotect.suppression import heuristic_mip
from tabprotect.suppression.cuts import Cut, Pool, line_bridges, row_arrays
from tabprotect.suppression.exact_root import Root
from tabprotect.suppression.heuristic_state import Witnessed
from tabprotect.suppression.problem import Requirement
from tabprotect.suppression.separation import WHOLE, Separator
from tabprotect.suppression.zero_half import ZeroHalf
from tabprotect.types import BoolArray, FloatArray

LONG = 150
"""Longer cuts make every program slower and are left out at fractional points; whole points are cut off by cuts of any length."""
AT_ONCE = 12
"""Requirements asked about at a node, in turn."""
ENOUGH = 4
"""Cuts from their programs at a node."""
FEW = 2
"""With fewer of them, covers known so far are combined."""

Between = Callable[[float], BoolArray | None]
"""Called between the nodes with the lower bound; may return a cheaper pattern."""
Watch = Callable[[FloatArray], None]
"""Called with the relaxation's point of every node."""


@dataclass(frozen=True)
class Grown:
    """Lower bound of the whole cost, whether the tree is finished, the best pattern, and the number of nodes."""

    bound: float
    finished: bool
    hidden: BoolArray
    nodes: int


class Outsider:
    """Violated cuts for one thread: all requirements at a whole point; line bridges and a few requirements in turn at a fractional one."""

    def __init__(self, root: Root, separator: Separator, stop: Stop) -> None:
        self.problem, self.requirements = root.problem, root.requirements
        self.separator, self.stop, self.turn = separator, stop, 0
        self.pool = Pool()
        self.pool.add(root.pool.cuts)
        self.covers = ZeroHalf(root.problem.n, (cut for cut in root.pool.cuts if len(cut.cells) <= LONG))

    def __call__(self, z: FloatArray, whole: bool, first: bool) -> list[Row]:
        x = np.where(self.problem.free, 1.0, z)
        found = self._whole(x) if whole else self._fractional(x)
        return [as_row(cut) for cut in found]

    def _whole(self, x: FloatArray) -> list[Cut]:
        cuts: list[Cut] = []
        for r in self.requirements:
            cut, _ = self.separator.requirement(x, r, capped=False, least=WHOLE)
            if cut is not None:
                cuts.append(cut)
                if len(cuts) >= 2 * ENOUGH:
                    break
        return cuts + line_bridges(self.problem, x, 0.5) if cuts else []

    def _fractional(self, x: FloatArray) -> list[Cut]:
        cuts = line_bridges(self.problem, x, 1e-2)
        n, found = len(self.requirements), 0
        for k in range(min(n, AT_ONCE)):
            if self.stop.done or found >= ENOUGH:
                break
            cut = self._cut(self.requirements[(self.turn + k) % n], x, 1e-3)
            if cut is not None:
                cuts.append(cut)
                self.covers.add(cut)
                found += 1
        self.turn = (self.turn + AT_ONCE) % n
        self.pool.add(cuts)
        return cuts + self.pool.facets(x) + (self.covers.violated(x, self._cut) if found < FEW else [])

    def _cut(self, r: Requirement, x: FloatArray, least: float = -1.0) -> Cut | None:
        left = max(self.stop.left, 0.5)
        cut, _ = self.separator.requirement(x, r, capped=True, least=least, time_limit=left)
        return cut if cut is not None and len(cut.cells) <= LONG else None


def as_row(cut: Cut) -> Row:
    """A cut as a row over all cells."""
    cells, values, rhs = row_arrays(cut)
    return Row(cells, values, rhs)


def grow(
    root: Root,
    hidden: BoolArray,
    stop: Stop,
    seed: int,
    between: Between,
    *,
    threads: int = 1,
    busy: Callable[[], int] | None = None,
    most: int | None = None,
    watch: Watch | None = None,
) -> Grown:
    """Branch over the cells that the root could not fix, in ``most`` nodes; ``busy`` says how many of the threads may work at the moment."""
    problem, master = root.problem, root.master

    def point(pattern: BoolArray) -> FloatArray:
        return (pattern & ~problem.free).astype(float)

    def news(bound: float) -> FloatArray | None:
        better = between(problem.base + bound)
        return None if better is None else point(better)

    fixed = [Row(np.array([j]), np.ones(1), 1.0) for j in np.flatnonzero(master.fixed_in & ~problem.free)]
    short = [as_row(cut) for cut in root.pool.cuts if len(cut.cells) <= LONG]
    program = Program(
        np.where(problem.free, 0.0, problem.weights),
        ~problem.free & ~master.fixed_out,
        [as_row(cut) for cut in master.active() if cut.head < 0 or not master.fixed_out[cut.head]] + fixed,
        Outsider(root, root.separator, stop),
        point(hidden),
        problem.origin.integer_weights,
        bound=max(0.0, root.bound - problem.base),
        known=tuple(short),
        beside=tuple(Outsider(root, Separator(problem), stop) for _ in range(threads - 1)),
        busy=busy,
        news=news,
        watch=watch,
        offset=problem.base,
        most=most,
    )
    answer = branch_and_cut(program, stop, solver="tree", seed=seed)
    found = (answer.x > 0.5) | problem.free
    return Grown(problem.base + answer.bound, answer.optimal, found, answer.nodes)


class Neighbourhoods:
    """Neighbourhood search between the nodes: a share of the tree's own work that shrinks while nothing is found."""

    def __init__(self, root: Root, state: Witnessed, stop: Stop, seed: int) -> None:
        self.root, self.state, self.stop = root, state, stop
        self.finder = heuristic_mip.Search(state, root.x, stop, seed, closed=root.master.fixed_out)
        self.share, self.spent, self.started, self.told = 0.2, 0.0, worked(), state.cost

    def __call__(self, bound: float) -> BoolArray | None:
        cuts: list[Cut] | None = None
        while not self.stop.done:
            start = worked()
            if self.spent > self.share * (start - self.started - self.spent):
                break
            cuts = heuristic_mip.useful(self.root.pool.cuts) if cuts is None else cuts
            gained = self.finder.once(cuts)
            self.spent += worked() - start
            self.share = min(0.8, self.share * 1.5) if gained else max(0.05, self.share * 0.97)
        cost = self.state.cost
        self.stop.tell("tree", cost=cost, bound=self.root.lift(min(bound, cost)))
        if cost >= self.told:
            return None
        self.told = cost
        return self.state.hidden
