"""The projection against a general quadratic solver, against its optimality conditions, and on input it must refuse."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import lsq_linear

from tabprotect.errors import Infeasible, InputError
from tabprotect.linalg.projection import project
from tabprotect.linalg.totals import Totals


def flat(n: int) -> sp.csr_array:
    """Relation of one flat dimension: cell 0 is the total of the n others."""
    return sp.csr_array(np.r_[-1.0, np.ones(n)][None, :])


def tree(branching: list[int]) -> sp.csr_array:
    """Relations of one balanced hierarchy, breadth first, cell 0 the root."""
    rows, frontier, count = [], [0], 1
    for b in branching:
        nodes = []
        for node in frontier:
            children = list(range(count, count + b))
            rows.append((node, children))
            nodes += children
            count += b
        frontier = nodes
    a = np.zeros((len(rows), count))
    for i, (node, children) in enumerate(rows):
        a[i, node], a[i, children] = -1.0, 1.0
    return sp.csr_array(a)


def product(*dims: sp.csr_array) -> sp.csr_array:
    """Relations of a table over several dimensions (with all the redundant ones)."""
    blocks = []
    for k in range(len(dims)):
        block = sp.identity(1)
        for j, r in enumerate(dims):
            block = sp.kron(block, r if j == k else sp.identity(r.shape[1]), format="csr")
        blocks.append(block)
    return sp.csr_array(sp.vstack(blocks))


TABLES = {
    "flat": flat(6),
    "deep": tree([3, 2, 2]),
    "two-way": product(flat(4), flat(5)),
    "hierarchical": product(tree([2, 3]), flat(3)),
    "three-way": product(tree([2, 2]), flat(3), flat(2)),
}


def reference(a: sp.csr_array, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    """The same projection as bounded least squares over the leaves (leaves ≥ 0 makes every total ≥ 0)."""
    totals = Totals.of(a)
    leaves = np.flatnonzero(totals.leaf)
    s = np.column_stack([totals.add_up(np.eye(a.shape[1])[leaf]) for leaf in leaves])
    r = np.sqrt(w)
    z = lsq_linear(s * r[:, None], x * r, bounds=(0, np.inf), method="bvls", tol=1e-14, max_iter=10_000).x
    return s @ z


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("weighted", [False, True])
def test_agrees_with_bounded_least_squares(name: str, weighted: bool) -> None:
    a = TABLES[name]
    rng = np.random.default_rng(7)
    for _ in range(5):
        x = rng.normal(2, 10, a.shape[1])
        w = rng.uniform(0.05, 20, a.shape[1]) if weighted else np.ones(a.shape[1])
        ours = project(a, x, weights=w)
        np.testing.assert_allclose(ours.x, reference(a, x, w), atol=1e-6)
        assert ours.residual <= 1e-12
        assert ours.x.min() >= 0
        assert ours.distance == pytest.approx(np.sqrt(np.sum(w * (ours.x - x) ** 2)))


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(sorted(TABLES)),
    st.integers(0, 2**32 - 1),
    st.floats(-3, 5),
    st.floats(-6, 6),
)
def test_is_a_projection(name: str, seed: int, size: float, spread: float) -> None:
    """Feasible, idempotent, and nearer than any other feasible table (obtuse angle), at every scale."""
    a = TABLES[name]
    rng = np.random.default_rng(seed)
    scale = 10.0**size
    x = rng.normal(0, 1, a.shape[1]) * scale
    w = 10 ** rng.uniform(min(0, spread), max(0, spread), a.shape[1])
    y = project(a, x, weights=w, tolerance=1e-11).x
    assert y.min() >= 0
    assert np.abs(a @ y).max() <= 1e-9 * max(1, scale)
    np.testing.assert_allclose(project(a, y, weights=w).x, y, atol=1e-6 * max(1, scale))
    totals = Totals.of(a)
    for _ in range(3):
        z = totals.add_up(rng.exponential(scale, a.shape[1]))
        angle = np.sum(w * (x - y) * (z - y))
        assert angle <= 1e-5 * np.sqrt(np.sum(w * (x - y) ** 2) * np.sum(w * (z - y) ** 2)) + 1e-9 * w.max() * scale


def test_without_bounds_it_is_the_linear_projection() -> None:
    a = TABLES["two-way"]
    x = np.random.default_rng(0).normal(size=a.shape[1])
    dense = a.toarray()
    expected = x - np.linalg.pinv(dense) @ (dense @ x)
    np.testing.assert_allclose(project(a, x, lower=None).x, expected, atol=1e-8)


def test_right_hand_sides_and_cell_bounds() -> None:
    a = np.array([[1.0, 1, 1]])
    found = project(a, [0, 0, 0], rhs=[9], lower=[5, -np.inf, 0])
    np.testing.assert_allclose(found.x, [5, 2, 2], atol=1e-8)


def test_upper_bounds() -> None:
    """Against the mirror image: upper bounds of x are lower bounds of −x."""
    a = TABLES["hierarchical"]
    x = np.random.default_rng(5).normal(0, 5, a.shape[1])
    np.testing.assert_allclose(project(a, x, lower=None, upper=0.0).x, -project(a, -x, lower=0.0).x, atol=1e-6)
    both = project(a, x, lower=-1.0, upper=2.0)
    assert both.residual <= 1e-6
    assert both.x.min() >= -1
    assert both.x.max() <= 2
    with pytest.raises(Infeasible, match="above the upper"):
        project(a, x, lower=1.0, upper=0.0)


@pytest.mark.parametrize("orders", [2, 4, 6, 9, 12, 15])
@pytest.mark.parametrize("name", TABLES)
def test_very_unequal_weights(name: str, orders: int) -> None:
    """Weights up to 15 orders of magnitude apart, where conjugate gradients alone did not arrive from 6 on."""
    a = TABLES[name]
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x, w = rng.normal(2, 10, a.shape[1]), 10 ** rng.uniform(-orders / 2, orders / 2, a.shape[1])
        ours, best = project(a, x, weights=w), reference(a, x, w)
        assert ours.residual <= 1e-12
        assert ours.x.min() >= 0
        assert ours.distance == pytest.approx(np.sqrt(np.sum(w * (best - x) ** 2)), rel=1e-6)
        if orders <= 12:
            np.testing.assert_allclose(ours.x, best, atol=1e-5)


def test_wide_weights_on_a_larger_table() -> None:
    """A table on which 200 Newton steps by conjugate gradients left a relation off."""
    a = product(tree([3, 3]), tree([3, 2]), tree([2, 2]))
    rng = np.random.default_rng(1)
    x, w = rng.normal(2, 10, a.shape[1]), 10 ** rng.uniform(-6, 6, a.shape[1])
    y = project(a, x, weights=w)
    assert y.residual <= 1e-11
    assert y.x.min() >= 0
    # optimality by arithmetic: no feasible table lies in the direction of x
    totals = Totals.of(a)
    for _ in range(5):
        z = totals.add_up(rng.exponential(10, a.shape[1]))
        assert np.sum(w * (x - y.x) * (z - y.x)) <= 1e-6 * y.distance * np.sqrt(np.sum(w * (z - y.x) ** 2))


def test_wide_weights_with_relations_that_are_not_totals() -> None:
    """Two relations of four cells with two signs each: no cell is a total, all relations are factorised."""
    a = np.array([[1.0, 1, -1, -1, 0, 0], [0, 0, 1, 1, -1, -1]])
    x, w = np.array([5.0, 1, 2, 2, 9, 1]), 10.0 ** np.array([-6, 6, 0, 3, -3, 5])
    y = project(a, x, weights=w, lower=None).x
    root = a / np.sqrt(w)
    expected = x - np.linalg.pinv(root) @ (a @ x) / np.sqrt(w)
    np.testing.assert_allclose(y, expected, atol=1e-7)


def test_infeasible_with_wide_weights_is_told() -> None:
    with pytest.raises(Infeasible):
        project([[1.0, 1, -1]], [1, 1, 1], weights=[1e-6, 1, 1e6], lower=[2, 2, 0], upper=[9, 9, 3])


def test_giving_up_is_not_called_infeasible() -> None:
    a = TABLES["three-way"]
    with pytest.raises(Infeasible, match="was found in 5 Newton steps"):
        project(a, np.random.default_rng(0).normal(0, 10, a.shape[1]), max_iterations=1)


def test_infinite_weight_keeps_the_cell() -> None:
    a = TABLES["two-way"]
    x = np.random.default_rng(3).uniform(0, 9, a.shape[1])
    w = np.ones(a.shape[1])
    x[0], w[0] = 100.0, np.inf
    found = project(a, x, weights=w)
    assert found.x[0] == 100.0
    assert found.residual <= 1e-6
    assert np.isfinite(found.distance)


def test_all_cells_at_zero() -> None:
    a = TABLES["three-way"]
    assert project(a, -np.ones(a.shape[1])).x.tolist() == [0.0] * a.shape[1]


def test_nothing_to_do() -> None:
    assert project(sp.csr_array((0, 3)), [1, -2, 3]).x.tolist() == [1.0, 0.0, 3.0]
    assert project(sp.csr_array((0, 0)), []).x.size == 0


@pytest.mark.parametrize(
    ("a", "options"),
    [
        ([[1, 1]], {"rhs": [-1]}),  # non-negative cells with a negative sum
        ([[1, 1], [1, 1]], {"rhs": [1, 2], "lower": None}),  # contradictory relations
        ([[1, -1]], {"weights": np.inf}),  # two fixed cells that differ
    ],
)
def test_infeasible(a: list[list[int]], options: dict) -> None:
    with pytest.raises(Infeasible):
        project(a, [3.0, 4.0], **options)


def test_fixed_below_bound_is_infeasible() -> None:
    with pytest.raises(Infeasible, match="infinite weight") as caught:
        project([[1, 1, -1]], [-1, 2, 3], weights=[np.inf, 1, 1])
    assert caught.value.cells == (0,)


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        ([1, 2], {}, "shape"),
        ([1, np.nan, 2], {}, "not a number"),
        ([1, np.inf, 2], {}, "not a number"),
        ([1, 2, 3], {"weights": [1, 0, 1]}, "positive"),
        ([1, 2, 3], {"weights": [1, np.nan, 1]}, "not a number"),
        ([1, 2, 3], {"rhs": [1, 2]}, "rhs"),
        ([1, 2, 3], {"lower": [0, 0]}, "lower"),
    ],
)
def test_bad_input(x: list[float], options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        project([[1, 1, -1]], x, **options)


@pytest.mark.slow
def test_a_million_cells() -> None:
    a = product(tree([10, 10, 10]), tree([10, 10, 9]))
    rng = np.random.default_rng(0)
    totals = Totals.of(a)
    truth = totals.add_up(rng.poisson(2.0, a.shape[1]).astype(float))
    noisy = truth + rng.laplace(0, 10, truth.size)
    found = project(a, noisy)
    assert found.x.min() >= 0
    assert found.residual <= 1e-14 * truth.max()
    assert np.mean((found.x - truth) ** 2) < np.mean((np.maximum(noisy, 0) - truth) ** 2)
