"""Adjustment: arithmetic of every result, brute force over directions, reference values, repair, attack."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabprotect as tp
from tabprotect.adjustment import NoAdjustment, adjustment_intervals
from tabprotect.adjustment.attack import guesses
from tabprotect.adjustment.bound import least_moves, packing_bound
from tabprotect.adjustment.fixed import adjust_fixed
from tabprotect.adjustment.model import polygon_rows, sense_model
from tabprotect.adjustment.problem import Problem, make_problem
from tabprotect.adjustment.reduce import reduce_problem
from tabprotect.adjustment.search import improve_by_blocks
from tabprotect.adjustment.search import start as first_table
from tabprotect.adjustment.square import square_bound
from tabprotect.errors import InputError
from tabprotect.solve import backend as backends
from tabprotect.solve.stop import Stop
from tabprotect.table.cube import cube_codes, cube_relations, fill_margins
from tabprotect.table.hierarchy import Hierarchy
from tabprotect.table.table import Table

try:
    from tabprotect.table.dimension import Dimension
except ImportError:
    from tabprotect.table.hierarchy import Dimension


def cube(*shape: int, seed: int = 0, sensitive: int = 4, share: float = 0.3) -> Table:
    rng = np.random.default_rng(seed)
    dims = tuple(Dimension(f"d{k}", Hierarchy.flat(range(n))) for k, n in enumerate(shape))
    values = fill_margins(rng.integers(10, 100, shape).astype(float), dims)
    table = Table(values, cube_relations(dims), dims=dims, codes=cube_codes(dims))
    inner = np.flatnonzero((table.codes > 0).all(axis=1))
    cells = rng.choice(inner, sensitive, replace=False)
    levels = np.ceil(share * values[cells])
    return table.with_status(cells, "u").with_levels(cells, levels, levels)


def promises_kept(res: tp.Protected) -> None:
    table, z = res.table, res.values - res.table.values
    p = table.primary
    assert ((z[p] >= table.upl[p] * (1 - 1e-9)) | (-z[p] >= table.lpl[p] * (1 - 1e-9))).all()
    assert (res.values >= table.lb - 1e-6).all()
    assert (res.values <= table.ub + 1e-6).all()
    scale = np.abs(table.relations) @ np.abs(res.values)
    assert (np.abs(table.relations @ res.values - table.rhs) <= 1e-8 * np.maximum(scale, 1)).all()
    assert res.bound <= res.objective * (1 + 1e-9)


def over_all_directions(problem: Problem, norm: str) -> float:
    best = np.inf
    for signs in itertools.product([-1, 1], repeat=len(problem.sensitive)):
        z = adjust_fixed(problem, np.array(signs), norm)
        if z is not None:
            best = min(best, problem.cost(z, norm))
    return best


@pytest.mark.parametrize("norm", ["l1", "linf"])
@pytest.mark.parametrize("shape", [(4, 4), (3, 3, 3)])
def test_free_directions_equal_the_best_of_all(norm: str, shape: tuple[int, ...]) -> None:
    table = cube(*shape, seed=len(shape))
    res = tp.adjust(table, norm=norm)
    promises_kept(res)
    best = over_all_directions(make_problem(table), norm)
    assert res.status == "optimal"
    assert res.objective == pytest.approx(best, rel=1e-5)


def test_squares_are_near_the_best_of_all_directions() -> None:
    table = cube(4, 4, seed=3)
    res = tp.adjust(table, norm="l2")
    promises_kept(res)
    best = over_all_directions(make_problem(table), "l2")
    assert best * (1 - 1e-6) <= res.objective <= best * 1.02
    assert res.bound <= best * (1 + 1e-9)


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(["l1", "l2", "linf"]))
def test_promises_on_random_tables(seed: int, norm: str) -> None:
    promises_kept(tp.adjust(cube(4, 5, seed=seed, sensitive=5), norm=norm, time_limit=10))


def test_flow_equals_linear_program_for_given_directions() -> None:
    from tabprotect.table.graph import network_of

    problem = make_problem(cube(6, 5, seed=1, sensitive=8))
    network = network_of(problem.relations)
    assert network is not None
    for signs in ([1] * 8, [1, -1] * 4):
        by_flow = adjust_fixed(problem, np.array(signs), "l1", network=network)
        by_program = adjust_fixed(problem, np.array(signs), "l1")
        assert by_flow is not None
        assert by_program is not None
        assert problem.cost(by_flow, "l1") == pytest.approx(problem.cost(by_program, "l1"), rel=1e-7)


def test_projection_equals_quadratic_program() -> None:
    from tabprotect.solve.model import LinearModel

    problem = make_problem(cube(5, 4, seed=2, sensitive=5))
    signs = np.array([1, -1, 1, 1, -1])
    z = adjust_fixed(problem, signs, "l2")
    assert z is not None
    low, high = problem.bounds(signs)
    model = LinearModel.of(
        problem.relations,
        row_lower=0.0,
        row_upper=0.0,
        cost=0.0,
        lower=low,
        upper=np.minimum(high, 1e4),
        quadratic=2 * problem.weight,
    )
    assert problem.cost(z, "l2") == pytest.approx(backends.solve(model).objective, rel=1e-5)


def test_reduction_keeps_the_optimum() -> None:
    # a chain of totals with a single part: four cells that can only move together
    relations = np.array([[-1, 1, 1, 0, 0, 0], [0, -1, 0, 1, 0, 0], [0, 0, 0, -1, 1, 0], [0, 0, -1, 0, 0, 1]], float)
    table = Table.from_relations([30.0, 10, 20, 10, 10, 20], relations).with_status([3], "u").with_levels([3], 2, 4)
    small = reduce_problem(make_problem(table), "l1")
    assert small.problem.n == 3
    res = tp.adjust(table)
    promises_kept(res)
    assert res.objective == pytest.approx(over_all_directions(make_problem(table), "l1"), rel=1e-6)
    z = res.values - table.values
    assert z[1] == z[3] == z[4]


def test_whole_numbers_survive_ties_that_are_not_one_to_one() -> None:
    # y = 2x: a change of y by an odd number is no whole change of x
    table = Table.from_relations([30.0, 10, 20, 10], [[-1, 0, 1, 1], [0, -2, 1, 0]], counts=True)
    marked = table.with_status([2], "u").with_levels([2], 3, 3)
    res = tp.adjust(marked)
    promises_kept(res)
    assert np.array_equal(res.values, np.rint(res.values))
    assert abs(res.values[2] - 20) == 4


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_reduced_costs_are_the_full_costs(norm: str) -> None:
    problem = make_problem(cube(3, 3, 3, seed=5))
    small = reduce_problem(problem, norm)
    signs = np.ones(len(small.problem.sensitive), np.int64)
    u = adjust_fixed(small.problem, signs, norm)
    assert u is not None
    assert problem.cost(small.back(u), norm) == pytest.approx(small.problem.cost(u, norm), rel=1e-9)
    assert np.abs(problem.relations @ small.back(u)).max() < 1e-6


def test_inequalities_hold_for_true_solutions_and_raise_the_bound() -> None:
    problem = make_problem(cube(4, 4, 3, seed=8, sensitive=6))
    rows, _ = polygon_rows(problem)
    best = over_all_directions(problem, "l1")
    for signs in ([1, 1, -1, -1, 1, -1], [1] * 6):
        z = adjust_fixed(problem, np.array(signs), "l1")
        assert z is not None
        assert (rows @ np.abs(z) >= -1e-6).all()
    relaxed = backends.solve(sense_model(problem, "l1").relaxed()).objective
    assert least_moves(problem, "l1") <= packing_bound(problem) + 1e-9
    assert packing_bound(problem) <= relaxed * (1 + 1e-7) <= best * (1 + 1e-6)
    assert least_moves(problem, "l1") < relaxed


def test_square_bound_is_below_the_optimum_and_above_the_trivial_one() -> None:
    problem = make_problem(cube(4, 4, seed=6))
    bound = square_bound(problem, Stop())
    assert least_moves(problem, "l2") < bound <= over_all_directions(problem, "l2") * (1 + 1e-9)


def test_blocks_never_make_it_worse() -> None:
    problem = make_problem(cube(7, 7, 4, seed=9, sensitive=30))
    z = first_table(problem, "l1", None, Stop(20), 0)
    assert z is not None
    better = improve_by_blocks(problem, z, Stop(6), bound=0.0, gap=0.0, seed=0, most_failures=3)
    assert problem.cost(better, "l1") <= problem.cost(z, "l1")
    assert np.abs(problem.relations @ better).max() < 1e-5
    moved = better[problem.sensitive]
    assert ((moved >= problem.rise * (1 - 1e-9)) | (-moved >= problem.fall * (1 - 1e-9))).all()


# -- options --------------------------------------------------------------------------------------------------------------------
def test_counts_stay_whole_and_d272_is_a_worked_example() -> None:
    table = tp.examples.d272().mark(tp.rules.Threshold(2))
    res = tp.adjust(table)
    assert np.array_equal(res.values, np.rint(res.values))
    assert (res.values >= 0).all()
    promises_kept(res)
    assert res.objective == pytest.approx(3.506909145, rel=1e-8)


def test_directions_balanced_given_and_per_cell() -> None:
    table = cube(5, 5, seed=4, sensitive=6)
    assert tp.adjust(table, direction="balanced").info["up"] == 3
    assert tp.adjust(table, direction="up").info["up"] == 6
    assert tp.adjust(table, direction="down").info["down"] == 6
    signs = np.zeros(table.n_cells, int)
    cells = np.flatnonzero(table.primary)
    signs[cells[0]], signs[cells[1]] = 1, -1
    z = tp.adjust(table, direction=signs)
    assert (z.values - table.values)[cells[0]] > 0 > (z.values - table.values)[cells[1]]
    free = tp.adjust(table)
    assert free.objective <= tp.adjust(table, direction="up").objective + 1e-9
    assert free.objective <= tp.adjust(table, direction="balanced").objective * (1 + 1e-6)


def test_fixed_cells_and_totals_stay() -> None:
    table = cube(5, 5, seed=4, sensitive=3)
    totals = (table.codes == 0).any(axis=1)
    res = tp.adjust(table, totals="fixed")
    assert np.allclose(res.values[totals], table.values[totals])
    near = tp.adjust(table, totals=0.01)
    assert (np.abs(near.values - table.values)[totals] <= 0.01 * table.values[totals] + 1e-6).all()
    keep = np.flatnonzero(~table.primary)[:4]
    held = tp.adjust(table, fixed=keep)
    assert np.array_equal(held.values[keep], table.values[keep])
    with pytest.raises(InputError, match="has to move"):
        tp.adjust(table, fixed=np.flatnonzero(table.primary)[:1])


def test_weights() -> None:
    table = cube(4, 4, seed=2)
    unit = tp.adjust(table, weights="unit")
    assert unit.objective == pytest.approx(np.abs(unit.values - table.values).sum(), rel=1e-9)
    own = np.linspace(1, 2, table.n_cells)
    mine = tp.adjust(table, weights=own)
    assert mine.objective == pytest.approx(own @ np.abs(mine.values - table.values), rel=1e-9)
    with pytest.raises(InputError, match="positive"):
        tp.adjust(table, weights=np.zeros(table.n_cells))


def test_levels_of_one_side_and_missing_levels_still_move_cells() -> None:
    table = Table.from_relations([30.0, 10, 20], [[-1, 1, 1]]).with_status([1], "u")
    bare = tp.adjust(table)
    assert abs(bare.values[1] - 10) == pytest.approx(1)
    one_side = tp.adjust(table.with_levels([1], upl=3))
    assert abs(one_side.values[1] - 10) >= 3 - 1e-9


def test_nothing_sensitive_and_bad_input() -> None:
    table = tp.examples.d272()
    assert np.array_equal(tp.adjust(table).values, table.values)
    with pytest.raises(InputError, match="unknown norm"):
        tp.adjust(table, norm="l3")
    with pytest.raises(InputError, match="unknown direction"):
        tp.adjust(table, direction="sideways")
    with pytest.raises(InputError, match="totals must be"):
        tp.adjust(table, totals="some")
    with pytest.raises(InputError, match="whole-number"):
        tp.adjust(Table.from_relations([1.5, 0.5, 1], [[-1, 1, 1]]).with_status([1], "u"), integer=True)
    with pytest.raises(InputError, match="does not add up"):
        tp.adjust(Table(np.array([1.0, 2, 3]), np.array([[-1.0, 1, 1]])))


def test_infeasible_says_what_blocks_and_proposes_a_repair() -> None:
    table = Table.from_relations([30.0, 10, 20], [[-1, 1, 1]]).with_status([1], "u").with_levels([1], 5, 5)
    with pytest.raises(NoAdjustment, match="Proposal") as caught:
        tp.adjust(table, fixed=[0, 2])
    proposal = caught.value.proposal
    assert proposal is not None
    assert proposal.released
    assert not proposal.lowered
    repaired = tp.adjust(proposal.table, **proposal.options)
    assert abs(repaired.values[1] - 10) >= 5 - 1e-6
    tight = table.with_bounds(lb=[0, 8, 0], ub=[100, 12, 100])
    with pytest.raises(NoAdjustment) as caught:
        tp.adjust(tight)
    assert 1 in caught.value.cells


# -- attack ---------------------------------------------------------------------------------------------------------------------
def test_outsiders_interval_contains_truth_and_published_value() -> None:
    table = cube(4, 4, seed=1)
    res = tp.adjust(table)
    for accuracy in (None, res.info["largest_share_other"]):
        lower, upper = adjustment_intervals(res, accuracy=accuracy)
        p = table.primary
        assert (lower <= table.values + 1e-6).all()
        assert (upper >= table.values - 1e-6).all()
        assert (lower[p] <= res.values[p] + 1e-6).all()
        assert (upper[p] >= res.values[p] - 1e-6).all()
    assert tp.attack(res).safe
    assert tp.adjust(table, audit="attack").objective == pytest.approx(res.objective)


def test_guesser_finds_one_candidate_when_the_other_is_impossible() -> None:
    table = Table.from_relations([15.0, 5, 10], [[-1, 1, 1]]).with_status([1], "u").with_levels([1], 5, 5)
    down = tp.adjust(table, direction="down")
    assert down.values[1] == pytest.approx(0)
    found = guesses(table, down.values)
    assert found.single.tolist() == [True]  # 0 − 5 is no possible value, so the cell came down from 5
    assert "1 of 1" in found.summary()


def reference(shared: Path) -> list[dict[str, str]]:
    lines = [line for line in (shared / "instances" / "reference.csv").read_text().splitlines() if line[0] != "#"]
    return list(csv.DictReader(lines))


@pytest.mark.parametrize("name", ["targus", "table7", "table8", "hier13x7x7d"])
def test_reference_values_of_public_instances(shared: Path, name: str) -> None:
    row = next(r for r in reference(shared) if r["name"] == name)
    table = tp.read_jj(shared / "instances" / f"{name}.jj")
    squares = tp.adjust(table, norm="l2", direction="up")
    promises_kept(squares)
    assert squares.objective == pytest.approx(float(row["cta_l2_fixed_up"]), rel=1e-5)
    up = tp.adjust(table, direction="up")
    assert up.objective <= float(row["cta_l1_fixed_up"]) * (1 + 1e-6)
    free = tp.adjust(table, gap=1e-3, time_limit=100)
    promises_kept(free)
    assert free.objective <= float(row["cta_l1_free"]) * (1 + 1.1e-3)
    assert free.bound >= float(row["cta_l1_free_bound"]) * (1 - 1.1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cbs", "hier13x13x7d", "hier13", "hier13x13x13a", "osorio", "toy3dsarah", "two5in6"])
def test_large_reference_values(shared: Path, name: str) -> None:
    row = next(r for r in reference(shared) if r["name"] == name)
    table = tp.read_jj(shared / "instances" / f"{name}.jj")
    assert tp.adjust(table, norm="l2", direction="up").objective <= float(row["cta_l2_fixed_up"]) * (1 + 1e-5)
    assert tp.adjust(table, direction="up").objective <= float(row["cta_l1_fixed_up"]) * (1 + 1e-6)
    free = tp.adjust(table, time_limit=300, gap=0.01)
    promises_kept(free)
    if row["cta_l1_free"]:
        assert free.objective <= float(row["cta_l1_free"]) * (1 + 1e-6) or free.gap <= 0.01
    assert free.gap <= 0.01
