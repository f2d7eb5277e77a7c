"""Growing programs, inequalities from single rows, and the three trees, against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from tabprotect.errors import InputError
from tabprotect.solve.branch import Program, branch_and_cut
from tabprotect.solve.cutting import CuttingLP, Row
from tabprotect.solve.dive import Diver
from tabprotect.solve.knapsack import RowSet, strengthen
from tabprotect.solve.knapsack_exact import facets
from tabprotect.solve.stop import Stop


def random_row(rng, n, whole=True):
    size = int(rng.integers(2, n + 1))
    columns = np.sort(rng.choice(n, size, replace=False))
    values = rng.integers(1, 12, size).astype(float) if whole else rng.uniform(0.1, 3.0, size)
    rhs = float(rng.integers(1, max(2, int(values.sum())))) if whole else float(rng.uniform(0.1, values.sum()))
    return Row(columns, np.minimum(values, rhs), rhs, "capacity")


@pytest.mark.parametrize("seed", range(150))
def test_no_feasible_point_is_cut_off(seed):
    rng = np.random.default_rng(seed)
    n = 7
    row = random_row(rng, n, whole=seed % 2 == 0)
    points = [np.array(p, float) for p in itertools.product((0, 1), repeat=n)]
    feasible = [p for p in points if row.slack(p) >= -1e-9]
    for _ in range(5):
        x = np.clip(rng.uniform(-0.3, 1.3, n), 0, 1)
        for cut in strengthen(RowSet([row]), x) + facets(RowSet([row]), x):
            assert cut.slack(x) < 0
            assert min(cut.slack(p) for p in feasible) >= -1e-7


@pytest.mark.parametrize("seed", range(60))
def test_a_facet_is_found_exactly_where_the_point_is_outside_the_hull(seed):
    rng = np.random.default_rng(seed)
    row = random_row(rng, 7)
    whole = [np.array(p, float) for p in itertools.product((0, 1), repeat=7)]
    points = np.array([p for p in whole if row.slack(p) >= -1e-9])
    for _ in range(5):
        x = np.clip(rng.uniform(-0.3, 1.3, 7), 0, 1)
        # most of the points that pack into x: one or more means that x is not below the hull
        packed = -linprog(-np.ones(len(points)), A_ub=points.T, b_ub=x).fun
        fractional = ((x > 0) & (x < 1))[row.columns].any()
        slack_enough = row.values @ x[row.columns] <= 1.6 * row.rhs
        if not fractional or not slack_enough or row.values.min() == row.rhs or abs(packed - 0.98) < 0.005:
            continue
        enough = row.values[x[row.columns] > 0].sum() >= row.rhs
        assert len(facets(RowSet([row]), x)) == int(packed < 0.98 and enough)


@pytest.mark.parametrize("seed", range(30))
def test_pricing_finds_the_optimum_of_the_full_program(seed):
    rng = np.random.default_rng(seed)
    n = 12
    cost = rng.integers(1, 20, n).astype(float)
    rows = [random_row(rng, n) for _ in range(8)]
    lp = CuttingLP(cost, active=rng.random(n) < 0.4)
    for i in range(0, len(rows), 2):
        lp.add(rows[i : i + 2])
        bound = lp.solve()
    matrix = np.zeros((len(rows), n))
    for i, row in enumerate(rows):
        matrix[i, row.columns] = row.values
    reference = linprog(cost, A_ub=-matrix, b_ub=[-r.rhs for r in rows], bounds=(0, 1))
    assert bound == pytest.approx(reference.fun, abs=1e-6)
    assert lp.add(rows) == 0  # equal rows are known


def test_an_impossible_row_is_infeasible():
    lp = CuttingLP(np.ones(2), active=np.array([True, False]))
    lp.add([Row(np.array([0, 1]), np.ones(2), 2.0)])
    assert lp.solve() == 2.0
    lp.add([Row(np.array([0]), np.ones(1), 2.0)])
    assert lp.solve() is None
    assert lp.infeasible


@pytest.mark.parametrize("solver", ["tree", "scip", "highs"])
@pytest.mark.parametrize("seed", range(25))
def test_trees_against_enumeration(solver, seed):
    rng = np.random.default_rng(seed)
    n = 9
    cost = rng.integers(0, 20, n).astype(float) if seed % 2 else rng.uniform(0.1, 9.0, n)
    rows = [random_row(rng, n) for _ in range(7)]

    def separate(x, integral, root):
        return [r for r in rows if r.slack(x) < -1e-6]

    points = [np.array(p, float) for p in itertools.product((0, 1), repeat=n)]
    best = min(float(cost @ p) for p in points if not separate(p, True, False))
    program = Program(cost, np.ones(n, bool), rows[:2], separate, np.ones(n), bool(seed % 2))
    answer = branch_and_cut(program, Stop(), solver=solver, seed=seed)
    assert answer.optimal
    assert float(cost @ answer.x) == pytest.approx(best, abs=1e-6)
    assert not separate(answer.x, True, False)


def covering(seed, n=40, m=75):
    """A covering program whose tree has some hundred nodes, and a separator for each thread."""
    rng = np.random.default_rng(seed)
    cost = rng.integers(10, 30, n).astype(float)
    rows = [Row(np.sort(rng.choice(n, 6, replace=False)), np.ones(6), 2.0) for _ in range(m)]

    def separator():
        return lambda x, integral, root: [r for r in rows if r.slack(x) < -1e-6][:10]

    return cost, separator


@pytest.mark.parametrize("seed", [0, 3, 6])
def test_threads_agree_with_one_another_and_with_themselves(seed):
    cost, separator = covering(seed)
    n = len(cost)
    told = []

    def program(threads, **more):
        beside = tuple(separator() for _ in range(threads - 1))
        return Program(cost, np.ones(n, bool), [], separator(), np.ones(n), True, beside=beside, offset=5.0, **more)

    one = branch_and_cut(program(1), Stop())
    two, again = (branch_and_cut(program(2), Stop(listener=told.append)) for _ in range(2))
    assert one.optimal
    assert two.optimal
    assert cost @ one.x == cost @ two.x
    assert one.nodes > 20
    assert (two.x == again.x).all()
    assert two.nodes == again.nodes  # in step: the same tree in every run
    assert all(news.bound <= cost @ one.x + 5.0 + 1e-6 <= news.cost + 1e-6 for news in told)


@pytest.mark.parametrize("seed", range(5))
def test_dives_end_at_feasible_points_and_differ(seed):
    cost, separator = covering(seed)
    n = len(cost)
    program = Program(cost, np.ones(n, bool), [], separator(), np.ones(n), True)
    best = branch_and_cut(program, Stop())
    found = []
    for _ in range(2):
        diver = Diver(program, separator(), seed)
        found.append([diver.dive(Stop(), np.inf) for _ in range(4)])
    for point, again in zip(*found, strict=True):
        assert (point == again).all()
        assert not separator()(point, True, False)
        assert cost @ best.x <= cost @ point <= 1.5 * cost @ best.x
    assert len({p.tobytes() for p in found[0]}) > 1
    assert diver.dive(Stop(), cost @ best.x - 1) is None
    inside = diver.dive(Stop(), np.inf, x=best.x)
    assert (inside >= best.x).all()
    stopped = Stop()
    stopped.cancel()
    assert diver.dive(stopped, np.inf) is None


def test_a_tree_keeps_to_its_nodes():
    cost, separator = covering(0)
    program = Program(cost, np.ones(len(cost), bool), [], separator(), np.ones(len(cost)), True, most=5)
    answer = branch_and_cut(program, Stop())
    assert not answer.optimal
    assert answer.nodes == 5
    assert answer.bound < cost @ answer.x


def test_a_tree_takes_known_rows_news_and_fewer_threads():
    cost, separator = covering(0)
    n = len(cost)
    best = branch_and_cut(Program(cost, np.ones(n, bool), [], separator(), np.ones(n), True), Stop())
    bounds = []

    def news(bound):
        bounds.append(bound)
        return best.x

    separate = separator()
    known = tuple(separate(np.zeros(n), False, False))
    program = Program(
        cost, np.ones(n, bool), [], separate, np.ones(n), True,
        known=known, beside=(separator(),), busy=lambda: 1, news=news,
    )  # fmt: skip
    answer = branch_and_cut(program, Stop())
    assert answer.optimal
    assert (answer.x == best.x).all()
    assert bounds == sorted(bounds)
    assert bounds[-1] <= cost @ best.x
    gap = branch_and_cut(program, Stop(gap=0.2))
    assert not gap.optimal
    assert cost @ gap.x - gap.bound <= 0.2 * (cost @ gap.x)


def test_a_cancelled_tree_returns_its_start_and_unknown_solvers_are_refused():
    row = Row(np.arange(3), np.ones(3), 2.0)
    program = Program(
        np.ones(3), np.ones(3, bool), [], lambda x, i, r: [row] if row.slack(x) < 0 else [], np.ones(3), True
    )
    stop = Stop()
    stop.cancel()
    for solver in ("tree", "highs"):
        answer = branch_and_cut(program, stop, solver=solver)
        assert not answer.optimal
        assert (answer.x == 1).all()
    with pytest.raises(InputError):
        branch_and_cut(program, Stop(), solver="abacus")
