"""Reconstruction with its exact error: point estimates, covariance, standard errors and intervals.

With M⁻¹ applied to M's own columns giving unit vectors, the covariance of X̂ = M⁻¹Y for fixed people collapses to
M⁻¹ diag(Mx) M⁻ᵀ − diag(x), so that every variance is one application of the element-wise squared inverse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from tabprotect.errors import InputError
from tabprotect.substitution import estimators
from tabprotect.types import FloatArray

if TYPE_CHECKING:
    from tabprotect.linalg.operators import Operator
    from tabprotect.substitution.matrix import Matrix

METHODS: dict[str, Callable[[Operator, FloatArray], FloatArray]] = {
    "unbiased": lambda operator, y: operator.solve(y),
    "clipped": lambda operator, y: np.rint(np.maximum(operator.solve(y), 0.0)),
    "floor": lambda operator, y: np.floor(np.maximum(operator.solve(y), 0.0)),
    "nnls": estimators.least_squares,
    "ml": estimators.maximum_likelihood,
    "em": estimators.expectation_maximization,
}


@dataclass(frozen=True)
class Estimate:
    """Estimated original counts ``x`` with standard errors ``std`` and intervals ``lower``, ``upper`` of the given ``level``.

    Standard errors and intervals are those of the unbiased estimator whatever the ``method``; for the others the intervals are cut
    to 0 … S, and widened to hold the estimate where it lies outside.
    """

    x: FloatArray
    std: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float
    method: str
    sampling: bool
    counts: FloatArray = field(repr=False)
    matrix: Matrix = field(repr=False)

    def linear(self, weights: Any) -> tuple[float, float]:
        """Value and standard error of Σ weights·x (a total, a mean, a margin, a difference), with all covariances.

        >>> from tabprotect.substitution import GammaDiagonal
        >>> value, std = GammaDiagonal(3, gamma=4).estimate([50, 30, 20]).linear([1, 1, 1])
        >>> round(value, 9), round(std, 6)
        (100.0, 0.0)
        """
        w = np.asarray(weights, dtype=np.float64).ravel()
        if w.shape != (self.x.size,):
            raise InputError(f"{self.x.size} weights are needed, one per value of the domain")
        x, flat = self.x.ravel(), self.counts.ravel()
        unbiased = self.matrix.operator.solve(flat)
        spread = self.matrix.operator.adjoint().solve(w)
        own = float(w @ unbiased) ** 2 / flat.sum() if self.sampling else float(w**2 @ unbiased)
        variance = float(spread**2 @ flat) - own
        # rounding of the two large terms must not turn an exact zero into a tiny number
        noise = 1e-13 * float(spread**2 @ flat)
        return float(w @ x), sqrt(variance) if variance > noise else 0.0

    def covariance(self) -> FloatArray:
        """Estimated covariance matrix (n × n: for small domains)."""
        return covariance(self.matrix, np.maximum(self.x.ravel(), 0.0), self.sampling)

    def frame(self) -> Any:
        """A pandas frame with one row per value of the domain."""
        import pandas as pd

        parts = {"count": self.counts, "estimate": self.x, "std": self.std, "lower": self.lower, "upper": self.upper}
        return pd.DataFrame({name: part.ravel() for name, part in parts.items()})

    def summary(self) -> str:
        """One line: size, method, error, privacy."""
        scale = float(np.linalg.norm(self.x))
        relative = f", standard error sd/norm = {float(np.linalg.norm(self.std)) / scale:.4g}" if scale else ""
        return (
            f"{self.x.size} values from {self.counts.sum():,.0f} records, method {self.method}{relative}; "
            f"{self.matrix.statement.summary()}"
        )


def point(matrix: Matrix, counts: Any, method: str) -> FloatArray:
    """The estimate alone, in the shape of the counts given."""
    shape = np.shape(counts)
    y = nonempty(as_counts(matrix.n, counts))
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}: use one of {', '.join(METHODS)}")
    return METHODS[method](matrix.operator, y).reshape(shape)


def estimate(matrix: Matrix, counts: Any, method: str, level: float, sampling: bool, interval: str) -> Estimate:
    """Estimate, exact standard errors (unbiasedly estimated) and intervals."""
    if not 0 < level < 1:
        raise InputError(f"level is {level}: a confidence level is between 0 and 1")
    x = point(matrix, counts, method)
    y = as_counts(matrix.n, counts)
    unbiased = matrix.operator.solve(y)
    own = unbiased**2 / y.sum() if sampling else unbiased
    std = np.sqrt(np.maximum(matrix.operator.inverse().squared().apply(y) - own, 0.0))
    if interval == "normal":
        reach = float(ndtri(0.5 + level / 2)) * std
        lower, upper = unbiased - reach, unbiased + reach
    elif interval == "exact":
        from tabprotect.substitution.intervals import exact_interval

        lower, upper = exact_interval(matrix, y, level, sampling)
    else:
        raise InputError(f"unknown interval {interval!r}: use 'normal' or 'exact'")
    if method != "unbiased":
        lower, upper = np.clip(lower, 0.0, y.sum()), np.clip(upper, 0.0, y.sum())
    lower, upper = np.minimum(lower, x.ravel()), np.maximum(upper, x.ravel())
    shape = x.shape
    return Estimate(
        x,
        std.reshape(shape),
        lower.reshape(shape),
        upper.reshape(shape),
        level,
        method,
        sampling,
        y.reshape(shape),
        matrix,
    )


def variances(matrix: Matrix, x: FloatArray, sampling: bool) -> FloatArray:
    """Exact variance of every cell of M⁻¹Y for original counts x, in the cost of one application."""
    own = x**2 / max(x.sum(), np.finfo(float).tiny) if sampling else x
    return np.maximum(matrix.operator.inverse().squared().apply(matrix.operator.apply(x)) - own, 0.0)


def covariance(matrix: Matrix, x: FloatArray, sampling: bool) -> FloatArray:
    """Exact covariance matrix of M⁻¹Y for original counts x."""
    inverse = matrix.operator.inverse().dense()
    own = np.outer(x, x) / max(x.sum(), np.finfo(float).tiny) if sampling else np.diag(x)
    return np.asarray((inverse * matrix.operator.apply(x)) @ inverse.T - own)


def as_counts(n: int, counts: Any) -> FloatArray:
    """Counts of a domain of n values as one vector; a table of the attributes' sizes is flattened row by row."""
    values = np.asarray(counts, dtype=np.float64).ravel()
    if values.shape != (n,):
        raise InputError(f"the domain has {n} values, but {values.size} counts are given")
    if not np.isfinite(values).all() or (values < 0).any():
        raise InputError("counts are finite and not negative")
    return values


def nonempty(counts: FloatArray) -> FloatArray:
    """The counts, unless they are all zero."""
    if not counts.sum() > 0:
        raise InputError("there are no records: all counts are zero")
    return counts
