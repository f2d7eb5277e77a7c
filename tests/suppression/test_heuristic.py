"""The parts of the general heuristic: reduction, moves, settling, and safety at any moment."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tabprotect.solve.stop import Stop
from tabprotect.suppression import heuristic
from tabprotect.suppression.preprocess import independent_rows, reduce
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
