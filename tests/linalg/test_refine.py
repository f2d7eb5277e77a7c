"""Exact solutions of integer systems, against elimination in fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tabprotect.linalg.refine import row_sums, solve_exactly


def eliminate(matrix: np.ndarray, rhs: np.ndarray) -> list[Fraction] | None:
    """Gauss–Jordan in fractions; None where columns depend on each other or there is no solution."""
    rows = [[Fraction(int(v)) for v in row] + [Fraction(int(b))] for row, b in zip(matrix, rhs, strict=True)]
    n = matrix.shape[1]
    for k in range(n):
        pivot = next((i for i in range(k, len(rows)) if rows[i][k]), None)
        if pivot is None:
            return None
        rows[k], rows[pivot] = rows[pivot], rows[k]
        rows[k] = [v / rows[k][k] for v in rows[k]]
        for i in range(len(rows)):
            if i != k and rows[i][k]:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return None if any(row[n] for row in rows[n:]) else [rows[k][n] for k in range(n)]


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 9), st.integers(0, 3), st.integers(0, 10**6))
def test_agrees_with_elimination(n: int, more: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.integers(-2, 3, (n + more, n))
    rhs = rng.integers(-(10**9), 10**9, n + more) if seed % 2 else matrix @ rng.integers(-99, 99, n)
    expected = eliminate(matrix, rhs)
    found = solve_exactly(sp.csr_array(matrix), rhs)
    if expected is None:
        if found is not None:  # dependent columns may still be solved; then the answer must solve
            assert row_sums(sp.csr_array(matrix), found[0]) == [int(b) * found[1] for b in rhs]
    else:
        assert found is not None
        assert [Fraction(v, found[1]) for v in found[0]] == expected


def test_large_denominators() -> None:
    rng = np.random.default_rng(3)
    matrix = sp.csr_array(
        sp.random(120, 120, 0.03, random_state=3, data_rvs=lambda k: rng.choice([-1, 1], k)) + 2 * sp.eye(120)
    )
    rhs = rng.integers(-(10**6), 10**6, 120)
    found = solve_exactly(matrix, rhs)
    assert found is not None
    assert found[1] > 10**9
    assert row_sums(matrix.astype(np.int64), found[0]) == [int(b) * found[1] for b in rhs]


def test_no_solution_is_none() -> None:
    assert solve_exactly(sp.csr_array(np.array([[1], [1]])), np.array([1, 2])) is None


@pytest.mark.parametrize("size", [3, 10**30])
def test_row_sums(size: int) -> None:
    matrix = sp.csr_array(np.array([[1, 0, -1], [0, 0, 0], [2, 3, 0]]))
    assert row_sums(matrix, [size, 1, 2]) == [size - 2, 0, 2 * size + 3]
