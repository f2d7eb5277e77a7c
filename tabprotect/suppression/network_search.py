# mypy: disable-error-code="no-untyped-def"
"""Construction, clean-up and local search over suppression patterns of a network table (compiled)."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

from tabprotect.suppression.network_state import (
    N_LOG,
    N_LONG,
    N_SECONDARY,
    Instance,
    State,
    begin,
    ensure,
    forget_support,
    hide,
    holds,
    inner,
    roll_back,
    show,
)
from tabprotect.types import IntArray


@inner
def random_below(rng, n):
    """Next number below n of a xorshift generator whose state is the array ``rng``."""
    x = rng[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    rng[0] = x
    return np.int64((x >> np.uint64(11)) % np.uint64(n))


@inner
def shuffle(rng, items, n):
    for i in range(n - 1, 0, -1):
        j = random_below(rng, i + 1)
        items[i], items[j] = items[j], items[i]


def construct(problem: Instance, state: State, order: IntArray, seed: int = 0) -> bool:
    """Meet the requirements one after the other; False if one cannot be met."""
    return bool(_work(problem, state, _UNUSED, CONSTRUCT, order, 0, 0.0, 0.0, seed) == 0.0)


def clean_up(problem: Instance, state: State, order: IntArray) -> None:
    """Try to publish the given arcs in order. Once a drop fails it fails for ever, since the pattern only shrinks."""
    _work(problem, state, _UNUSED, CLEAN_UP, order, 0, 0.0, 0.0, 0)


def improve(
    problem: Instance, state: State, rng: npt.NDArray[np.uint64], steps: int, most: int, rho: float, slack: float
) -> float:
    """Destroy and repair: publish a few secondaries, meet again what relied on them, keep the pattern if it is not dearer.

    ``most`` secondaries at most are taken out in one step, ``rho`` is the noise on prices, and a step may cost up to ``slack`` times the weight taken out
    more than it saves. Returns the change of the total weight.
    """
    return float(_work(problem, state, rng, IMPROVE, np.arange(steps), most, rho, slack, 0))


CONSTRUCT, CLEAN_UP, IMPROVE = 0, 1, 2
_UNUSED = np.ones(1, np.uint64)


@numba.njit(cache=True, nogil=True)
def _work(problem, state, rng, task, order, most, rho, slack, seed):
    """One entry for the three tasks: every further entry would compile all the kernels below it once more."""
    chosen = np.empty(most + 1, np.int64)
    affected = np.empty(len(problem.need_arc), np.int64)
    result = 0.0
    for i in order:
        begin(state)
        if task == CONSTRUCT:
            if ensure(problem, state, i, np.inf, rho, seed) == np.inf:
                return 1.0
        elif task == CLEAN_UP:
            if state.hidden[i] == 1:
                drop(problem, state, i)
        elif state.tally[N_SECONDARY] > 0:
            chosen[0] = state.secondary[random_below(rng, state.tally[N_SECONDARY])]
            n_affected = _affected(problem, state, chosen, 1, affected)
            n = _choose(state, rng, most, chosen, affected, n_affected)
            n_affected = _affected(problem, state, chosen, n, affected)
            change = _repair(problem, state, rng, chosen, n, affected, n_affected, rho)
            saved = 0.0
            for k in range(n):
                saved += problem.weight[chosen[k]]
            if change > slack * saved * (random_below(rng, 1000) / 1000.0) ** 3:
                roll_back(state)
            else:
                result += change
    return result


@inner
def uses(state, r, e):
    """Whether requirement r relies on arc e (a support too long to remember counts as relying on all)."""
    n = state.n_support[r]
    if n < 0:
        return True
    found = False
    for k in range(n):
        found = found or state.support[r, k] == e
    return found


@inner
def drop(problem, state, e):
    """Publish secondary e if every requirement still holds without it."""
    show(state, e)
    for r in range(len(problem.need_arc)):
        if uses(state, r, e) and not holds(problem, state, r):
            hide(state, e, 1)
            return False
    return True


@inner
def _choose(state, rng, most, chosen, affected, n_affected):
    """More secondaries near ``chosen[0]``: sharing a node, or a requirement that uses both. Returns how many are chosen."""
    wanted = 1 + random_below(rng, most)
    n = 1
    for _ in range(3 * wanted):
        if n >= wanted:
            break
        e = -1
        if n_affected > 0 and random_below(rng, 2) == 0:
            r = affected[random_below(rng, n_affected)]
            if state.n_support[r] > 0:
                e = state.support[r, random_below(rng, state.n_support[r])]
        else:
            near = chosen[random_below(rng, n)]
            u = state.inside.to[2 * near + random_below(rng, 2)]
            degree = state.inside.end[u] - state.inside.start[u]
            if degree > 0:
                e = state.inside.out[state.inside.start[u] + random_below(rng, degree)] >> 1
        if e < 0 or state.hidden[e] != 1:
            continue
        known = False
        for i in range(n):
            known = known or chosen[i] == e
        if not known:
            chosen[n] = e
            n += 1
    return n


@inner
def _affected(problem, state, chosen, n, affected):
    """Requirements that rely on one of the chosen arcs."""
    found = 0
    for r in range(len(problem.need_arc)):
        for i in range(n):
            if uses(state, r, chosen[i]):
                affected[found] = r
                found += 1
                break
    return found


@inner
def _repair(problem, state, rng, chosen, n, affected, n_affected, rho):
    """Publish the chosen arcs, reroute what relied on them, drop what became idle. Returns the change of weight."""
    change = 0.0
    for i in range(n):
        change -= problem.weight[chosen[i]]
        show(state, chosen[i])
    budget = -change * 1.5
    shuffle(rng, affected, n_affected)
    seed = random_below(rng, 1 << 40)
    for i in range(n_affected):
        forget_support(state, affected[i])
    for i in range(n_affected):
        spent = ensure(problem, state, affected[i], budget, rho, seed)
        change += spent
        budget -= spent
        if budget < 0 or change == np.inf:
            return np.inf
    n_log = state.tally[N_LOG]
    for i in range(n_log):
        e = state.log[i]
        if state.hidden[e] == 1 and (state.use[e] == 0 or change > 0 or random_below(rng, 4) == 0):
            if state.use[e] == 0 and state.tally[N_LONG] == 0:
                show(state, e)
                change -= problem.weight[e]
            elif drop(problem, state, e):
                change -= problem.weight[e]
    if state.tally[N_LONG] == 0:  # else arcs that nobody is known to use may be needed
        n_saved = state.tally[2]
        for i in range(n_saved):
            for k in range(state.saved_support[i, state.saved_support.shape[1] - 1]):
                e = state.saved_support[i, k]
                if state.hidden[e] == 1 and state.use[e] == 0:
                    show(state, e)
                    change -= problem.weight[e]
    return change
