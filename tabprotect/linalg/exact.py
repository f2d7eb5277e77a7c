"""Exact arithmetic for checks: decimals as fractions, and exact rational solutions near floating-point ones."""

from __future__ import annotations

from fractions import Fraction
from math import floor, lcm
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import splu

from tabprotect.types import FloatArray

_SMALL_DENOMINATORS = (1, 2, 3, 4, 5, 6, 12, 60, 840)
_REFINED_BITS = 400


def as_fraction(x: float) -> Fraction:
    """The decimal number that a float is written as: 0.1 is 1/10, not the nearest binary fraction.

    >>> as_fraction(0.1)
    Fraction(1, 10)
    """
    number = float(x)
    return Fraction(int(number)) if number.is_integer() else Fraction(repr(number))


def decimals_of(*arrays: Any, most: int = 9) -> int:
    """Smallest number of decimals (at most ``most``) that writes all finite numbers exactly.

    >>> decimals_of([1.25, 3.0], [0.5])
    2
    """
    numbers = np.concatenate([np.asarray(a, float).ravel() for a in arrays]) if arrays else np.zeros(0)
    numbers = numbers[np.isfinite(numbers)]
    for d in range(most):
        scaled = numbers * 10.0**d
        if np.all(np.abs(scaled - np.rint(scaled)) <= 1e-9 * np.maximum(1.0, np.abs(scaled))):
            return d
    return most


def integer_rows(matrix: Any) -> Any:
    """The same relations with whole coefficients (each row multiplied by its common denominator), as object arrays if needed."""
    a = sp.csr_array(matrix)
    if np.all(a.data == np.rint(a.data)):
        return sp.csr_array((np.rint(a.data).astype(np.int64), a.indices, a.indptr), shape=a.shape)
    data = a.data.copy()
    for r in range(a.shape[0]):
        part = slice(a.indptr[r], a.indptr[r + 1])
        factor = lcm(*(as_fraction(c).denominator for c in data[part])) if part.stop > part.start else 1
        data[part] = [float(as_fraction(c) * factor) for c in data[part]]
    return sp.csr_array((np.rint(data).astype(np.int64), a.indices, a.indptr), shape=a.shape)


def residual_is_zero(matrix: Any, numerators: Any) -> bool:
    """Whether an integer matrix times an integer vector (Python integers) is exactly zero."""
    biggest = max((abs(int(v)) for v in numerators), default=0)
    weight = int(np.abs(matrix).sum(axis=1).max()) if matrix.nnz else 0
    if biggest * max(weight, 1) < 2**62:
        return not (matrix @ np.asarray(numerators, dtype=np.int64)).any()
    return not any(_row_sums(matrix, numerators))


def _row_sums(matrix: Any, numerators: Any) -> list[int]:
    z = [int(v) for v in numerators]
    out = []
    for r in range(matrix.shape[0]):
        part = slice(matrix.indptr[r], matrix.indptr[r + 1])
        out.append(sum(int(c) * z[j] for c, j in zip(matrix.data[part], matrix.indices[part], strict=True)))
    return out


def rationalize(
    matrix: Any, y: FloatArray, down: FloatArray, up: FloatArray, unit: int = 1, whole: bool = False
) -> tuple[list[int], int] | None:
    """An exact solution of ``matrix @ y = 0``, ``−down ≤ y ≤ up`` near the floating-point ``y``: numerators and denominator.

    ``matrix`` has whole coefficients; ``unit`` is a denominator that writes the data exactly (10 to the decimals); ``whole`` allows no other than 1.
    None when there is none nearby, which callers must treat as "not shown".

    >>> rationalize(sp.csr_array(np.array([[1, 1, -1]])), np.array([0.333333333, 0.666666667, 1.0]), np.zeros(3), np.ones(3))
    ([1, 2, 3], 3)
    """
    low = [None if np.isinf(d) else -as_fraction(d) for d in down]
    high = [None if np.isinf(u) else as_fraction(u) for u in up]
    for factor in (1,) if whole else _SMALL_DENOMINATORS:
        den = 1 if whole else unit * factor
        scaled = y * den
        if np.abs(scaled).max(initial=0.0) > 2**52:
            break
        rounded = np.rint(scaled)
        if np.abs(scaled - rounded).max(initial=0.0) > 1e-4 * max(1.0, 1e-9 * float(np.abs(scaled).max(initial=0.0))):
            continue
        nums = [int(v) for v in rounded]
        if _within(nums, den, low, high) and residual_is_zero(matrix, nums):
            return nums, den
    return None if whole else _refined(matrix, y, low, high, unit)


def _within(nums: list[int], den: int, low: list[Fraction | None], high: list[Fraction | None]) -> bool:
    for v, a, b in zip(nums, low, high, strict=True):
        if (a is not None and v * a.denominator < a.numerator * den) or (
            b is not None and v * b.denominator > b.numerator * den
        ):
            return False
    return True


def _refined(
    matrix: Any, y: FloatArray, low: list[Fraction | None], high: list[Fraction | None], unit: int
) -> tuple[list[int], int] | None:
    """Entries at a bound take it exactly; the others solve the relations by iterative refinement to hundreds of bits, then continued fractions.

    Z. Wan, An algorithm to solve integer linear systems exactly using numerical methods, J. Symbolic Computation 41 (2006) 621–632.
    """
    q = 1 << _REFINED_BITS
    scale = max(float(np.abs(y).max(initial=0.0)), 1e-300)
    fixed: list[Fraction | None] = []
    for v, a, b in zip(y, low, high, strict=True):
        at = next(
            (f for f in (a, b, Fraction(0)) if f is not None and abs(v - float(f)) <= 1e-7 * max(scale * 1e-3, abs(v))),
            None,
        )
        fixed.append(at)
    free = [j for j, f in enumerate(fixed) if f is None]
    if not free:
        return None
    z = [floor(as_fraction(v) * q) if f is None else floor(f * q) for v, f in zip(y, fixed, strict=True)]
    columns = sp.csc_array(matrix)[:, free].astype(float)
    normal = sp.csc_matrix(columns.T @ columns + 1e-13 * sp.eye_array(len(free)))
    try:
        factor = splu(normal)
    except RuntimeError:
        return None
    for _ in range(_REFINED_BITS // 8):
        residual = _row_sums(matrix, z)
        worst = max((abs(r) for r in residual), default=0)
        if worst <= len(free) * 64:
            break
        step = factor.solve(columns.T @ np.array([float(Fraction(-r, worst)) for r in residual]))
        for j, s in zip(free, step, strict=True):
            z[j] += floor(Fraction(float(s)) * worst)
    limit = 10 ** (_REFINED_BITS // 8)
    found = [Fraction(v, q).limit_denominator(limit) if f is None else f for v, f in zip(z, fixed, strict=True)]
    den = lcm(unit, *(f.denominator for f in found))
    nums = [int(f * den) for f in found]
    return (nums, den) if _within(nums, den, low, high) and residual_is_zero(matrix, nums) else None
