"""Freeing the directions of regions and crossing tables: never worse, never a bound of a part told as one of the whole."""

from __future__ import annotations

import numpy as np
import pytest

from tabprotect.adjustment import regions
from tabprotect.adjustment.fixed import adjust_fixed
from tabprotect.adjustment.model import sense_model
from tabprotect.adjustment.problem import Problem, make_problem
from tabprotect.adjustment.regions import cross, improve_by_regions
from tabprotect.solve.stop import Progress, Stop
from tests.adjustment.test_adjust import cube, over_all_directions


def directions(problem: Problem, z: np.ndarray) -> np.ndarray:
    return np.where(z[problem.sensitive] > 0, 1, -1)


def all_up(problem: Problem) -> np.ndarray:
    z = adjust_fixed(problem, np.ones(len(problem.sensitive), np.int64), "l1")
    assert z is not None
    return z


@pytest.mark.parametrize("seed", range(3))
def test_regions_of_a_small_table_find_its_optimum(seed: int) -> None:
    problem = make_problem(cube(4, 4, 3, seed=seed, sensitive=8))
    model = sense_model(problem, "l1", rows=problem.spanning)
    found = improve_by_regions(problem, model, all_up(problem), Stop(60), bound=0.0, gap=0.0, seed=0, most_failures=10)
    assert np.abs(problem.relations @ found).max() < 1e-7
    assert problem.cost(found, "l1") == pytest.approx(over_all_directions(problem, "l1"), rel=1e-3)


def test_small_regions_never_make_it_worse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(regions, "REGION", 4)
    problem = make_problem(cube(5, 5, 4, seed=1, sensitive=20))
    model = sense_model(problem, "l1", rows=problem.spanning)
    start = all_up(problem)
    costs = [problem.cost(start, "l1")]

    def listen(news: Progress) -> None:
        assert news.cost is not None
        costs.append(news.cost)
        assert news.bound == 0.0  # not the bound of a region

    found = improve_by_regions(
        problem, model, start, Stop(60, listener=listen), bound=0.0, gap=0.0, seed=0, most_failures=4
    )
    assert costs == sorted(costs, reverse=True)
    assert problem.cost(found, "l1") < costs[0]


def test_crossing_keeps_what_both_agree_on_and_is_not_worse_than_either() -> None:
    problem = make_problem(cube(5, 5, 4, seed=3, sensitive=16))
    model = sense_model(problem, "l1", rows=problem.spanning)
    rng = np.random.default_rng(3)
    one = adjust_fixed(problem, np.r_[np.ones(10, np.int64), rng.choice([-1, 1], 6)], "l1")
    other = adjust_fixed(problem, np.r_[np.ones(10, np.int64), rng.choice([-1, 1], 6)], "l1")
    assert one is not None
    assert other is not None
    found = cross(problem, model, one, other, Stop(60), 0)
    agreed = directions(problem, one) == directions(problem, other)
    assert np.array_equal(directions(problem, found)[agreed], directions(problem, one)[agreed])
    assert problem.cost(found, "l1") <= min(problem.cost(one, "l1"), problem.cost(other, "l1"))
