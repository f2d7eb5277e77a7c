"""Modular suppression: subtable by subtable down the hierarchies, going back where a margin has to be hidden, until nothing changes.

P.-P. de Wolf, HiTaS: a heuristic approach to cell suppression in hierarchical tables, in: Inference Control in Statistical Databases, LNCS 2316 (2002)
74–82. Protection inside every subtable does not imply protection in the whole, so the result is audited like any other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tabprotect.errors import Infeasible, InputError
from tabprotect.solve.stop import Stop
from tabprotect.suppression.problem import Pattern, Problem, Requirement
from tabprotect.table.cube import cube_relations
from tabprotect.table.graph import network_of
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.types import BoolArray, FloatArray, IntArray

MARGIN_PRICE = 100.0
"""How much dearer it is to hide a margin that another subtable has published already."""


@dataclass(frozen=True)
class Subtable:
    """One sum in every dimension: the cells of their product (positions in the table) and its relations."""

    level: int
    cells: IntArray
    relations: object
    margins: BoolArray


def subtables(problem: Problem) -> Iterator[Subtable]:
    """All subtables, from the top of the hierarchies down."""
    if problem.dims is None:
        raise InputError("method 'modular' needs a table with dimensions; use 'heuristic' or 'exact'")
    sizes = [len(d) for d in problem.dims]
    index = np.full(int(np.prod(sizes)), -1)
    index[np.ravel_multi_index(tuple(problem.codes.T), sizes)] = np.arange(problem.n)
    choices = []
    for dim in problem.dims:
        sums = dim.hierarchy.sums or tuple((i, ()) for i in range(len(dim)))
        choices.append([(int(dim.level[total]), total, parts) for total, parts in sums])
    for combination in sorted(itertools.product(*choices), key=lambda c: sum(level for level, _, _ in c)):
        dims = [
            Dimension(str(k), Hierarchy.flat(range(len(parts))) if parts else Hierarchy.flat([0], total=None))
            for k, (_, _, parts) in enumerate(combination)
        ]
        codes = np.meshgrid(*[[total, *parts] for _, total, parts in combination], indexing="ij")
        cells = index[np.ravel_multi_index([c.ravel() for c in codes], sizes)]
        if (cells < 0).any():
            raise InputError("method 'modular' needs the full product of the dimensions; use 'heuristic' or 'exact'")
        at = np.indices([len(d) for d in dims]).reshape(len(dims), -1)
        wide = np.array([len(d) > 1 for d in dims])
        margins = ((at == 0) & wide[:, None]).any(axis=0)
        yield Subtable(sum(level for level, _, _ in combination), cells, cube_relations(dims), margins)


def solve(problem: Problem, stop: Stop, seed: int) -> Pattern:
    """Protect every subtable on its own; a margin that is hidden below goes back to the subtables above."""
    blocks = list(subtables(problem))
    of_cell: dict[int, list[int]] = {}
    for b, block in enumerate(blocks):
        for c in block.cells:
            of_cell.setdefault(int(c), []).append(b)
    hidden = problem.fixed.copy()
    published = np.zeros(problem.n, bool)
    amount = np.zeros(problem.n)
    waiting = dict.fromkeys(range(len(blocks)))
    rounds = 0
    while waiting and not stop.done:
        b = min(waiting)
        del waiting[b]
        rounds += 1
        block = blocks[b]
        if not hidden[block.cells].any():
            published[block.cells] = True
            continue
        added = _protect(problem, block, hidden, published, amount, stop, seed)
        hidden[added] = True
        published[block.cells] = True
        waiting |= dict.fromkeys(k for c in added for k in of_cell[int(c)] if k != b)
        stop.tell("modular", cost=problem.cost(hidden), done=rounds, total=rounds + len(waiting))
    return Pattern(hidden, problem.fixed_cost, info={"subtables": len(blocks), "steps": rounds})


def _protect(
    problem: Problem,
    block: Subtable,
    hidden: BoolArray,
    published: BoolArray,
    amount: FloatArray,
    stop: Stop,
    seed: int,
) -> IntArray:
    """Cells to hide besides, so that all hidden cells of the subtable can move as far as they must."""
    cells = block.cells
    position = {int(c): k for k, c in enumerate(cells)}
    needs = [Requirement(position[r.cell], r.sense, r.level) for r in problem.requirements if r.cell in position]
    own = {r.cell for r in needs}
    for k in np.flatnonzero(hidden[cells] & (amount[cells] > 0)):
        if int(k) not in own:
            # a complement hidden elsewhere must move here as far as it did there, or it would give the primary away
            room = min(problem.up[cells[k]], problem.down[cells[k]])
            needs.append(Requirement(int(k), 0, float(min(amount[cells[k]], room))))
    if not needs:
        return np.zeros(0, np.int64)
    weights = np.where(published[cells] & block.margins, problem.weights[cells] * MARGIN_PRICE, problem.weights[cells])
    sub = replace(
        problem,
        relations=block.relations,
        down=problem.down[cells],
        up=problem.up[cells],
        weights=weights,
        fixed=hidden[cells],
        candidates=problem.candidates[cells] & ~hidden[cells],
        requirements=tuple(r for r in needs if r.level > 0),
        codes=None,
        dims=None,
    )
    try:
        pattern = _solve_block(sub, stop, seed)
    except Infeasible:
        # complements may ask for more than this subtable can give; the primaries' own levels are what counts
        strict = tuple(r for r in sub.requirements if r.cell in own)
        pattern = _solve_block(replace(sub, requirements=strict), stop, seed) if strict else Pattern(sub.fixed, 0.0)
    if pattern.moves is not None and pattern.moves.shape[0]:
        reach = abs(pattern.moves).max(axis=0).toarray().ravel()
        amount[cells] = np.maximum(amount[cells], reach)
    return cells[pattern.suppressed & ~hidden[cells]]


def _solve_block(sub: Problem, stop: Stop, seed: int) -> Pattern:
    if network_of(sub.relations, np.flatnonzero(sub.fixed | sub.candidates)) is not None:
        from tabprotect.suppression.network import solve as network

        return network(sub, stop.part(0.5), seed)
    from tabprotect.suppression.heuristic import solve as heuristic

    return heuristic(sub, Stop(min(2.0, max(stop.left, 0.5))), seed)
