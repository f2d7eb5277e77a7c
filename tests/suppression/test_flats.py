"""The search over subspaces against all subsets of published cells with linear programs of another solver."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from tabprotect.bench.families import magnitude
from tabprotect.solve.stop import Stop
from tabprotect.suppression import exact, heuristic_start
from tabprotect.suppression.flats import Wish, cheapest_flat, echelon
from tabprotect.suppression.heuristic_combine import combine, neighbours
from tabprotect.suppression.heuristic_local import improve
from tabprotect.suppression.moves import BOTH, Router, meets
from tabprotect.suppression.preprocess import reduce
from tabprotect.suppression.problem import Problem


def cube(seed):
    """A small three-way table with a few sensitive cells, as the suppression benchmarks have them."""
    return magnitude(seed, "5,5,4", mean=25.0)


def price_of(basis, price, wish, published):
    """What the other cells cost when these stand still, or infinity where a need can no longer move far enough."""
    rows = basis.T
    space = np.eye(len(basis))
    if published:
        _, values, v = np.linalg.svd(rows[list(published)])
        space = v[int((values > 1e-9).sum()) :]
    if not len(space):
        return np.inf
    left = rows @ space.T
    for i, (cell, goal) in enumerate(zip(wish.row, wish.goal, strict=True)):
        limits = np.vstack([left, -left]), np.concatenate([wish.high[i], -wish.low[i]])
        best = linprog(-np.sign(goal) * left[cell], A_ub=limits[0], b_ub=limits[1], bounds=[(None, None)] * len(space))
        if best.status != 3 and -best.fun < abs(goal) - 1e-9:
            return np.inf
    return float(price[np.abs(left).max(axis=1) > 1e-9].sum())


@pytest.mark.parametrize("seed", range(60))
def test_no_set_of_published_cells_is_better(seed):
    rng = np.random.default_rng(seed)
    d, n = int(rng.integers(2, 5)), int(rng.integers(6, 12))
    basis = echelon(rng.integers(-1, 2, (d, n)).astype(float), d)
    assert basis is not None
    price = rng.integers(1, 10, n).astype(float)
    price[:2] = 0.0
    room = rng.integers(1, 4, (1, n)).astype(float)
    wish = Wish(np.array([0, 1]), np.array([1.0, -1.0]), np.array([True, True]), -room[[0, 0]], room[[0, 0]])
    found = cheapest_flat(basis, price, np.zeros(n, bool), wish, 1e9, 10**6)
    choices = (c for k in range(len(basis)) for c in itertools.combinations(range(2, n), k))
    best = min(price_of(basis, price, wish, c) for c in choices)
    assert (np.inf if found is None else found.price) == best
    if found is None:
        return
    assert (found.moves[:, found.still] == 0).all()
    assert np.allclose([found.moves[0, 0], found.moves[1, 1]], [1.0, -1.0])
    assert (np.abs(found.moves) <= room + 1e-9).all()
    inside = np.linalg.lstsq(basis.T, found.moves.T, rcond=None)[0]
    assert np.allclose(basis.T @ inside, found.moves.T)


def test_one_way_moves_stay_between_their_own_bounds():
    basis = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]])
    low, high = np.array([[-9.0, -9.0, 0.0]]), np.array([[9.0, 0.5, 9.0]])
    wish = Wish(np.array([0]), np.array([-2.0]), np.array([False]), low, high)
    found = cheapest_flat(basis, np.array([0.0, 1.0, 5.0]), np.zeros(3, bool), wish, 10.0, 100)
    assert found is not None
    assert found.still.tolist() == [False, True, False]
    assert found.price == 5.0
    assert found.moves[0].tolist() == [-2.0, 0.0, 2.0]


def test_idle_cells_cost_nothing_and_limit_the_moves():
    basis = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]])
    wish = Wish(np.array([0]), np.array([2.0]), np.array([True]), np.full((1, 3), -1.5), np.full((1, 3), 1.5))
    wish.low[0, 0], wish.high[0, 0] = -9.0, 9.0
    found = cheapest_flat(basis, np.array([0.0, 4.0, 0.0]), np.array([False, False, True]), wish, 10.0, 100)
    assert found is not None
    assert found.price == 4.0, "the idle cell alone cannot take the whole move"
    assert cheapest_flat(basis, np.array([0.0, 4.0, 0.0]), np.array([False, False, True]), wish, 4.0, 100) is None


@pytest.mark.parametrize("seed", range(3))
def test_combining_makes_patterns_cheaper_and_keeps_every_need_met(seed):
    problem = reduce(Problem.from_table(cube(seed)))
    state = heuristic_start.construct(problem, Stop(30), seed)
    other = state.copy()
    improve(other, Router(problem), Stop(30), seed + 1, patience=30)
    everyone = range(len(state.needs))
    before = state.cost
    dimensions = combine(state, everyone, [m for m in other.moves if m is not None])
    assert dimensions > 0
    assert state.cost <= min(before, other.cost) + 1e-9
    for need, move in zip(state.needs, state.moves, strict=True):
        assert move is not None
        assert meets(need, move)
        assert state.hidden[move.cells].all()
        y = np.zeros(problem.n)
        y[move.cells] = move.steps
        assert np.abs(problem.matrix @ y).max() < 1e-6 * need.level
        room = problem.room if need.sense == BOTH else np.where(y > 0, problem.up, problem.down)
        assert (np.abs(y) <= room * (1 + 1e-9)).all()


def test_parts_too_wide_are_left_alone():
    problem = reduce(Problem.from_table(cube(3)))
    state = heuristic_start.construct(problem, Stop(30), 0)
    improve(state, Router(problem), Stop(30), 0, patience=30)
    moves, cost = list(state.moves), state.cost
    assert combine(state, range(len(state.needs)), [], wide=0) < 0
    assert state.moves == moves
    assert state.cost == cost


def test_neighbours_are_distinct_and_contain_the_first():
    problem = reduce(Problem.from_table(cube(1)))
    state = heuristic_start.construct(problem, Stop(30), 1)
    improve(state, Router(problem), Stop(30), 1, patience=20)
    for size in (1, 2, len(state.needs), 99):
        some = neighbours(state, 1, size)
        assert 1 in some
        assert len(set(some)) == len(some) == min(size, len(state.needs))


def test_good_patterns_leave_few_dimensions():
    table = magnitude(1304, "6,6,6", mean=30)
    problem = Problem.from_table(table)
    pattern = exact.solve(problem, Stop(300), threads=1)
    assert pattern.optimal
    hidden = pattern.suppressed
    rank = np.linalg.matrix_rank(problem.relations[:, np.flatnonzero(hidden)].toarray())
    assert (int(hidden.sum()), int(hidden.sum() - rank)) == (36, 3)
