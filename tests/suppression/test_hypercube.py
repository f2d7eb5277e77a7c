"""Boxes: every answer is safe by plain arithmetic, with hierarchies, small rooms and goals that no single box can carry."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tabprotect.attacker.audit import audit_pattern
from tabprotect.attacker.ranges import Needs
from tabprotect.errors import Infeasible, InputError
from tabprotect.solve.stop import Stop
from tabprotect.suppression import exact, hypercube
from tabprotect.suppression.problem import Pattern, Problem
from tabprotect.table.cube import cube_codes, cube_relations, fill_margins
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.table.table import Table

DEEP = Hierarchy.from_tree({"A": {"A1": ["A11", "A12"], "A2": ["A21", "A22"]}, "B": ["B1", "B2", "B3"]})


def table(seed: int, *hierarchies: Hierarchy, level: float = 0.15, share: float = 0.08) -> Table:
    rng = np.random.default_rng(seed)
    dims = tuple(Dimension(f"d{k}", h) for k, h in enumerate(hierarchies))
    shape = [len(h.leaves) for h in hierarchies]
    values = fill_margins(np.ceil(rng.lognormal(3, 1, shape)) * (rng.random(shape) < 0.9), dims)
    primary = (values > 0) & (rng.random(len(values)) < share)
    levels = np.where(primary, np.ceil(level * values), 0.0)
    status = np.where(values == 0, "z", np.where(primary, "u", "s"))
    return Table(
        values,
        cube_relations(dims),
        status=status,
        lpl=levels,
        upl=levels,
        ub=2 * values + 50,
        dims=dims,
        codes=cube_codes(dims),
    )


def check(problem: Problem, pattern: Pattern) -> None:
    assert pattern.suppressed[problem.fixed].all()
    assert not (pattern.suppressed & ~problem.fixed & ~problem.candidates).any()
    moves = pattern.moves.toarray()
    assert not moves[:, ~pattern.suppressed].any()
    assert np.allclose(problem.relations @ moves.T, 0, atol=1e-8 * max(100.0, np.abs(moves).max(initial=0.0)))
    level = {sense: np.zeros(problem.n) for sense in (-1, 0, 1)}
    for r in problem.requirements:
        level[r.sense][r.cell] = r.level
    needs = Needs(level[-1], level[1], level[0])
    audit = audit_pattern(problem.relations, pattern.suppressed, problem.down, problem.up, needs, moves=pattern.moves)
    assert not audit.missing


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "shape",
    [
        (Hierarchy.flat(range(8)), Hierarchy.flat(range(8))),
        (DEEP, Hierarchy.flat(range(5))),
        (DEEP, DEEP, Hierarchy.flat("abc")),
    ],
    ids=["flat", "deep", "3-D"],
)
def test_safe(seed: int, shape: tuple[Hierarchy, ...]) -> None:
    problem = Problem.from_table(table(seed, *shape))
    check(problem, hypercube.solve(problem, Stop(20), seed=seed))


def test_levels_that_need_several_boxes() -> None:
    problem = Problem.from_table(table(3, Hierarchy.flat(range(9)), Hierarchy.flat(range(9)), level=0.9, share=0.03))
    check(problem, hypercube.solve(problem, Stop(20), 0))


def test_never_below_the_optimum() -> None:
    problem = Problem.from_table(table(5, Hierarchy.flat(range(4)), Hierarchy.flat(range(4))))
    rough = hypercube.solve(problem, Stop(10), 0)
    best = exact.solve(problem, Stop(30))
    assert best.optimal
    assert problem.cost(rough.suppressed) >= best.bound - 1e-9


def test_cells_in_any_order() -> None:
    base = table(2, DEEP, Hierarchy.flat(range(5)))
    order = np.random.default_rng(0).permutation(base.n_cells)
    moved = {
        name: getattr(base, name)[order]
        for name in ("values", "status", "lpl", "upl", "lb", "ub", "codes", "cost", "reason", "spl")
    }
    shuffled = replace(base, relations=base.relations[:, order], **moved)
    problem = Problem.from_table(shuffled)
    check(problem, hypercube.solve(problem, Stop(20), 0))


def test_infeasible() -> None:
    base = table(1, Hierarchy.flat("ab"), Hierarchy.flat("ab"), share=0.0)
    inner = base.find(d0="a", d1="a")
    marked = base.with_status(inner, "u").with_levels(inner, lpl=1, upl=1)
    others = np.setdiff1d(np.arange(base.n_cells), inner)
    with pytest.raises(Infeasible):
        hypercube.solve(Problem.from_table(marked.protect(others)), Stop(10), 0)


def test_needs_dimensions() -> None:
    problem = replace(Problem.from_table(table(1, Hierarchy.flat("ab"), Hierarchy.flat("ab"))), dims=None)
    with pytest.raises(InputError, match="dimensions"):
        hypercube.solve(problem, Stop(1), 0)
