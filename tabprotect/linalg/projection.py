"""Weighted least-squares projection onto ``A·x = b, lower ≤ x ≤ upper``.

The dual of the projection is smooth and concave with one multiplier per relation: for multipliers λ the nearest point
is ``x(λ) = clip(x − W⁻¹Aᵀλ, lower, upper)`` and the gradient is ``A·x(λ) − b``. A semismooth Newton method climbs it;
every Newton system ``A·D·W⁻¹·Aᵀ`` (D the cells off their bound) is solved by conjugate gradients with the diagonal as
preconditioner, so nothing but the relations themselves is ever stored. Weights that lie many orders of magnitude apart
defeat conjugate gradients; then the systems of the independent relations are factorised instead. Relations that define
totals from parts are then added up once more, so that what comes out adds up to the last bit that floating point allows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from tabprotect.errors import Infeasible, InputError
from tabprotect.linalg.totals import Totals
from tabprotect.types import BoolArray, FloatArray

# how much a Newton matrix is lifted, relative to its diagonal, so that relations whose cells all sit
# on their bounds stay solvable
LIFT = 1e-10
# a factorised system is accurate enough for a smaller lift: steps along the smallest eigenvalues of very unequal
# weights (down to 1e-13 of the diagonal) are then not shortened by it
FACTOR_LIFT = 1e-14
# weights further apart than WIDE go to the factorisation at once, where there are at most FACTORISED relations
WIDE, FACTORISED = 1e5, 30_000


@dataclass(frozen=True)
class Projection:
    """The nearest point, and how well it is known.

    ``residual`` is max|A·x − b| of the point returned, ``distance`` the weighted distance √Σw(x' − x)² from the point
    given (cells of infinite weight do not move), ``iterations`` counts Newton steps and ``products``
    conjugate-gradient steps.
    """

    x: FloatArray
    residual: float
    distance: float
    iterations: int
    products: int

    def summary(self) -> str:
        """One line.

        >>> Projection(np.zeros(2), 0.0, 1.0, 3, 9).summary()
        'projected 2 cells: distance 1, residual 0, 3 Newton and 9 conjugate-gradient steps'
        """
        return (
            f"projected {self.x.size} cells: distance {self.distance:.6g}, residual {self.residual:.3g}, "
            f"{self.iterations} Newton and {self.products} conjugate-gradient steps"
        )


def project(
    relations: Any,
    x: ArrayLike,
    *,
    weights: ArrayLike | None = None,
    lower: ArrayLike | None = 0.0,
    upper: ArrayLike | None = None,
    rhs: ArrayLike | None = None,
    tolerance: float = 1e-9,
    max_iterations: int = 200,
) -> Projection:
    """Nearest point to ``x`` with ``relations @ point = rhs`` and ``lower ≤ point ≤ upper``, in the norm √Σ wᵢ(pointᵢ
    − xᵢ)².

    Parameters
    ----------
    relations
        Sparse (or dense) matrix with one row per relation; rows may depend on each other.
    x
        The point to project; it need not keep the relations nor the bounds.
    weights
        One positive weight per cell; an infinite weight keeps the cell where it is. For noisy cells: 1/variance.
    lower
        One bound, one bound per cell, or None for no bounds; −inf means a free cell.
    upper
        The same from above.
    rhs
        Right-hand sides, zero unless given.
    tolerance
        Largest |relations @ point − rhs| before the last adding-up, relative to the largest number in sight.

    Raises ``Infeasible`` when no point keeps relations and bounds (or none was found).

    A total of 12 over parts 4 and 5: the gap of 3 is shared equally.

    >>> project([[1, 1, -1]], [4, 5, 12]).x.round(6).tolist()
    [5.0, 6.0, 11.0]
    >>> project([[1, 1, -1]], [-3, 5, 4], weights=[1, 1, np.inf]).x.round(6).tolist()
    [0.0, 4.0, 4.0]

    References: Qi & Sun, "A quadratically convergent Newton method for computing the nearest correlation matrix",
    SIAM J. Matrix Anal. Appl. 28 (2006), for the dual Newton method; Hay et al., "Boosting the accuracy of
    differentially private histograms through consistency", PVLDB 3 (2010), for why one projects.
    """
    problem = _Problem.checked(relations, x, weights, lower, upper, rhs)
    point, newton, products = _nearest(problem, tolerance, max_iterations)
    point = _add_up(problem, point)
    moved = np.isfinite(problem.weights) & (point != problem.x)
    distance = float(np.sqrt(np.sum(problem.weights[moved] * (point[moved] - problem.x[moved]) ** 2)))
    return Projection(point, problem.residual(point), distance, newton, products)


@dataclass(frozen=True)
class _Problem:
    a: Any
    at: Any  # Aᵀ as csr: a product with it is as fast as one with A
    squares: Any  # A∘A, for diagonals
    x: FloatArray
    weights: FloatArray
    give: FloatArray  # 1/weights, scaled to mean one over the cells that move
    lower: FloatArray
    upper: FloatArray
    rhs: FloatArray
    scale: float

    @classmethod
    def checked(cls, relations: Any, x: Any, weights: Any, lower: Any, upper: Any, rhs: Any) -> _Problem:
        a = sp.csr_array(relations, dtype=np.float64)
        m, n = a.shape
        point = _vector(x, n, "x")
        w = np.ones(n) if weights is None else _vector(weights, n, "weights", finite=False)
        if not (w > 0).all():
            raise InputError("weights must be positive (infinite for cells that must not move)")
        low = np.full(n, -np.inf) if lower is None else _vector(lower, n, "lower", finite=False)
        high = np.full(n, np.inf) if upper is None else _vector(upper, n, "upper", finite=False)
        if (low > high).any():
            raise Infeasible("a lower bound is above the upper one", cells=np.flatnonzero(low > high).tolist())
        b = np.zeros(m) if rhs is None else _vector(rhs, m, "rhs")
        fixed = np.isinf(w)
        outside = fixed & ((point < low) | (point > high))
        if outside.any():
            raise Infeasible(
                "cells of infinite weight lie outside their bounds", cells=np.flatnonzero(outside).tolist()
            )
        give = np.where(fixed, 0.0, 1.0 / w)
        if give.any():  # the point does not depend on the scale of the weights, the arithmetic does
            give /= give[give > 0].mean()
        squares = a.copy()
        squares.data = squares.data**2
        # a finite upper bound is often only a very large number: it says nothing about the size of the answer
        finite = low[np.isfinite(low)]
        scale = max(1.0, *(float(np.abs(v).max(initial=0.0)) for v in (point, b, finite)))
        return cls(a, a.T.tocsr(), squares, point, w, give, low, high, b, scale)

    def at_multipliers(self, pull: FloatArray) -> FloatArray:
        """The point for given multipliers; ``pull`` is Aᵀλ."""
        return np.clip(self.x - self.give * pull, self.lower, self.upper)

    def residual(self, point: FloatArray) -> float:
        return float(np.abs(self.a @ point - self.rhs).max(initial=0.0))


def _vector(values: Any, n: int, name: str, finite: bool = True) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim == 0:
        array = np.full(n, float(array))
    if array.shape != (n,):
        raise InputError(f"{name} has shape {array.shape}, expected ({n},)")
    if np.isnan(array).any() or (finite and np.isinf(array).any()):
        raise InputError(f"{name} has a value that is not a number")
    return array


def _dot(u: FloatArray, v: FloatArray) -> float:
    """Inner product on one core: the threads of a BLAS gain nothing on vectors and cost much on a busy machine."""
    return float(np.einsum("i,i->", u, v))


_Solver = Callable[[_Problem, FloatArray, FloatArray, FloatArray, float], tuple[FloatArray, int]]


def _nearest(p: _Problem, tolerance: float, max_iterations: int) -> tuple[FloatArray, int, int]:
    """The climb by conjugate gradients; by factorisation where weights are wide or conjugate gradients did not arrive."""
    few = p.a.shape[0] <= FACTORISED
    moves = p.give[p.give > 0]
    if not few or moves.size == 0 or moves.max() <= WIDE * moves.min():
        try:
            return _climb(p, tolerance, max_iterations, _conjugate_gradients)
        except Infeasible:
            if not few:
                raise
    part = _independent(p)
    steps = 5 * max_iterations  # with wide weights a step settles few cells, but it costs little
    found = _climb(part, tolerance, steps, _factorised)
    if part is p or p.residual(found[0]) <= 10 * tolerance * p.scale:
        return found
    return _climb(p, tolerance, steps, _factorised)  # the relations left out did not follow from the others


def _independent(p: _Problem) -> _Problem:
    """One relation for every total: they are independent, and in a table the others follow from them."""
    totals = Totals.of(p.a)
    if totals is None:
        return p
    rows = np.unique(totals.rows[totals.rows >= 0])
    a = p.a[rows]
    return replace(p, a=a, at=a.T.tocsr(), squares=p.squares[rows], rhs=p.rhs[rows])


def _climb(p: _Problem, tolerance: float, max_iterations: int, solve: _Solver) -> tuple[FloatArray, int, int]:
    """Semismooth Newton ascent of the dual, until the relations hold."""
    multipliers, pull = np.zeros(p.a.shape[0]), np.zeros(p.x.size)
    point = p.at_multipliers(pull)
    slack = p.a @ point - p.rhs
    largest = p.squares @ p.give  # the diagonal with no cell on its bound
    largest[largest == 0] = 1.0
    goal, products = tolerance * p.scale, 0
    for iteration in range(max_iterations + 1):
        worst = float(np.abs(slack).max(initial=0.0))
        if worst <= goal:
            return point, iteration, products
        if iteration == max_iterations:
            break
        place = p.x - p.give * pull
        give = np.where((place > p.lower) & (place < p.upper), p.give, 0.0)
        # loose solves far away, exact ones near the end: Newton's own error is quadratic
        accuracy = max(min(0.1, worst / p.scale), 0.01 * goal / worst, 1e-13)
        step, used = solve(p, give, largest, slack, accuracy)
        products += used
        step_pull = p.at @ step
        length = _line_search(p, pull, step_pull, _dot(step, p.rhs))
        if np.isinf(length):
            raise Infeasible("no point keeps the relations and the bounds")
        multipliers += length * step
        pull = pull + length * step_pull
        if iteration % 8 == 7:  # rounding errors of the updates do not pile up
            pull = p.at @ multipliers
        point = p.at_multipliers(pull)
        slack = p.a @ point - p.rhs
    raise Infeasible(
        f"no point that keeps the relations and the bounds was found in {iteration} Newton steps, a relation is off by "
        f"{worst:.3g}: either there is none, or the weights are too far apart (give cells that must not move an infinite "
        "weight)"
    )


def _conjugate_gradients(
    p: _Problem, give: FloatArray, largest: FloatArray, right: FloatArray, accuracy: float, limit: int = 2000
) -> tuple[FloatArray, int]:
    """Solve (A·diag(give)·Aᵀ + lift)·step = right, in the norm of the diagonal preconditioner."""
    diagonal = p.squares @ give
    bottom = LIFT * np.where(diagonal > 0, diagonal, largest)
    inverse = 1.0 / (diagonal + bottom)
    step, rest = np.zeros_like(right), right.copy()
    conditioned = inverse * rest
    direction, size = conditioned.copy(), _dot(rest, conditioned)
    goal = accuracy**2 * size
    for used in range(limit):
        if size <= goal:
            return step, used
        image = p.a @ (give * (p.at @ direction)) + bottom * direction
        length = size / _dot(direction, image)
        step += length * direction
        rest -= length * image
        conditioned = inverse * rest
        before, size = size, _dot(rest, conditioned)
        direction *= size / before
        direction += conditioned
    return step, limit


def _factorised(
    p: _Problem, give: FloatArray, largest: FloatArray, right: FloatArray, accuracy: float
) -> tuple[FloatArray, int]:
    """The same system by a sparse factorisation of the matrix scaled to unit diagonal, refined until it is accurate."""
    from scipy.sparse.linalg import splu

    matrix = p.a @ sp.diags_array(give) @ p.at
    diagonal = matrix.diagonal()
    root = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, largest))
    scaled = sp.diags_array(root) @ matrix @ sp.diags_array(root)
    lifted = sp.csc_array(scaled + FACTOR_LIFT * sp.eye_array(root.size))
    factor = splu(lifted, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    goal, step, rest = root * right, np.zeros_like(right), root * right
    used = 0
    while used < 5 and np.linalg.norm(rest) > 1e-13 * np.linalg.norm(goal):
        step, used = step + factor.solve(rest), used + 1
        rest = goal - scaled @ step
    return root * step, used


def _line_search(p: _Problem, pull: FloatArray, step: FloatArray, rhs: float) -> float:
    """A step length at which the slope of the dual has fallen to a tenth; the slope needs no product with A.

    Infinite when the dual climbs for ever along the step, that is when no point keeps relations and bounds.
    """

    def slope(length: float) -> float:
        return _dot(step, p.at_multipliers(pull + length * step)) - rhs

    start, low, high, length = slope(0.0), 0.0, np.inf, 1.0
    for _ in range(60):
        here = slope(length)
        if abs(here) <= 0.1 * abs(start):
            break
        if here > 0:
            low = length
        else:
            high = length
        length = 2 * length if np.isinf(high) else 0.5 * (low + high)
    return np.inf if np.isinf(high) and length > 1e15 else length


def _add_up(p: _Problem, point: FloatArray) -> FloatArray:
    """Recompute every total from its parts where that makes the relations hold better."""
    if np.isinf(p.weights).any() or p.rhs.any():
        return point
    totals = Totals.of(p.a)
    if totals is None:
        return point
    added = totals.add_up(point)
    keeps: BoolArray = (added >= p.lower) & (added <= p.upper)
    return added if keeps.all() and p.residual(added) <= p.residual(point) else point
