"""The hypercube method: every primary cell is a corner of a box of hidden cells that can all go up and down together.

In each dimension a box follows a path through the hierarchy: from the cell's code to a sibling, each continued down to a leaf, or up to the top. The product of
one such path per dimension, with signs, is a move that keeps all sums. The search is compiled and looks at boxes only, so it is fast on tables of a million cells and
dear on small ones.

D. Repsilber, Preservation of confidentiality in aggregated data (1994); S. Giessing and D. Repsilber, Tools and strategies to protect multiple tables with
the GHQUAR cell suppression engine, LNCS 2316 (2002). Boxes along tree paths, reuse of hidden corners and the improvement by exchange are ours.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numba
import numpy as np
import scipy.sparse as sp

from tabprotect.errors import InputError
from tabprotect.solve.stop import Stop
from tabprotect.suppression.problem import Pattern, Problem
from tabprotect.table.hierarchy import Hierarchy
from tabprotect.types import BoolArray, FloatArray, IntArray

MOST_PATHS = 40
"""Paths tried per code and dimension; of more siblings a random choice is taken."""
DOWN_PATHS = 10
"""Parts tried as the way down from a total."""
FAR_PATHS = 8
"""Paths tried over each ancestor."""
CHUNK = 2000
"""Boxes per compiled call: between two calls the stop is looked at."""


def paths_of(hierarchy: Hierarchy, rng: np.random.Generator) -> list[list[list[tuple[int, int]]]]:
    """For every code the paths through it as lists of (code, sign)."""
    parts_of = dict(reversed(hierarchy.sums))
    ups: dict[int, list[tuple[int, tuple[int, ...]]]] = {}
    for total, parts in hierarchy.sums:
        for c in parts:
            ups.setdefault(c, []).append((total, parts))
    if any(len(v) > 1 for v in ups.values()):
        raise InputError("method 'hypercube' needs one breakdown per dimension; use 'heuristic' or 'exact'")

    def down(c: int) -> list[int]:
        """One way from a code to a leaf."""
        way = [c]
        while way[-1] in parts_of:
            way.append(int(rng.choice(parts_of[way[-1]])))
        return way

    def to_top(c: int) -> list[int]:
        way = []
        while c in ups:
            c = ups[c][0][0]
            way.append(c)
        return way

    def some(codes: list[int], most: int) -> list[int]:
        return codes if len(codes) <= most else [int(c) for c in rng.choice(codes, most, replace=False)]

    def others(c: int, most: int) -> list[int]:
        """Siblings, or a random choice of them."""
        return some([s for s in ups[c][0][1] if s != c] if c in ups else [], most)

    found = []
    for c in range(len(hierarchy)):
        options: list[list[tuple[int, int]]] = []
        # a total may owe everything to one of its parts, so each part is tried
        ways = [[c, *down(int(part))] for part in some(list(parts_of[c]), DOWN_PATHS)] if c in parts_of else [[c]]
        for here in ways:
            options += [
                [*((i, 1) for i in here), *((i, -1) for i in down(s))] for s in others(c, MOST_PATHS // len(ways) + 4)
            ]
            options.append([(i, 1) for i in [*to_top(c), *here]])
            # over an ancestor into another branch, for codes whose own siblings have no room
            longer = list(here)
            for ancestor in to_top(c):
                longer.append(ancestor)
                options += [
                    [*((i, 1) for i in longer), *((i, -1) for i in down(s))] for s in others(ancestor, FAR_PATHS)
                ]
        found.append(options)
    return found


def make_paths(hierarchies: list[Hierarchy], rng: np.random.Generator) -> tuple[IntArray, ...]:
    """The paths of all dimensions in flat arrays ``base, first, ptr, code, sign``.

    Path i has the codes ``code[ptr[i]:ptr[i + 1]]`` with their signs; the paths of code c of dimension k are those from ``first[base[k] + c]``
    up to the next.
    """
    base, first, ptr = [0], [0], [0]
    codes: list[int] = []
    signs: list[int] = []
    for hierarchy in hierarchies:
        for options in paths_of(hierarchy, rng):
            for path in options:
                codes += [c for c, _ in path]
                signs += [s for _, s in path]
                ptr.append(len(codes))
            first.append(len(ptr) - 1)
        base.append(len(first) - 1)
    return tuple(np.array(a, np.int64) for a in (base, first, ptr, codes, signs))


class Space(NamedTuple):
    """What the compiled search needs: the paths, where each cell is, and what it costs and allows."""

    base: IntArray
    first: IntArray
    ptr: IntArray
    code: IntArray
    sign: IntArray
    stride: IntArray
    place: IntArray
    usable: BoolArray
    fixed: BoolArray
    weight: FloatArray
    up: FloatArray
    down: FloatArray


@numba.njit(cache=True)
def _walk(space, choice, cells, signs):  # type: ignore[no-untyped-def]
    """The cells of a box and their signs; returns how many."""
    n = 1
    for k in range(len(choice)):
        n *= space.ptr[choice[k] + 1] - space.ptr[choice[k]]
    for i in range(n):
        rest, cell, s = i, 0, 1
        for k in range(len(choice)):
            a, b = space.ptr[choice[k]], space.ptr[choice[k] + 1]
            j = a + rest % (b - a)
            rest //= b - a
            cell += space.code[j] * space.stride[k]
            s *= space.sign[j]
        cells[i], signs[i] = space.place[cell], s
    return n


@numba.njit(cache=True)
def _price(space, hidden, n, cells, signs, level, sense):  # type: ignore[no-untyped-def]
    """Weight of the cells to be hidden, and how many corners cannot move far enough."""
    cost, bad = 0.0, 0
    for i in range(n):
        j = cells[i]
        if j < 0 or not space.usable[j]:
            bad += 1
            continue
        s = signs[i] * sense
        if (s >= 0 and space.up[j] < level) or (s <= 0 and space.down[j] < level):
            bad += 1
        if not hidden[j]:
            cost += space.weight[j]
    return cost, bad


@numba.njit(cache=True)
def _search(space, hidden, codes, level, sense, best, cells, signs, starts, seed):  # type: ignore[no-untyped-def]
    """Cheapest box found for one cell by coordinate descent from several starts; sense 0 asks for room both ways. Returns its cost, or infinity."""
    state = np.uint64(seed) * np.uint64(2654435761) + np.uint64(12345)
    best_cost = np.inf
    choice = np.zeros(len(codes), np.int64)
    for _start in range(starts):
        for k in range(len(codes)):
            a, b = space.first[space.base[k] + codes[k]], space.first[space.base[k] + codes[k] + 1]
            if a == b:
                return np.inf
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            choice[k] = a + int((state >> np.uint64(33)) % np.uint64(b - a))
        cost, bad = np.inf, 1 << 30
        for _ in range(4):
            before_cost, before_bad = cost, bad
            for k in range(len(codes)):
                a, b = space.first[space.base[k] + codes[k]], space.first[space.base[k] + codes[k] + 1]
                kept = choice[k]
                for option in range(a, b):
                    choice[k] = option
                    n = _walk(space, choice, cells, signs)
                    c, w = _price(space, hidden, n, cells, signs, level, sense)
                    if w < bad or (w == bad and c < cost):
                        cost, bad, kept = c, w, option
                choice[k] = kept
            if cost == before_cost and bad == before_bad:
                break
        if bad == 0 and cost < best_cost:
            best_cost = cost
            best[:] = choice
    return best_cost


@numba.njit(cache=True)
def _protect(space, todo, codes, level, sense, uses, chosen, starts, seed, size):  # type: ignore[no-untyped-def]
    """Give every need of ``todo`` its cheapest box, taking its old one out first."""
    best = np.zeros(codes.shape[1], np.int64)
    cells, signs = np.zeros(size, np.int64), np.zeros(size, np.int64)
    hidden = space.fixed | (uses > 0)
    for i in todo:
        had, old_cost = chosen[i, 0] >= 0, np.inf
        if had:
            old_cost = 0.0
            for j in cells[: _walk(space, chosen[i], cells, signs)]:
                uses[j] -= 1
                if uses[j] == 0 and not space.fixed[j]:
                    hidden[j] = False
                    old_cost += space.weight[j]
        cost = _search(space, hidden, codes[i], level[i], sense[i], best, cells, signs, starts, seed + i)
        if cost < old_cost:
            chosen[i] = best
        elif not had:
            continue
        for j in cells[: _walk(space, chosen[i], cells, signs)]:
            uses[j] += 1
            hidden[j] = True


class Boxes:
    """The needs of a problem (one per primary cell, or one per side where it cannot move both ways) and the box of each."""

    def __init__(self, problem: Problem, seed: int) -> None:
        if problem.dims is None or not problem.dims:
            raise InputError("method 'hypercube' needs a table with dimensions; use 'heuristic' or 'exact'")
        self.problem, self.seed = problem, seed
        self.d = len(problem.dims)
        sizes = np.array([len(dim) for dim in problem.dims], np.int64)
        stride = np.array([int(np.prod(sizes[k + 1 :])) for k in range(self.d)], np.int64)
        index = np.full(int(np.prod(sizes)), -1, np.int64)
        index[np.asarray(problem.codes, np.int64) @ stride] = np.arange(problem.n)
        base, first, ptr, code, sign = make_paths([d.hierarchy for d in problem.dims], np.random.default_rng(seed))
        usable = problem.fixed | problem.candidates
        self.space = Space(
            base,
            first,
            ptr,
            code,
            sign,
            stride,
            index,
            usable,
            problem.fixed,
            problem.weights,
            problem.up,
            problem.down,
        )
        self.size = int(np.prod([2 * (int(dim.level.max()) + 1) for dim in problem.dims]))
        self.cell, self.level, self.sense = _needs(problem)
        self.codes = np.asarray(problem.codes, np.int64)[self.cell]
        self.uses = np.zeros(problem.n, np.int64)
        self.chosen = np.full((len(self.cell), self.d), -1, np.int64)

    def improve(self, order: IntArray, starts: int, stop: Stop, phase: str) -> None:
        """Search a (better) box for each need in this order."""
        for begin in range(0, len(order), CHUNK):
            if stop.done and begin:
                break
            part = order[begin : begin + CHUNK]
            _protect(
                self.space,
                part,
                self.codes,
                self.level,
                self.sense,
                self.uses,
                self.chosen,
                starts,
                self.seed,
                self.size,
            )
            stop.tell(phase, cost=self.problem.cost(self.hidden), done=begin + len(part), total=len(order))

    @property
    def hidden(self) -> BoolArray:
        return self.problem.fixed | (self.uses > 0)

    @property
    def missing(self) -> IntArray:
        """Needs without a box."""
        return np.flatnonzero(self.chosen[:, 0] < 0)

    def moves(self) -> Any:
        """The boxes as sparse moves (boxes × cells)."""
        rows, columns, values = [], [], []
        cells, signs = np.zeros(self.size, np.int64), np.zeros(self.size, np.int64)
        done = np.flatnonzero(self.chosen[:, 0] >= 0)
        for row, i in enumerate(done):
            n = _walk(self.space, self.chosen[i], cells, signs)
            rows.append(np.full(n, row))
            columns.append(cells[:n].copy())
            direction = 1 if self.sense[i] == 0 else self.sense[i]
            values.append(signs[:n] * self.level[i] * direction)
        if not rows:
            return sp.csr_array((0, self.problem.n))
        shape = (len(done), self.problem.n)
        return sp.csr_array((np.concatenate(values), (np.concatenate(rows), np.concatenate(columns))), shape=shape)


def _needs(problem: Problem) -> tuple[IntArray, FloatArray, IntArray]:
    """Cells, levels and senses: both ways at once (0) where the cell's own room allows it, else each side for itself."""
    wanted: dict[int, dict[int, float]] = {}
    for r in problem.requirements:
        wanted.setdefault(r.cell, {})[r.sense] = r.level
    rows: list[tuple[int, float, int]] = []
    for cell, levels in wanted.items():
        up, down, width = levels.get(1, 0.0), levels.get(-1, 0.0), levels.get(0, 0.0)
        both = max(up, down, width / 2)
        if min(problem.up[cell], problem.down[cell]) >= both:
            rows.append((cell, both, 0))
        else:
            if up + down < width:
                up = max(up, width - min(problem.down[cell], width))
                down = max(down, width - up)
            rows += [(cell, level, sense) for level, sense in ((up, 1), (down, -1)) if level > 0]
    return (
        np.array([r[0] for r in rows], np.int64),
        np.array([r[1] for r in rows], float),
        np.array([r[2] for r in rows], np.int64),
    )


def solve(problem: Problem, stop: Stop, seed: int) -> Pattern:
    """Boxes for all primaries, largest level first, then exchange of boxes while it saves and time is left; what has no box is left to the LP heuristic."""
    boxes = Boxes(problem, seed)
    order = np.argsort(-boxes.level, kind="stable")
    boxes.improve(order, 2, Stop(), "boxes")
    boxes.improve(boxes.missing, 40, Stop(), "boxes")
    for turn in range(6):
        before = problem.cost(boxes.hidden)
        if stop.done:
            break
        boxes.improve(order[::-1] if turn % 2 == 0 else order, 2 + turn, stop, "exchange")
        if problem.cost(boxes.hidden) >= before * (1 - 1e-4):
            break
    hidden, moves = boxes.hidden, boxes.moves()
    if len(boxes.missing):
        hidden, moves = _complete(problem, boxes, hidden, moves, stop, seed)
    info = {"boxes": len(boxes.cell) - len(boxes.missing), "without box": len(boxes.missing)}
    return Pattern(hidden, problem.fixed_cost, moves=moves, info=info)


def _complete(
    problem: Problem, boxes: Boxes, hidden: BoolArray, moves: Any, stop: Stop, seed: int
) -> tuple[BoolArray, Any]:
    """Cells without a box are protected by linear programs on top of what is hidden."""
    from tabprotect.suppression.heuristic import solve as heuristic

    left = set(boxes.cell[boxes.missing].tolist())
    rest = replace(
        problem,
        fixed=hidden,
        candidates=problem.candidates & ~hidden,
        requirements=tuple(r for r in problem.requirements if r.cell in left),
    )
    more = heuristic(rest, Stop(max(stop.left, 5.0), listener=stop.listener), seed)
    return hidden | more.suppressed, moves if more.moves is None else sp.csr_array(sp.vstack([moves, more.moves]))
