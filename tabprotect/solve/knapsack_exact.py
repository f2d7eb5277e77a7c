# mypy: disable-error-code="no-untyped-def,assignment"
"""The strongest inequality of a single covering row Σ cⱼxⱼ ≥ r at a point: exact separation over its 0–1 points (compiled).

A point x lies above the hull of the row's 0–1 points if those pack into it with weights that sum to one. The packing is found by the simplex
method, whose columns come from a dynamic program over the weight; where it falls short, its duals are the violated inequality. Columns at zero
are lifted in, and the right-hand side is the dynamic program's minimum, so that the inequality is valid whatever the simplex method did.

References: E.A. Boyd, "Generating Fenchel cutting planes for knapsack polyhedra", SIAM Journal on Optimization 3 (1993); K. Kaparis and
A.N. Letchford, "Separation algorithms for 0–1 knapsack polytopes", Mathematical Programming 124 (2010).
"""

from __future__ import annotations

import numba
import numpy as np

from tabprotect.solve.cutting import Row
from tabprotect.solve.knapsack import RowSet
from tabprotect.types import FloatArray

UNITS = 400
"""Weights are counted in so many units of the right-hand side at most, rounded up: it only lets more points in."""
MOST_ITEMS = 80
"""Rows with more columns above zero are left alone."""
PIVOTS = 400
"""Steps of the simplex method before a row is given up."""


def facets(rows: RowSet, x: FloatArray, *, least: float = 0.02) -> list[Row]:
    """For every row the most violated inequality of its 0–1 points at x, if it is violated by ``least`` of its right-hand side.

    >>> row = Row(np.array([0, 1, 2, 3]), np.array([3.0, 2.0, 2.0, 1.0]), 4.0, "capacity")
    >>> [found] = facets(RowSet([row]), np.array([1.0, 0.2, 0.0, 0.2]))
    >>> found.columns.tolist(), (found.values / found.rhs).round(6).tolist()
    ([1, 2, 3], [1.0, 1.0, 1.0])
    """
    start, columns, values, rhs = _facets(rows.start, rows.columns, rows.values, rows.rhs, x, least)
    return [
        Row(columns[start[i] : start[i + 1]].copy(), values[start[i] : start[i + 1]].copy(), float(rhs[i]), "facet")
        for i in range(len(rhs))
    ]


@numba.njit(cache=True, nogil=True)
def _facets(start, columns, values, rhs, x, least):
    """All rows at once; the results in the same compressed form."""
    out_start = np.zeros(len(rhs) + 1, np.int64)
    size = 4096
    out_columns, out_values = np.empty(size, np.int64), np.empty(size)
    out_rhs = np.empty(len(rhs))
    found, used = 0, 0
    for i in range(len(rhs)):
        cols, c, r = columns[start[i] : start[i + 1]], values[start[i] : start[i + 1]], rhs[i]
        point = x[cols]
        total, n, fractional = 0.0, 0, 0
        for j in range(len(cols)):
            total += c[j] * point[j]
            n += point[j] > 1e-6
            fractional += point[j] > 1e-6 and point[j] < 1 - 1e-6
        if total > 1.6 * r or n > MOST_ITEMS or fractional == 0:
            continue
        whole = r == np.rint(r) and r <= UNITS and (c == np.rint(c)).all()
        goal = int(r) if whole else UNITS
        weight = np.empty(len(c), np.int64)
        for j in range(len(c)):
            weight[j] = min(goal, int(c[j]) if whole else int(np.ceil(c[j] / r * goal * (1 - 1e-12))))
        right, pi = _facet(weight, goal, point, least)
        if right <= 0.0:
            continue
        while used + len(cols) > size:
            size *= 2
            out_columns = np.concatenate((out_columns, np.empty(size - len(out_columns), np.int64)))
            out_values = np.concatenate((out_values, np.empty(size - len(out_values))))
        for j in range(len(cols)):
            if pi[j] > 0.0:
                out_columns[used], out_values[used] = cols[j], pi[j]
                used += 1
        out_rhs[found] = right
        found += 1
        out_start[found] = used
    return out_start[: found + 1], out_columns[:used], out_values[:used], out_rhs[:found]


@numba.njit(cache=True, nogil=True)
def _facet(weight, goal, x, least):
    """Right-hand side (0 where nothing is violated) and coefficients."""
    inside = np.flatnonzero(x > 1e-6)
    pi_inside = _packing(weight[inside], goal, x[inside], 1.0 - least)
    pi = np.zeros(len(x))
    if len(pi_inside) == 0:
        return 0.0, pi
    for k in range(len(inside)):
        pi[inside[k]] = pi_inside[k] if pi_inside[k] > 1e-7 else 0.0
    cost = np.full(goal + 1, 1e18)
    cost[0] = 0.0
    for j in inside:
        _put(cost, weight[j], pi[j])
    right = cost[goal]
    outside = np.flatnonzero(x <= 1e-6)
    for j in outside[np.argsort(-weight[outside])]:
        pi[j] = max(0.0, right - cost[goal - weight[j]])
        _put(cost, weight[j], pi[j])
    right = min(right, cost[goal]) * (1 - 1e-9)
    total = 0.0
    for j in range(len(x)):
        total += pi[j] * x[j]
    return (right, pi) if total < right * (1.0 - least) else (0.0, pi)


@numba.njit(cache=True, nogil=True)
def _put(cost, w, price):
    """One more item for the least price of every demand."""
    for d in range(len(cost) - 1, 0, -1):
        other = cost[max(d - w, 0)] + price
        cost[d] = min(cost[d], other)


@numba.njit(cache=True, nogil=True)
def _packing(weight, goal, x, enough):
    """Duals of the largest packing of the row's points into x; empty where it reaches ``enough``."""
    n = len(x)
    inverse, basic = np.eye(n), x.copy()
    gain = np.zeros(n)  # of the basic columns: 1 for a point, 0 for a slack
    pi = np.zeros(n)
    take = np.zeros((n, goal + 1), np.bool_)
    cost = np.empty(goal + 1)
    column = np.zeros(n)
    for _ in range(PIVOTS):
        if (gain * basic).sum() >= enough:
            return np.empty(0)
        for j in range(n):
            pi[j] = (gain * inverse[:, j]).sum()
        low = np.argmin(pi)
        column[:] = 0.0
        profit = 0.0
        if pi[low] < -1e-9:
            column[low] = 1.0
        else:
            profit = 1.0
            cost[:] = 1e18
            cost[0] = 0.0
            for j in range(n):
                w, price = weight[j], max(pi[j], 0.0)
                for d in range(goal, 0, -1):
                    other = cost[max(d - w, 0)] + price
                    take[j, d] = other < cost[d] - 1e-12
                    if take[j, d]:
                        cost[d] = other
            if cost[goal] >= 1e17:
                return np.empty(0)  # the columns above zero do not reach the goal: another row says so
            if cost[goal] >= 1.0 - 1e-9:
                return np.maximum(pi, 0.0)
            d = goal
            for j in range(n - 1, -1, -1):
                if d > 0 and take[j, d]:
                    column[j] = 1.0
                    d = max(d - weight[j], 0)
        step = np.dot(inverse, column)
        leaves, ratio = -1, 1e18
        for k in range(n):
            if step[k] > 1e-9 and basic[k] / step[k] < ratio:
                leaves, ratio = k, basic[k] / step[k]
        if leaves < 0:
            return np.empty(0)
        pivot = step[leaves]
        inverse[leaves] /= pivot
        basic[leaves] = max(ratio, 0.0)
        for k in range(n):
            if k != leaves and step[k] != 0.0:
                inverse[k] -= step[k] * inverse[leaves]
                basic[k] = max(basic[k] - step[k] * ratio, 0.0)
        gain[leaves] = profit
    return np.empty(0)
