"""Transition matrices: entries, amplification, condition numbers, marginals, errors."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp

from tabprotect.errors import InputError
from tabprotect.substitution import (
    GammaDiagonal,
    LocalPrivacy,
    Matrix,
    Product,
    Retention,
    Transition,
    gamma_for,
    no_breach,
    posterior_bound,
    worst_posterior,
)

TABLE_2 = {
    2: (0.095238, 0.181818, 0.260870),
    6: (0.24, 0.4, 0.514286),
    11: (0.366667, 0.55, 0.66),
    15: (0.441176, 0.625, 0.725806),
    19: (0.5, 0.678571, 0.770270),
    24: (0.558140, 0.727273, 0.808989),
}


def brute_amplification(matrix: np.ndarray) -> float:
    rows = [row for row in matrix if row.max() > 0]
    return max(row.max() / row.min() if row.min() > 0 else np.inf for row in rows)


@pytest.mark.parametrize("gamma", TABLE_2)
def test_table_2_to_six_digits(gamma: int) -> None:
    for rho1, printed in zip((0.05, 0.10, 0.15), TABLE_2[gamma], strict=True):
        assert round(GammaDiagonal(7, gamma).posterior(rho1), 6) == printed
        assert gamma_for(rho1, posterior_bound(gamma, rho1)) == pytest.approx(gamma, rel=1e-12)


def test_breach_is_strict_and_both_ways() -> None:
    assert not no_breach(19 + 1e-9, 0.05, 0.5)
    assert no_breach(19 - 1e-9, 0.05, 0.5)
    for bad in ((0.5, 0.05), (0.0, 0.5), (0.1, 1.0)):
        with pytest.raises(InputError, match="rho1"):
            gamma_for(*bad)
    with pytest.raises(InputError, match="at least 1"):
        posterior_bound(0.5, 0.1)
    with pytest.raises(InputError, match="probability"):
        posterior_bound(2, 1.5)


@pytest.mark.parametrize("n", [2, 5, 30])
@pytest.mark.parametrize("gamma", [1.2, 2, 19])
def test_posterior_bound_holds_for_every_property_and_is_attained_in_the_limit(n: int, gamma: float) -> None:
    matrix = GammaDiagonal(n, gamma)
    rng = np.random.default_rng(n)
    for _ in range(20):
        prior = rng.dirichlet(np.full(n, 0.3)) + 1e-9
        prior /= prior.sum()
        chosen = np.flatnonzero(rng.random(n) < 0.4) if n > 2 else np.array([0])
        if not 0 < chosen.size < n:
            continue
        low, high = worst_posterior(matrix, prior, chosen)
        rho1 = float(prior[chosen].sum())
        assert high <= matrix.posterior(rho1) + 1e-12
        assert 1 - low <= matrix.posterior(1 - rho1) + 1e-12
        table = matrix.posterior_table(prior)
        np.testing.assert_allclose(table.sum(axis=1), 1)
        assert table[:, chosen].sum(axis=1).max() == pytest.approx(high)
    only = np.zeros(n)
    only[0], only[1] = 0.05, 0.95
    assert worst_posterior(matrix, only, [0])[1] == pytest.approx(matrix.posterior(0.05))


def test_gamma_diagonal_entries_and_inverse() -> None:
    for n, gamma in itertools.product((2, 3, 17), (1.5, 4.0, 50.0)):
        matrix = GammaDiagonal(n, gamma)
        dense = matrix.dense()
        np.testing.assert_allclose(dense, (np.ones((n, n)) + (gamma - 1) * np.eye(n)) / (gamma + n - 1))
        inverse = np.full((n, n), 1 / (1 - gamma))
        np.fill_diagonal(inverse, (gamma + n - 2) / (gamma - 1))
        np.testing.assert_allclose(matrix.operator.inverse().dense(), inverse, rtol=1e-12)
        assert matrix.amplification == pytest.approx(brute_amplification(dense))
        assert matrix.condition_number("2") == pytest.approx(np.linalg.cond(dense, 2))
        assert matrix.condition_number("fro") == pytest.approx(np.linalg.cond(dense, "fro"))


def test_printed_frobenius_formula_is_a_misprint() -> None:
    """κ_F ≥ n always; the printed 1 + n^1.5/γ² is far below it."""
    assert GammaDiagonal(50, 11).condition_number("fro") == pytest.approx(64.56, abs=0.005)
    assert GammaDiagonal(100, 2).condition_number("fro") == pytest.approx(1009.80, abs=0.005)
    printed = [1 + n**1.5 / gamma**2 for n, gamma in ((50, 11), (100, 2))]
    assert printed == pytest.approx([3.92, 251], abs=0.005)
    for n, gamma in itertools.product((2, 10, 100), (1.1, 2, 21, 1000)):
        assert GammaDiagonal(n, gamma).condition_number("fro") >= n


@pytest.mark.parametrize("seed", range(5))
def test_retention_amplification_by_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 8))
    matrix = Retention(rng.uniform(0.1, 0.9, n), rng.dirichlet(np.ones(n)) + 0.01)
    np.testing.assert_allclose(matrix.dense().sum(axis=0), 1)
    assert matrix.amplification == pytest.approx(brute_amplification(matrix.dense()))
    np.testing.assert_allclose(matrix._diagonal(), matrix.dense().diagonal())


def test_prior_and_invariant_matrices() -> None:
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    for gamma in (1.5, 5.0, 30.0):
        matrix = Retention.from_prior(prior, gamma)
        assert brute_amplification(matrix.dense()) == pytest.approx(gamma)
        np.testing.assert_allclose(matrix.apply(100 * prior), 100 * prior)
    own = Retention.invariant(prior, [0.9, 0.6, 0.3, 1.0])
    np.testing.assert_allclose(own.dense().sum(axis=0), 1)
    np.testing.assert_allclose(own.dense() @ prior, prior)
    rng = np.random.default_rng(0)
    for make in (np.asarray, sp.csr_array):
        pram = rng.dirichlet(np.ones(4), size=4).T
        two_stage = Transition(make(pram)).invariant(prior)
        np.testing.assert_allclose(two_stage.dense() @ prior, prior)
        np.testing.assert_allclose(two_stage.dense().sum(axis=0), 1)
    with_zero = Transition(pram).invariant([0.5, 0.5, 0.0, 0.0])
    np.testing.assert_allclose(with_zero.dense() @ [0.5, 0.5, 0, 0], [0.5, 0.5, 0, 0])
    uniform = Retention.from_prior(np.ones(5), 7.0)
    np.testing.assert_allclose(uniform.dense(), GammaDiagonal(5, 7).dense())


def test_sparse_and_dense_amplification() -> None:
    full = np.array([[0.6, 0.2], [0.4, 0.8]])
    assert Transition(full).amplification == pytest.approx(3.0)
    assert Transition(sp.csr_array(full)).amplification == pytest.approx(3.0)
    holes = np.array([[1.0, 0.3, 0.0], [0.0, 0.7, 0.0], [0.0, 0.0, 1.0]])
    for matrix in (Transition(holes), Transition(sp.csr_array(holes))):
        assert matrix.amplification == np.inf
        assert matrix.epsilon == np.inf
        assert matrix.posterior(0.05) == 1.0
        assert "no guarantee" in matrix.statement.summary()


MARGINS: list[Matrix] = [
    GammaDiagonal((2, 3, 4), gamma=13),
    Product([GammaDiagonal(2, 3), Retention(0.5, [0.2, 0.3, 0.5]), GammaDiagonal(4, 6)]),
    Product([GammaDiagonal((2, 3), 5), GammaDiagonal(4, 6)]),
]


@pytest.mark.parametrize("matrix", MARGINS, ids=repr)
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)])
def test_marginal_matrix_is_what_the_attributes_alone_went_through(matrix: Matrix, axes: tuple[int, ...]) -> None:
    x = np.random.default_rng(1).integers(0, 50, matrix.sizes).astype(float)
    dropped = tuple(axis for axis in range(3) if axis not in axes)
    expected = matrix.apply(x).reshape(matrix.sizes).sum(axis=dropped)
    part = matrix.marginal(axes)
    np.testing.assert_allclose(part.apply(x.sum(axis=dropped)).reshape(part.sizes), expected)
    np.testing.assert_allclose(part.reconstruct(expected), x.sum(axis=dropped), atol=1e-9)
    assert part.amplification <= matrix.amplification * (1 + 1e-12)


def test_marginal_order_and_errors() -> None:
    product = Product([GammaDiagonal(2, 3), GammaDiagonal(3, 4), GammaDiagonal(4, 5)])
    assert product.marginal([2, 0]).sizes == (4, 2)
    assert Product([product, GammaDiagonal(2, 9)]).sizes == (2, 3, 4, 2)
    with pytest.raises(InputError, match="jointly"):
        Product([GammaDiagonal((2, 3), 5), GammaDiagonal(4, 6)]).marginal([0, 2, 1])
    for bad in ([], [0, 0], [3], [-1]):
        with pytest.raises(InputError, match="choose different"):
            product.marginal(bad)
    with pytest.raises(InputError, match="choose different"):
        Transition(np.eye(2)).marginal([1])
    assert Transition(np.eye(2)).marginal([0]).n == 2


def test_changed_share() -> None:
    assert GammaDiagonal(100, 19).changed_share() == pytest.approx(99 / 118)
    matrix = Product([GammaDiagonal(2, 3), GammaDiagonal(3, 4)])
    assert matrix.changed_share() == pytest.approx(1 - 0.75 * 4 / 6)
    assert Transition([[0.9, 0.5], [0.1, 0.5]]).changed_share([30, 10]) == pytest.approx((30 * 0.1 + 10 * 0.5) / 40)


@pytest.mark.parametrize("gamma", [1, 0.5, 0, -3, float("nan"), float("inf"), "two", True, None])
def test_gamma_must_exceed_one(gamma: object) -> None:
    with pytest.raises(InputError, match="gamma"):
        GammaDiagonal(5, gamma)  # type: ignore[arg-type]


def test_bad_matrices() -> None:
    for size in (0, -1, 2.5, (), (2, 0), True):
        with pytest.raises(InputError):
            GammaDiagonal(size, 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least two"):
        GammaDiagonal(1, 3)
    with pytest.raises(InputError, match=r"column 1 sums to 0\.9"):
        Transition([[0.5, 0.4], [0.5, 0.5]])
    with pytest.raises(InputError, match="transpose"):
        Transition([[0.9, 0.1], [0.5, 0.5]])
    with pytest.raises(InputError, match="negative"):
        Transition([[1.5, 0.5], [-0.5, 0.5]])
    with pytest.raises(InputError, match="square"):
        Transition(np.ones((2, 3)) / 2)
    with pytest.raises(InputError, match="singular"):
        Transition([[0.5, 0.5], [0.5, 0.5]]).reconstruct([10, 10])
    with pytest.raises(InputError, match="retain"):
        Retention([0.5, 0.5], [0.2, 0.3, 0.5])
    with pytest.raises(InputError, match="retain"):
        Retention(0.0, [0.5, 0.5])
    with pytest.raises(InputError, match="prior"):
        Retention(0.5, [-1.0, 2.0])
    with pytest.raises(InputError, match="without zeros"):
        Retention.from_prior([1.0, 0.0], 3)
    with pytest.raises(InputError, match="nothing would be protected"):
        Retention.invariant([0.5, 0.5], 1.0)
    with pytest.raises(InputError, match="at least one matrix"):
        Product([])
    with pytest.raises(InputError, match="prior needs 3"):
        GammaDiagonal(3, 2).posterior_table([0.5, 0.5])
    with pytest.raises(InputError, match="codes 0"):
        worst_posterior(GammaDiagonal(3, 2), [1, 1, 1], [3])


def test_statement() -> None:
    assert GammaDiagonal(9, 19).statement == LocalPrivacy(19.0)
    assert GammaDiagonal(9, 19).epsilon == pytest.approx(np.log(19))
    assert Product([GammaDiagonal(2, 3), GammaDiagonal(2, 5)]).epsilon == pytest.approx(np.log(15))
