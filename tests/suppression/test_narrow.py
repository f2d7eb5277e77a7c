"""Cuts through hidden cells that have little room: found where the outsider's program alone takes them for satisfied, and never wrong."""

from __future__ import annotations

import pytest

from tabprotect.bench.families import magnitude
from tabprotect.solve.stop import Stop
from tabprotect.suppression import exact, heuristic_start
from tabprotect.suppression.exact_root import Root, cut_root, start_root
from tabprotect.suppression.preprocess import reduce
from tabprotect.suppression.problem import Problem
from tabprotect.suppression.separation import Separator
from tabprotect.suppression.settle import settle


def _root(problem: Problem) -> Root:
    reduced = settle(reduce(problem), Stop(30), 0)
    return cut_root(start_root(reduced), heuristic_start.construct(reduced, Stop(30), 0), Stop(30))


@pytest.mark.parametrize("seed", [2, 8, 22])
def test_cuts_through_cells_of_little_room_raise_the_bound_and_keep_the_optimum(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem.from_table(magnitude(seed, "5,5,5", mean=20))
    best = exact.solve(problem, Stop(60), threads=1)
    assert best.optimal
    found = []
    narrow = Separator._narrow

    def watched(self, *asked):  # type: ignore[no-untyped-def]
        cut = narrow(self, *asked)
        found.extend([cut] if cut is not None else [])
        return cut

    monkeypatch.setattr(Separator, "_narrow", watched)
    root = _root(problem)
    assert found
    hidden = (root.problem.contract(best.suppressed) | root.problem.free).astype(float)
    assert all(cut.violation(hidden) <= 1e-9 for cut in found)
    monkeypatch.setattr(Separator, "_narrow", lambda self, *asked: None)
    without = _root(problem)
    assert without.value < root.value * (1 - 1e-3)
    assert root.value <= best.bound * (1 + 1e-9)
