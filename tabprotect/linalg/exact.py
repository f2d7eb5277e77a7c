"""Exact arithmetic for checks: decimals as fractions, and exact rational solutions near floating-point ones."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import lcm
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.linalg.refine import row_sums, solve_exactly
from tabprotect.types import FloatArray

_SMALL_DENOMINATORS = (1, 2, 3, 4, 5, 6, 12, 60, 840)
_ZERO = Fraction(0)


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
    return next((d for d in range(most) if has_decimals(d, *arrays)), most)


def has_decimals(d: int, *arrays: Any) -> bool:
    """Whether so many decimals write all finite numbers, but for rounding errors.

    >>> has_decimals(2, [1.25, 3.0]), has_decimals(9, [1 / 3, 4e4 / 3])
    (True, False)
    """
    numbers = np.concatenate([np.asarray(a, float).ravel() for a in arrays]) if arrays else np.zeros(0)
    scaled = numbers[np.isfinite(numbers)] * 10.0**d
    return bool(np.all(np.abs(scaled - np.rint(scaled)) <= np.clip(1e-12 * np.abs(scaled), 1e-9, 0.02)))


def on_grid(x: Fraction, unit: int, *, up: bool = False) -> Fraction:
    """The nearest multiple of 1/unit that is not farther from zero (``up``: not nearer to it).

    >>> on_grid(Fraction(-1, 3), 10), on_grid(Fraction(1, 3), 10, up=True)
    (Fraction(-3, 10), Fraction(2, 5))
    """
    size = abs(x.numerator) * unit
    whole = -(-size // x.denominator) if up else size // x.denominator
    return Fraction(whole if x >= 0 else -whole, unit)


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
    return not any(row_sums(matrix, [int(v) for v in numerators]))


def rationalize(
    matrix: Any,
    y: FloatArray,
    low: list[Fraction | None],
    high: list[Fraction | None],
    *,
    unit: int = 1,
    whole: bool = False,
    likely: dict[int, tuple[Fraction, ...]] | None = None,
) -> tuple[list[int], int] | None:
    """An exact solution of ``matrix @ y = 0``, ``low ≤ y ≤ high`` near the floating-point ``y``: numerators and denominator.

    ``matrix`` has whole coefficients; ``unit`` is a denominator that writes the data exactly (10 to the decimals); ``whole`` allows no other than 1;
    ``likely`` are amounts an entry probably has. None when there is none nearby, which callers must treat as "not shown".

    >>> one = [Fraction(1)] * 3
    >>> rationalize(sp.csr_array(np.array([[1, 1, -1]])), np.array([0.333333333, 0.666666667, 1.0]), [Fraction(0)] * 3, one)
    ([1, 2, 3], 3)
    """
    for factor in (1,) if whole else _denominators(y * unit):
        den = 1 if whole else unit * factor
        scaled = y * den
        if np.abs(scaled).max(initial=0.0) > 2**52:
            break
        rounded = np.rint(scaled)
        if np.abs(scaled - rounded).max(initial=0.0) > 1e-4 * max(1.0, 1e-9 * float(np.abs(scaled).max(initial=0.0))):
            continue
        nums = [int(v) for v in rounded]
        if within(nums, den, low, high) and residual_is_zero(matrix, nums):
            return nums, den
    return None if whole else _refined(matrix, y, low, high, unit, likely or {})


def _denominators(y: FloatArray) -> Iterator[int]:
    """Small ones first; the one that y itself shows is only looked for where none of them will do."""
    yield from _SMALL_DENOMINATORS
    yield common_denominator(y)


def common_denominator(y: FloatArray, most: int = 10**6) -> int:
    """The number that makes all of y whole within rounding, by continued fractions; 1 where it would be larger than ``most``.

    >>> common_denominator(np.array([0.3125, 1 / 3, 2.0]))
    48
    """
    den = 1
    while den <= most:
        scaled = y * den
        off = np.abs(scaled - np.rint(scaled))
        if off.max(initial=0.0) <= 1e-6:
            return den
        worst = Fraction(float(scaled[int(off.argmax())])).limit_denominator(1000)
        if worst.denominator == 1:
            break
        den *= worst.denominator
    return 1


def within(nums: list[int], den: int, low: list[Fraction | None], high: list[Fraction | None]) -> bool:
    """Whether all numbers are inside their bounds (None: no bound)."""
    for v, a, b in zip(nums, low, high, strict=True):
        if (a is not None and v * a.denominator < a.numerator * den) or (
            b is not None and v * b.denominator > b.numerator * den
        ):
            return False
    return True


def _refined(
    matrix: Any,
    y: FloatArray,
    low: list[Fraction | None],
    high: list[Fraction | None],
    unit: int,
    likely: dict[int, tuple[Fraction, ...]],
) -> tuple[list[int], int] | None:
    """Entries at a bound or a likely amount take it exactly; the others follow from the relations."""
    near = 1e-7 * np.maximum(np.abs(y), 1e-3 * np.abs(y).max(initial=1e-300))
    fixed: list[Fraction | None] = [None] * len(y)
    for bound in (low, high):
        places = np.array([np.nan if f is None else f.numerator / f.denominator for f in bound])
        for j in np.flatnonzero(np.abs(y - places) <= near):
            fixed[j] = bound[j]
    for j in np.flatnonzero(np.abs(y) <= near):
        fixed[j] = fixed[j] or _ZERO
    for j, amounts in likely.items():
        if fixed[j] is None:
            fixed[j] = next((f for f in amounts if abs(y[j] - f.numerator / f.denominator) <= near[j]), None)
    free = [j for j, f in enumerate(fixed) if f is None]
    if not free:
        return None
    common = lcm(unit, *(f.denominator for f in fixed if f is not None))
    known = [0 if f is None else int(f * common) for f in fixed]
    rhs = row_sums(matrix, known)
    if max(map(abs, rhs), default=0) >= 2**62:
        return None
    part = sp.csr_array(sp.csc_array(matrix)[:, free])
    touched = np.flatnonzero(np.diff(part.indptr))
    if any(r for i, r in enumerate(rhs) if part.indptr[i] == part.indptr[i + 1]):
        return None
    solved = solve_exactly(part[touched, :], -np.array([rhs[i] for i in touched], dtype=np.int64), y[free] * common)
    if solved is None:
        return None
    numerators, den = solved
    nums = [k * den for k in known]
    for j, v in zip(free, numerators, strict=True):
        nums[j] = v
    den *= common
    return (nums, den) if within(nums, den, low, high) and residual_is_zero(matrix, nums) else None
