"""Cheapest flows over unit arcs: against a linear program, on a few arcs first, and the certificate that refuses what is not best."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import tabprotect as tp
from tabprotect.errors import Infeasible, Unsafe
from tabprotect.rounding import cheapest, network
from tabprotect.rounding.cheapest import certify, cheapest_flow
from tabprotect.rounding.network import _by_cost_scaling
from tabprotect.table.cube import cube_codes, cube_relations, fill_margins
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.table.table import Table


def two_way(rows: int, columns: int, seed: int) -> Table:
    dims = tuple(Dimension(f"d{k}", Hierarchy.flat(range(n))) for k, n in enumerate((rows, columns)))
    values = fill_margins(np.random.default_rng(seed).integers(0, 50, (rows, columns)).astype(float), dims)
    return Table(values, cube_relations(dims), dims=dims, codes=cube_codes(dims), counts=True)


def random_network(seed: int, n: int, m: int, most: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Arcs, costs, and an excess that some arcs can carry away."""
    rng = np.random.default_rng(seed)
    tail, head = rng.integers(0, n, m), rng.integers(0, n, m)
    head = np.where(head == tail, (head + 1) % n, head)
    carry = rng.random(m) < 0.4
    excess = np.bincount(tail[carry], minlength=n) - np.bincount(head[carry], minlength=n)
    return tail, head, rng.integers(0, most + 1, m), excess


def by_program(n: int, tail: np.ndarray, head: np.ndarray, cost: np.ndarray, excess: np.ndarray) -> float:
    m = len(tail)
    matrix = sp.csr_array((np.ones(m), (tail, np.arange(m))), (n, m)) - sp.csr_array(
        (np.ones(m), (head, np.arange(m))), (n, m)
    )
    return float(linprog(cost, A_eq=matrix, b_eq=excess, bounds=(0, 1)).fun)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 12), st.integers(4, 80), st.sampled_from([0, 2, 1000]))
def test_flow_costs_what_the_linear_program_says(seed: int, n: int, m: int, most: int) -> None:
    tail, head, cost, excess = random_network(seed, n, m, most)
    least = by_program(n, tail, head, cost, excess)
    for used in (cheapest_flow(n, tail, head, cost, excess), _by_cost_scaling(n, tail, head, cost, excess)):
        assert np.array_equal(np.bincount(tail[used], minlength=n) - np.bincount(head[used], minlength=n), excess)
        assert cost[used].sum() == pytest.approx(least, abs=1e-6)


@pytest.mark.parametrize("per_node", [1, 4, 12])
def test_a_few_arcs_first_ends_at_the_same_cost(per_node: int, monkeypatch: pytest.MonkeyPatch) -> None:
    tail, head, cost, excess = random_network(1, 40, 4000, 50)
    whole = cost[cheapest_flow(40, tail, head, cost, excess)].sum()
    monkeypatch.setattr(cheapest, "FEW", 100)
    monkeypatch.setattr(cheapest, "PER_NODE", per_node)
    assert cost[cheapest_flow(40, tail, head, cost, excess, seed=3)].sum() == whole


def test_excess_that_no_arc_carries_is_infeasible() -> None:
    arcs = (np.array([0, 1]), np.array([1, 0]), np.array([1, 1]))
    for solve in (cheapest_flow, _by_cost_scaling):
        with pytest.raises(Infeasible, match="no additive rounding"):
            solve(3, *arcs, np.array([1, 0, -1]))
        with pytest.raises(Infeasible):
            solve(2, *arcs, np.array([2, -2]))


def test_certificate_refuses_a_dearer_way_and_a_wrong_flow() -> None:
    tail, head, cost, excess = np.array([0, 0]), np.array([1, 1]), np.array([1, 5]), np.array([1, -1])
    good, dear = np.array([True, False]), np.array([False, True])
    certify(2, tail, head, cost, excess, good, np.array([0, 1]))
    for price in (0, 1, 3, 5):
        with pytest.raises(Unsafe):
            certify(2, tail, head, cost, excess, dear, np.array([0, price]))
    with pytest.raises(Unsafe):
        certify(2, tail, head, cost, excess, np.array([True, True]), np.array([0, 5]))


@pytest.mark.parametrize(
    "options", [{}, {"zero_restricted": False}, {"weights": "inverse"}, {"exact": "some multiples"}]
)
def test_both_flows_round_a_table_at_the_same_cost(options: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    table = two_way(30, 25, seed=2)
    if "exact" in options:
        options = {"exact": np.flatnonzero(table.values % 5 == 0)[:4]}
    own = tp.round(table, base=5, **options)
    monkeypatch.setattr(network, "FEW_NODES", 0)
    monkeypatch.setattr(network, "FEW_COSTS", -1)
    other = tp.round(table, base=5, **options)
    assert own.info["how"] == other.info["how"] == "flow"
    assert own.objective == pytest.approx(other.objective, rel=1e-9)
    assert own.bound <= own.objective + 1e-9


def test_unbiased_with_a_base_that_no_decimal_counts() -> None:
    table = two_way(12, 9, seed=4).replace(counts=False)
    res = tp.round(table, base=float(np.pi), method="unbiased", seed=1)
    steps = res.values / np.pi
    assert np.allclose(steps, np.rint(steps), atol=1e-9)
    assert (np.abs(res.values - table.values) < np.pi).all()
    assert np.abs(table.relations @ res.values).max() < 1e-9
