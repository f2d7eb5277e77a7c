"""Destroy and repair: take some secondaries out, route again the needs that used them, keep what is not dearer.

Every step keeps a witness for every need, so the pattern is safe at any moment. The route is a linear program in which hidden cells are
free and every other cell costs its weight (a fixed-charge problem linearised at the level), solved twice: the second time the
cells the first answer used cost w/|y|, which drops those that carry little.
"""

from __future__ import annotations

import numpy as np

from tabprotect.solve.stop import Stop
from tabprotect.suppression.heuristic_state import Witnessed, adjacent
from tabprotect.suppression.moves import Move, Need, Router
from tabprotect.types import BoolArray, FloatArray


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
) -> Move | None:
    """A cheap move for one need when ``hidden`` cells are free."""
    cost = np.where(hidden, 1e-4 * np.minimum(state.price, 1.0), state.price + 1e-3)
    if noise > 0:
        cost = cost * rng.uniform(1 - noise, 1 + noise, len(cost))
    best = router.route(need, cost, barred=barred, time_limit=limit)
    if best is None:
        return None
    price = added_cost(state, best, hidden)
    if price <= 0:
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
    state: Witnessed, router: Router, stop: Stop, seed: int, *, patience: int = 400, bound: float = 0.0
) -> Witnessed:
    """Destroy and repair until the time is up, the bound is reached, or ``patience`` steps in a row bring nothing."""
    rng = np.random.default_rng(seed)
    quiet = 0
    while not stop.done and quiet < patience and len(state.secondaries) and state.cost > bound + 1e-9:
        size = int(rng.choice([1, 1, 2, 3, 4, 6]))
        before = state.cost
        if attempt(state, router, choose(state, rng, size), rng, stop):
            gained = before - state.cost
            quiet = 0 if gained > 1e-9 * max(1.0, before) else quiet + 1
            if quiet == 0:
                stop.tell("local search", cost=state.cost, bound=bound)
        else:
            quiet += 1
    return state


def attempt(state: Witnessed, router: Router, out: list[int], rng: np.random.Generator, stop: Stop) -> bool:
    """Route the users of these cells again without the first of them; undo if that is dearer."""
    affected = state.users(out)
    if not affected:
        return False
    before = state.cost
    old = [(i, state.moves[i]) for i in affected]
    for i in affected:
        state.put(i, None)
    barred = np.zeros(state.problem.n, bool)
    barred[out[0]] = True
    noise = float(rng.choice([0.0, 0.15, 0.4]))
    order = affected if rng.random() < 0.5 else list(rng.permutation(affected))
    for i in order:
        hidden = state.hidden
        hidden[out[0]] = False
        spent = state.cost
        move = (
            None
            if stop.done
            else reroute(
                state, router, state.needs[i], hidden, rng, noise=noise, barred=barred, limit=min(2.0, stop.left)
            )
        )
        if move is None or spent + added_cost(state, move, hidden) > before + 1e-9 * max(1.0, before):
            for k, previous in old:
                state.put(k, previous)
            return False
        state.put(int(i), move)
    return True
