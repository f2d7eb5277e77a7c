# mypy: disable-error-code="no-untyped-def"
"""A walk through the spaces of moves that patterns leave to the outsider (compiled).

The hidden cells of a good pattern leave a space of few dimensions, in which most cells move in proportion to each other. A step of the walk
adds a few known moves to the space, so that some published cells are hidden, and takes the cheapest subspace that still meets every need
(`flats`): cells that have become superfluous are published, whole classes at once. Every other step, by chance, insists on one of the new cells; it may make the
pattern dearer, with a probability that falls with its price and with time.

S. Kirkpatrick, C.D. Gelatt and M.P. Vecchi, "Optimization by simulated annealing", Science 220 (1983); for exchanging elements of a circuit,
J. Oxley, "Matroid Theory" (2011), section 1.2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from tabprotect.suppression.flats import HIDDEN, IDLE, OPEN, Wish, cheapest_still, eliminate, halt_all, inner
from tabprotect.types import BoolArray, FloatArray, IntArray

_DUST = 1e-9
_SKEW = 1e-8
"""A space whose moves miss the relations by more is not gone on with."""
_RIVALS = 12
"""Of so many known moves drawn at random the one that hides least is added."""
_FEW, _MANY = 2, 6
"""Moves added in a step, at least and at most."""


@dataclass(frozen=True)
class Rows:
    """A sparse matrix row by row: starts, columns, values."""

    starts: IntArray
    columns: IntArray
    values: FloatArray


@dataclass(frozen=True)
class Walk:
    """The cheapest space a walk saw, its price, and how many steps were taken."""

    best: FloatArray
    least: float
    taken: int


def wander(
    basis: FloatArray,
    moves: Rows,
    relations: Rows,
    price: FloatArray,
    idle: BoolArray,
    wish: Wish,
    *,
    heat: tuple[float, float],
    steps: int,
    widest: int,
    nodes: int,
    seed: int,
) -> Walk:
    """So many steps from a space (dimensions × cells), with prices that may be exceeded by ``heat[0]`` at first and ``heat[1]`` in the end.

    ``moves`` are those to add; ``idle`` cells cost nothing; spaces have at most ``widest`` dimensions.
    """
    wished = (wish.row, wish.goal, wish.both, wish.low, wish.high)
    known = (moves.starts, moves.columns, moves.values)
    rules = (relations.starts, relations.columns, relations.values)
    rng = np.random.default_rng(seed)
    start = np.ascontiguousarray(basis)
    return Walk(*_wander(start, known, rules, price, idle, wished, heat[0], heat[1], steps, widest, nodes, rng))


@inner
def _support(basis, hidden):
    """Which cells move in a space."""
    hidden[:] = False
    for k in range(basis.shape[0]):
        for j in range(basis.shape[1]):
            if abs(basis[k, j]) > _DUST:
                hidden[j] = True


@inner
def _added(moves, price, hidden, added):
    """What each known move would hide on top of the hidden cells."""
    starts, columns, _ = moves
    for i in range(len(starts) - 1):
        total = 0.0
        for t in range(starts[i], starts[i + 1]):
            if not hidden[columns[t]]:
                total += price[columns[t]]
        added[i] = total


@inner
def _skewed(basis, relations):
    """Whether a move of the basis misses a relation."""
    starts, columns, values = relations
    for k in range(basis.shape[0]):
        for r in range(len(starts) - 1):
            total = 0.0
            for t in range(starts[r], starts[r + 1]):
                total += values[t] * basis[k, columns[t]]
            if abs(total) > _SKEW:
                return True
    return False


@inner
def _draw(rng, added, dear):
    """One of the cheap known moves; one that hides something where ``dear``."""
    best, least = -1, np.inf
    for _ in range(_RIVALS):
        i = int(rng.random() * len(added))
        if added[i] < least and (added[i] > 0.0 or not dear):
            best, least = i, added[i]
    return best


@inner
def _pick_new(rng, moves, i, price, hidden):
    """A cell at random that a move would hide at a price."""
    starts, columns, _ = moves
    chosen, seen = -1, 0
    for t in range(starts[i], starts[i + 1]):
        j = columns[t]
        if not hidden[j] and price[j] > 0.0:
            seen += 1
            if rng.random() * seen < 1.0:
                chosen = j
    return chosen


@inner
def _step(basis, added_rows, count, moves, forced, price, idle, wish, budget, nodes, widest):
    """The cheapest space, with the forced cell if there is one (−1: none), in the sum of a space and some moves: price (or inf) and basis."""
    row, goal, both, low, high = wish
    d, n = basis.shape
    starts, columns, values = moves
    rows = np.zeros((d + count, n))
    rows[:d] = basis
    for c in range(count):
        i = added_rows[c]
        for t in range(starts[i], starts[i + 1]):
            rows[d + c, columns[t]] = values[t]
    here = np.zeros(n, np.bool_)
    _support(rows, here)
    for i in range(len(row)):
        here[row[i]] = True
    cells = np.flatnonzero(here)
    m = len(cells)
    small = np.zeros((d + count, m))
    for c in range(d + count):
        for k in range(m):
            small[c, k] = rows[c, cells[k]]
    rank = eliminate(small, widest)
    if rank > widest:
        return np.inf, basis
    at = np.zeros(n, np.int64)
    at[cells] = np.arange(m)
    status = np.full(m, OPEN, np.int8)
    prices = np.zeros(m)
    for k in range(m):
        prices[k] = price[cells[k]]
        if idle[cells[k]]:
            status[k] = IDLE
    rows_here = np.zeros(len(row), np.int64)
    small_low, small_high = np.zeros((len(row), m)), np.zeros((len(row), m))
    for i in range(len(row)):
        rows_here[i] = at[row[i]]
        status[rows_here[i]] = HIDDEN
        for k in range(m):
            small_low[i, k] = low[i, cells[k]]
            small_high[i, k] = high[i, cells[k]]
    if forced >= 0:
        status[at[forced]] = HIDDEN
    turned = np.ascontiguousarray(small[:rank].T)
    least, _, still = cheapest_still(
        turned, prices, status, (rows_here, goal, both, small_low, small_high), budget, nodes
    )
    if least >= budget:
        return np.inf, basis
    left = halt_all(turned, still)
    found = np.zeros((left.shape[1], n))
    for k in range(m):
        if not still[k]:
            for c in range(left.shape[1]):
                z = left[k, c]
                found[c, cells[k]] = z if abs(z) > _DUST else 0.0
    return least, found


@numba.njit(cache=True, nogil=True)
def _wander(basis, moves, relations, price, idle, wish, hot, cold, steps, widest, nodes, rng):
    n = basis.shape[1]
    hidden = np.zeros(n, np.bool_)
    _support(basis, hidden)
    cost = 0.0
    for j in range(n):
        if hidden[j]:
            cost += price[j]
    best, least, taken = basis, cost, 0
    added = np.zeros(len(moves[0]) - 1)
    _added(moves, price, hidden, added)
    chosen = np.zeros(_MANY, np.int64)
    for step in range(steps):
        heat = hot * (cold / hot) ** (step / steps)
        first = _draw(rng, added, True)
        if first < 0:
            continue
        forced = _pick_new(rng, moves, first, price, hidden)
        allowed = cost - heat * np.log(1.0 - rng.random())
        if rng.random() < 0.5:
            forced, allowed = -1, cost * (1 - 1e-9)
        chosen[0], count = first, 1
        many = _FEW + int(rng.random() * (_MANY + 1 - _FEW))
        for _ in range(many - 1):
            other = _draw(rng, added, False)
            if other >= 0:
                chosen[count] = other
                count += 1
        found, space = _step(basis, chosen, count, moves, forced, price, idle, wish, allowed, nodes, widest)
        if found == np.inf or not space.shape[0] or _skewed(space, relations):
            continue
        basis, taken = space, taken + 1
        _support(basis, hidden)
        cost = 0.0
        for j in range(n):
            if hidden[j]:
                cost += price[j]
        _added(moves, price, hidden, added)
        if cost < least - 1e-9 * abs(least):
            best, least = basis, cost
    return best, least, taken
