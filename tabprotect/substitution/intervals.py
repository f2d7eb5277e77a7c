"""Exact confidence intervals for γ-diagonal matrices, by inverting the distribution of each released count.

For fixed people Y_i is the sum of two binomials, x_i kept-or-returned and S − x_i arrived, whatever the other counts are; for a
multinomial sample Y_i is binomial and the interval is Clopper and Pearson's (1934), mapped back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import beta, binom

from tabprotect.errors import InputError
from tabprotect.types import FloatArray

if TYPE_CHECKING:
    from tabprotect.substitution.matrix import Matrix


def exact_interval(matrix: Matrix, y: FloatArray, level: float, sampling: bool) -> tuple[FloatArray, FloatArray]:
    """Lower and upper limits that cover every original count with at least the given probability."""
    from tabprotect.substitution.matrix import GammaDiagonal

    if not isinstance(matrix, GammaDiagonal):
        raise InputError("exact intervals need a gamma-diagonal matrix; use interval='normal' for others")
    if (y != np.rint(y)).any():
        raise InputError("exact intervals need whole counts")
    records, alpha = round(float(y.sum())), 1.0 - level
    if sampling:
        low = np.where(y > 0, beta.ppf(alpha / 2, y, records - y + 1), 0.0)
        high = np.where(y < records, beta.ppf(1 - alpha / 2, y + 1, records - y), 1.0)
        shares = [(limit - matrix.off_diagonal) / (matrix.diagonal - matrix.off_diagonal) for limit in (low, high)]
        return tuple(records * np.clip(share, 0.0, 1.0) for share in shares)  # type: ignore[return-value]
    limits = {count: _limits(matrix, int(count), records, alpha) for count in np.unique(y)}
    both = np.array([limits[count] for count in y])
    return both[:, 0], both[:, 1]


def _limits(matrix: Matrix, count: int, records: int, alpha: float) -> tuple[float, float]:
    p, q = matrix.diagonal, matrix.off_diagonal  # type: ignore[attr-defined]

    def above(x: int) -> float:
        """Pr[Y ≥ count] when x people have the value; increasing in x."""
        return _tail(count - 1, x, records - x, p, q)[1]

    def below(x: int) -> float:
        return _tail(count, x, records - x, p, q)[0]

    low = _first(records, lambda x: above(x) > alpha / 2)
    high = _first(records, lambda x: below(x) <= alpha / 2) - 1
    return float(min(low, records)), float(max(high, 0))


def _tail(count: int, kept: int, others: int, p: float, q: float) -> tuple[float, float]:
    """Pr[A + B ≤ count] and its complement for A ~ Bin(kept, p), B ~ Bin(others, q); each added up from its own side."""
    a = np.arange(int(binom.ppf(1e-15, kept, p)) if kept else 0, int(binom.isf(1e-15, kept, p)) + 1 if kept else 1)
    weights = binom.pmf(a, kept, p)
    return float(weights @ binom.cdf(count - a, others, q)), float(weights @ binom.sf(count - a, others, q))


def _first(records: int, holds: object) -> int:
    """Smallest x in 0 … records for which the increasing condition holds, else records + 1."""
    low, high = 0, records + 1
    while low < high:
        middle = (low + high) // 2
        if holds(middle):  # type: ignore[operator]
            high = middle
        else:
            low = middle + 1
    return low
