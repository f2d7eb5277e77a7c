# mypy: disable-error-code="no-untyped-def,call-arg"
"""Simulated annealing over the inner cells: additive by construction, so what it looks for is adjacency and closeness.

Every total is a sum of inner cells (`Totals`), so any choice of multiples for the inner cells gives an additive table. What can go wrong is that a
total ends more than one base away from its value. The annealing moves one inner cell by one base, or two cells of one total against each other, and pays
for distance and, dearly, for every base beyond the allowed ones. It is the start for the exact method and the answer where that is out of reach.

Reference: S. Kirkpatrick, C. D. Gelatt and M. P. Vecchi, "Optimization by simulated annealing", Science 220 (1983).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp

from tabprotect.linalg.totals import Totals
from tabprotect.rounding.grid import Grid
from tabprotect.solve.stop import Stop
from tabprotect.types import BoolArray, IntArray

STAGES = 60
# when the totals leave their range by more than this share of their number, another attempt does not mend it
HOPELESS = 0.02


@dataclass(frozen=True, eq=False)
class Leaves:
    """Which inner cells make up which totals: ``up`` (leaf × total) and ``down`` (total × leaf), with whole coefficients."""

    leaf: IntArray
    total: IntArray
    up: Any
    down: Any

    @classmethod
    def of(cls, grid: Grid) -> Leaves | None:
        """None when the totals are not sums of inner cells, or other relations tie the inner cells to each other."""
        totals = Totals.of(grid.matrix)
        if totals is None or totals.leaf.all():
            return None
        leaf, total = np.flatnonzero(totals.leaf), np.flatnonzero(~totals.leaf)
        direct = sp.csr_array(totals.parts[total])
        inner, among = direct[:, leaf], direct[:, total]
        whole, layer = inner, inner
        for _ in range(totals.depth):
            layer = among @ layer
            whole = whole + layer
        coefficients = sp.csr_array(whole)
        if not np.array_equal(coefficients.data, np.rint(coefficients.data)):
            return None
        everything = sp.csr_array(grid.matrix[:, leaf] + grid.matrix[:, total] @ coefficients)
        if np.abs(everything.data).max(initial=0.0) > 1e-9:
            return None
        return cls(leaf, total, sp.csr_array(coefficients.T), coefficients)


def anneal(
    grid: Grid,
    leaves: Leaves,
    stop: Stop,
    *,
    seed: int = 0,
    sweeps: int = 400,
    start: IntArray | None = None,
    attempts: int = 12,
) -> tuple[IntArray, int]:
    """Steps of all cells, additive, and by how many bases in all they leave the allowed range (0: every cell is adjacent).

    Heat falls and the price of leaving the range rises together: early on the search may walk through forbidden tables, which is how it gets from
    one good table to another. While a run ends outside the range, the next one is colder, dearer and starts where the last one ended. From a
    ``start`` worth keeping (the rounded relaxation) the heat is low from the beginning, and rises when that leaves it outside the range.
    """
    rng = np.random.default_rng(seed)
    point = grid.nearest() if start is None else start
    inner = point[leaves.leaf].copy()
    sums = np.rint(leaves.down @ inner + grid.constant(leaves)).astype(np.int64)
    free = np.flatnonzero(grid.low[leaves.leaf] < grid.high[leaves.leaf])
    best, best_excess, best_cost = _joined(grid, leaves, inner, sums), _excess(grid, leaves, sums), np.inf
    if len(free) == 0:
        return best, best_excess
    arrays = _arrays(grid, leaves, inner, sums, free)
    scale = float(np.median(grid.weight[leaves.leaf][free]))
    dearest = 20 * float(grid.weight.max())
    looks = 0 if start is not None else 3
    for attempt in range(attempts):
        for k in range(STAGES):
            share = k / (STAGES - 1)
            if start is None:
                heat, penalty = 0.3**share / (1 + attempt), 0.2 * 10**share * (1 + attempt)
            else:
                heat, penalty = 0.1 * 0.4**share * (1 + 0.5 * attempt), 0.2 * 10**share * (1 + attempt)
            heat, penalty = scale * heat, scale * penalty
            _anneal(*arrays, max(1, sweeps * len(free) // STAGES), heat, penalty, looks, rng)
            stop.tell("annealing", done=attempt * STAGES + k)
            if stop.done:
                break
        _anneal(*arrays, 4 * len(free), 1e-9 * scale, dearest, looks, rng)
        excess, point = _excess(grid, leaves, sums), _joined(grid, leaves, inner, sums)
        cost = grid.cost(point)
        if (excess, cost) < (best_excess, best_cost):
            best, best_excess, best_cost = point, excess, cost
        if best_excess == 0 or stop.done or best_excess > HOPELESS * len(leaves.total):
            break
    return best, best_excess


def _arrays(grid: Grid, leaves: Leaves, inner: IntArray, sums: IntArray, free: IntArray) -> tuple[Any, ...]:
    """What the kernel works on, in its order."""
    parts: list[Any] = [inner, sums, free]
    for cells in (leaves.leaf, leaves.total):
        parts += [grid.low[cells], grid.high[cells], grid.target[cells], grid.weight[cells]]
    up, down = leaves.up, leaves.down
    return (*parts, up.indptr, up.indices, np.rint(up.data).astype(np.int64), down.indptr, down.indices)


def _joined(grid: Grid, leaves: Leaves, inner: IntArray, sums: IntArray) -> IntArray:
    x = np.empty(grid.n, np.int64)
    x[leaves.leaf], x[leaves.total] = inner, sums
    return x


def _excess(grid: Grid, leaves: Leaves, sums: IntArray) -> int:
    t = leaves.total
    return int(np.maximum(0, np.maximum(grid.low[t] - sums, sums - grid.high[t])).sum())


def outside(grid: Grid, x: IntArray) -> BoolArray:
    """Cells beyond their allowed steps."""
    return (x < grid.low) | (x > grid.high)


@numba.njit(cache=True, inline="always")
def _term(s, low, high, target, weight, penalty):
    over = 0
    if s < low:
        over = low - s
    elif s > high:
        over = s - high
    # two bases too far are worse than several cells one base too far: the largest jump is what readers see
    return weight * abs(s - target) + penalty * over * over * over


@numba.njit(cache=True, inline="always")
def _shift(a, step, sums, low, high, target, weight, ptr, col, coef, penalty):
    """Move leaf a by step in all its totals; what it costs."""
    change = 0.0
    for k in range(ptr[a], ptr[a + 1]):
        i = col[k]
        before = _term(sums[i], low[i], high[i], target[i], weight[i], penalty)
        sums[i] += step * coef[k]
        change += _term(sums[i], low[i], high[i], target[i], weight[i], penalty) - before
    return change


@numba.njit(cache=True, inline="always")
def _unshift(a, step, sums, ptr, col, coef):
    for k in range(ptr[a], ptr[a + 1]):
        sums[col[k]] -= step * coef[k]


@numba.njit(cache=True)
def _anneal(
    x,
    sums,
    free,
    low,
    high,
    target,
    weight,
    tlow,
    thigh,
    ttarget,
    tweight,
    ptr,
    col,
    coef,
    dptr,
    dcol,
    steps,
    heat,
    penalty,
    looks,
    rng,
):
    n = len(free)
    for _ in range(steps):
        a = free[int(rng.random() * n)]
        step = 1 if rng.random() < 0.5 else -1
        if x[a] + step > high[a] or x[a] + step < low[a]:
            step = -step
            if x[a] + step > high[a] or x[a] + step < low[a]:
                continue
        change = weight[a] * (abs(x[a] + step - target[a]) - abs(x[a] - target[a]))
        change += _shift(a, step, sums, tlow, thigh, ttarget, tweight, ptr, col, coef, penalty)
        b = -1
        if rng.random() < 0.8 and ptr[a + 1] > ptr[a]:
            # the partner from one of the totals of a, so that this total keeps its sum; from a small one, so that they share more
            i = col[ptr[a] + int(rng.random() * (ptr[a + 1] - ptr[a]))]
            for _look in range(looks):
                j = col[ptr[a] + int(rng.random() * (ptr[a + 1] - ptr[a]))]
                if dptr[j + 1] - dptr[j] < dptr[i + 1] - dptr[i]:
                    i = j
            size = dptr[i + 1] - dptr[i]
            for _try in range(8):
                c = dcol[dptr[i] + int(rng.random() * size)]
                if c != a and low[c] <= x[c] - step <= high[c]:
                    b = c
                    break
            if b >= 0:
                change += weight[b] * (abs(x[b] - step - target[b]) - abs(x[b] - target[b]))
                change += _shift(b, -step, sums, tlow, thigh, ttarget, tweight, ptr, col, coef, penalty)
        if change <= 0 or rng.random() < np.exp(-change / heat):
            x[a] += step
            if b >= 0:
                x[b] -= step
        else:
            _unshift(a, step, sums, ptr, col, coef)
            if b >= 0:
                _unshift(b, -step, sums, ptr, col, coef)
