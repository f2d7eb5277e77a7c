"""Exact bounds of hidden cells: against brute force, against each other, on the source's example, and under transformations."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import tabprotect as tp
from tabprotect.attacker.bounds import ComponentLP
from tabprotect.attacker.ranges import ranges
from tabprotect.attacker.system import components
from tests.attacker.tables import brute_force, random_cube, random_mask

D272_PATTERN = [
    ("50-99", "D2721"), ("50-99", "D2729"), ("100-199", "D2721"), ("100-199", "D2729"), ("200-299", "D2722"),
    ("200-299", "D2729"), ("300-499", "D2721"), ("300-499", "D2722"), ("500+", "D2721"), ("500+", "D2722"),
]  # fmt: skip
D272_INTERVALS = [(11, 13), (1, 3), (2, 4), (1, 3), (5, 7), (1, 3), (1, 3), (4, 6), (1, 3), (3, 5)]


def d272() -> tuple[tp.Table, list[int]]:
    table = tp.examples.d272().mark(tp.rules.Threshold(2))
    return table, [table.cell(size=a, industry=b) for a, b in D272_PATTERN]


def test_intervals_of_the_source() -> None:
    table, cells = d272()
    found = tp.attack(table, cells, lb=1)
    assert found.intervals.cell.tolist() == sorted(cells)
    assert list(zip(found.intervals.lower, found.intervals.upper, strict=True)) == D272_INTERVALS


def test_hiding_only_the_sensitive_cells_leaks() -> None:
    table, _ = d272()
    found = tp.attack(table)
    assert not found.safe
    assert set(found.recovered) == set(np.flatnonzero(table.primary))
    assert set(found.exposed) == set(found.recovered)
    assert (found.intervals.fails == "LPL+UPL").all()


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6))
def test_integer_attacker_equals_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_cube(rng, *[(2, 2), (2, 3), (3,), (2, 2, 2)][seed % 4], most=3)
    hidden = random_mask(rng, table, 0.45)
    cells = np.flatnonzero(hidden)
    if len(cells) > 6:
        hidden[rng.choice(cells, len(cells) - 6, replace=False)] = False
    ub = table.values + 2
    low, high = brute_force(table, hidden, np.maximum(table.values - 2, 0), ub)
    found = tp.attack(table, hidden, lb=np.maximum(table.values - 2, 0), ub=ub, integer=True)
    assert np.array_equal(found.lower, low)
    assert np.array_equal(found.upper, high)
    relaxed = tp.attack(table, hidden, lb=np.maximum(table.values - 2, 0), ub=ub)
    assert (relaxed.lower <= low + 1e-9).all()
    assert (relaxed.upper >= high - 1e-9).all()


@pytest.mark.parametrize("shape", [(5, 6), ("2x3", 4), (3, 3, 3), ("2x2", "2x2", 2), ("3x2", "2x3")])
def test_flow_lp_and_a_second_solver_agree(shape: tuple[int | str, ...]) -> None:
    from ortools.linear_solver import pywraplp

    rng = np.random.default_rng(1)
    for _ in range(6):
        table = random_cube(rng, *shape, most=50)
        hidden = random_mask(rng, table, 0.3)
        down, up = table.values.copy(), rng.integers(1, 60, table.n_cells).astype(float)
        by_any = ranges(table.relations, hidden, down, up)
        by_lp = ranges(table.relations, hidden, down, up, network=False)
        assert by_any.proved[hidden].all()
        assert np.allclose(by_any.down, by_lp.down, atol=1e-6)
        assert np.allclose(by_any.up, by_lp.up, atol=1e-6)
        cells = np.flatnonzero(hidden)
        a = sp.csr_array(table.relations)[:, cells].tocoo()
        for k in rng.choice(len(cells), min(4, len(cells)), replace=False):
            solver = pywraplp.Solver.CreateSolver("GLOP")
            y = [solver.NumVar(-down[c], up[c], "") for c in cells]
            rows = [solver.Constraint(0, 0) for _ in range(a.shape[0])]
            for r, c, v in zip(*a.coords, a.data, strict=True):
                rows[r].SetCoefficient(y[c], v)
            solver.Maximize(y[k])
            assert solver.Solve() == pywraplp.Solver.OPTIMAL
            assert y[k].solution_value() == pytest.approx(by_any.up[cells[k]], abs=1e-6)


def test_the_persistent_lp_answers_the_same_in_any_order() -> None:
    rng = np.random.default_rng(3)
    table = random_cube(rng, 4, 4, 4, most=30)
    hidden = random_mask(rng, table, 0.4)
    (piece,) = [c for c in components(table.relations, hidden, table.values, table.values + 5) if c.n > 20]
    answers: dict[tuple[int, bool], set[float]] = {}
    for order in range(3):
        lp = ComponentLP(piece)
        questions = [(j, up) for j in range(piece.n) for up in (True, False)]
        for j, up in [questions[k] for k in np.random.default_rng(order).permutation(len(questions))]:
            y = lp.push({j: 1.0}, maximize=up)
            assert y is not None
            answers.setdefault((j, up), set()).add(round(float(y[j]), 6))
    assert all(len(values) == 1 for values in answers.values())


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_invariant_under_permutation_and_scaling(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_cube(rng, 3, 3, 3, most=20)
    hidden = random_mask(rng, table, 0.4)
    first = tp.attack(table, hidden, share=0.5)
    order = rng.permutation(table.n_cells)
    rows = rng.permutation(table.n_relations)
    mixed = tp.Table(table.values[order] * 1000, table.relations[rows][:, order])
    second = tp.attack(mixed, hidden[order], share=0.5)
    back = {int(order[c]): k for k, c in enumerate(second.cells)}
    at = [back[int(c)] for c in first.cells]
    assert np.allclose(second.lower[at], 1000 * first.lower, atol=1e-4)
    assert np.allclose(second.upper[at], 1000 * first.upper, atol=1e-4)


def test_values_from_a_hundredth_to_a_million_millions() -> None:
    """The tiny cell is determined by its row although cells 10^14 times larger can move."""
    values = np.array([[1e12, 2e12, 0.01], [3e12, 1e12, 5.0], [2e12, 4e12, 7e11]])
    dims = (tp.Hierarchy.flat("abc"), tp.Hierarchy.flat("xyz"))
    frame = {"r": np.repeat(list("abc"), 3), "c": np.tile(list("xyz"), 3), "v": values.ravel()}
    table = tp.Table.from_frame(frame, by={"r": dims[0], "c": dims[1]}, value="v")
    tiny = table.cell(r="a", c="z")
    big = [table.cell(r=r, c=c) for r in "bc" for c in "xy"]
    table = table.with_status([tiny], "u").with_levels([tiny], lpl=0.01, upl=0.01)
    alone = tp.attack(table, [tiny, *big])
    assert tiny in alone.recovered
    assert not alone.safe
    assert not tp.attack(table, [tiny, *big], goal="verdict").safe
    rectangle = [tiny, table.cell(r="a", c="x"), table.cell(r="b", c="z"), table.cell(r="b", c="x")]
    assert tp.attack(table, rectangle).safe
    verdict = tp.attack(table, rectangle, goal="verdict")
    assert verdict.safe
    assert tp.verify(verdict.certificate).ok


def test_unbounded_and_empty() -> None:
    table = tp.Table.from_relations([6.0, 2.0, 4.0], [[-1, 1, 1]])
    everything = tp.attack(table, [0, 1, 2])
    assert everything.upper.tolist() == [np.inf] * 3
    assert everything.lower.tolist() == [0.0] * 3
    nothing = tp.attack(table, np.zeros(3, bool))
    assert nothing.safe
    assert len(nothing.intervals) == 0


def test_goal_verdict_agrees_with_bounds() -> None:
    rng = np.random.default_rng(11)
    for _ in range(25):
        table = random_cube(rng, *[(4, 4), (3, 3, 3), ("2x2", 3, 2)][rng.integers(3)], most=12)
        hidden = random_mask(rng, table, 0.35)
        primary = np.flatnonzero(hidden)[:4]
        level = rng.integers(1, 4, len(primary))
        table = table.with_status(primary, "u").with_levels(
            primary, lpl=level, upl=level, spl=rng.integers(0, 8, len(primary))
        )
        assert tp.attack(table, hidden).exposed == tp.attack(table, hidden, goal="verdict").exposed


def test_components_in_parallel_give_the_same() -> None:
    from concurrent.futures import ThreadPoolExecutor

    rng = np.random.default_rng(5)
    table = random_cube(rng, 6, 6, 3, most=20)
    hidden = random_mask(rng, table, 0.12)
    with ThreadPoolExecutor(2) as pool:
        one, two = tp.attack(table, hidden), tp.attack(table, hidden, executor=pool)
    assert np.allclose(one.lower, two.lower)
    assert np.allclose(one.upper, two.upper)


def test_bad_questions() -> None:
    table, cells = d272()
    with pytest.raises(tp.errors.InputError, match="unknown goal"):
        tp.attack(table, cells, goal="all")
    with pytest.raises(tp.errors.InputError, match="mask of hidden cells"):
        tp.attack(table, np.ones(3, bool))
    with pytest.raises(tp.errors.InputError, match="what the attacker is said to know is wrong"):
        tp.attack(table, cells, lb=5)
    with pytest.raises(tp.errors.InputError, match="indices below"):
        tp.attack(table, [999])
