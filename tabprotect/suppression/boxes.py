"""Safe patterns for millions of cells: boxes through each primary, found by compiled code.

A movement of a hierarchical table is easy to write down as a product: in each dimension a chain of codes (the cell's code, one code below
it on each level, and a sibling with one code below it on each level, with the opposite sign). The product of the chains is a box; hiding
it lets its cells move together by the least room among them. For every need the cheapest of many random boxes (hidden cells are
free) is hidden; several boxes share a level that one cannot carry. This is the hypercube idea of D. Repsilber (1994) with hierarchies handled as a
whole, true rooms, and a witness for each cell. Needs that find no box go to a linear program over the cells nearby.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.errors import Infeasible, InputError, Unsafe
from tabprotect.solve.stop import Stop
from tabprotect.suppression import heuristic
from tabprotect.suppression.problem import Pattern, Problem, Requirement
from tabprotect.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Trees:
    """The dimensions as arrays for compiled code: parents, children by code, and where each cell is."""

    parents: IntArray
    starts: IntArray
    kids: IntArray
    offsets: IntArray
    kid_offsets: IntArray
    strides: IntArray
    grid: IntArray

    @classmethod
    def of(cls, problem: Problem) -> Trees:
        parents, starts, kids = [], [], []
        for dim in problem.dims:
            h = dim.hierarchy
            parent = np.full(len(h), -1, np.int64)
            below: list[tuple[int, ...]] = [()] * len(h)
            for total, parts in h.sums:
                if below[total] or (parent[list(parts)] >= 0).any():
                    raise InputError(
                        f"boxes need dimensions that are trees; {dim.name!r} has several breakdowns of one code"
                    )
                below[total] = parts
                parent[list(parts)] = total
            parents.append(parent)
            starts.append(np.concatenate([[0], np.cumsum([len(b) for b in below])]))
            kids.append(np.array([c for b in below for c in b], dtype=np.int64))
        sizes = np.array([len(p) for p in parents])
        strides = np.concatenate([np.cumprod(sizes[::-1])[::-1][1:], [1]]).astype(np.int64)
        grid = np.full(int(np.prod(sizes)), -1, np.int64)
        usable = problem.fixed | problem.candidates
        at = np.asarray(problem.codes, np.int64) @ strides
        grid[at[usable]] = np.flatnonzero(usable)
        return cls(
            np.concatenate(parents),
            np.concatenate(starts).astype(np.int64),
            np.concatenate(kids) if kids else np.zeros(0, np.int64),
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            np.concatenate([[0], np.cumsum([len(k) for k in kids])]).astype(np.int64),
            strides,
            grid,
        )


@dataclass
class _Goal:
    cell: int
    level: float
    both: bool
    direction: int
    requirements: tuple[Requirement, ...]


def _goals(problem: Problem) -> list[_Goal]:
    """Largest levels first: they have the least choice, and what they hide is free for the others."""
    by_cell: dict[int, list[Requirement]] = {}
    for r in problem.requirements:
        by_cell.setdefault(r.cell, []).append(r)
    goals = []
    for cell, rs in by_cell.items():
        level = max(r.level if r.sense else r.level / 2 for r in rs)
        if min(problem.up[cell], problem.down[cell]) >= level:
            goals.append(_Goal(cell, level, True, 1, tuple(rs)))
            continue
        goals += [_Goal(cell, r.level, False, r.sense, (r,)) for r in rs if r.sense]
        for r in rs:
            if r.sense == 0:
                up = min(problem.up[cell], r.level)
                goals.append(_Goal(cell, up, False, 1, (r,)))
                if r.level > up:
                    goals.append(_Goal(cell, r.level - up, False, -1, (r,)))
    return sorted(goals, key=lambda g: (-g.level, g.cell, g.direction))


class _Search:
    """Goals with their boxes; cells are hidden while some box uses them."""

    def __init__(self, problem: Problem, seed: int) -> None:
        from tabprotect.suppression.boxes_kernel import plant

        self.problem, self.trees = problem, Trees.of(problem)
        self.goals = _goals(problem)
        self.moves: list[tuple[IntArray, FloatArray] | None] = [None] * len(self.goals)
        self.uses = np.zeros(problem.n, np.int64)
        self.price = np.where(problem.fixed, 0.0, np.maximum(problem.weights, 1e-9)).astype(float)
        self.now = self.price.copy()
        self.used = np.zeros(problem.n)
        self.cells = np.zeros(1 << 14, np.int64)
        self.steps = np.zeros(1 << 14)
        boxes = np.clip(4e7 / max(1, len(self.goals)), 400, 3000)  # for each goal: fewer where there are very many
        self.options = max(3, int(boxes ** (1 / max(1, len(problem.dims)))))
        plant(seed % 2**31)

    def put(self, index: int, move: tuple[IntArray, FloatArray] | None) -> None:
        old = self.moves[index]
        if old is not None:
            self.uses[old[0]] -= 1
            free = old[0][self.uses[old[0]] == 0]
            self.now[free] = self.price[free]
        if move is not None:
            self.uses[move[0]] += 1
            self.now[move[0]] = 0.0
        self.moves[index] = move

    def find(self, index: int, tries: int = 6) -> tuple[IntArray, FloatArray] | None:
        from tabprotect.suppression.boxes_kernel import find_boxes

        goal, t, p = self.goals[index], self.trees, self.problem
        count = find_boxes(
            np.asarray(p.codes[goal.cell], np.int64), goal.level, goal.both, goal.direction, self.options, tries, t.parents,
            t.starts, t.kids, t.offsets, t.kid_offsets, t.strides, t.grid, p.up, p.down, self.used, self.now, self.cells, self.steps,
        )  # fmt: skip
        if count < 0:
            return None
        cells, inverse = np.unique(self.cells[:count], return_inverse=True)
        steps = np.bincount(inverse, weights=self.steps[:count], minlength=len(cells))
        moving = steps != 0
        return cells[moving], steps[moving]

    @property
    def cost(self) -> float:
        return float(self.price[self.uses > 0].sum())


def solve(problem: Problem, stop: Stop, seed: int = 0) -> Pattern:
    """A safe pattern of a table with dimensions, in time and memory linear in the number of cells; raises `Infeasible` if there is none.

    >>> from tabprotect.table.examples import d272
    >>> t = d272()
    >>> t = t.with_status((t.values > 0) & (t.values <= 2), "u").with_levels(t.values <= 2, spl=1)
    >>> bool(solve(Problem.from_table(t), Stop(10)).suppressed.sum() >= 8)
    True
    """
    if problem.dims is None:
        raise InputError(
            "boxes need the dimensions of the table; a table of bare relations goes to the general heuristic"
        )
    search = _Search(problem, seed)
    missed = []
    for i in range(len(search.goals)):
        if i % 5000 == 0:
            stop.tell("boxes", done=i, total=len(search.goals))
        if stop.cancelled:
            raise Unsafe("cancelled before a safe pattern was found", cells=[g.cell for g in search.goals[i:]])
        move = search.find(i) or search.find(i, 40)
        if move is None:
            missed.append(i)
        else:
            search.put(i, move)
    if not missed:
        stop.tell("first safe pattern", cost=search.cost + problem.fixed_cost)
    _again(search, stop)
    return _finish(search, missed, stop, seed)


def _again(search: _Search, stop: Stop, passes: int = 6) -> None:
    """Give every goal another box, smallest levels first, while that saves something."""
    for _ in range(passes):
        before = search.cost
        for i in range(len(search.goals) - 1, -1, -1):
            old = search.moves[i]
            if old is None:
                continue
            if stop.done:
                return
            search.put(i, None)
            spent = float(search.now[old[0]].sum())
            new = search.find(i, 2) if spent > 0 else None
            better = new is not None and float(search.now[new[0]].sum()) < spent
            search.put(i, new if better else old)
        stop.tell("boxes again", cost=search.cost + search.problem.fixed_cost)
        if search.cost > before * 0.995:
            return


def _finish(search: _Search, missed: list[int], stop: Stop, seed: int) -> Pattern:
    """The pattern with its moves; goals without a box are left to linear programs with what is hidden so far."""
    problem = search.problem
    hidden = (search.uses > 0) | problem.fixed
    rows = [m for m in search.moves if m is not None]
    both = [g.both for g, m in zip(search.goals, search.moves, strict=True) if m is not None]
    signed = rows + [(c, -s) for (c, s), two in zip(rows, both, strict=True) if two]
    moves = _stack(signed, problem.n)
    if not missed:
        return Pattern(hidden, problem.fixed_cost, moves=moves, info={"method": "boxes", "missed": 0})
    more = _by_programs(problem, hidden, [search.goals[i] for i in missed], stop, seed)
    return Pattern(
        more.suppressed | hidden,
        problem.fixed_cost,
        moves=sp.csr_array(sp.vstack([moves, more.moves])),
        info={"method": "boxes", "missed": len(missed)},
    )


def _by_programs(problem: Problem, hidden: BoolArray, goals: list[_Goal], stop: Stop, seed: int) -> Pattern:
    """Protect the given cells by linear programs over the cells nearby, or over all of them where the table is not too large."""
    needs = tuple({r: None for goal in goals for r in goal.requirements})
    near = _nearby(problem, goals)
    for reach in (near, np.ones(problem.n, bool)):
        rest = replace(
            problem,
            fixed=hidden & reach,
            candidates=problem.candidates & ~hidden & reach,
            requirements=needs,
            weights=np.where(hidden, 0.0, problem.weights),
        )
        try:
            return heuristic.solve(rest, stop.part(0.5), seed)
        except Infeasible:
            if reach.all():
                raise
            if problem.n > 100_000:
                break
    raise Unsafe(
        f"{len(goals)} cell(s) found no box and no program nearby protects them", cells=[g.cell for g in goals]
    )


def _nearby(problem: Problem, goals: list[_Goal]) -> BoolArray:
    """Cells whose code in every dimension is on the way from a goal's code to the root, beside that way, or below the code."""
    near = np.zeros(problem.n, bool)
    for goal in goals[:200]:
        inside = np.ones(problem.n, bool)
        for k, dim in enumerate(problem.dims):
            inside &= _family(dim.hierarchy.sums, len(dim), int(problem.codes[goal.cell, k]))[problem.codes[:, k]]
        near |= inside
    return near


def _family(sums: tuple[tuple[int, tuple[int, ...]], ...], n: int, code: int) -> BoolArray:
    """The code, its ancestors with all their parts, and everything below it."""
    found = np.zeros(n, bool)
    found[code] = True
    above, below = {code}, {code}
    for _ in range(n):
        size = len(above) + len(below)
        for total, parts in sums:
            if not above.isdisjoint(parts):
                above.add(total)
                found[[total, *parts]] = True
            if total in below:
                below.update(parts)
        if len(above) + len(below) == size:
            break
    found[list(below)] = True
    return found


def _stack(rows: list[tuple[IntArray, FloatArray]], n: int) -> Any:
    indptr = np.concatenate([[0], np.cumsum([len(c) for c, _ in rows])]).astype(np.int64)
    cells = np.concatenate([c for c, _ in rows]) if rows else np.zeros(0, np.int64)
    steps = np.concatenate([s for _, s in rows]) if rows else np.zeros(0)
    return sp.csr_array((steps, cells, indptr), shape=(len(rows), n))
