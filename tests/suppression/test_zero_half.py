"""Cuts from three covers: valid for every pattern that satisfies the covers, and found where pairs of alternatives meet in a triangle."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from tabprotect.suppression.cuts import Cut
from tabprotect.suppression.problem import Requirement
from tabprotect.suppression.zero_half import LEAST, ZeroHalf

N = 9


def _cover(cells: list[int]) -> Cut:
    return Cut(np.array(sorted(cells)), np.ones(len(cells)))


def _points(covers: list[Cut]) -> list[np.ndarray]:
    """All 0–1 points that satisfy the covers."""
    points = (np.array(p, float) for p in itertools.product((0, 1), repeat=N))
    return [p for p in points if all(c.violation(p) <= 0 for c in covers)]


@pytest.mark.parametrize("seed", range(20))
def test_no_pattern_is_cut_off_and_the_point_is(seed: int) -> None:
    rng = np.random.default_rng(seed)
    triangle = [[0, 1], [1, 2], [0, 2]]
    covers = [_cover(c + rng.choice(np.arange(3, N), rng.integers(0, 4), replace=False).tolist()) for c in triangle]
    covers += [_cover(rng.choice(N, rng.integers(2, 6), replace=False).tolist()) for _ in range(8)]
    x = np.where(np.arange(N) < 3, 0.5, 0.0)
    x[3:] = rng.random(N - 3) * 0.05
    found = ZeroHalf(N, covers).violated(x)
    assert found
    points = _points(covers)
    assert points
    for cut in found:
        assert 2 * cut.violation(x) >= LEAST
        assert all(cut.violation(p) <= 1e-9 for p in points)


def test_a_third_cover_is_sought_where_the_others_do_not_count() -> None:
    covers = ZeroHalf(N, [_cover([0, 1]), _cover([1, 2])])
    need = Requirement(7, 1, 1.0)
    covers.add(replace(_cover([0, 2, 3]), need=need))
    x = np.array([0.5, 0.5, 0.5, 0.5, 0, 0, 0, 0, 0])
    assert covers.violated(x) == []  # 0 + 1 + 2 + 3 ≥ 2 is satisfied
    asked = []

    def better(need: Requirement, point: np.ndarray) -> Cut:
        asked.append((need, point.tolist()))
        return _cover([0, 2, 4])

    (cut,) = covers.violated(x, better)
    assert (need, [0.0, 0.5, 0.0, 0.5, 0, 0, 0, 0, 0]) in asked
    assert cut.cells.tolist() == [0, 1, 2, 4]
    assert cut.coefficients.tolist() == [0.5, 0.5, 0.5, 0.5]


def test_cuts_with_heads_or_other_coefficients_are_no_covers() -> None:
    pair, half = _cover([0, 1]), Cut(np.array([1, 2]), np.array([1.0, 0.5]))
    head = Cut(np.array([0, 2]), np.ones(2), head=5)
    assert ZeroHalf(N, [pair, half, head, pair]).violated(np.full(N, 0.5)) == []
