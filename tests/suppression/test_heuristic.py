"""The parts of the general heuristic: reduction, moves, settling, and safety at any moment."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tabprotect.linalg.independent import independent_rows
from tabprotect.solve.stop import Stop
from tabprotect.suppression import exact, heuristic, heuristic_start
from tabprotect.suppression.heuristic_library import Library
from tabprotect.suppression.heuristic_local import improve
from tabprotect.suppression.heuristic_merge import Merging
from tabprotect.suppression.heuristic_state import witnessed
from tabprotect.suppression.moves import BOTH, Move, Need, Router, meets
from tabprotect.suppression.preprocess import reduce
from tabprotect.suppression.problem import Pattern, Problem, Requirement
from tabprotect.suppression.settle import settle
from tabprotect.table.cube import cube_relations, fill_margins
from tabprotect.table.hierarchy import Dimension, Hierarchy

DEEP = Hierarchy.from_tree({"A": ["A1", "A2"], "B": ["B1", "B2", "B3"], "C": ["C1"]})


def problem_of(
    seed: int, *hierarchies: Hierarchy, primaries: int = 5, scale: float = 1.0, empty: float = 0.2
) -> Problem:
    rng = np.random.default_rng(seed)
    dims = [Dimension(f"d{k}", h) for k, h in enumerate(hierarchies)]
    shape = [len(h.leaves) for h in hierarchies]
    values = fill_margins(np.ceil(rng.lognormal(3, 1, shape)) * (rng.random(shape) > empty), dims) * scale
    fixed = np.zeros(len(values), bool)
    fixed[rng.choice(np.flatnonzero(values > 0), primaries, replace=False)] = True
    level = np.maximum(0.1 * values, scale)
    needs = tuple(
        Requirement(int(p), s, float(level[p] if s > 0 else min(level[p], values[p])))
        for p in np.flatnonzero(fixed)
        for s in (1, -1)
    )
    return Problem(
        cube_relations(dims),
        values,
        values + 20 * scale,
        np.maximum(values, scale),
        fixed,
        (values > 0) & ~fixed,
        needs,
    )


def check(problem: Problem, pattern: Pattern) -> None:
    y = pattern.moves.toarray()
    size = np.abs(problem.relations) @ np.abs(y.T)
    assert pattern.suppressed[problem.fixed].all()
    assert not (pattern.suppressed & ~problem.fixed & ~problem.candidates).any()
    assert not y[:, ~pattern.suppressed].any()
    assert (np.abs(problem.relations @ y.T) <= 1e-7 * size + 1e-12).all()
    assert (y <= problem.up * (1 + 1e-9)).all()
    assert (y >= -problem.down * (1 + 1e-9)).all()
    for r in problem.requirements:
        assert (r.sense * y[:, r.cell]).max() >= r.level * (1 - 1e-6)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "shape",
    [(Hierarchy.flat("abcd"),) * 3, (DEEP, Hierarchy.flat("abcde")), (DEEP, DEEP)],
    ids=["cube", "deep", "deep²"],
)
def test_safe_and_above_its_bound(seed: int, shape: tuple[Hierarchy, ...]) -> None:
    problem = problem_of(seed, *shape, empty=0.0)
    pattern = heuristic.solve(problem, Stop(1.0), seed)
    check(problem, pattern)
    assert pattern.bound <= problem.cost(pattern.suppressed) * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-2, 1e6, 1e10])
def test_any_unit(scale: float) -> None:
    problem = problem_of(1, Hierarchy.flat("abcd"), Hierarchy.flat("abcd"), scale=scale, empty=0.0)
    check(problem, heuristic.solve(problem, Stop(1.0)))


def test_no_time_still_safe() -> None:
    problem = problem_of(2, Hierarchy.flat("abcde"), Hierarchy.flat("abcde"), empty=0.0)
    check(problem, heuristic.solve(problem, Stop(0.0)))


def test_no_requirements() -> None:
    problem = problem_of(2, Hierarchy.flat("abc"), Hierarchy.flat("abc"), empty=0.0)
    bare = Problem(problem.relations, problem.down, problem.up, problem.weights, problem.fixed, problem.candidates, ())
    pattern = heuristic.solve(bare, Stop(1.0))
    assert (pattern.suppressed == problem.fixed).all()


def test_tied_cells_become_one() -> None:
    # total = part + 0, so the two move together; hiding one of them alone is useless
    relations = sp.csr_array(np.array([[-1.0, 1, 1, 0, 0], [0, 0, -1, 1, 1]]))
    problem = Problem(
        relations,
        np.full(5, 9.0),
        np.full(5, 9.0),
        np.arange(1.0, 6.0),
        np.array([False, True, False, False, False]),
        np.array([True, False, True, True, False]),
        (Requirement(1, 1, 2.0), Requirement(1, -1, 2.0)),
    )
    reduced = reduce(problem)
    assert reduced.group[2] == reduced.group[3]
    assert reduced.weights[reduced.group[2]] == 7.0
    check(problem, heuristic.solve(problem, Stop(1.0)))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_independent_rows_span_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    dims = [Dimension("a", DEEP), Dimension("b", Hierarchy.flat("xyz"))]
    rows = cube_relations(dims)
    keep = rng.random(rows.shape[1]) < 0.8
    part = sp.csr_array(sp.csc_array(rows)[:, np.flatnonzero(keep)])
    part = part[np.flatnonzero(np.diff(part.indptr)), :]
    chosen = part[np.flatnonzero(independent_rows(part)), :].toarray()
    assert np.linalg.matrix_rank(chosen) == np.linalg.matrix_rank(part.toarray())
    assert len(chosen) <= part.shape[0]


def test_settling_keeps_proofs() -> None:
    base = problem_of(3, Hierarchy.flat("abcde"), Hierarchy.flat("abcde"), primaries=18, empty=0.0)
    reduced = reduce(base)
    settled = settle(reduced, Stop(5.0))
    assert len(settled.requirements) < len(reduced.requirements)
    assert settled.proofs.shape[0] > 0
    check(base, heuristic.solve(base, Stop(1.0)))


CUBE = (Hierarchy.flat("abcd"),) * 3


def test_library_scales_moves_to_what_needs_ask_for() -> None:
    relations = sp.csr_array(np.array([[-1.0, 1, 1]]))
    room = np.array([10.0, 6.0, 9.0])
    problem = reduce(
        Problem(relations, room, room, np.ones(3), np.array([False, True, False]), np.array([True, False, True]), ())
    )
    needs = [Need(1, BOTH, 4.0), Need(1, BOTH, 7.0), Need(1, 1, 2.0), Need(1, -1, 2.0)]
    library = Library(problem, needs)
    library.add(Move(np.array([0, 1]), np.array([1.0, 1.0])))
    for i, expected in enumerate([True, False, True, True]):  # the second cell has room for 6
        found = library.cheapest(i, np.array([3.0, 0.0, 1.0]))
        assert (found is not None) == expected
        if found is not None:
            assert found[1] == 3.0
            assert meets(needs[i], found[0])
            assert (np.abs(found[0].steps) <= room[found[0].cells]).all()
    assert library.inside(np.array([True, True, False])).tolist() == [True, False, True, True]
    assert not library.inside(np.array([False, True, True])).any()
    assert library.cheapest(0, np.ones(3), np.array([True, False, False])) is None


@pytest.mark.parametrize("seed", range(4))
def test_patterns_keep_their_moves_between_reductions(seed: int) -> None:
    problem = problem_of(seed, *CUBE, empty=0.0)
    reduced = reduce(problem)
    state = heuristic_start.construct(reduced, Stop(5.0), seed)
    pattern = state.pattern(bound=0.0)
    small = Problem(
        problem.relations,
        problem.down,
        problem.up,
        problem.weights,
        problem.fixed,
        problem.candidates & pattern.suppressed,
        problem.requirements,
    )
    inner = witnessed(reduce(small), pattern)
    assert inner is not None
    assert inner.cost <= state.cost * (1 + 1e-12)
    check(problem, inner.pattern(bound=0.0))
    back = witnessed(reduced, inner.pattern(bound=0.0))
    assert back is not None
    check(problem, back.pattern(bound=0.0))


@pytest.mark.parametrize("seed", range(3))
def test_descent_and_merging_never_lose(seed: int) -> None:
    problem = problem_of(seed, *(Hierarchy.flat("abc"),) * 3, primaries=4, empty=0.0)
    reduced = reduce(problem)
    state = heuristic_start.construct(reduced, Stop(5.0), seed)
    before = state.cost
    improve(state, Router(reduced), Stop(5.0), seed, patience=40)
    between = state.cost
    assert between <= before
    check(problem, state.pattern(bound=0.0))
    improve(state, Router(reduced), Stop(5.0), seed, patience=40, dearer=2.0)  # uphill in between, never in the end
    assert state.cost <= between
    check(problem, state.pattern(bound=0.0))
    between = state.cost
    merging = Merging(state, lambda: np.zeros(reduced.n), lambda *a: exact.solve(*a, merging=False), Stop(10.0), seed)
    best = merging.run(0.0, patience=4)
    assert best.cost <= between
    check(problem, best.pattern(bound=0.0))
    optimum = exact.solve(problem, Stop(30.0), seed)
    assert optimum.optimal
    assert problem.cost(optimum.suppressed) <= best.cost * (1 + 1e-9)
