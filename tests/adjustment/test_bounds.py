"""The strong relaxation and the turning of directions: valid for every solution, and never worse than what they start from."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tabprotect.adjustment.cuts import tighten
from tabprotect.adjustment.fixed import adjust_fixed
from tabprotect.adjustment.flips import Directions, improve_by_flips
from tabprotect.adjustment.model import columns, sense_model
from tabprotect.adjustment.problem import Problem, make_problem
from tabprotect.adjustment.windows import make_windows
from tabprotect.solve import backend as backends
from tabprotect.solve.stop import Stop
from tests.adjustment.test_adjust import cube, over_all_directions


def solutions(problem: Problem) -> list[np.ndarray]:
    """The best changes of every choice of directions."""
    choices = itertools.product([-1, 1], repeat=len(problem.sensitive))
    found = (adjust_fixed(problem, np.array(signs), "l1") for signs in choices)
    return [z for z in found if z is not None]


@pytest.mark.parametrize("seed", range(3))
def test_strong_relaxation_cuts_off_no_solution_and_raises_the_bound(seed: int) -> None:
    problem = make_problem(cube(3, 4, 3, seed=seed, sensitive=6))
    plain = sense_model(problem, "l1", rows=problem.spanning)
    model, bound = tighten(problem, plain, Stop(), goal=np.inf)
    assert model.m > plain.m
    assert backends.solve(plain.relaxed()).objective < bound <= over_all_directions(problem, "l1") * (1 + 1e-6)
    # the bound is that of the model which is handed on
    assert backends.solve(model.relaxed()).objective == pytest.approx(bound, rel=1e-6)
    for z in solutions(problem):
        assert model.violation(columns(problem, z, "l1")) < 1e-5


def check_windows(seed: int) -> int:
    """Every inequality found cuts off its point and no solution; how many were found."""
    problem = make_problem(cube(3, 3, 3, seed=seed, sensitive=5))
    size = [np.abs(z) / problem.scale for z in solutions(problem)]
    rng = np.random.default_rng(seed)
    found = 0
    for window in make_windows(problem, 4):
        for _ in range(3):
            t = rng.uniform(0, 1, problem.n) * size[int(rng.integers(len(size)))]
            cut = window.separate(t, Stop())
            if cut is None:
                continue
            found += 1
            row, least = cut
            assert (row @ t)[0] < least
            assert all((row @ s)[0] >= least - 1e-6 * abs(least) for s in size)
    return found


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_inequalities_of_windows_hold_for_all_solutions(seed: int) -> None:
    check_windows(seed)  # a single table may have no window with anything to say


def test_windows_find_inequalities() -> None:
    assert all(check_windows(seed) > 0 for seed in (0, 1, 2))


def test_turning_directions_ends_where_no_single_turn_helps() -> None:
    problem = make_problem(cube(4, 4, 4, seed=4, sensitive=12))
    z = adjust_fixed(problem, np.ones(12, np.int64), "l1")
    assert z is not None
    better = improve_by_flips(problem, z, Stop(), bound=0.0, gap=0.0, seed=0, most_failures=3)
    cost = problem.cost(better, "l1")
    assert cost < problem.cost(z, "l1")
    assert np.abs(problem.relations @ better).max() < 1e-7
    sense = np.where(better[problem.sensitive] > 0, 1, -1)
    for i in range(12):
        turned = sense.copy()
        turned[i] = -turned[i]
        other = adjust_fixed(problem, turned, "l1")
        assert other is None or problem.cost(other, "l1") >= cost * (1 - 1e-7)


def test_promised_gain_of_a_turn_is_never_too_small() -> None:
    problem = make_problem(cube(4, 5, 3, seed=7, sensitive=8))
    rng = np.random.default_rng(7)
    lp = Directions(problem, Stop())
    for _ in range(5):
        sense = rng.choice([-1, 1], 8)
        cost = lp.solve(sense)
        assert np.isfinite(cost)
        gains = lp.gains()
        for i in range(8):
            turned = sense.copy()
            turned[i] = -turned[i]
            assert cost - lp.solve(turned) <= gains[i] + 1e-7 * cost


def test_directions_of_whole_numbers_stay_whole() -> None:
    table = cube(4, 4, 3, seed=2, sensitive=9).replace(counts=True)
    problem = make_problem(table)
    z = adjust_fixed(problem, np.ones(9, np.int64), "l1")
    assert z is not None
    better = improve_by_flips(problem, z, Stop(), bound=0.0, gap=0.0, seed=0, most_failures=2)
    assert np.array_equal(better, np.rint(better))
    assert problem.cost(better, "l1") <= problem.cost(z, "l1")


@pytest.mark.parametrize("shape", [(4, 5), (3, 4, 3), (2, 3, 2, 2)])
def test_spanning_relations_have_full_rank(shape: tuple[int, ...]) -> None:
    problem = make_problem(cube(*shape))
    relations, rows = sp.csr_array(problem.relations), problem.spanning
    rank = np.linalg.matrix_rank(relations.toarray())
    assert np.linalg.matrix_rank(relations[rows].toarray()) == rank
    assert len(rows) <= relations.shape[0]
    assert len(rows) == rank
