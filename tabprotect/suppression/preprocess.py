"""A smaller problem with the same answers: cells that cannot move leave it, tied cells become one, redundant relations go.

* A relation left with one hideable cell fixes that cell: hiding it is useless (and a requirement on it is infeasible).
* A relation left with two hideable cells ties them: they move together, so it pays to hide both or neither. They become one cell.
* In a product of hierarchies most relations follow from the others. One relation for each total is enough; a third of the rows means a
  third of the basis in every linear program.

The first two are the reductions of Fischetti and Salazar-González, "Solving the cell suppression problem on tabular data with linear
constraints", Management Science 47 (2001); the tying of cells and the choice of rows are ours.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.errors import Infeasible
from tabprotect.linalg.independent import independent_rows
from tabprotect.suppression.problem import Problem, Requirement
from tabprotect.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Reduced:
    """A problem over groups of tied cells: group g moves by ``y_g``, original cell i by ``factor[i] * y[group[i]]`` (−1: never).

    ``lines`` are all relations, ``matrix`` an independent part of them. ``weights[g]`` is what hiding the group costs beyond the cells hidden anyway; ``needed`` groups carry a requirement and are hidden
    in every safe pattern, so their weight is already in ``base``. ``proofs`` are moves for requirements settled beforehand.
    """

    origin: Problem
    matrix: Any
    lines: Any
    down: FloatArray
    up: FloatArray
    weights: FloatArray
    free: BoolArray
    requirements: tuple[Requirement, ...]
    group: IntArray
    factor: FloatArray
    base: float
    proofs: Any = None

    @property
    def n(self) -> int:
        return len(self.weights)

    @cached_property
    def by_cell(self) -> Any:
        """The independent relations by cell, cells × relations."""
        return sp.csr_array(self.matrix.T)

    @cached_property
    def room(self) -> FloatArray:
        """How far each group can move both ways."""
        return np.minimum(self.down, self.up)

    def cost(self, hidden: BoolArray) -> float:
        """Cost of the whole pattern, cells hidden from the start included."""
        return self.base + float(self.weights[hidden & ~self.free].sum())

    def expand(self, hidden: BoolArray) -> BoolArray:
        """The original cells to hide when these groups are hidden."""
        chosen = np.zeros(len(self.group), bool)
        inside = self.group >= 0
        chosen[inside] = (hidden | self.free)[self.group[inside]]
        return (chosen & self.origin.candidates) | self.origin.fixed

    def contract(self, suppressed: BoolArray) -> BoolArray:
        """The groups all of whose cells are hidden."""
        hidden = np.ones(self.n, bool)
        inside = self.group >= 0
        hidden[self.group[inside & ~suppressed]] = False
        return hidden

    def expand_moves(self, moves: Any) -> Any:
        """Moves of the groups as moves of the original cells (sparse, moves × cells)."""
        inside = np.flatnonzero(self.group >= 0)
        spread = sp.csr_array(
            (self.factor[inside], (self.group[inside], inside)), shape=(self.n, len(self.group)), dtype=float
        )
        return sp.csr_array(moves) @ spread

    def contract_moves(self, moves: Any) -> Any:
        """Moves of original cells that keep all relations as moves of the groups (sparse, moves × groups)."""
        inside = np.flatnonzero(self.group >= 0)
        _, first = np.unique(self.group[inside], return_index=True)
        pick = sp.csc_array(sp.csr_array(moves))[:, inside[first]]
        return sp.csr_array(pick @ sp.diags_array(1.0 / self.factor[inside[first]]))


class _Ties:
    """Union-find over cells with a factor to the representative: y_i = factor_i · y_root."""

    def __init__(self, n: int) -> None:
        self.parent = np.arange(n)
        self.factor = np.ones(n)
        self.dead = np.zeros(n, bool)

    def find(self, i: int) -> tuple[int, float]:
        path = []
        while self.parent[i] != i:
            path.append(i)
            i = int(self.parent[i])
        for k in reversed(path):  # nearest the root first, so each parent already points at the root
            up = int(self.parent[k])
            self.factor[k] *= self.factor[up] if up != i else 1.0
            self.parent[k] = i
        return i, float(self.factor[path[0]]) if path else 1.0

    def tie(self, i: int, j: int, ratio: float) -> None:
        """y_j = ratio · y_i for two representatives."""
        self.parent[j], self.factor[j] = i, ratio
        if self.dead[j]:
            self.dead[i] = True


def _tie_cells(matrix: Any, usable: BoolArray) -> _Ties:
    """Follow relations with one or two movable cells until nothing changes."""
    ties = _Ties(matrix.shape[1])
    ties.dead[~usable] = True
    columns = sp.csc_array(matrix)
    lengths = np.diff(matrix.indptr)
    alive = np.bincount(
        np.repeat(np.arange(matrix.shape[0]), lengths),
        weights=usable[matrix.indices].astype(float),
        minlength=matrix.shape[0],
    )
    queue = list(np.flatnonzero(alive <= 2))
    queued = np.zeros(matrix.shape[0], bool)
    queued[queue] = True
    below: dict[int, list[int]] = {}
    while queue:
        row = int(queue.pop())
        queued[row] = False
        terms: dict[int, float] = {}
        for k in range(matrix.indptr[row], matrix.indptr[row + 1]):
            root, factor = ties.find(int(matrix.indices[k]))
            if not ties.dead[root]:
                terms[root] = terms.get(root, 0.0) + float(matrix.data[k]) * factor
        terms = {i: c for i, c in terms.items() if abs(c) > 1e-12}
        if not 0 < len(terms) <= 2:
            continue
        touched = list(terms)
        if len(terms) == 1:
            ties.dead[touched[0]] = True
        else:
            i, j = sorted(touched, key=lambda t: -len(below.get(t, [])))
            ties.tie(i, j, -terms[i] / terms[j])
            below.setdefault(i, []).extend([j, *below.pop(j, [])])
        members = [m for t in touched for m in [t, *below.get(t, [])]]
        for member in members:
            for r in columns.indices[columns.indptr[member] : columns.indptr[member + 1]]:
                if not queued[r]:
                    queued[r] = True
                    queue.append(int(r))
    return ties


def reduce(problem: Problem) -> Reduced:
    """Take out cells that cannot move, tie cells that move together, keep independent relations.

    Raises `Infeasible` for requirements on cells that cannot move far enough by themselves.
    """
    usable = (problem.fixed | problem.candidates) & ((problem.up > 0) | (problem.down > 0))
    matrix = sp.csr_array(problem.relations)
    matrix.eliminate_zeros()
    ties = _tie_cells(matrix, usable)
    n = problem.n
    root, factor = np.empty(n, np.int64), np.empty(n)
    for i in range(n):
        root[i], factor[i] = ties.find(i)
    alive = ~ties.dead[root]
    names, inverse = np.unique(root[alive], return_inverse=True)
    group = np.full(n, -1, np.int64)
    group[alive] = inverse
    k = len(names)
    inside = np.flatnonzero(group >= 0)
    g, f = group[inside], factor[inside]
    with np.errstate(invalid="ignore"):
        high = np.where(f > 0, problem.up[inside], problem.down[inside]) / np.abs(f)
        low = np.where(f > 0, problem.down[inside], problem.up[inside]) / np.abs(f)
    up, down = np.full(k, np.inf), np.full(k, np.inf)
    np.minimum.at(up, g, high)
    np.minimum.at(down, g, low)
    own = np.where(problem.fixed[inside], 0.0, problem.weights[inside])
    weights = np.asarray(np.bincount(g, weights=own, minlength=k), dtype=float)
    free = np.ones(k, bool)
    free[g[~problem.fixed[inside]]] = False
    needs = _translate(problem, group, factor, up, down)
    needed = np.zeros(k, bool)
    needed[[r.cell for r in needs]] = True
    base = problem.fixed_cost + float(weights[needed & ~free].sum())
    spread = sp.csr_array((f, (inside, g)), shape=(n, k))
    lines = distinct_rows(sp.csr_array(matrix @ spread))
    rows = np.flatnonzero(independent_rows(lines)) if lines.shape[0] else np.zeros(0, np.int64)
    return Reduced(
        problem, sp.csr_array(lines[rows, :]), lines, down, up, weights, free | needed, needs, group, factor, base
    )


def distinct_rows(matrix: Any) -> Any:
    """The rows that are not empty and not a copy (up to the sign) of an earlier one."""
    a = sp.csr_array(matrix)
    a.data[np.abs(a.data) < 1e-12] = 0.0
    a.eliminate_zeros()
    a.sort_indices()
    seen: set[tuple[bytes, bytes]] = set()
    keep = []
    for r in range(a.shape[0]):
        part = slice(a.indptr[r], a.indptr[r + 1])
        if part.start == part.stop:
            continue
        data = a.data[part] * np.sign(a.data[part.start])
        key = (a.indices[part].tobytes(), data.tobytes())
        if key not in seen:
            seen.add(key)
            keep.append(r)
    return sp.csr_array(a[np.array(keep, dtype=np.int64), :])


def _translate(
    problem: Problem, group: IntArray, factor: FloatArray, up: FloatArray, down: FloatArray
) -> tuple[Requirement, ...]:
    """Requirements on groups: the strictest for each group and sense; an error for those beyond the group's own room."""
    strictest: dict[tuple[int, int], float] = {}
    short: dict[int, float] = {}
    for r in problem.requirements:
        g = int(group[r.cell])
        if g < 0:
            short[r.cell] = max(short.get(r.cell, 0.0), r.level)
            continue
        f = factor[r.cell]
        sense = r.sense if f > 0 else -r.sense
        level = r.level / abs(f)
        reach = up[g] if sense > 0 else down[g] if sense < 0 else up[g] + down[g]
        if reach < level * (1 - 1e-9):
            short[r.cell] = max(short.get(r.cell, 0.0), (level - reach) * abs(f))
            continue
        strictest[g, sense] = max(strictest.get((g, sense), 0.0), min(level, reach))
    if short:
        raise cannot_protect(short)
    return tuple(Requirement(g, sense, level) for (g, sense), level in sorted(strictest.items()))


def cannot_protect(missing: dict[int, float]) -> Infeasible:
    """The error for cells (original numbers) that stay short of their level even when everything allowed is hidden."""
    cells = sorted(missing)
    listed = ", ".join(f"{c} (room {missing[c]:g} short)" for c in cells[:10])
    more = f" and {len(cells) - 10} more" if len(cells) > 10 else ""
    return Infeasible(
        f"{len(cells)} cell(s) cannot be protected even if every cell that may be hidden is hidden: {listed}{more}; "
        "allow more cells (protected or zero ones), lower the levels or widen the bounds outsiders are assumed to know",
        cells=cells,
        missing=[missing[c] for c in cells],
    )
