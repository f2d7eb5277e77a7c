"""Relations that imply all others: linear programs that are solved a thousand times should not carry the same relation twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.types import BoolArray, IntArray


def independent_rows(matrix: Any, seed: int = 0) -> BoolArray:
    """Rows that imply all others, found by the totals: one relation for each total, and whatever does not follow from those.

    What follows is tested on random tables that obey the chosen rows (exact in integers, so a wrong yes has probability below 1e-20).

    >>> independent_rows(sp.csr_array([[-1, 1, 1, 0], [0, 1, 1, -1], [-1, 0, 0, 1]])).tolist()
    [True, False, True]
    """
    a = sp.csr_array(matrix)
    m, n = a.shape
    total = np.full(m, -1)
    lengths = np.diff(a.indptr)
    rows = np.repeat(np.arange(m), lengths)
    positive = np.bincount(rows, weights=(a.data > 0), minlength=m)
    sign = np.where(positive == 1, 1.0, np.where(lengths - positive == 1, -1.0, 0.0))
    lone = (np.sign(a.data) == sign[rows]) & (lengths[rows] >= 2)
    total[rows[lone]] = a.indices[lone]
    height = np.zeros(n, np.int64)
    for _ in range(64):
        parts = np.where(a.indices == total[rows], -1, height[a.indices])
        top = np.zeros(m, np.int64)
        np.maximum.at(top, rows, parts)
        before = height.copy()
        has = total >= 0
        np.maximum.at(height, total[has], top[has] + 1)
        if (before == height).all():
            break
    else:
        return np.ones(m, bool)
    chosen = np.full(n, -1)
    for r in np.argsort(-lengths, kind="stable"):
        if total[r] >= 0:
            chosen[total[r]] = r
    keep = np.zeros(m, bool)
    keep[chosen[chosen >= 0]] = True
    rng = np.random.default_rng(seed)
    values = np.zeros((n, 3))
    leaf = chosen < 0
    values[leaf] = rng.integers(-(2**24), 2**24, (int(leaf.sum()), 3))
    for h in range(1, int(height.max(initial=0)) + 1):
        cells = np.flatnonzero((height == h) & ~leaf)
        if len(cells) == 0:
            continue
        block = sp.csr_array(a[chosen[cells], :])
        coefficient = np.asarray(block[np.arange(len(cells)), cells]).ravel()
        values[cells] -= (block @ values) / coefficient[:, None]
    scale = np.abs(a) @ np.abs(values) + 1.0
    extra = np.flatnonzero((np.abs(a @ values) > 1e-9 * scale).any(axis=1) & ~keep)
    keep[_independent_extra(a, np.flatnonzero(keep), np.flatnonzero(~leaf), np.flatnonzero(leaf), extra)] = True
    return keep


def _independent_extra(a: Any, rows: IntArray, pivots: IntArray, leaves: IntArray, extra: IntArray) -> IntArray:
    """Of the rows that do not follow from the chosen ones, those that do not follow from each other either.

    The pivots are eliminated (y_P = −C_P⁻¹ C_F y_F), then plain elimination on what the extra rows say of the leaves.
    """
    if len(extra) < 2 or len(extra) * max(len(leaves), len(pivots)) > 20_000_000:
        return extra
    from scipy.sparse.linalg import splu

    chosen = sp.csc_array(a[rows, :])
    rest = sp.csc_array(a[extra, :])
    body = np.asarray(rest[:, leaves].todense())
    if len(pivots):
        solved = splu(sp.csc_matrix(chosen[:, pivots].T)).solve(np.asarray(rest[:, pivots].T.todense()))
        body = body - (chosen[:, leaves].T @ solved).T
    kept = []
    for i in np.argsort(np.diff(sp.csr_array(rest).indptr), kind="stable"):
        row = body[i]
        at = int(np.abs(row).argmax())
        if abs(row[at]) < 1e-7:
            continue
        kept.append(extra[i])
        touched = np.flatnonzero(np.abs(body[:, at]) > 1e-9)
        touched = touched[touched != i]
        across = np.flatnonzero(row)
        body[np.ix_(touched, across)] -= np.outer(body[touched, at] / row[at], row[across])
    return np.array(kept, dtype=np.int64)
