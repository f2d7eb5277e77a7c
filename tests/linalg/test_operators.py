"""Structured operators against the dense matrices they stand for."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tabprotect.errors import InputError
from tabprotect.linalg import operators
from tabprotect.linalg.operators import Dense, DiagonalPlusRankOne, Kronecker, Operator, Sparse


def stochastic(n: int, seed: int) -> np.ndarray:
    matrix = np.random.default_rng(seed).random((n, n)) + 2.0 * np.eye(n)
    return matrix / matrix.sum(axis=0)


def rank_one(n: int, seed: int, *, constant: bool) -> DiagonalPlusRankOne:
    rng = np.random.default_rng(seed)
    d = 0.7 if constant else rng.uniform(0.2, 1.0, n)
    return DiagonalPlusRankOne(n, d, rng.random(n), rng.random(n))


EXAMPLES: dict[str, Operator] = {
    "gamma": DiagonalPlusRankOne(7, 10 / 17, 1 / 17, 1.0),
    "constant": rank_one(6, 1, constant=True),
    "varying": rank_one(5, 2, constant=False),
    "orthogonal": DiagonalPlusRankOne(4, 0.5, [1.0, 0, 0, 0], [0.0, 1, 0, 0]),
    "plane": DiagonalPlusRankOne(2, 0.5, [1.0, 0.2], [0.3, 1.0]),
    "no rank one": DiagonalPlusRankOne(3, 2.0, 0.0, 1.0),
    "dense": Dense(stochastic(6, 3)),
    "sparse": Sparse(sp.csr_array(np.diag([0.5, 0.6, 0.7]) + np.diag([0.5, 0.4], 1) + np.diag([0.1], -2))),
    "product": Kronecker(
        [DiagonalPlusRankOne(3, 0.4, 0.2, 1.0), Dense(stochastic(4, 4)), rank_one(2, 5, constant=False)]
    ),
    "sparse in product": Kronecker([Sparse(sp.csr_array(stochastic(3, 6))), DiagonalPlusRankOne(4, 0.6, 0.1, 1.0)]),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_everything_agrees_with_the_dense_matrix(name: str) -> None:
    operator = EXAMPLES[name]
    matrix = operator.dense()
    x = np.random.default_rng(0).random(operator.n)
    several = np.random.default_rng(1).random((operator.n, 3))
    np.testing.assert_allclose(operator.apply(x), matrix @ x, atol=1e-12)
    np.testing.assert_allclose(operator.apply(several), matrix @ several, atol=1e-12)
    np.testing.assert_allclose(operator.solve(x), np.linalg.solve(matrix, x), atol=1e-10)
    np.testing.assert_allclose(operator.solve(several), np.linalg.solve(matrix, several), atol=1e-10)
    np.testing.assert_allclose(operator.adjoint().dense(), matrix.T, atol=1e-12)
    np.testing.assert_allclose(operator.inverse().dense(), np.linalg.inv(matrix), atol=1e-10)
    np.testing.assert_allclose(operator.squared().dense(), matrix**2, atol=1e-12)
    np.testing.assert_allclose(operator.inverse().squared().dense(), np.linalg.inv(matrix) ** 2, atol=1e-9)
    assert operator.condition_number("2") == pytest.approx(np.linalg.cond(matrix, 2), rel=1e-9)
    assert operator.condition_number("fro") == pytest.approx(np.linalg.cond(matrix, "fro"), rel=1e-9)


def test_kronecker_is_the_kronecker_product() -> None:
    a, b, c = stochastic(2, 0), stochastic(3, 1), stochastic(4, 2)
    np.testing.assert_allclose(Kronecker([Dense(a), Dense(b), Dense(c)]).dense(), np.kron(np.kron(a, b), c), atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(n=st.integers(2, 40), gamma=st.floats(1.01, 200.0))
def test_gamma_diagonal_condition_numbers(n: int, gamma: float) -> None:
    total = gamma + n - 1
    operator = DiagonalPlusRankOne(n, (gamma - 1) / total, 1 / total, 1.0)
    closed = np.sqrt((n * gamma**2 + n**2 - n) * (n * (gamma + n - 2) ** 2 + n**2 - n)) / (total * (gamma - 1))
    assert operator.condition_number("2") == pytest.approx(1 + n / (gamma - 1), rel=1e-8)
    assert operator.condition_number("fro") == pytest.approx(closed, rel=1e-8)
    assert operator.condition_number("fro") == pytest.approx(np.linalg.cond(operator.dense(), "fro"), rel=1e-6)


def test_lanczos_gives_the_same_singular_values(monkeypatch: pytest.MonkeyPatch) -> None:
    varying, general = rank_one(60, 8, constant=False), Dense(stochastic(60, 9))
    exact = [operator.condition_number("2") for operator in (varying, general)]
    monkeypatch.setattr(operators, "SVD_LIMIT", 5)
    assert [operator.condition_number("2") for operator in (varying, general)] == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(
    "singular",
    [
        DiagonalPlusRankOne(3, 0.0, 1 / 3, 1.0),
        DiagonalPlusRankOne(2, 1.0, -0.5, 1.0),
        Dense([[0.5, 0.5], [0.5, 0.5]]),
        Sparse(sp.csr_array([[0.5, 0.5], [0.5, 0.5]])),
        Sparse(sp.csr_array([[1.0, 1.0], [0.0, 0.0]])),
        Kronecker([Dense(np.eye(2)), Dense([[1.0, 1.0], [0.0, 0.0]])]),
    ],
)
def test_singular_operators_say_so(singular: Operator) -> None:
    with pytest.raises(InputError, match="singular"):
        singular.solve(np.ones(singular.n))


def test_bad_input() -> None:
    with pytest.raises(InputError, match="square"):
        Dense(np.ones((2, 3)))
    with pytest.raises(InputError, match="square"):
        Sparse(sp.csr_array(np.ones((2, 3))))
    with pytest.raises(InputError, match="finite"):
        Dense([[np.nan, 1.0], [1.0, 0.0]])
    with pytest.raises(InputError, match="one number or 3"):
        DiagonalPlusRankOne(3, [1.0, 2.0], 1.0, 1.0)
    with pytest.raises(InputError, match="size 3"):
        DiagonalPlusRankOne(3, 1.0, 1.0, 1.0).apply([1.0, 2.0])
    with pytest.raises(InputError, match="unknown norm"):
        Dense(np.eye(2)).condition_number("1")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least one"):
        Kronecker([])


def test_a_large_sparse_matrix_is_solved_but_not_inverted() -> None:
    n = operators.DENSE_LIMIT + 1
    chain = Sparse(sp.diags_array([np.full(n, 0.75), np.full(n - 1, 0.25)], offsets=[0, 1], format="csc"))
    x = np.random.default_rng(0).random(n)
    np.testing.assert_allclose(chain.solve(chain.apply(x)), x, atol=1e-9)
    with pytest.raises(InputError, match="dense"):
        chain.inverse()
