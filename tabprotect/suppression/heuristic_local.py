"""Destroy and repair: take some secondaries out, route again the needs that used them, keep what is not dearer.

Every step keeps a witness for every need, so the pattern is safe at any moment. The route is a linear program in which hidden cells are
free and every other cell costs its weight (a fixed-charge problem linearised at the level), solved twice: the second time the
cells the first answer used cost w/|y|, which drops those that carry little.
"""

from __future__ import annotations

import numpy as np

from tabprotect.solve.stop import Stop
from tabprotect.suppression.heuristic_library import Library
from tabprotect.suppression.heuristic_state import Witnessed, adjacent
from tabprotect.suppression.moves import Move, Need, Router
from tabprotect.types import BoolArray, FloatArray

SLACK = 1.2
"""The linear cost of a move may exceed the budget this much: it charges movements beyond the level more than once."""
HOPELESS = 2.0
"""Reweighting does not make a move cheaper by more than this."""


def added_cost(state: Witnessed, move: Move, hidden: BoolArray) -> float:
    """What hiding the cells of a move costs on top of the cells hidden already."""
    return float(state.price[move.cells][~hidden[move.cells]].sum())


def reroute(
    state: Witnessed,
    router: Router,
    need: Need,
    hidden: BoolArray,
    rng: np.random.Generator,
    *,
    noise: float = 0.0,
    barred: BoolArray | None = None,
    limit: float = float("inf"),
    budget: float = float("inf"),
) -> Move | None:
    """A cheap move for one need when ``hidden`` cells are free; None where it would cost far more than the budget."""
    cost = np.where(hidden, 1e-4 * np.minimum(state.price, 1.0), state.price + 1e-3)
    if noise > 0:
        cost = cost * rng.uniform(1 - noise, 1 + noise, len(cost))
    best = router.route(need, cost, barred=barred, time_limit=limit, cutoff=SLACK * budget)
    if best is None:
        return None
    price = added_cost(state, best, hidden)
    if price <= 0 or price > HOPELESS * budget:
        return best
    for _ in range(2):
        flow = np.zeros(len(cost))
        flow[best.cells] = np.abs(best.steps) / need.level
        again: FloatArray = np.where(flow > 0, cost / np.maximum(flow, 0.05), cost * 20)
        move = router.route(need, again, barred=barred, time_limit=limit)
        if move is None:
            break
        other = added_cost(state, move, hidden)
        if other >= price:
            break
        best, price = move, other
    return best


def choose(state: Witnessed, rng: np.random.Generator, size: int) -> list[int]:
    """A secondary at random, dear ones more often, and its neighbours among the secondaries."""
    cells = state.secondaries
    p = np.sqrt(state.price[cells])
    first = int(rng.choice(cells, p=p / p.sum()))
    if size == 1:
        return [first]
    near = np.intersect1d(adjacent(state.problem, np.array([first])), cells)
    near = near[near != first]
    more = rng.permutation(near)[: size - 1]
    return [first, *map(int, more)]


def improve(
    state: Witnessed,
    router: Router,
    stop: Stop,
    seed: int,
    *,
    patience: int = 400,
    bound: float = 0.0,
    library: Library | None = None,
    dearer: float = 0.0,
) -> Witnessed:
    """Destroy and repair until the time is up, the bound is reached, or ``patience`` steps in a row bring nothing.

    A step may make the pattern dearer by up to ``dearer`` times what a need costs on average; twice as far from the best pattern it goes back to that.
    """
    rng = np.random.default_rng(seed)
    library = library or Library(state.problem, list(state.needs))
    for move in state.moves:
        if move is not None:
            library.add(move)
    quiet, best, base = 0, state.copy() if dearer else state, state.problem.base
    while not stop.done and quiet < patience and len(state.secondaries) and not stop.enough(best.cost, bound):
        size = int(rng.choice([1, 1, 2, 3, 4, 6]))
        before, slack = best.cost, dearer * (best.cost - base) / len(state.needs)
        attempt(state, router, library, choose(state, rng, size), rng, stop, slack * rng.random() if dearer else 0.0)
        if state.cost < before - 1e-9 * max(1.0, before):
            quiet, best = 0, state.copy() if dearer else state
            stop.tell("local search", cost=state.cost, bound=bound)
        else:
            quiet += 1
        if state.cost > best.cost + 2 * slack:
            state.adopt(best)
    if dearer:
        state.adopt(best)
    return state


def attempt(
    state: Witnessed,
    router: Router,
    library: Library,
    out: list[int],
    rng: np.random.Generator,
    stop: Stop,
    slack: float = 0.0,
) -> bool:
    """Find other moves for the users of these cells without the first of them; undo if that is dearer (by more than a ``slack``).

    Needs that a known move inside the pattern meets need no program; the others are routed, hidden cells being free.
    """
    affected = state.users(out)
    if not affected:
        return False
    before = state.cost
    hidden = state.hidden
    hidden[out] = state.problem.free[out]
    old = [(i, state.moves[i]) for i in affected]
    for i in affected:
        state.put(i, None)
    barred = np.zeros(state.problem.n, bool)
    barred[out[0]] = True
    noise = float(rng.choice([0.0, 0.15, 0.4]))
    easy = library.inside(hidden)
    critical = [i for i in affected if not easy[i]]
    # needs are in order of their levels: the largest are the hardest, so a hopeless attempt mostly ends with the first program
    order = critical if rng.random() < 0.7 else [int(i) for i in rng.permutation(critical)]
    tolerance = 1e-9 * max(1.0, before) + slack
    budget = float(state.price[out].sum()) + tolerance
    for i in order:
        if library.inside(hidden)[i]:  # the move of another one, as it turns out, or with the cells it brought
            easy[i] = True
            continue
        move = None
        if not stop.done:
            limit = min(2.0, stop.left)
            move = reroute(
                state, router, state.needs[i], hidden, rng, noise=noise, barred=barred, limit=limit, budget=budget
            )
        if move is None or added_cost(state, move, hidden) > budget:
            return _undo(state, old)
        budget -= added_cost(state, move, hidden)
        hidden[move.cells] = True
        library.add(move)
        state.put(i, move)
    for i in (i for i in affected if easy[i]):
        found = library.cheapest(i, np.where(state.hidden, 0.0, state.price), barred)
        if found is None:
            return _undo(state, old)
        state.put(i, found[0])
    if state.cost > before + tolerance:
        return _undo(state, old)
    if state.cost < before - 1e-9 * max(1.0, before):
        tidy(state, library, rng)
    return True


def _undo(state: Witnessed, old: list[tuple[int, Move | None]]) -> bool:
    for i, previous in old:
        state.put(i, previous)
    return False


def tidy(state: Witnessed, library: Library, rng: np.random.Generator) -> None:
    """Give every need the cheapest known move beside all others, in random order: cells nobody needs any more are published."""
    for i in rng.permutation(len(state.needs)):
        previous = state.moves[int(i)]
        state.put(int(i), None)
        found = library.cheapest(int(i), np.where(state.hidden, 0.0, state.price))
        own = float("inf") if previous is None else added_cost(state, previous, state.hidden)
        state.put(int(i), found[0] if found is not None and found[1] < own else previous)
