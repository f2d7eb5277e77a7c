"""Needs of one direction each, where a move that works both ways would do without small hidden cells: cheaper patterns, never unsafe ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from tabprotect.bench.families import magnitude
from tabprotect.solve.stop import Stop
from tabprotect.suppression import exact, heuristic
from tabprotect.suppression.heuristic_start import construct
from tabprotect.suppression.heuristic_state import one_way
from tabprotect.suppression.moves import BOTH, Need, Router, directed, meets, needs_of
from tabprotect.suppression.preprocess import Reduced, reduce
from tabprotect.suppression.problem import Problem, Requirement
from tests.suppression.test_hypercube import check


def _row(down: list[float], requirements: tuple[Requirement, ...]) -> Reduced:
    """Cell 0 is the sum of cells 1 to 3; the first two are hidden, all may rise by 100."""
    n = len(down)
    return reduce(
        Problem(
            sp.csr_array(np.array([[-1.0, 1, 1, 1]])),
            np.array(down),
            np.full(n, 100.0),
            np.ones(n),
            np.array([True, True, False, False]),
            np.array([False, False, True, True]),
            requirements,
        )
    )


BOTH_WAYS = (Requirement(1, 1, 10.0), Requirement(1, -1, 8.0))


def test_needs_are_split_where_a_hidden_cell_has_room_for_the_level_in_one_direction_only() -> None:
    assert directed(_row([4.0, 50.0, 50.0, 50.0], BOTH_WAYS)) == [Need(1, 1, 10.0), Need(1, -1, 8.0)]
    assert directed(_row([50.0, 50.0, 50.0, 50.0], BOTH_WAYS)) == [Need(1, BOTH, 10.0)]
    assert directed(_row([50.0, 50.0, 4.0, 50.0], BOTH_WAYS)) == [Need(1, BOTH, 10.0)]  # the small cell is not hidden


def test_widths_are_not_split() -> None:
    problem = _row([4.0, 50.0, 50.0, 50.0], (Requirement(1, 0, 20.0),))
    assert directed(problem) == needs_of(problem)


def test_a_route_pays_for_the_room_of_its_own_direction() -> None:
    """Cell 2 can fall by 1 only but rise by 100: raising it costs its price, not a hundred times as much."""
    problem = _row([50.0, 50.0, 1.0, 50.0], (Requirement(1, -1, 10.0),))
    move = Router(problem).route(Need(1, -1, 10.0), np.array([9.0, 0.0, 2.0, 3.0]))
    assert move is not None
    assert meets(Need(1, -1, 10.0), move)
    assert move.at(2) == pytest.approx(10.0)


@pytest.mark.parametrize("seed", [1, 17, 21])
def test_two_moves_do_with_less_than_one_both_ways(seed: int) -> None:
    problem = Problem.from_table(magnitude(seed, "4,4,4", mean=15))
    best = exact.solve(problem, Stop(60), threads=1)
    room = np.minimum(problem.up, problem.down)
    both = exact.solve(replace(problem, up=room, down=room), Stop(60), threads=1)
    assert best.optimal
    assert both.optimal
    assert problem.cost(best.suppressed) < problem.cost(both.suppressed)
    found = heuristic.solve(problem, Stop(10))
    check(problem, found)
    assert problem.cost(best.suppressed) <= problem.cost(found.suppressed) < problem.cost(both.suppressed)


@pytest.mark.parametrize("seed", range(5))
def test_splitting_keeps_the_pattern_safe_and_no_dearer(seed: int) -> None:
    problem = Problem.from_table(magnitude(seed, "5,5,5", mean=15))
    state = construct(reduce(problem), Stop(10), seed)
    split = one_way(state)
    assert split.cost <= state.cost
    assert len(split.needs) >= len(state.needs)
    assert all(move is not None and meets(need, move) for need, move in zip(split.needs, split.moves, strict=True))
    check(problem, split.pattern(bound=0.0))
