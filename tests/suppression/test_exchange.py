"""The walk through spaces of moves: never dearer, never unsafe, the same for a seed, and better than where it began."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tabprotect.bench.families import magnitude
from tabprotect.solve.stop import Stop
from tabprotect.suppression import exact, heuristic_exchange
from tabprotect.suppression.exchange import Rows, Walk, wander
from tabprotect.suppression.flats import Wish, needed_moves
from tabprotect.suppression.heuristic_exchange import Exchange
from tabprotect.suppression.heuristic_start import construct, rebuild
from tabprotect.suppression.heuristic_state import Witnessed, one_way
from tabprotect.suppression.moves import Move, Router, meets
from tabprotect.suppression.preprocess import reduce
from tabprotect.suppression.problem import Problem
from tests.suppression.test_hypercube import check

PATH = np.array([[1.0, -1, -1, 1, 0, 0], [1, 0, -1, 0, -1, 1]])
"""Two ways to move the first cell; the first one hides cells 1 and 3, the second one 4 and 5."""


def _rows(matrix: np.ndarray) -> Rows:
    m = sp.csr_array(matrix)
    return Rows(m.indptr.astype(np.int64), m.indices.astype(np.int64), m.data)


def _walk(price: list[float], seed: int = 0) -> Walk:
    """From the first way, the second one being known."""
    wish = Wish(np.array([0]), np.array([1.0]), np.array([True]), np.full((1, 6), -5.0), np.full((1, 6), 5.0))
    relations = np.array([[1.0, 1, 0, 0, 1, 0], [1, 0, 1, 0, 0, 0], [0, 1, 0, 1, 0, 0], [0, 0, 0, 0, 1, 1]])
    assert not (relations @ PATH.T).any()
    return wander(
        PATH[:1], _rows(PATH[1:]), _rows(relations), np.array(price), np.zeros(6, bool), wish,
        heat=(1.0, 0.1), steps=50, widest=5, nodes=20, seed=seed,
    )  # fmt: skip


def test_the_cheaper_way_is_found() -> None:
    walk = _walk([0.0, 4.0, 1.0, 4.0, 2.0, 2.0])
    assert walk.least == 5.0
    assert (walk.best != 0).any(axis=0).tolist() == [True, False, True, False, True, True]


def test_the_best_space_is_kept_where_all_others_are_dearer() -> None:
    walk = _walk([0.0, 2.0, 1.0, 2.0, 400.0, 400.0])
    assert walk.least == 5.0
    assert (walk.best == PATH[:1]).all()


def test_walks_repeat_for_a_seed() -> None:
    one, two = _walk([0.0, 4.0, 1.0, 4.0, 3.9, 3.9], seed=3), _walk([0.0, 4.0, 1.0, 4.0, 3.9, 3.9], seed=3)
    assert (one.best == two.best).all()
    assert (one.least, one.taken) == (two.least, two.taken)


def test_spaces_that_miss_a_relation_are_refused() -> None:
    """A move that is no move (it breaks the relations) must not become part of a space."""
    wish = Wish(np.array([0]), np.array([1.0]), np.array([True]), np.full((1, 4), -5.0), np.full((1, 4), 5.0))
    relations, wrong = _rows(np.array([[1.0, 1.0, 1.0, 1.0]])), _rows(np.array([[1.0, 0.0, 0.0, 0.0]]))
    walk = wander(
        np.array([[1.0, -1.0, 0.0, 0.0]]), wrong, relations, np.array([1.0, 9.0, 1.0, 1.0]), np.zeros(4, bool), wish,
        heat=(1.0, 1.0), steps=20, widest=5, nodes=20, seed=0,
    )  # fmt: skip
    assert walk.taken == 0


def test_needed_moves_take_every_need_to_its_goal() -> None:
    wish = Wish(
        np.array([0, 4]), np.array([1.0, -2.0]), np.array([True, False]), np.full((2, 6), -5.0), np.full((2, 6), 5.0)
    )
    moves = needed_moves(PATH, wish)
    assert moves is not None
    assert moves[0, 0] == pytest.approx(1.0)
    assert moves[1, 4] == pytest.approx(-2.0)
    assert needed_moves(PATH[:1], wish) is None  # cell 4 stands still in the first way


def _start(seed: int, size: str = "5,5,5") -> Witnessed:
    problem = reduce(Problem.from_table(magnitude(seed, size, mean=20)))
    state = one_way(construct(problem, Stop(20), seed))
    return rebuild(state, range(len(state.needs)), Stop(20), seed)


@pytest.mark.parametrize("seed", range(6))
def test_patterns_stay_safe_and_get_no_dearer(seed: int) -> None:
    state = _start(seed)
    before, exchange = state.cost, Exchange(Router(state.problem), seed)
    for _ in range(4):
        gained = exchange.improve(state, np.full(state.problem.n, 0.1), Stop(60))
        assert gained is (state.cost < before)
        before = state.cost
    assert all(m is not None and meets(need, m) for need, m in zip(state.needs, state.moves, strict=True))
    check(state.problem.origin, state.pattern(bound=0.0))


def test_walks_find_what_no_known_move_gives() -> None:
    """From first patterns the walk comes near the optimum of small tables, and never below it."""
    gained = 0.0
    for seed in (3, 5, 8):
        state = _start(seed, "4,4,4")
        best = exact.solve(state.problem.origin, Stop(60), threads=1)
        assert best.optimal
        first, exchange = state.cost, Exchange(Router(state.problem), seed)
        for _ in range(6):
            exchange.improve(state, np.full(state.problem.n, 0.1), Stop(60))
        optimum = state.problem.origin.cost(best.suppressed)
        assert optimum * (1 - 1e-9) <= state.cost <= first
        gained += first - state.cost
    assert gained > 0


def test_moves_are_made_exact_and_what_is_no_move_is_left_out() -> None:
    state = _start(0)
    exchange, move = Exchange(Router(state.problem), 0), next(m for m in state.moves if m is not None)
    rough = Move(move.cells, move.steps * (1 + 1e-8 * np.linspace(-1, 1, len(move.steps))))
    exact_one = exchange._exact(rough)
    assert exact_one is not None
    y = np.zeros(state.problem.n)
    y[exact_one.cells] = exact_one.steps
    assert np.abs(state.problem.matrix @ y).max() < 1e-12
    assert exchange._exact(Move(move.cells[:1], move.steps[:1])) is None


def test_wide_spaces_are_not_walked_in(monkeypatch: pytest.MonkeyPatch) -> None:
    state = _start(1)
    exchange, before = Exchange(Router(state.problem), 0), state.cost
    monkeypatch.setattr(heuristic_exchange, "WIDE", 2 * heuristic_exchange.ROOM)
    assert exchange.improve(state, np.full(state.problem.n, 0.1), Stop(10)) is None
    assert state.cost == before
