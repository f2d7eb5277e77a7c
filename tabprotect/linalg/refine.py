"""Exact rational solutions of integer systems by numerical means: floating-point solves, whole-number residuals, continued fractions."""

from __future__ import annotations

from math import gcd
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from tabprotect.types import FloatArray, IntArray

_STEP = 20
"""Bits gained by one solve; a solve that gives fewer shows in a growing residual."""
_BITS = (80, 160, 320, 640)
_LARGEST = 2**40
_FINE = 1024
"""Parts of a unit to which values are rounded that may be chosen."""


def solve_exactly(matrix: Any, rhs: IntArray, near: FloatArray | None = None) -> tuple[list[int], int] | None:
    """Numerators and common denominator of x with ``matrix @ x = rhs`` (whole numbers); None where none was found.

    Every round solves for the residual in floating point, keeps the answer to ``_STEP`` bits and computes the next residual, scaled up by as
    much, in whole numbers: no digit is lost, and all arithmetic but the last stays in machine words. Z. Wan, An algorithm to solve integer
    linear systems exactly using numerical methods, J. Symbolic Computation 41 (2006) 621–632. Where columns depend on each other, ``near`` is
    a solution in floating point, and what it leaves open takes its rounded values.

    >>> solve_exactly(sp.csr_array(np.array([[3, 0], [1, 2]])), np.array([1, 1]))
    ([1, 1], 3)
    >>> solve_exactly(sp.csr_array(np.array([[1, 1]])), np.array([1]), near=np.array([0.25, 0.75]))
    ([1, 3], 4)
    """
    a = sp.csr_array(matrix).astype(np.int64)
    factor, loose = _factorised(a)
    if len(loose) and near is not None:
        return _with_fixed(a, rhs, near, loose)
    if factor is None or len(loose):
        return None
    columns = sp.csc_array(a).astype(float)
    scale = int(np.abs(rhs).max(initial=1)).bit_length()
    if scale > 44:
        return None
    residual, bits = rhs.astype(np.int64), 0
    parts: list[tuple[IntArray, int]] = []
    for goal in _BITS:
        while bits < goal + scale:
            # the first round also brings the residual down to the size of the matrix
            step = _STEP if parts else max(0, _STEP - scale)
            digits = np.rint(factor.solve(columns.T @ residual) * 2.0**step)
            if not np.isfinite(digits).all() or np.abs(digits).max(initial=0.0) > 2.0**52:
                return None
            whole = digits.astype(np.int64)
            residual = (residual << step) - a @ whole
            if np.abs(residual).max(initial=0) > _LARGEST:
                return None
            parts.append((whole, step))
            bits += step or _STEP
            if not residual.any():
                break
        found = _reconstruct(parts)
        if found is not None and _solves(a, rhs, *found):
            return found
        if not residual.any():
            return None
    return None


def _factorised(a: Any) -> tuple[Any, IntArray]:
    """The normal equations, factorised, and the columns that depend on others."""
    columns = sp.csc_array(a).astype(float)
    normal = sp.csc_matrix(columns.T @ columns + 1e-14 * sp.eye_array(a.shape[1]))
    try:
        factor = splu(normal, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    except RuntimeError:
        return None, np.zeros(0, np.int64)
    pivots = np.abs(factor.U.diagonal())
    return factor, np.flatnonzero((pivots < 1e-8)[factor.perm_c])


def _with_fixed(a: Any, rhs: IntArray, near: FloatArray, loose: IntArray) -> tuple[list[int], int] | None:
    """The solution in which the loose columns take their values in ``near``, rounded."""
    if np.abs(near).max(initial=0.0) * _FINE > 2.0**40:
        return None
    fixed = np.rint(near[loose] * _FINE).astype(np.int64)
    tight = np.setdiff1d(np.arange(a.shape[1]), loose)
    by_column = sp.csc_array(a)
    solved = solve_exactly(by_column[:, tight], rhs.astype(np.int64) * _FINE - by_column[:, loose] @ fixed)
    if solved is None:
        return None
    numerators, den = solved
    x = np.zeros(a.shape[1], dtype=object)
    x[tight] = numerators
    x[loose] = fixed.astype(object) * den
    den *= _FINE
    common = gcd(den, *x)
    return [int(v) // common for v in x], den // common


def _reconstruct(parts: list[tuple[IntArray, int]]) -> tuple[list[int], int] | None:
    """One denominator for all numbers: each that is not yet whole adds its own, read from its continued fraction."""
    total = np.zeros(len(parts[0][0]), dtype=object)
    bits = 0
    for whole, step in parts:
        total = (total << step) + whole.astype(object)
        bits += step
    q = 1 << bits
    most = 1 << (bits // 2)
    den = 1
    for _ in range(30):
        scaled = total * den
        near = (scaled + (q >> 1)) >> bits
        off = np.abs(scaled - (near << bits))
        worst = int(off.argmax())
        if off[worst] <= (q >> (bits // 4)):
            return [int(v) for v in near], den
        den *= _denominator(int(scaled[worst]) % q, q, max(1, most // den))
        if den > most:
            return None
    return None


def _denominator(numerator: int, q: int, most: int) -> int:
    """Denominator of the last convergent of numerator / q that is at most ``most``."""
    before, now = 0, 1
    n, d = numerator, q
    n, d = d, n
    while d:
        digit, rest = divmod(n, d)
        before, now = now, digit * now + before
        if now > most:
            return before
        n, d = d, rest
    return now


def _solves(a: Any, rhs: IntArray, numerators: list[int], den: int) -> bool:
    return not any(x != int(b) * den for x, b in zip(row_sums(a, numerators), rhs, strict=True))


def row_sums(matrix: Any, numbers: list[int]) -> list[int]:
    """Integer matrix times Python integers of any size."""
    biggest = max((abs(v) for v in numbers), default=0)
    weight = int(np.abs(matrix).sum(axis=1).max()) if matrix.nnz else 0
    if biggest * max(weight, 1) < 2**62:
        return [int(v) for v in matrix @ np.asarray(numbers, dtype=np.int64)]
    terms = matrix.data.astype(object) * np.asarray(numbers, dtype=object)[matrix.indices]
    total = np.concatenate([[0], np.cumsum(terms)]) if len(terms) else np.zeros(1, dtype=object)
    return [int(v) for v in total[matrix.indptr[1:]] - total[matrix.indptr[:-1]]]
