"""Rounding: arithmetic of every result, optima by brute force, two methods against each other, statistics of the random methods."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import tabprotect as tp
from tabprotect.errors import Infeasible, InputError, Unsafe
from tabprotect.rounding.ends import plain_network
from tabprotect.rounding.grid import make_grid
from tabprotect.rounding.integer import nearest_by_program, objective_step
from tabprotect.solve.stop import Stop
from tabprotect.table.cube import cube_codes, cube_relations, fill_margins
from tabprotect.table.hierarchy import Hierarchy
from tabprotect.table.table import Table

try:
    from tabprotect.table.dimension import Dimension
except ImportError:
    from tabprotect.table.hierarchy import Dimension

METHODS = ["controlled", "nearest", "fifty", "unbiased", "small"]


def cube(inner: np.ndarray, hierarchies: list[Hierarchy] | None = None, **columns: object) -> Table:
    made = hierarchies or [Hierarchy.flat(range(k)) for k in inner.shape]
    dims = tuple(Dimension(f"d{k}", h) for k, h in enumerate(made))
    values = fill_margins(np.asarray(inner, float), dims)
    return Table(values, cube_relations(dims), dims=dims, codes=cube_codes(dims), counts=True, **columns)


def random_cube(*shape: int, seed: int = 0, high: int = 30) -> Table:
    return cube(np.random.default_rng(seed).integers(0, high, shape))


def is_rounded(table: Table, values: np.ndarray, base: float) -> bool:
    steps = values / base
    near = np.abs(values - table.values) < base * (1 - 1e-9)
    return bool(np.allclose(steps, np.rint(steps), atol=1e-9) and near.all())


def additive(table: Table, values: np.ndarray) -> bool:
    return bool(np.abs(table.relations @ values - table.rhs).max(initial=0) < 1e-7)


def brute_force(table: Table, base: float) -> float:
    """Least Σ|r − a| over all adjacent additive roundings, by trying them all."""
    floor = np.floor(table.values / base) * base
    moving = np.flatnonzero(table.values % base)
    best = np.inf
    for choice in itertools.product([0, 1], repeat=len(moving)):
        values = floor.copy()
        values[moving] += base * np.array(choice)
        if additive(table, values):
            best = min(best, float(np.abs(values - table.values).sum()))
    return best


@pytest.mark.parametrize("base", [3, 5])
def test_d272_is_rounded_additively_and_optimally(base: int) -> None:
    table = tp.examples.d272()
    res = tp.round(table, base=base)
    assert res.status == "optimal"
    assert res.kind == "round"
    assert is_rounded(table, res.values, base)
    assert additive(table, res.values)
    assert res.objective == {3: 30.0, 5: 50.0}[base]
    assert res.objective == pytest.approx(np.abs(res.values - table.values).sum())
    program = nearest_by_program(make_grid(table, np.full(36, float(base))), Stop(30))
    assert program.optimal
    assert make_grid(table, np.full(36, float(base))).cost(program.x) == pytest.approx(res.objective)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(0, 12), min_size=4, max_size=4), st.sampled_from([2, 3, 5, 7]))
def test_two_by_two_against_brute_force(inner: list[int], base: int) -> None:
    table = cube(np.array(inner).reshape(2, 2))
    assert tp.round(table, base=base).objective == pytest.approx(brute_force(table, base))


@pytest.mark.parametrize("seed", range(3))
def test_three_dimensions_against_brute_force(seed: int) -> None:
    inner = np.random.default_rng(seed).integers(0, 9, (2, 2, 2))
    inner[0] = inner[0] // 5 * 5  # few free cells, so that all can be tried
    table = cube(inner)
    best = brute_force(table, 5)
    res = tp.round(table, base=5)
    if np.isfinite(best):
        assert res.info["widened"] == 0
        assert res.objective == pytest.approx(best)
    else:
        assert res.info["widened"] >= 1
    assert additive(table, res.values)


@settings(max_examples=15, deadline=None)
@example(89, "small", 10.0)  # a total of 9.999999999999998
@given(st.integers(0, 10_000), st.sampled_from(METHODS), st.sampled_from([2.0, 3.0, 5.0, 10.0]))
def test_every_method_keeps_its_promises(seed: int, method: str, base: float) -> None:
    table = random_cube(4, 3, seed=seed, high=15)
    res = tp.round(table, base=base, method=method, seed=seed)
    if method == "small":
        inner = (table.codes > 0).all(axis=1)
        small = inner & (table.values > 0) & (table.values < base)
        assert np.isin(res.values[small], [0, base]).all()
        assert np.array_equal(res.values[inner & ~small], table.values[inner & ~small])
        assert not ((res.values > 0) & (res.values < base)).any()
    else:
        assert is_rounded(table, res.values, base)
        multiples = table.values % base == 0
        assert np.array_equal(res.values[multiples], table.values[multiples])
    if method in ("controlled", "unbiased", "small"):
        assert additive(table, res.values)
        assert res.info["additivity"]["broken"] == 0
    assert res.bound <= res.objective + 1e-9


def test_nearest_reports_broken_sums() -> None:
    table = cube(np.array([[1, 1], [1, 1]]))
    res = tp.round(table, base=3, method="nearest")
    assert res.values[(table.codes > 0).all(axis=1)].tolist() == [0, 0, 0, 0]
    assert res.info["additivity"]["broken"] > 0
    assert res.info["additivity"]["largest"] == pytest.approx(np.abs(table.relations @ res.values).max())


def test_flow_equals_integer_program_on_hierarchical_networks() -> None:
    tree = Hierarchy.from_tree({"A": ["A1", "A2", "A3"], "B": ["B1", "B2"]})
    inner = np.random.default_rng(5).integers(0, 40, (5, 4))
    table = cube(inner, [tree, Hierarchy.flat("wxyz")])
    grid = make_grid(table, np.full(table.n_cells, 5.0))
    res = tp.round(table, base=5)
    assert res.info["how"] == "flow"
    program = nearest_by_program(grid, Stop(30))
    assert grid.cost(program.x) == pytest.approx(res.objective)


def test_network_of_a_plain_table_says_what_its_relations_say() -> None:
    rng = np.random.default_rng(0)
    table = random_cube(5, 7)
    moving = rng.random(table.n_cells) < 0.7
    network = plain_network(table.relations, moving)
    assert network is not None
    move = np.where(moving, rng.normal(size=table.n_cells), 0.0)
    broken = np.abs(network.divergence(move[network.columns]))
    assert np.allclose(broken, np.abs(table.relations @ move))
    # three relations per cell; two entries of one sign on a cycle of three relations; coefficients other than one
    assert plain_network(random_cube(2, 2, 2).relations, np.ones(27, bool)) is None
    assert plain_network(sp.csr_array([[1, 1, 0], [0, 1, 1], [1, 0, 1]]), np.ones(3, bool)) is None
    assert plain_network(sp.csr_array([[1.0, 2.0]]), np.ones(2, bool)) is None
    # a cell in one relation only comes from the ground
    single = plain_network(sp.csr_array([[1.0, -1.0]]), np.ones(2, bool))
    assert single is not None
    assert single.rows.tolist() == [0, -1]


def test_three_dimensional_table_is_proved_optimal_and_costs_are_even() -> None:
    table = random_cube(5, 5, 5, seed=2)
    grid = make_grid(table, np.full(table.n_cells, 5.0))
    assert objective_step(grid) == 2.0
    res = tp.round(table, base=5, time_limit=60)
    assert additive(table, res.values)
    assert is_rounded(table, res.values, 5)
    assert res.status == "optimal"
    assert res.objective % 2 == pytest.approx(0)


def test_larger_table_is_additive_within_a_short_limit() -> None:
    table = random_cube(8, 8, 8, seed=1)
    res = tp.round(table, base=5, time_limit=3)
    assert additive(table, res.values)
    assert np.array_equal(res.values % 5, np.zeros(table.n_cells))
    assert (np.abs(res.values - table.values) < 5 * (1 + res.info["widened"])).all()
    assert 0 < res.bound <= res.objective


def test_fixed_margins_of_a_half_cube() -> None:
    table = cube(np.full((2, 2, 2), 0.5)).replace(counts=False)
    margins = (table.codes == 0).any(axis=1)
    res = tp.round(table, base=1, exact=margins)
    assert additive(table, res.values)
    assert np.array_equal(res.values[margins], table.values[margins])
    assert np.isin(res.values[~margins], [0, 1]).all()


def no_rounding() -> Table:
    """A system of relations without a zero-restricted rounding: x+y, y+z and x+z are whole, x=y=z=½ (an odd cycle)."""
    relations = np.array([[1, 1, 0, -1, 0, 0], [0, 1, 1, 0, -1, 0], [1, 0, 1, 0, 0, -1]], float)
    return Table.from_relations([0.5, 0.5, 0.5, 1, 1, 1], relations)


def test_odd_cycle_is_widened_and_the_jump_reported() -> None:
    table = no_rounding()
    res = tp.round(table, base=1)
    assert additive(table, res.values)
    assert np.array_equal(res.values, np.rint(res.values))
    assert res.info["widened"] == 1
    assert len(res.info["jumps"]) >= 1


def test_exact_cells_that_make_it_impossible_are_named() -> None:
    table = tp.examples.d272()
    with pytest.raises(Infeasible, match="stays exact"):
        tp.round(table, base=5, exact=[0])
    fine = tp.round(table, base=1.0, exact=[0, 5])
    assert np.array_equal(fine.values, table.values)


def test_exact_inner_cell_with_its_totals() -> None:
    # cell 1 of a one-way table may stay exact when the total does too
    table = Table.from_relations([13.0, 3, 4, 6], [[-1, 1, 1, 1]])
    res = tp.round(table, base=5, exact=[0, 1])
    assert res.values[[0, 1]].tolist() == [13, 3]
    assert additive(table, res.values)
    assert (res.values[2:] % 5 == 0).all()


def test_decimal_and_per_cell_bases() -> None:
    table = Table.from_relations([1.0, 0.35, 0.65], [[-1, 1, 1]])
    res = tp.round(table, base=0.1)
    assert additive(table, res.values)
    assert sorted(res.values[1:].tolist()) in ([0.3, 0.7], [0.4, 0.6])
    mixed = Table.from_relations([100.0, 33, 67, 7, 3, 4], [[-1, 1, 1, 0, 0, 0], [0, 0, 0, -1, 1, 1]])
    out = tp.round(mixed, base=[10, 10, 10, 2, 2, 2])
    assert additive(mixed, out.values)
    assert (out.values[:3] % 10 == 0).all()
    assert (out.values[3:] % 2 == 0).all()
    coarse = tp.round(Table.from_relations([20.0, 7, 13], [[-1, 1, 1]]), base=[10, 5, 5])
    assert coarse.values[0] % 10 == 0
    assert (coarse.values[1:] % 5 == 0).all()
    assert coarse.values[0] == coarse.values[1:].sum()


def test_without_zero_restriction_multiples_may_move() -> None:
    table = cube(np.array([[5, 5, 1], [5, 5, 1], [1, 1, 1]]))
    strict, loose = tp.round(table, base=5), tp.round(table, base=5, zero_restricted=False)
    assert loose.objective <= strict.objective
    assert additive(table, loose.values)
    assert (np.abs(loose.values - table.values) <= 5).all()
    assert (loose.values >= 0).all()


def test_weights_decide_which_cells_stay_near() -> None:
    table = Table.from_relations([4.0, 2, 2], [[-1, 1, 1]])
    res = tp.round(table, base=4, weights=[1, 10, 1])
    assert res.values.tolist() in ([4, 0, 4], [4, 4, 0])
    total_first = tp.round(Table.from_relations([6.0, 3, 3], [[-1, 1, 1]]), base=4, weights=[100, 1, 1])
    assert total_first.values[0] in (4, 8)


def test_small_counts_keep_totals_near() -> None:
    table = cube(np.random.default_rng(3).integers(0, 6, (6, 5)))
    res = tp.round(table, base=3, method="small")
    assert res.status == "optimal"
    assert abs(res.values[0] - table.values[0]) <= 3
    assert additive(table, res.values)
    with pytest.raises(InputError, match="negative"):
        tp.round(Table.from_relations([0.0, -1, 1], [[-1, 1, 1]]), base=3, method="small")


# -- random methods -------------------------------------------------------------------------------------------------------------
def test_fifty_goes_up_half_the_time() -> None:
    table = random_cube(12, 12, seed=4)
    moving = table.values % 5 != 0
    ups = np.zeros(table.n_cells)
    repeats = 300
    for seed in range(repeats):
        ups += tp.round(table, base=5, method="fifty", seed=seed, audit="none").values > table.values
    assert ups[~moving].sum() == 0
    chances = ups[moving]
    _, p = chisquare([chances.sum(), moving.sum() * repeats - chances.sum()])
    assert p > 1e-4
    assert np.abs(chances / repeats - 0.5).max() < 5 * np.sqrt(0.25 / repeats)


@pytest.mark.parametrize("shape", [(5, 4), (3, 3, 3)])
def test_unbiased_additive_rounding_has_the_true_expectation(shape: tuple[int, ...]) -> None:
    table = random_cube(*shape, seed=7, high=20)
    repeats = 400 if len(shape) == 2 else 150
    total = np.zeros(table.n_cells)
    for seed in range(repeats):
        res = tp.round(table, base=5, method="unbiased", seed=seed, audit="none")
        assert additive(table, res.values)
        assert is_rounded(table, res.values, 5)
        assert res.info["unbiased"]
        total += res.values
    share = (table.values % 5) / 5
    deviation = np.abs(total / repeats - table.values)
    limit = 5 * 5 * np.sqrt(share * (1 - share) / repeats)
    assert (deviation <= limit + 1e-9).all()


def test_unbiased_without_additivity_follows_the_residue() -> None:
    table = Table([1.0, 2, 3, 4] * 100, np.zeros((0, 400)))
    up = np.zeros(400)
    for seed in range(100):
        res = tp.round(table, base=5, method="unbiased", additive=False, seed=seed)
        up += res.values > table.values
    for residue in range(4):
        observed = up[residue::4].sum()
        expected = 10_000 * (residue + 1) / 5
        _, p = chisquare([observed, 10_000 - observed], [expected, 10_000 - expected])
        assert p > 1e-4


def test_additive_fifty_is_additive_and_seeded() -> None:
    table = random_cube(6, 6, seed=1)
    first = tp.round(table, base=5, method="fifty", additive=True, seed=3)
    again = tp.round(table, base=5, method="fifty", additive=True, seed=3)
    other = tp.round(table, base=5, method="fifty", additive=True, seed=4)
    assert additive(table, first.values)
    assert is_rounded(table, first.values, 5)
    assert np.array_equal(first.values, again.values)
    assert not np.array_equal(first.values, other.values)


# -- input and edges ------------------------------------------------------------------------------------------------------------
def test_bad_input_is_explained() -> None:
    table = tp.examples.d272()
    with pytest.raises(InputError, match="positive"):
        tp.round(table, base=0)
    with pytest.raises(InputError, match="one number or one per cell"):
        tp.round(table, base=[1, 2])
    with pytest.raises(InputError, match="unknown method"):
        tp.round(table, method="up")
    with pytest.raises(InputError, match="unknown audit"):
        tp.round(table, audit="maybe")
    with pytest.raises(InputError, match="by definition"):
        tp.round(table, additive=False)
    with pytest.raises(InputError, match="does not add up"):
        tp.round(Table([1.0, 2, 3], np.array([[-1.0, 1, 1]])))
    with pytest.raises(InputError, match="weights"):
        tp.round(table, weights="mine")


def test_empty_and_trivial_tables() -> None:
    assert tp.round(Table(np.zeros(0), np.zeros((0, 0)))).values.shape == (0,)
    zeros = Table.from_relations([0.0, 0, 0], [[-1, 1, 1]])
    assert tp.round(zeros).values.tolist() == [0, 0, 0]
    alone = Table([7.0], np.zeros((0, 1)))
    assert tp.round(alone).values.tolist() == [5]
    negative = Table.from_relations([-3.0, -7, 4], [[-1, 1, 1]])
    assert additive(negative, tp.round(negative).values)


def test_unsafe_magnitudes_raise_and_can_be_reported() -> None:
    table = Table.from_relations([1000.0, 400, 600], [[-1, 1, 1]]).with_status([1], "u").with_levels([1], 100, 100)
    with pytest.raises(Unsafe, match="larger base"):
        tp.round(table, base=10)
    res = tp.round(table, base=10, audit="report")
    assert res.info["exposed"] == [1]
