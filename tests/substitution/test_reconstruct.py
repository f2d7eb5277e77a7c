"""Estimators, exact variances and intervals."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import binom

from tabprotect.errors import InputError
from tabprotect.linalg.operators import Kronecker
from tabprotect.substitution import GammaDiagonal, Matrix, Product, Retention, Transition, simulate_counts
from tabprotect.substitution.estimators import (
    _active_set,
    _projected_gradient,
    expectation_maximization,
    least_squares,
    maximum_likelihood,
    project_to_simplex,
)

RNG = np.random.default_rng(0)
GENERAL = RNG.dirichlet(np.full(5, 0.7), size=5).T + np.eye(5)
GENERAL /= GENERAL.sum(axis=0)
MATRICES: dict[str, Matrix] = {
    "gamma": GammaDiagonal(5, gamma=4),
    "retention": Retention(0.5, [0.3, 0.3, 0.2, 0.1, 0.1]),
    "own retention": Retention([0.3, 0.5, 0.7, 0.6, 0.4], [0.3, 0.3, 0.2, 0.1, 0.1]),
    "dense": Transition(GENERAL),
    "sparse": Transition(sp.csr_array(GENERAL)),
    "product": Product([GammaDiagonal(2, 3), GammaDiagonal(3, 5)]),
}


def residual(matrix: Matrix, x: np.ndarray, y: np.ndarray) -> float:
    return float(((matrix.dense() @ x - y) ** 2).sum())


def likelihood(matrix: Matrix, x: np.ndarray, y: np.ndarray) -> float:
    return float(y @ np.log(matrix.dense() @ x))


@pytest.mark.parametrize("name", MATRICES)
def test_unbiased_is_the_dense_solution(name: str) -> None:
    matrix = MATRICES[name]
    y = RNG.integers(0, 100, matrix.n).astype(float)
    np.testing.assert_allclose(matrix.reconstruct(y), np.linalg.solve(matrix.dense(), y), rtol=1e-9)
    assert matrix.reconstruct(y).sum() == pytest.approx(y.sum())
    np.testing.assert_array_equal(
        matrix.reconstruct(y, method="clipped"), np.rint(np.maximum(matrix.reconstruct(y), 0))
    )
    np.testing.assert_array_equal(matrix.reconstruct(y, method="floor"), np.floor(np.maximum(matrix.reconstruct(y), 0)))


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("seed", range(4))
def test_constrained_estimators_reach_the_optimum_of_a_general_solver(name: str, seed: int) -> None:
    matrix = MATRICES[name]
    rng = np.random.default_rng(seed)
    x = rng.multinomial(2000, rng.dirichlet(np.full(matrix.n, 0.3)))
    y = simulate_counts(matrix, x, seed=seed)[0]
    start = np.full(matrix.n, y.sum() / matrix.n)
    total = {"type": "eq", "fun": lambda v: v.sum() - y.sum()}
    for method, objective, tolerance in (
        ("nnls", lambda v: residual(matrix, v, y) / y.sum(), 1e-3),
        ("ml", lambda v: -likelihood(matrix, np.maximum(v, 1e-12), y), 1e-2),
        ("em", lambda v: -likelihood(matrix, np.maximum(v, 1e-12), y), 1e-2),
    ):
        found = matrix.reconstruct(y, method=method)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(y.sum())
        peer = minimize(
            objective,
            start,
            method="SLSQP",
            bounds=[(0, None)] * matrix.n,
            constraints=[total],
            options={"maxiter": 500},
        )
        assert objective(found) <= peer.fun + tolerance


@settings(max_examples=60, deadline=None)
@given(counts=st.lists(st.integers(0, 300), min_size=2, max_size=12), gamma=st.floats(1.2, 60))
def test_closed_forms_agree_with_the_iterations(counts: list[int], gamma: float) -> None:
    y = np.array(counts, dtype=float)
    if y.sum() == 0:
        return
    matrix = GammaDiagonal(y.size, gamma)
    closed = maximum_likelihood(matrix.operator, y)
    assert closed.min() >= 0
    assert closed.sum() == pytest.approx(y.sum())
    em = expectation_maximization(matrix.operator, y)
    assert likelihood(matrix, closed, y) >= likelihood(matrix, em, y) - 1e-9 * y.sum()
    assert likelihood(matrix, em, y) >= likelihood(matrix, closed, y) - 1e-4 * y.size - 1e-9 * y.sum()
    square = least_squares(matrix.operator, y)
    np.testing.assert_allclose(square, _active_set(matrix.dense(), y, float(y.sum())), atol=1e-6 * y.sum())
    steps = _projected_gradient(Kronecker([matrix.operator]), y, float(y.sum()))
    assert residual(matrix, steps, y) <= residual(matrix, square, y) + 1e-3 * y.sum()


def test_interior_solutions_coincide() -> None:
    """Where M⁻¹y is positive it is the least-squares and the maximum-likelihood estimate as well."""
    matrix = GammaDiagonal(4, gamma=9)
    y = matrix.apply([400, 300, 200, 100])
    for method in ("nnls", "ml"):
        np.testing.assert_allclose(matrix.reconstruct(y, method=method), [400, 300, 200, 100], rtol=1e-9)


@settings(max_examples=100, deadline=None)
@given(x=st.lists(st.floats(-100, 100), min_size=1, max_size=10), total=st.floats(0.1, 100))
def test_projection_to_the_simplex_is_the_nearest_point(x: list[float], total: float) -> None:
    point = project_to_simplex(np.array(x), total)
    assert point.min() >= 0
    assert point.sum() == pytest.approx(total, rel=1e-9)
    # optimality: moving towards any vertex does not get nearer
    direction = np.array(x) - point
    assert (total * direction.max() - direction @ point) <= 1e-7 * (1 + total) * 100


@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("sampling", [False, True])
def test_covariance_against_simulation(name: str, sampling: bool) -> None:
    matrix, draws = MATRICES[name], 20_000
    rng = np.random.default_rng(3)
    shares = np.arange(1, matrix.n + 1) / np.arange(1, matrix.n + 1).sum()
    x = rng.multinomial(300, shares).astype(float)
    if sampling:
        y = rng.multinomial(300, matrix.apply(x) / 300, size=draws).astype(float)
    else:
        y = simulate_counts(matrix, x, size=draws, seed=4)
    found = matrix.operator.solve(y.T)
    exact = matrix.covariance(x, sampling=sampling)
    np.testing.assert_allclose(found.mean(axis=1), x, atol=5 * np.sqrt(exact.diagonal().max() / draws))
    np.testing.assert_allclose(np.cov(found), exact, atol=0.05 * exact.diagonal().max())
    np.testing.assert_allclose(matrix.standard_errors(x, sampling=sampling) ** 2, exact.diagonal(), rtol=1e-8)
    expected = np.sqrt(exact.trace()) / np.linalg.norm(x)
    assert matrix.standard_error(x, sampling=sampling) == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(exact.sum(axis=0), 0, atol=1e-8 * exact.diagonal().max())


@pytest.mark.parametrize("name", MATRICES)
def test_variance_of_released_counts(name: str) -> None:
    """Poisson-binomial: the sum of the records' Bernoulli variances, and for γ-diagonal the source's closed form."""
    matrix = MATRICES[name]
    x = np.arange(10.0, 10.0 + matrix.n)
    dense = matrix.dense()
    np.testing.assert_allclose(matrix.variance(x), (dense * (1 - dense)) @ x)
    if isinstance(matrix, GammaDiagonal):
        n, g, s = matrix.n, matrix.gamma, x.sum()
        assert matrix.variance(x).sum() == pytest.approx((n - 1) * (n + 2 * g - 2) * s / (g + n - 1) ** 2)


def test_records_and_simulated_counts_have_the_same_distribution() -> None:
    matrix, x = GammaDiagonal(4, gamma=3), np.array([50, 30, 15, 5])
    codes = np.repeat(np.arange(4), x)
    records = np.stack([matrix.counts(matrix.randomize(codes, seed=s)) for s in range(1500)])
    counts = simulate_counts(matrix, x, size=3000, seed=0)
    np.testing.assert_allclose(records.mean(axis=0), matrix.apply(x), atol=0.5)
    np.testing.assert_allclose(records.var(axis=0), matrix.variance(x), rtol=0.15)
    np.testing.assert_allclose(counts.var(axis=0), matrix.variance(x), rtol=0.12)


def test_estimated_standard_errors_are_unbiased() -> None:
    matrix, x = GammaDiagonal(5, gamma=6), np.array([200, 100, 50, 20, 5])
    found = [matrix.estimate(y).std ** 2 for y in simulate_counts(matrix, x, size=1500, seed=1)]
    np.testing.assert_allclose(np.mean(found, axis=0), matrix.standard_errors(x) ** 2, rtol=0.02)
    pairs = [(e.linear([0, 1, 2, 3, 4])) for e in map(matrix.estimate, simulate_counts(matrix, x, size=1500, seed=2))]
    values, stds = np.array(pairs).T
    assert values.mean() == pytest.approx(x @ np.arange(5), rel=0.01)
    assert (stds**2).mean() == pytest.approx(values.var(), rel=0.12)


def test_bounds_hold_and_the_printed_order_is_none() -> None:
    for n, gamma in itertools.product((5, 20, 100), (2, 11, 21)):
        matrix = GammaDiagonal(n, gamma)
        for x in (np.full(n, 1000.0), np.random.default_rng(n).integers(1, 5000, n)):
            error = matrix.standard_error(x)
            assert error <= matrix.error_bound(x, "2") * (1 + 1e-12)
            assert matrix.error_bound(x, "2") <= matrix.error_bound(x, "fro")
    uniform = np.full(50, 2000.0)
    assert GammaDiagonal(50, 2).standard_error(uniform) == pytest.approx(1.1287, abs=5e-5)
    assert GammaDiagonal(50, 2).error_bound(uniform) == pytest.approx(1.1287, abs=5e-5)
    assert 50**1.5 / np.sqrt(2 * 100_000) == pytest.approx(0.79, abs=0.005)


def test_error_of_one_draw_lies_between_the_condition_number_bounds() -> None:
    matrix, x = GammaDiagonal(20, gamma=5), np.random.default_rng(0).integers(1, 500, 20)
    kappa, expected = matrix.condition_number("2"), matrix.apply(x)
    for y in simulate_counts(matrix, x, size=50, seed=3):
        noise = np.linalg.norm(y - expected) / np.linalg.norm(expected)
        error = np.linalg.norm(matrix.reconstruct(y) - x) / np.linalg.norm(x)
        assert noise / kappa <= error <= noise * kappa


@pytest.mark.parametrize("sampling", [False, True])
def test_exact_intervals_cover(sampling: bool) -> None:
    """Coverage computed from the exact distribution of the count, not simulated."""
    records, matrix = 40, GammaDiagonal(4, gamma=5)
    p, q = matrix.diagonal, matrix.off_diagonal
    limits = {}
    for y in range(records + 1):
        counts = np.array([y, records - y, 0, 0])
        found = matrix.estimate(counts, interval="exact", level=0.9, sampling=sampling, method="nnls")
        limits[y] = found.lower[0], found.upper[0]
    for x in range(records + 1):
        if sampling:
            chance = binom.pmf(np.arange(records + 1), records, p * x / records + q * (1 - x / records))
        else:
            chance = np.convolve(
                binom.pmf(np.arange(x + 1), x, p), binom.pmf(np.arange(records - x + 1), records - x, q)
            )
        covered = sum(chance[y] for y in range(records + 1) if limits[y][0] - 1e-9 <= x <= limits[y][1] + 1e-9)
        assert covered >= 0.9 - 1e-9


def test_exact_and_normal_intervals_agree_for_many_records() -> None:
    matrix = GammaDiagonal(10, gamma=8)
    y = simulate_counts(matrix, np.full(10, 10_000), seed=0)[0]
    normal, exact = matrix.estimate(y), matrix.estimate(y, interval="exact")
    np.testing.assert_allclose(normal.lower, exact.lower, atol=0.05 * normal.std.max() + 1)
    np.testing.assert_allclose(normal.upper, exact.upper, atol=0.05 * normal.std.max() + 1)


def test_estimate_object() -> None:
    matrix = GammaDiagonal((2, 3), gamma=9)
    y = matrix.apply(np.array([[100, 50, 10], [80, 40, 20]]))
    found = matrix.estimate(y.reshape(2, 3), method="ml")
    assert found.x.shape == found.std.shape == (2, 3)
    assert list(found.frame().columns) == ["count", "estimate", "std", "lower", "upper"]
    assert (found.lower <= found.x).all()
    assert (found.x <= found.upper).all()
    assert "300 records" in found.summary()
    np.testing.assert_allclose(found.covariance(), matrix.covariance(found.x), atol=1e-6)
    weights = np.arange(6.0)
    value, std = matrix.estimate(y).linear(weights)
    assert value == pytest.approx(weights @ matrix.reconstruct(y))
    assert std**2 == pytest.approx(weights @ matrix.covariance(matrix.reconstruct(y)) @ weights)
    population = matrix.estimate(y, sampling=True).linear(weights)[1]
    assert population**2 == pytest.approx(weights @ matrix.covariance(matrix.reconstruct(y), sampling=True) @ weights)
    with pytest.raises(InputError, match="6 weights"):
        found.linear([1, 2])


def test_large_product_domain_in_linear_memory() -> None:
    """A million values, three attributes: the matrix itself would have 10¹² entries."""
    matrix = Product([GammaDiagonal(100, 50)] * 3)
    x = np.zeros((100, 100, 100))
    x[3, 5, 7], x[90, 2, 2] = 600_000, 400_000
    y = matrix.apply(x)
    np.testing.assert_allclose(matrix.reconstruct(y), x.ravel(), atol=1e-4)
    assert matrix.condition_number("2") == pytest.approx((1 + 100 / 49) ** 3)
    joint = GammaDiagonal((100, 100, 100), 50)
    np.testing.assert_allclose(joint.reconstruct(joint.apply(x)), x.ravel(), atol=1e-2)
    assert joint.standard_errors(x).shape == (10**6,)


def test_bad_counts() -> None:
    matrix = GammaDiagonal(3, gamma=2)
    with pytest.raises(InputError, match="3 values, but 2"):
        matrix.reconstruct([1, 2])
    with pytest.raises(InputError, match="not negative"):
        matrix.reconstruct([1, -2, 3])
    with pytest.raises(InputError, match="finite"):
        matrix.reconstruct([1, np.nan, 3])
    with pytest.raises(InputError, match="no records"):
        matrix.reconstruct([0, 0, 0])
    with pytest.raises(InputError, match="no records"):
        matrix.standard_error([0, 0, 0])
    with pytest.raises(InputError, match="unknown method"):
        matrix.reconstruct([1, 2, 3], method="magic")
    with pytest.raises(InputError, match="level"):
        matrix.estimate([1, 2, 3], level=1.5)
    with pytest.raises(InputError, match="unknown interval"):
        matrix.estimate([1, 2, 3], interval="wald")
    with pytest.raises(InputError, match="whole counts"):
        matrix.estimate([1.5, 2, 3], interval="exact")
    with pytest.raises(InputError, match="gamma-diagonal"):
        Transition(GENERAL).estimate([1, 2, 3, 4, 5], interval="exact")
    with pytest.raises(InputError, match="whole"):
        simulate_counts(matrix, [0.5, 1, 1])
