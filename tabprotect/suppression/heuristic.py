"""A safe pattern for any table, early, and better until the time is up.

1. First patterns (`heuristic_start`), and destroy and repair (`heuristic_local`) for a moment.
2. The linear relaxation (`exact_root`) points at promising cells: on those, patterns that differ are made and combined
   (`heuristic_merge`).
3. Small exact models (`heuristic_mip`) choose the cells of one neighbourhood after the other anew, until the limit or until nothing has
   helped for long.
"""

from __future__ import annotations

from tabprotect.solve.stop import Stop
from tabprotect.suppression.exact_root import cut_root, start_root
from tabprotect.suppression.heuristic_local import improve
from tabprotect.suppression.heuristic_merge import search_core
from tabprotect.suppression.heuristic_mip import Search, useful
from tabprotect.suppression.heuristic_start import construct, regroup, restart, slow
from tabprotect.suppression.heuristic_state import Witnessed, one_way
from tabprotect.suppression.moves import Router
from tabprotect.suppression.preprocess import Reduced, reduce
from tabprotect.suppression.problem import Pattern, Problem
from tabprotect.suppression.settle import settle


def solve(problem: Problem, stop: Stop, seed: int = 0) -> Pattern:
    """A safe pattern with the moves that prove it; raises `Infeasible` if there is none.

    >>> from tabprotect.table.examples import d272
    >>> t = d272()
    >>> t = t.with_bounds(lb=(t.values > 0) * 1.0)
    >>> t = t.with_status((t.values > 0) & (t.values <= 2), "u").with_levels(t.values <= 2, spl=1)
    >>> pattern = solve(Problem.from_table(t), Stop(time_limit=10))
    >>> int(pattern.suppressed.sum()) >= 10
    True
    """
    reduced = settle(reduce(problem), stop.part(0.1), seed)
    state, bound = search(reduced, stop, seed)
    bound = min(bound, state.cost)
    return state.pattern(bound=bound, optimal=bound >= state.cost, method="heuristic")


def search(problem: Reduced, stop: Stop, seed: int, patience: int = 60) -> tuple[Witnessed, float]:
    """The whole heuristic on a reduced problem, and the lower bound of the linear relaxation that guides it."""
    state = construct(problem, stop, seed)
    stop.tell("first safe pattern", cost=state.cost, bound=problem.base)
    if not len(state.secondaries) or stop.done:
        return state, problem.base
    if slow(state, stop):
        return regroup(problem, state, stop, seed), problem.base
    state = one_way(restart(problem, state, stop.part(0.15), seed))
    improve(state, Router(problem), stop.part(0.1), seed, patience=150)
    root = cut_root(start_root(problem), state, stop.part(0.2))
    bound = root.lift(root.bound)
    state = search_core(state, lambda: root.x, root.reduced, None, stop.part(0.6), seed, bound, patience // 4)
    if not stop.done:
        root.fix(state.cost)
        finder = Search(state, root.x, stop, seed, closed=root.master.fixed_out)
        finder.run(useful(root.pool.cuts), bound=bound, patience=patience)
    return state, bound
