"""Exact rational solutions of integer systems by numerical means: floating-point solves, whole-number residuals, continued fractions."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from tabprotect.types import IntArray

_STEP = 20
"""Bits gained by one solve; a solve that gives fewer shows in a growing residual."""
_BITS = (80, 160, 320, 640)
_LARGEST = 2**40
_SYMMETRIC = {"SymmetricMode": True}


def solve_exactly(matrix: Any, rhs: IntArray) -> tuple[list[int], int] | None:
    """Numerators and common denominator of x with ``matrix @ x = rhs`` (whole numbers, independent columns); None where there is none.

    Every round solves for the residual in floating point, keeps the answer to ``_STEP`` bits and computes the next residual, scaled up by as
    much, in whole numbers: no digit is lost, and all arithmetic but the last stays in machine words. Z. Wan, An algorithm to solve integer
    linear systems exactly using numerical methods, J. Symbolic Computation 41 (2006) 621–632.

    >>> solve_exactly(sp.csr_array(np.array([[3, 0], [1, 2]])), np.array([1, 1]))
    ([1, 1], 3)
    """
    a = sp.csr_array(matrix).astype(np.int64)
    columns = sp.csc_array(a).astype(float)
    scale = int(np.abs(rhs).max(initial=1)).bit_length()
    if scale > 44:
        return None
    try:
        factor = splu(
            sp.csc_matrix(columns.T @ columns), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=_SYMMETRIC
        )
    except RuntimeError:  # dependent columns
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
