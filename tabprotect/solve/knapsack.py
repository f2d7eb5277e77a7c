# mypy: disable-error-code="no-untyped-def,assignment"
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


class RowSet:
    """Rows in one compressed array, to be strengthened together; it only grows."""

    def __init__(self, rows: list[Row]) -> None:
        self._new: list[Row] = []
        self.start = np.zeros(1, np.int64)
        self.columns = np.zeros(0, np.int64)
        self.values = np.zeros(0)
        self.rhs = np.zeros(0)
        self.extend(rows)

    def extend(self, rows: list[Row]) -> None:
        """Append those rows that have anything to strengthen: a coefficient below the right-hand side."""
        useful = [r for r in rows if len(r.columns) > 1 and float(r.values.min()) < r.rhs]
        if not useful:
            return
        lengths = np.array([len(r.columns) for r in useful])
        self.start = np.concatenate([self.start, self.start[-1] + np.cumsum(lengths)])
        self.columns = np.concatenate([self.columns, *[r.columns for r in useful]])
        self.values = np.concatenate([self.values, *[r.values for r in useful]])
        self.rhs = np.concatenate([self.rhs, [r.rhs for r in useful]])


def strengthen(rows: RowSet, x: FloatArray, *, least: float = 0.03) -> list[Row]:
    """Violated cover and rounding inequalities of the given rows at x (each row's best of either kind).

    >>> row = Row(np.array([0, 1, 2]), np.array([3.0, 3.0, 3.0]), 4.0, "capacity")
    >>> strengthen(RowSet([row]), np.array([0.8, 0.4, 0.2]))[0].rhs
    2.0
    """
    start, columns, values, rhs, kind = _strengthen(rows.start, rows.columns, rows.values, rows.rhs, x, least)
    return [
        Row(
            columns[start[i] : start[i + 1]].copy(),
            values[start[i] : start[i + 1]].copy(),
            float(rhs[i]),
            _KINDS[kind[i]],
        )
        for i in range(len(rhs))
    ]


_KINDS = ("cover", "mir")


@numba.njit(cache=True, nogil=True)
def _strengthen(start, columns, values, rhs, x, least):
    """All rows at once; the results in the same compressed form."""
    n = len(rhs)
    out_start = np.zeros(2 * n + 1, np.int64)
    size = 4096
    out_columns, out_values = np.empty(size, np.int64), np.empty(size)
    out_rhs, out_kind = np.empty(2 * n), np.empty(2 * n, np.int64)
    found, used = 0, 0
    for i in range(n):
        cols, c, r = columns[start[i] : start[i + 1]], values[start[i] : start[i + 1]], rhs[i]
        point = x[cols]
        # a row that is slack by more than its right-hand side hardly gives a violated inequality
        if (c * point).sum() > 2.0 * r + 1e-9:
            continue
        while used + 2 * len(cols) > size:
            size *= 2
            out_columns = np.concatenate((out_columns, np.empty(size - len(out_columns), np.int64)))
            out_values = np.concatenate((out_values, np.empty(size - len(out_values))))
        whole = r == np.rint(r) and (c == np.rint(c)).all()
        unit = 1.0 if whole else 1000.0 / r
        violation, left, k = _cover(c * unit, r * unit, point, whole and r <= MOST_WEIGHT)
        if violation > least:
            for j in range(len(cols)):
                if left[j]:
                    out_columns[used], out_values[used] = cols[j], 1.0
                    used += 1
            out_rhs[found], out_kind[found] = k, 0
            found += 1
            out_start[found] = used
        violation, rounded, right = _rounded(c, r, point)
        if violation > least:
            for j in range(len(cols)):
                if abs(rounded[j]) > 1e-12:
                    out_columns[used], out_values[used] = cols[j], rounded[j]
                    used += 1
            out_rhs[found], out_kind[found] = right, 1
            found += 1
            out_start[found] = used
    return out_start[: found + 1], out_columns[:used], out_values[:used], out_rhs[:found], out_kind[:found]


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
        # by falling x per weight; selection instead of a sort keeps compilation short
        left_over = x / np.maximum(c, 1e-300)
        for _ in range(len(some)):
            j = np.argmax(left_over)
            if left_over[j] <= 1e-9 / max(c[j], 1e-300):
                break
            left_over[j] = -1.0
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
