"""First safe patterns: group moves, single routes, other starts.

A group move (`heuristic_group`) makes a first safe pattern in one linear program; what it misses is routed singly with true bounds. Needs
routed one after the other, and staged, reweighted group moves from several random directions in which every need then gets a witness of its own
(cells no witness uses are published again), make others.

The linear-programming construction follows J.P. Kelly, B.L. Golden and A.A. Assad, "Cell suppression: disclosure protection for
sensitive tabular data", Networks 22 (1992), in that hidden cells are free and others cost their weight; group moves are ours.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tabprotect.errors import Unsafe
from tabprotect.solve.stop import Stop
from tabprotect.solve.work import worked
from tabprotect.suppression.heuristic_anneal import anneal
from tabprotect.suppression.heuristic_group import GroupRouter, build
from tabprotect.suppression.heuristic_local import reroute
from tabprotect.suppression.heuristic_state import Witnessed
from tabprotect.suppression.moves import BOTH, Move, Need, Router, needs_of
from tabprotect.suppression.preprocess import Reduced, cannot_protect
from tabprotect.suppression.reach import reaches
from tabprotect.types import IntArray

MANY = 2500
"""Below so many cells needs are always routed one by one."""
SLOW = 0.3
"""Routing all needs once may take so much of the time limit; each is routed many times."""


def construct(problem: Reduced, stop: Stop, seed: int, stages: int = 1, rounds: int = 0) -> Witnessed:
    """A first safe pattern: group moves, then single routes for what is left. Runs past the limit rather than return nothing safe."""
    rng = np.random.default_rng(seed)
    needs = needs_of(problem)
    first = stop if not stop.done else Stop(5.0)
    moves, _ = build(problem, needs, GroupRouter(problem), first, rng, stages=stages, rounds=rounds)
    state = Witnessed(problem, needs)
    assign(state, moves)
    complete(state, stop, rng)
    return state


def assign(state: Witnessed, moves: list[Move]) -> None:
    """Give every two-way need the shortest of the two-way moves that meets it."""
    dense = [np.zeros(state.problem.n) for _ in moves]
    for y, move in zip(dense, moves, strict=True):
        y[move.cells] = move.steps
    for i, need in enumerate(state.needs):
        fitting = [
            k for k, y in enumerate(dense) if need.sense == BOTH and abs(y[need.cell]) >= need.level * (1 - 1e-7)
        ]
        if fitting:
            state.put(i, moves[min(fitting, key=lambda k: len(moves[k].cells))])


def complete(state: Witnessed, stop: Stop, rng: np.random.Generator) -> None:
    """Route every need without a witness; a two-way need that has no two-way move is split in two."""
    problem = state.problem
    router: Router | None = None
    waiting = [i for i, m in enumerate(state.moves) if m is None]
    short: dict[int, float] = {}
    while waiting:
        if stop.cancelled:
            raise Unsafe(
                "cancelled before a safe pattern was found",
                cells=[_original(problem, state.needs[i].cell) for i in waiting],
            )
        router = router or Router(problem)
        i = waiting.pop(0)
        need = state.needs[i]
        move = reroute(state, router, need, state.hidden, rng)
        if move is not None:
            state.put(i, move)
            continue
        found = reaches(problem, need, np.ones(problem.n, bool))
        if isinstance(found, float):
            cell = _original(problem, need.cell)
            short[cell] = max(short.get(cell, 0.0), found * abs(float(problem.factor[cell])))
            continue
        parts = [(Need(need.cell, s, level), m) for s, level, m in found]
        state.replace(i, parts)
    if short:
        raise cannot_protect(short)


def _original(problem: Reduced, group: int) -> int:
    """A requirement's cell in the original table that belongs to this group."""
    wanted = {r.cell for r in problem.origin.requirements}
    members = [int(i) for i in np.flatnonzero(problem.group == group)]
    return next((i for i in members if i in wanted), members[0])


def restart(problem: Reduced, state: Witnessed, stop: Stop, seed: int, tries: int = 12) -> Witnessed:
    """Other starts: needs routed one after the other, and group moves from other directions narrowed to witnesses of their own; the best."""
    best = state
    if problem.n > 2500:
        best = regroup(problem, best, stop.part(0.5), seed)
    n = len(state.needs)
    for order in (range(n), range(n - 1, -1, -1)):
        best = _better(best, rebuild(best, order, stop, seed), stop)
    router = GroupRouter(problem)
    for k in range(tries):
        if stop.done:
            break
        rng = np.random.default_rng([seed, k + 1])
        other = Witnessed(problem, list(best.needs))
        assign(other, build(problem, state.needs, router, stop, rng, stages=3, rounds=5)[0])
        for i, move in enumerate(other.moves):
            if move is None:
                other.put(i, best.moves[i])
        if other.cost < best.cost * 1.5:
            inside: IntArray = np.flatnonzero(other.hidden)
            other = _better(other, rebuild(other, range(n - 1, -1, -1), stop, seed, inside), stop)
        best = _better(best, other, stop)
    return best


def _better(best: Witnessed, other: Witnessed, stop: Stop) -> Witnessed:
    if other.cost >= best.cost:
        return best
    stop.tell("other starts", cost=other.cost)
    return other


def rebuild(
    state: Witnessed, order: Iterable[int], stop: Stop, seed: int, columns: IntArray | None = None
) -> Witnessed:
    """Routes for all needs (within some cells), one after the other, cells already used being free; what is not reached in time keeps its move."""
    rng = np.random.default_rng(seed)
    router = Router(state.problem, columns)
    other = Witnessed(state.problem, list(state.needs))
    for i in order:
        move = None
        if not stop.done:
            move = reroute(other, router, other.needs[i], other.hidden, rng, limit=min(5.0, stop.left))
        other.put(i, move if move is not None else state.moves[i])
    return other


def slow(state: Witnessed, stop: Stop) -> bool:
    """Whether routing every need by itself would take more than the time there is; three of them are tried."""
    if len(state.needs) < 20 or state.problem.n < MANY:
        return False
    router = Router(state.problem, np.flatnonzero(state.hidden))
    cost = 1e-3 + state.price / max(1.0, float(state.price.max()))
    if stop.time_limit is None:
        return False
    start = worked()
    for need in state.needs[:: max(1, len(state.needs) // 3)][:3]:
        router.route(need, cost, time_limit=min(5.0, stop.left))
    return (worked() - start) / 3 * len(state.needs) > SLOW * stop.time_limit


def regroup(problem: Reduced, state: Witnessed, stop: Stop, seed: int) -> Witnessed:
    """Staged group moves made cheaper and cheaper, for tables where needs cannot be routed one by one."""
    moves, met = build(
        problem, state.needs, GroupRouter(problem), stop.part(0.5), np.random.default_rng(seed), stages=3, rounds=5
    )
    two_way = np.array([n.sense == BOTH for n in state.needs])
    if len(moves) == 1 and met[two_way].all():
        moves = [anneal(problem, state.needs, moves[0], stop, seed)]
    other = Witnessed(problem, list(state.needs))
    assign(other, moves)
    left = [i for i, move in enumerate(other.moves) if move is None]
    router = Router(problem) if left else None
    for i in left:
        move = None
        if router is not None and not stop.done:
            rng = np.random.default_rng([seed, i])
            move = reroute(other, router, other.needs[i], other.hidden, rng, limit=min(5.0, stop.left))
        other.put(i, move if move is not None else state.moves[i])
    return other if other.cost < state.cost else state
