"""The priced bound holds for every rounding, and tables without an adjacent one are annealed with jumps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabprotect as tp
from tabprotect.rounding import integer
from tabprotect.rounding.bound import priced_bound
from tabprotect.rounding.grid import make_grid
from tabprotect.rounding.integer import nearest_by_program, program
from tabprotect.solve import backend as backends
from tabprotect.solve.stop import Stop
from tests.rounding.test_round import additive, random_cube


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([2.0, 3.0, 5.0]), st.floats(0.5, 3.0))
def test_no_rounding_is_nearer_than_the_bound(seed: int, base: float, goal: float) -> None:
    table = random_cube(3, 3, 3, seed=seed)
    grid = make_grid(table, np.full(table.n_cells, base))
    found = nearest_by_program(grid, Stop(30))
    cost = grid.cost(found.x)
    # whatever it aims at, and for the jumps that the rounding needs
    bound = priced_bound(grid.widened(found.widened, np.zeros(grid.n, bool)), goal * cost, Stop(5), rounds=200)
    assert bound <= cost + 1e-9


def test_bound_comes_near_to_the_linear_relaxation() -> None:
    table = random_cube(6, 6, 6, seed=1)
    grid = make_grid(table, np.full(table.n_cells, 5.0))
    relaxed = backends.solve(program(grid).relaxed()).objective
    bound = priced_bound(grid, 1.05 * relaxed, Stop(30))
    nearest = grid.cost(grid.nearest())
    assert bound <= relaxed * (1 + 1e-9)
    assert bound - nearest > 0.9 * (relaxed - nearest)


def test_five_dimensions_are_rounded_with_the_jumps_they_need(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(integer, "MIDDLE", 100)  # what large tables get
    table = random_cube(4, 4, 3, 3, 3, seed=0)
    res = tp.round(table, base=5, time_limit=20)
    assert additive(table, res.values)
    assert np.array_equal(res.values % 5, np.zeros(table.n_cells))
    assert res.info["widened"] == 1
    beyond = np.abs(res.values - table.values) >= 5
    assert 0 < beyond.sum() == len(res.info["jumps"])
    assert (np.abs(res.values - table.values) < 10).all()
    floor = tp.round(table, base=5, method="nearest").objective
    assert floor < res.bound <= res.objective
