"""Optimal complementary suppression on any table: cutting planes, then a tree, with a safe incumbent from the first second.

M. Fischetti and J.J. Salazar-González, "Solving the cell suppression problem on tabular data with linear constraints", Management Science
47 (2001) 1008–1027. The master chooses cells; the outsider's linear programs say which choices leave a cell unprotected and why. The
heuristic's pattern comes first, so that at any moment there is something safe to return, and reduced costs can fix cells.
"""

from __future__ import annotations

import functools

import numpy as np

from tabprotect.solve.stop import Stop
from tabprotect.suppression import exact_highs, exact_scip, heuristic_mip, heuristic_start
from tabprotect.suppression.exact_root import Root, cut_root, round_up
from tabprotect.suppression.heuristic_local import improve
from tabprotect.suppression.heuristic_merge import search_core
from tabprotect.suppression.heuristic_state import Witnessed, witnessed
from tabprotect.suppression.moves import Router
from tabprotect.suppression.preprocess import Reduced, reduce
from tabprotect.suppression.problem import Pattern, Problem
from tabprotect.suppression.settle import settle

QUICK = 1500
"""Up to so many cells the relaxation is tried before anything else: on easy tables it is the answer."""
SMALL = 600
"""Up to so many cells a tree is likely to be finished."""


def solve(
    problem: Problem,
    stop: Stop,
    seed: int = 0,
    start: Pattern | None = None,
    tree: str = "auto",
    merging: bool = True,
) -> Pattern:
    """The cheapest safe pattern, or the best found within the limit with a lower bound; raises `Infeasible` if there is none.

    ``start`` is a safe pattern to begin with; ``tree`` is "scip", "highs" or "auto" (SCIP where installed); ``merging`` looks for better
    patterns by solving the problem on unions of good ones.

    >>> from tabprotect.table.examples import d272
    >>> t = d272()
    >>> t = t.protect(t.find(size="Total")).protect(t.find(industry="D272"))
    >>> t = t.with_bounds(lb=(t.values > 0) * 1.0)
    >>> t = t.with_status((t.values > 0) & (t.values <= 2), "u").with_levels(t.values <= 2, spl=1)
    >>> pattern = solve(Problem.from_table(t), Stop(time_limit=30))
    >>> pattern.optimal, pattern.bound
    (True, 40.0)
    """
    reduced = settle(reduce(problem), stop.part(0.1), seed)
    state = _start(reduced, stop, seed, start)
    stop.tell("first safe pattern", cost=state.cost, bound=problem.fixed_cost)
    bound, proved = reduced.base, state.cost <= reduced.base
    info: dict[str, object] = {"cells": reduced.n, "relations": reduced.matrix.shape[0]}
    if not proved and not stop.done:
        bound, proved, state = _search(reduced, state, stop, seed, tree, merging, info)
    if proved:
        bound = state.cost
    return state.pattern(bound=min(bound, state.cost), optimal=proved, method="exact", **info)


def _start(problem: Reduced, stop: Stop, seed: int, start: Pattern | None) -> Witnessed:
    if start is not None:
        given = witnessed(problem, start)
        if given is not None:
            return given
    return heuristic_start.construct(problem, stop, seed)


def _search(
    problem: Reduced, state: Witnessed, stop: Stop, seed: int, tree: str, merging: bool, info: dict[str, object]
) -> tuple[float, bool, Witnessed]:
    """Root, better patterns, root again with cells fixed, tree."""
    if heuristic_start.slow(state, stop):
        state = heuristic_start.regroup(problem, state, stop.part(0.5), seed)
        bounds = cut_root(problem, state, stop.part(0.9))
        return bounds.lift(bounds.bound), _closed(bounds, state), state
    root = cut_root(problem, state, stop.part(0.05)) if problem.n <= QUICK else None
    if root is not None and root.finished:
        state = _rounded(root, state)
        if stop.enough(state.cost, root.lift(root.bound)):
            return root.lift(root.bound), _closed(root, state), state
    state = heuristic_start.restart(problem, state, stop.part(0.1), seed, tries=6)
    if not merging:
        improve(state, Router(problem), stop.part(0.1), seed, patience=150)
    cut_short = False
    if root is None or not root.finished:
        part = stop.part(0.3)
        root = cut_root(problem, state, part)
        cut_short = not root.finished and part.done
    info["root"] = root.bound
    if stop.enough(state.cost, root.lift(root.bound)):
        return root.lift(root.bound), _closed(root, state), state
    if merging:
        again = functools.partial(solve, tree=tree, merging=False)
        share, patience = _patience(problem.n)
        bound = root.lift(root.bound)
        state = search_core(state, root.x, root.reduced, again, stop.part(share), seed, bound, patience)
    info["open"] = root.fix(state.cost)
    finder = heuristic_mip.Search(state, root.x, stop.part(0.15), seed, closed=root.master.fixed_out)
    finder.run(heuristic_mip.useful(root.pool.cuts), bound=root.lift(root.bound), patience=15)
    if stop.enough(state.cost, root.lift(root.bound)):
        return root.lift(root.bound), _closed(root, state), state
    info["open"] = root.fix(state.cost)
    if cut_short and not stop.done:  # too large for a tree: better patterns are worth more than a few nodes
        finder = heuristic_mip.Search(state, root.x, stop, seed + 1, closed=root.master.fixed_out)
        finder.run(heuristic_mip.useful(root.pool.cuts), bound=root.lift(root.bound), patience=10**9)
    if stop.done:
        return root.lift(root.bound), False, state
    if tree == "scip" or (tree == "auto" and exact_scip.available()):
        search = exact_scip.Tree(root, state, stop, seed)
        bound, finished, hidden = search.run()
        info["nodes"] = int(search.model.getNNodes())
    else:
        bound, finished, hidden = exact_highs.run(root, state, stop)
    if problem.cost(hidden) < state.cost - 1e-9 * abs(state.cost):
        better = witnessed(problem, Pattern(problem.expand(hidden), bound))
        if better is not None and better.cost < state.cost:
            state = better
        else:
            finished = False
    bound = min(round_up(problem, bound), state.cost)
    return bound, finished or bound >= state.cost - 1e-9 * abs(state.cost), state


def _patience(n: int) -> tuple[float, int]:
    """Share of the time for better patterns, and how many that do not help: the tree finishes small problems and gets nowhere on large ones."""
    return (0.3, 6) if n <= SMALL else (0.5, 15) if n <= QUICK else (0.6, 20)


def _rounded(root: Root, state: Witnessed) -> Witnessed:
    """The relaxation's own pattern, where it is a whole one and cheaper: easy tables end here."""
    whole = np.abs(root.x - np.rint(root.x)).max(initial=0.0) < 1e-6
    if not whole or root.bound >= state.cost:
        return state
    found = witnessed(root.problem, Pattern(root.problem.expand(root.x > 0.5), root.bound))
    return found if found is not None and found.cost < state.cost else state


def _closed(root: Root, state: Witnessed) -> bool:
    return root.lift(root.bound) >= state.cost - 1e-9 * abs(state.cost)
