"""The hypercube method: every primary cell is a corner of a box of hidden cells that can all go up and down together.

In each dimension a box follows a path through the hierarchy: from the cell's code to a sibling, each continued down to a leaf, or up to the top. The product of
one such path per dimension, with signs, is a move that keeps all sums. The search is compiled and looks at boxes only, so it is fast on tables of a million cells and
dear on small ones.

D. Repsilber, Preservation of confidentiality in aggregated data (1994); S. Giessing and D. Repsilber, Tools and strategies to protect multiple tables with
the GHQUAR cell suppression engine, LNCS 2316 (2002). Boxes along tree paths, reuse of hidden corners and the improvement by exchange are ours.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

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


@dataclass(frozen=True)
class Paths:
    """All paths of all dimensions: path i has codes ``code[ptr[i]:ptr[i+1]]`` with signs; those of code c of dimension k start at ``first[base[k] + c]``."""

    base: IntArray
    first: IntArray
    ptr: IntArray
    code: IntArray
    sign: IntArray


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


def make_paths(hierarchies: list[Hierarchy], rng: np.random.Generator) -> Paths:
    """The paths of all dimensions in flat arrays."""
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
    return Paths(*(np.array(a, np.int64) for a in (base, first, ptr, codes, signs)))


@numba.njit(cache=True)
def _walk(choice, d, ptr, code, sign, stride, at, cells, signs):  # type: ignore[no-untyped-def]
    """The cells of a box and their signs; returns how many."""
    n = 1
    for k in range(d):
        at[k] = 0
        n *= ptr[choice[k] + 1] - ptr[choice[k]]
    for i in range(n):
        rest, cell, s = i, 0, 1
        for k in range(d):
            a, b = ptr[choice[k]], ptr[choice[k] + 1]
            j = a + rest % (b - a)
            rest //= b - a
            cell += code[j] * stride[k]
            s *= sign[j]
        cells[i], signs[i] = cell, s
    return n


@numba.njit(cache=True)
def _price(n, cells, signs, index, usable, hidden, weight, up, down, level, sense):  # type: ignore[no-untyped-def]
    """Weight of the cells to be hidden, and how many corners cannot move far enough."""
    cost, bad = 0.0, 0
    for i in range(n):
        j = index[cells[i]]
        if j < 0 or not usable[j]:
            bad += 1
            continue
        s = signs[i] * sense
        if (s >= 0 and up[j] < level) or (s <= 0 and down[j] < level):
            bad += 1
        if not hidden[j]:
            cost += weight[j]
    return cost, bad


@numba.njit(cache=True)
def _search(  # type: ignore[no-untyped-def]
    p_codes,
    level,
    sense,
    d,
    base,
    first,
    ptr,
    code,
    sign,
    stride,
    index,
    usable,
    hidden,
    weight,
    up,
    down,
    choice,
    best,
    at,
    cells,
    signs,
    starts,
    seed,
):
    """Cheapest box found for one cell by coordinate descent from several starts; sense 0 asks for room both ways. Returns its cost, or infinity."""
    state = np.uint64(seed) * np.uint64(2654435761) + np.uint64(12345)
    best_cost = np.inf
    for _start in range(starts):
        for k in range(d):
            a, b = first[base[k] + p_codes[k]], first[base[k] + p_codes[k] + 1]
            if a == b:
                return np.inf
            state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
            choice[k] = a + int((state >> np.uint64(33)) % np.uint64(b - a))
        cost, bad = np.inf, 1 << 30
        for _ in range(4):
            before_cost, before_bad = cost, bad
            for k in range(d):
                a, b = first[base[k] + p_codes[k]], first[base[k] + p_codes[k] + 1]
                kept = choice[k]
                for option in range(a, b):
                    choice[k] = option
                    n = _walk(choice, d, ptr, code, sign, stride, at, cells, signs)
                    if n > len(cells):
                        continue
                    c, w = _price(
                        n, cells, signs, index, usable, hidden, weight, up, down, level, 0 if sense == 0 else sense
                    )
                    if w < bad or (w == bad and c < cost):
                        cost, bad, kept = c, w, option
                choice[k] = kept
            if cost == before_cost and bad == before_bad:
                break
        if bad == 0 and cost < best_cost:
            best_cost = cost
            best[:d] = choice[:d]
    return best_cost


@numba.njit(cache=True)
def _protect(  # type: ignore[no-untyped-def]
    todo,
    codes,
    level,
    sense,
    d,
    base,
    first,
    ptr,
    code,
    sign,
    stride,
    index,
    usable,
    fixed,
    weight,
    up,
    down,
    uses,
    chosen,
    starts,
    seed,
    size,
):
    """Give every cell of ``todo`` its cheapest box, taking its old one out first; returns how many have none."""
    choice, best, at = np.zeros(d, np.int64), np.zeros(d, np.int64), np.zeros(d, np.int64)
    cells, signs = np.zeros(size, np.int64), np.zeros(size, np.int64)
    hidden = np.empty(len(weight), np.bool_)
    for j in range(len(weight)):
        hidden[j] = fixed[j] or uses[j] > 0
    failed = 0
    for i in todo:
        had = chosen[i, 0] >= 0
        old_cost = 0.0
        if had:
            n = _walk(chosen[i], d, ptr, code, sign, stride, at, cells, signs)
            for q in range(n):
                j = index[cells[q]]
                uses[j] -= 1
                if uses[j] == 0 and not fixed[j]:
                    hidden[j] = False
                    old_cost += weight[j]
        cost = _search(
            codes[i],
            level[i],
            sense[i],
            d,
            base,
            first,
            ptr,
            code,
            sign,
            stride,
            index,
            usable,
            hidden,
            weight,
            up,
            down,
            choice,
            best,
            at,
            cells,
            signs,
            starts,
            seed + i,
        )
        if cost < np.inf and (not had or cost < old_cost):
            chosen[i, :d] = best[:d]
        elif not had:
            failed += 1
            continue
        n = _walk(chosen[i], d, ptr, code, sign, stride, at, cells, signs)
        for q in range(n):
            j = index[cells[q]]
            uses[j] += 1
            hidden[j] = True
    return failed


class Boxes:
    """The needs of a problem (one per primary cell, or one per side where it cannot move both ways) and the box of each."""

    def __init__(self, problem: Problem, seed: int) -> None:
        if problem.dims is None or not problem.dims:
            raise InputError("method 'hypercube' needs a table with dimensions; use 'heuristic' or 'exact'")
        self.problem, self.seed = problem, seed
        self.d = len(problem.dims)
        sizes = np.array([len(dim) for dim in problem.dims], np.int64)
        self.stride = np.array([int(np.prod(sizes[k + 1 :])) for k in range(self.d)], np.int64)
        self.index = np.full(int(np.prod(sizes)), -1, np.int64)
        self.index[np.asarray(problem.codes, np.int64) @ self.stride] = np.arange(problem.n)
        self.paths = make_paths([dim.hierarchy for dim in problem.dims], np.random.default_rng(seed))
        self.size = int(np.prod([2 * (int(dim.level.max()) + 1) for dim in problem.dims]))
        self.usable = problem.fixed | problem.candidates
        self.cell, self.level, self.sense = _needs(problem)
        self.codes = np.asarray(problem.codes, np.int64)[self.cell]
        self.uses = np.zeros(problem.n, np.int64)
        self.chosen = np.full((len(self.cell), self.d), -1, np.int64)

    def improve(self, order: IntArray, starts: int, stop: Stop, phase: str) -> int:
        """Search a (better) box for each need in this order; returns how many have none."""
        p, w, failed = self.problem, self.paths, 0
        for begin in range(0, len(order), CHUNK):
            if stop.done and begin:
                break
            failed += _protect(
                order[begin : begin + CHUNK], self.codes, self.level, self.sense, self.d, w.base, w.first, w.ptr, w.code, w.sign, self.stride, self.index, self.usable,
                p.fixed, p.weights, p.up, p.down, self.uses, self.chosen, starts, self.seed, self.size,
            )  # fmt: skip
            stop.tell(phase, cost=p.cost(self.hidden), done=min(begin + CHUNK, len(order)), total=len(order))
        return failed

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
        at, cells, signs = np.zeros(self.d, np.int64), np.zeros(self.size, np.int64), np.zeros(self.size, np.int64)
        w = self.paths
        done = np.flatnonzero(self.chosen[:, 0] >= 0)
        for row, i in enumerate(done):
            n = _walk(self.chosen[i], self.d, w.ptr, w.code, w.sign, self.stride, at, cells, signs)
            rows.append(np.full(n, row))
            columns.append(self.index[cells[:n]])
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
