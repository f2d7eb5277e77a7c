# mypy: disable-error-code="no-untyped-def"
"""Stronger inequalities from single covering rows Σ cⱼxⱼ ≥ r with 0–1 variables (compiled).

Cover: if the members of Q together fall short of r, something outside Q is needed; members of Q that are no smaller than anything outside
move to the left, each raising the right-hand side by one. Mixed-integer rounding: variables above one half are complemented, the row is divided
by one of its coefficients and rounded.

References: E. Balas, "Facets of the knapsack polytope", Mathematical Programming 8 (1975); H. Marchand and L. A. Wolsey, "Aggregation and
mixed integer rounding to solve MIPs", Operations Research 49 (2001).
"""

from __future__ import annotations

import numba
import numpy as np

from tabprotect.solve.cutting import Row
from tabprotect.types import FloatArray

MOST_WEIGHT = 20_000
"""Largest right-hand side for the exact cover search; beyond it a greedy one is used."""


def strengthen(rows: list[Row], x: FloatArray, *, least: float = 0.03) -> list[Row]:
    """Violated cover and rounding inequalities of the given rows at x (each row's best of either kind).

    >>> row = Row(np.array([0, 1, 2]), np.array([3.0, 3.0, 3.0]), 4.0, "capacity")
    >>> [r.rhs for r in strengthen([row], np.array([0.8, 0.4, 0.2]))]
    [2.0]
    """
    found = []
    for row in rows:
        fractional = x[row.columns]
        if len(fractional) < 2 or float(row.values.min()) >= row.rhs:
            continue
        # a row that is slack by more than its right-hand side allows cannot give a violated inequality
        if float(row.values @ fractional) > 2.0 * row.rhs + 1e-9:
            continue
        whole = bool(row.rhs == np.rint(row.rhs)) and bool((row.values == np.rint(row.values)).all())
        weight, rhs = (row.values, row.rhs) if whole else (row.values / row.rhs * 1000.0, 1000.0)
        violation, chosen, k = _cover(weight, rhs, fractional, whole and rhs <= MOST_WEIGHT)
        if violation > least:
            found.append(Row(row.columns[chosen], np.ones(int(chosen.sum())), float(k), "cover"))
        violation, values, right = _rounded(row.values, row.rhs, fractional)
        if violation > least:
            keep = np.abs(values) > 1e-12
            found.append(Row(row.columns[keep], values[keep], right, "mir"))
    return found


@numba.njit(cache=True, nogil=True)
def _cover(c, r, x, exact):
    """The set left of "Σ x ≥ k", its k and by how much x violates it."""
    n = len(c)
    inside = np.zeros(n, np.bool_)
    limit = r - 1.0 if exact else r * (1.0 - 1e-9)
    used = 0.0
    some = np.flatnonzero(x > 1e-9)
    if exact:
        # most of x within weight r − 1
        size = int(limit) + 1
        best = np.zeros(size)
        take = np.zeros((len(some), size), np.bool_)
        for i in range(len(some)):
            w, gain = int(c[some[i]]), x[some[i]]
            for b in range(size - 1, w - 1, -1):
                if best[b - w] + gain > best[b] + 1e-12:
                    best[b] = best[b - w] + gain
                    take[i, b] = True
        b = size - 1
        for i in range(len(some) - 1, -1, -1):
            if take[i, b]:
                inside[some[i]] = True
                b -= int(c[some[i]])
                used += c[some[i]]
    else:
        ratio = np.empty(len(some))
        for i in range(len(some)):
            ratio[i] = -x[some[i]] / c[some[i]]
        for i in np.argsort(ratio):
            j = some[i]
            if used + c[j] <= limit:
                inside[j] = True
                used += c[j]
    # whatever costs nothing in x and still fits makes the left side shorter
    for j in range(n):
        if not inside[j] and x[j] <= 1e-9 and used + c[j] <= limit:
            inside[j] = True
            used += c[j]
    top = 0.0
    for j in range(n):
        if not inside[j]:
            top = max(top, c[j])
    k = 1
    left = ~inside
    for j in range(n):
        if inside[j] and c[j] >= top and x[j] < 1.0 - 1e-9:
            left[j] = True
            k += 1
    total = 0.0
    for j in range(n):
        if left[j]:
            total += x[j]
    return k - total, left, k


@numba.njit(cache=True, nogil=True)
def _rounded(c, r, x):
    """The most violated rounding of the row over divisors among its coefficients."""
    n = len(c)
    best, best_right = 0.0, 0.0
    best_values = np.zeros(n)
    values = np.zeros(n)
    tried = np.zeros(12)
    n_tried = 0
    for j in range(n):
        if x[j] <= 0.01 or x[j] >= 0.99 or n_tried == 12:
            continue
        known = False
        for i in range(n_tried):
            known = known or tried[i] == c[j]
        if known:
            continue
        tried[n_tried] = c[j]
        n_tried += 1
        for power in range(3):
            divisor = c[j] / (1 << power)
            b = r
            for i in range(n):
                if x[i] > 0.5:
                    b -= c[i]
            b /= divisor
            f = b - np.floor(b)
            if f < 0.01 or f > 0.999:
                continue
            right = np.ceil(b)
            total = 0.0
            for i in range(n):
                a = c[i] / divisor if x[i] <= 0.5 else -c[i] / divisor
                whole = np.floor(a + 1e-9)
                part = max(a - whole, 0.0)
                g = whole + min(1.0, part / f)
                if x[i] > 0.5:
                    right -= g
                    g = -g
                values[i] = g
                total += g * x[i]
            norm = 0.0
            for i in range(n):
                if x[i] > 0.0:
                    norm += values[i] * values[i]
            violation = (right - total) / max(np.sqrt(norm), 1e-9)
            if violation > best and right - total > 1e-6:
                best, best_right = violation, right
                best_values[:] = values
    return best, best_values, best_right
