"""Optimal complementary suppression on any table: cutting planes, then a tree, with a safe incumbent from the first second.

M. Fischetti and J.J. Salazar-González, "Solving the cell suppression problem on tabular data with linear constraints", Management Science
47 (2001) 1008–1027. The master chooses cells; the outsider's linear programs say which choices leave a cell unprotected and why. The
heuristic's pattern comes first, so that at any moment there is something safe to return, and reduced costs can fix cells.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np

from tabprotect.solve.side import cores
from tabprotect.solve.stop import Stop
from tabprotect.suppression import exact_highs, exact_scip, exact_side, heuristic_mip, heuristic_start
from tabprotect.suppression.exact_root import Root, cut_root, round_up, start_root
from tabprotect.suppression.exact_tree import Neighbourhoods, grow
from tabprotect.suppression.heuristic_local import improve
from tabprotect.suppression.heuristic_merge import DEARER, search_core
from tabprotect.suppression.heuristic_state import Witnessed, one_way, witnessed
from tabprotect.suppression.moves import Router
from tabprotect.suppression.preprocess import Reduced, reduce
from tabprotect.suppression.problem import Pattern, Problem
from tabprotect.suppression.settle import settle
from tabprotect.types import BoolArray

QUICK = 1500
"""Up to so many cells the relaxation is tried before anything else: on easy tables it is the answer."""
SMALL = 600
"""Up to so many cells a tree is likely to be finished."""
TURNS = 1000
"""Up to so many cells a second thread of the tree is worth as much as better patterns once these are hard to find."""
FEW = 150
"""Nodes of the first tree, before better patterns are looked for."""
PATIENCE = 10
"""Patterns without gain before another way of finding them is tried beside the tree."""
UNION = 500
"""Nodes of the tree over a union of patterns."""


@dataclass(frozen=True)
class _Tree:
    """Which tree, in how many threads, and how many nodes it may have."""

    kind: str
    threads: int = 1
    most: int | None = None


def solve(
    problem: Problem,
    stop: Stop,
    seed: int = 0,
    start: Pattern | None = None,
    tree: str = "auto",
    merging: bool = True,
    threads: int | None = None,
    most: int | None = None,
) -> Pattern:
    """The cheapest safe pattern, or the best found within the limit with a lower bound; raises `Infeasible` if there is none.

    ``start`` is a safe pattern to begin with; ``tree`` is "own", "scip", "highs" or "auto" (SCIP where it is installed and the faster one); ``merging`` looks for better
    patterns by combining good ones; ``most`` limits the nodes of the own tree and SCIP's. With a second core the tree grows in a process of its own beside the patterns, and what
    comes first depends on the clock; with a number of ``threads`` one comes after the other in this process, and every run is the same as long as the limit ends no part of it.

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
        if merging and tree == "auto" and threads is None and cores() > 1:
            bound, proved, state = _side_by_side(reduced, state, stop, seed, info)
        else:
            how = _Tree(tree, threads or 1, most)
            bound, proved, state = _search(reduced, state, stop, seed, how, merging, info)
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
    problem: Reduced, state: Witnessed, stop: Stop, seed: int, tree: _Tree, merging: bool, info: dict[str, object]
) -> tuple[float, bool, Witnessed]:
    """Everything in one process: root, better patterns, root again with cells fixed, tree."""
    if heuristic_start.slow(state, stop):
        state = heuristic_start.regroup(problem, state, stop.part(0.5), seed)
        bounds = cut_root(start_root(problem), state, stop.part(0.9))
        return bounds.lift(bounds.bound), _closed(bounds, state), state
    root = start_root(problem)
    bound, proved, state = _quick(root, state, stop, seed, tree, info)
    if proved or stop.enough(state.cost, bound):
        return bound, proved, state
    if not root.finished:
        state = one_way(heuristic_start.restart(problem, state, stop.part(0.1), seed, tries=6))
    if not merging:
        improve(state, Router(problem), stop.part(0.1), seed, patience=150)
    cut_short = False
    if not root.finished:
        part = stop.part(0.3)
        cut_root(root, state, part)
        cut_short = not root.finished and part.done
    info["root"] = root.value
    if stop.enough(state.cost, root.lift(root.bound)):
        return root.lift(root.bound), _closed(root, state), state
    if merging:
        again = functools.partial(solve, tree=tree.kind, merging=False, most=UNION)
        share, patience = _patience(problem.n)
        bound = root.lift(root.bound)
        state = search_core(state, lambda: root.x, root.reduced, again, stop.part(share), seed, bound, patience)
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
    return _tree(root, state, stop, seed, tree, info)


def _quick(
    root: Root, state: Witnessed, stop: Stop, seed: int, tree: _Tree, info: dict[str, object]
) -> tuple[float, bool, Witnessed]:
    """What the relaxation or a small tree settles on a table that is not large, before anything else is begun."""
    if root.problem.n > QUICK or not cut_root(root, state, stop.part(0.05)).finished:
        return root.lift(root.bound), _closed(root, state), state
    info["root"] = root.value
    state = _rounded(root, state)
    if stop.enough(state.cost, root.lift(root.bound)):
        return root.lift(root.bound), _closed(root, state), state
    state = one_way(heuristic_start.restart(root.problem, state, stop.part(0.1), seed, tries=6))
    few = replace(tree, most=FEW if tree.most is None else min(FEW, tree.most))
    bound, proved, state = _tree(root, state, stop.part(0.05), seed, few, info)
    root.bound = max(root.bound, bound)
    info["open"] = root.fix(state.cost)
    return bound, proved, state


def _tree(
    root: Root, state: Witnessed, stop: Stop, seed: int, tree: _Tree, info: dict[str, object]
) -> tuple[float, bool, Witnessed]:
    """The tree in this process, with neighbourhood search between its nodes."""
    if tree.kind == "highs":
        return _settled(root, state, *exact_highs.run(root, state, stop))
    between = Neighbourhoods(root, state, stop, seed + 1)
    if tree.kind == "scip" or (tree.kind == "auto" and exact_scip.suits(root.problem)):
        grown = exact_scip.grow(root, state.hidden, stop, seed, between, most=tree.most)
    else:
        quiet = replace(stop, listener=None)
        grown = grow(root, state.hidden, quiet, seed, between, threads=tree.threads, most=tree.most)
    info["nodes"] = grown.nodes
    return _settled(root, state, grown.bound, grown.finished, grown.hidden)


def _settled(
    root: Root, state: Witnessed, bound: float, finished: bool, hidden: BoolArray | None
) -> tuple[float, bool, Witnessed]:
    """What a tree's answer is worth: its pattern only with witnesses, its bound rounded up where costs are whole."""
    problem = root.problem
    if hidden is not None and problem.cost(hidden) < state.cost - 1e-9 * abs(state.cost):
        better = witnessed(problem, Pattern(problem.expand(hidden), bound))
        if better is not None and better.cost < state.cost:
            state = better
        else:
            finished = False
    bound = min(round_up(problem, bound), state.cost)
    return bound, finished or bound >= state.cost - 1e-9 * abs(state.cost), state


def _side_by_side(
    problem: Reduced, state: Witnessed, stop: Stop, seed: int, info: dict[str, object]
) -> tuple[float, bool, Witnessed]:
    """Bounds in another process, better patterns in this one, until they meet; what is small is tried here first."""
    root = start_root(problem)
    bound, proved, state = _quick(root, state, stop, seed, _Tree("auto"), info)
    if proved or stop.enough(state.cost, bound):
        return bound, proved, state
    with exact_side.Beside(root, state.hidden, stop, seed) as side:
        state = _patterns(state, side, seed)
        side.offer(state.hidden)
        while not side.stop.done:  # no better pattern is looked for any more, but the bounds may still rise
            side.over.wait(0.1)
    news = side.news
    info["nodes"] = news.nodes
    answer = _settled(root, state, news.bound, news.finished, news.hidden)
    if answer[1] or stop.left < 1.0 or stop.enough(answer[2].cost, answer[0]):
        return answer
    root.bound = max(root.bound, news.bound)  # the other process has gone before its time
    cut_root(root, answer[2], stop.part(0.3))
    return _tree(root, answer[2], stop, seed, _Tree("auto"), info)


def _patterns(state: Witnessed, side: exact_side.Beside, seed: int) -> Witnessed:
    """Better patterns while the bounds rise: other starts, then merging where the relaxation points, then neighbourhoods."""
    problem, stop = state.problem, side.stop
    if heuristic_start.slow(state, stop):
        while not stop.done:
            state = heuristic_start.regroup(problem, state, stop, seed)
            side.offer(state.hidden)
            seed += 1
        return state
    if side.guide is None:
        state = one_way(heuristic_start.restart(problem, state, stop.part(0.1), seed, tries=6))
        side.offer(state.hidden)
        share = 0.1 if problem.n > QUICK else 0.02
        improve(state, Router(problem), stop.part(share), seed, patience=400, bound=side.bound, dearer=DEARER)
    while side.guide is None and not stop.done:
        side.over.wait(0.05)
    if side.guide is None:
        return state
    again = functools.partial(solve, merging=False, most=UNION)

    def better(pattern: Pattern) -> None:
        side.offer(problem.contract(pattern.suppressed) | problem.free)

    fresh, patience = False, PATIENCE if problem.n <= QUICK else 3 * PATIENCE  # large ones converge late
    while not stop.done:
        began, before, reduced = stop.seconds, state.cost, side.guide.reduced
        state = search_core(state, side.likely, reduced, again, stop, seed, side.bound, patience, better, fresh=fresh)
        guide = side.guide
        finder = heuristic_mip.Search(state, guide.likely, stop, seed, closed=side.closed(guide))
        finder.run(guide.cuts, bound=side.bound, patience=PATIENCE)
        side.offer(state.hidden)
        seed, fresh = seed + 1, True
        if state.cost >= before * (1 - 1e-12) and problem.n <= TURNS and not exact_scip.suits(problem):
            side.rest(stop.seconds - began)  # a second thread of the own tree takes its turn
    return state


def _patience(n: int) -> tuple[float, int]:
    """Share of the time for better patterns, and how many that do not help: the tree finishes small problems and gets nowhere on large ones."""
    return (0.3, 6) if n <= SMALL else (0.5, 15) if n <= QUICK else (0.6, 20)


def _rounded(root: Root, state: Witnessed) -> Witnessed:
    """The relaxation's own pattern, where it is a whole one and cheaper: easy tables end here."""
    whole = np.abs(root.x - np.rint(root.x)).max(initial=0.0) < 1e-6
    if not whole or root.value >= state.cost:
        return state
    found = witnessed(root.problem, Pattern(root.problem.expand(root.x > 0.5), root.bound))
    return found if found is not None and found.cost < state.cost else state


def _closed(root: Root, state: Witnessed) -> bool:
    return root.lift(root.bound) >= state.cost - 1e-9 * abs(state.cost)
