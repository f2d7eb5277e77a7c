"""First patterns of a network table, and their improvement: the Python side of the compiled search."""

from __future__ import annotations

import numpy as np

from tabprotect.errors import Unsafe
from tabprotect.solve.stop import Stop
from tabprotect.suppression.network_model import NetworkModel
from tabprotect.suppression.network_search import clean_up, construct, improve
from tabprotect.suppression.network_state import Instance, State, empty_state, hide_all, instance
from tabprotect.types import BoolArray, FloatArray

STEPS = 64
"""Steps of local search per compiled call: the clock is looked at in between."""

STYLES = ((5, 0.4, 0.06), (5, 1.0, 0.1), (3, 0.6, 0.1), (5, 0.4, 0.0))
"""Secondaries taken out at once, noise on prices, and how much dearer a step may be: calls take turns."""


def search(
    model: NetworkModel,
    stop: Stop,
    seed: int = 0,
    *,
    start: BoolArray | None = None,
    price: FloatArray | None = None,
    effort: float = 1.0,
) -> BoolArray:
    """Construct (or take over ``start``), clean up and improve; ``price`` steers the construction, weights decide."""
    by_weight = instance(model)
    hidden = start if start is not None else build(model, stop, seed, price=price, by_weight=by_weight)
    state = state_of(model, by_weight, hidden)
    rng = np.array([np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(seed + 1)], np.uint64)
    best, best_cost = hidden, model.cost(hidden)
    idle, turn, patience = 0, 0, int(effort * (60 + 10 * state.tally[0]))
    while idle < patience and state.tally[0] and not stop.done:
        improve(by_weight, state, rng, STEPS, *STYLES[turn % len(STYLES)])
        turn += 1
        cost = model.cost(state.hidden > 0)
        if cost < best_cost - 1e-9 * max(best_cost, 1.0):
            best, best_cost, idle = state.hidden > 0, cost, 0
            stop.tell("search", cost=best_cost)
        else:
            idle += STEPS
            if cost - best_cost > 0.02 * (best_cost - model.fixed_cost):
                state = state_of(model, by_weight, best)
    return best


def build(
    model: NetworkModel, stop: Stop, seed: int, *, price: FloatArray | None = None, by_weight: Instance | None = None
) -> BoolArray:
    """A first safe pattern: requirements in order of falling level, then clean-up from the heaviest secondary down."""
    by_weight = instance(model) if by_weight is None else by_weight
    problem = by_weight if price is None else instance(model, price)
    state = empty_state(model, problem)
    order = np.lexsort((model.need_arc, -model.need_level))
    for part in np.array_split(order, max(1, len(order) // 200)):
        if stop.done and len(part):
            raise Unsafe("stopped before a first safe pattern was found", bound=model.fixed_cost)
        if not construct(problem, state, part, seed):
            raise Unsafe(
                "a requirement could not be met although hiding everything meets it: rooms differ too much in size"
            )
    tidy(model, problem, state)
    return state.hidden > 0


def tidy(model: NetworkModel, problem: Instance, state: State) -> None:
    """Publish again what no requirement needs, heaviest first."""
    secondaries = np.flatnonzero(state.hidden == 1)
    clean_up(problem, state, secondaries[np.argsort(-model.weight[secondaries], kind="stable")])


def state_of(model: NetworkModel, problem: Instance, hidden: BoolArray) -> State:
    """The search state of a safe pattern."""
    state = empty_state(model, problem)
    hide_all(state, np.flatnonzero(hidden & ~model.fixed), 1)
    if not construct(problem, state, np.arange(model.n_needs)):
        raise Unsafe("the starting pattern is not safe")
    return state
