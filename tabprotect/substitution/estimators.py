"""Estimates of the original counts that stay in their range: least squares and maximum likelihood on the simplex.

Where the matrix is c·I plus a term that only depends on the total (γ-diagonal, constant retention), both have closed forms
that cost one sort. Otherwise: exact active-set least squares for small general matrices, accelerated projected gradient and
accelerated EM with a certified gap for everything else.
"""

from __future__ import annotations

import warnings
from math import sqrt

import numpy as np
from scipy.optimize import nnls

from tabprotect.linalg.operators import Dense, DiagonalPlusRankOne, Operator, Sparse
from tabprotect.types import FloatArray

ACTIVE_SET_LIMIT = 600
MAX_STEPS = 2_000


def project_to_simplex(x: FloatArray, total: float) -> FloatArray:
    """The nearest vector with non-negative entries and the given sum (Held, Wolfe and Crowder 1974).

    >>> project_to_simplex(np.array([4.0, 1.0, -1.0]), 4.0).tolist()
    [3.5, 0.5, 0.0]
    """
    ordered = np.sort(x)[::-1]
    levels = (np.cumsum(ordered) - total) / np.arange(1, x.size + 1)
    active = int(np.flatnonzero(ordered > levels)[-1])
    return np.maximum(x - levels[active], 0.0)


def least_squares(operator: Operator, y: FloatArray) -> FloatArray:
    """Minimise ‖Mx − y‖ over x ≥ 0 with Σx = Σy.

    >>> least_squares(DiagonalPlusRankOne(3, 0.5, 1 / 6, 1.0), np.array([10.0, 3.0, 2.0])).round(9).tolist()
    [14.5, 0.5, 0.0]
    """
    total = float(y.sum())
    if _total_only(operator) is not None:
        return project_to_simplex(operator.solve(y), total)
    if isinstance(operator, Dense | Sparse) and operator.n <= ACTIVE_SET_LIMIT:
        return _active_set(operator.dense(), y, total)
    return _projected_gradient(operator, y, total)


def maximum_likelihood(operator: Operator, y: FloatArray) -> FloatArray:
    """Maximise Σ y log(Mx) over x ≥ 0 with Σx = Σy: by one sort where possible, else by EM.

    >>> maximum_likelihood(DiagonalPlusRankOne(3, 0.5, 1 / 6, 1.0), np.array([10.0, 3.0, 2.0])).round(6).tolist()
    [14.230769, 0.769231, 0.0]
    """
    offset = _total_only(operator)
    if offset is None:
        return expectation_maximization(operator, y)
    # x = max(0, t·y − c): raise t until the sum is reached; values enter in the order of c/y
    c = np.broadcast_to(offset * y.sum(), y.shape)
    entry = np.divide(c, y, out=np.full_like(y, np.inf), where=y > 0)
    order = np.argsort(entry, kind="stable")
    levels = (y.sum() + np.cumsum(c[order])) / np.maximum(np.cumsum(y[order]), np.finfo(float).tiny)
    active = int(np.flatnonzero(levels > entry[order])[-1])
    return np.maximum(levels[active] * y - c, 0.0)


def expectation_maximization(operator: Operator, y: FloatArray, tolerance: float = 1e-4) -> FloatArray:
    """Maximum likelihood by EM with SQUAREM steps; stops when the log-likelihood is provably within ``tolerance`` per value.

    Dempster, Laird and Rubin (1977), JRSS B 39, 1-38; Agrawal and Aggarwal (2001), PODS; Varadhan and Roland (2008).
    """
    total = float(y.sum())
    transposed = operator.adjoint()
    positive = y > 0

    def gradient(x: FloatArray) -> FloatArray:
        expected = operator.apply(x)
        return transposed.apply(np.divide(y, expected, out=np.zeros_like(y), where=positive))

    def likelihood(x: FloatArray) -> float:
        expected = operator.apply(x)[positive]
        return float(y[positive] @ np.log(expected)) if (expected > 0).all() else -np.inf

    x = np.full(y.size, total / y.size)
    for _ in range(MAX_STEPS):
        slope = gradient(x)
        # concave in x and Σx fixed: no point is better than the present one by more than this
        if total * (float(slope.max()) - 1.0) <= tolerance * y.size:
            return x
        first = x * slope
        second = first * gradient(first)
        step, bend = first - x, second - 2.0 * first + x
        length = -sqrt(float(step @ step) / max(float(bend @ bend), 1e-300))
        reach = min(length, -1.0)
        jump = x - 2.0 * reach * step + reach**2 * bend
        # EM moves by factors: a value jumped to zero could never come back, so there the plain step is taken
        jump = np.where(jump > 0.0, jump, second)
        jump *= total / jump.sum()
        x = jump if likelihood(jump) >= likelihood(second) else second
    warnings.warn(f"EM stopped after {MAX_STEPS} steps, short of its tolerance", RuntimeWarning, stacklevel=2)
    return x


def _total_only(operator: Operator) -> FloatArray | None:
    """c with Mx ∝ x + c·Σx, or None when the matrix is not of that kind."""
    if isinstance(operator, DiagonalPlusRankOne) and operator.d.ndim == 0 and operator.v.ndim == 0 and operator.d > 0:
        return np.asarray(operator.u * operator.v / operator.d)
    return None


def _active_set(matrix: FloatArray, y: FloatArray, total: float) -> FloatArray:
    # With Σx = S the residual is (M − y1ᵀ/S)x, so the answer is the least-norm point of a polytope. Non-negative least squares
    # with one more row 1ᵀx = 1 finds its direction exactly, because its optimum only depends on that norm.
    y = y / total
    rows = np.vstack([matrix - y[:, None], np.ones(y.size)])
    right = np.zeros(y.size + 1)
    right[-1] = 1.0
    x, _ = nnls(rows, right, maxiter=30 * y.size)
    return np.asarray(x * (total / x.sum()))


def _projected_gradient(operator: Operator, y: FloatArray, total: float) -> FloatArray:
    """FISTA with restarts; the linearised gap bounds how far the squared residual is from its minimum."""
    transposed, rate = operator.adjoint(), 1.0 / operator.norm2() ** 2
    x = ahead = project_to_simplex(operator.solve(y), total)
    momentum = 1.0
    for _ in range(MAX_STEPS):
        slope = transposed.apply(operator.apply(ahead) - y)
        if float(slope @ ahead) - total * float(slope.min()) <= 1e-4 * total and ahead.min() >= 0.0:
            return ahead
        following = project_to_simplex(ahead - rate * slope, total)
        if float(slope @ (following - x)) > 0.0:
            momentum, ahead = 1.0, following
        else:
            new = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
            ahead = following + (momentum - 1.0) / new * (following - x)
            momentum = new
        x = following
    warnings.warn(
        f"least squares stopped after {MAX_STEPS} steps, short of its tolerance", RuntimeWarning, stacklevel=2
    )
    return x
