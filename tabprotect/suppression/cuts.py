"""Valid inequalities Σ c·z ≥ 1 of the cell suppression polytope, each from a combination of relations.

For any multipliers π of the relations and δ = ±e_p − Mᵀπ, every move y satisfies ±y_p = δ·y ≤ Σ max(δ_j up_j, −δ_j down_j) z_j. A pattern
that meets (p, ±, r) therefore has Σ c_j z_j ≥ r: the capacity cut of Fischetti and Salazar-González (Management Science 47, 2001). The
part of the cells hidden anyway is taken off both sides and no coefficient needs to be larger than what is left.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.solve.cutting import Row
from tabprotect.solve.knapsack import RowSet
from tabprotect.solve.knapsack_exact import facets
from tabprotect.suppression.preprocess import Reduced
from tabprotect.suppression.problem import Requirement
from tabprotect.types import FloatArray, IntArray

DUST = 1e-11
FAR_OFF = 0.02
"""Known cuts nearer to the point than this are not worth a row."""
LATEST = 50
"""So many new cuts wait before they are looked at with the others."""


@dataclass(frozen=True)
class Cut:
    """Σ coefficients · z[cells] ≥ 1, or ≥ z[head] when there is a head; ``need`` is the requirement it comes from, if it is a single one."""

    cells: IntArray
    coefficients: FloatArray
    head: int = -1
    need: Requirement | None = field(default=None, compare=False)

    @property
    def key(self) -> tuple[bytes, bytes, int]:
        return self.cells.tobytes(), np.round(self.coefficients, 6).tobytes(), self.head

    def violation(self, x: FloatArray) -> float:
        """How much the point misses the cut by."""
        target = 1.0 if self.head < 0 else float(x[self.head])
        return target - float(self.coefficients @ x[self.cells])


def reach(problem: Reduced, delta: FloatArray) -> FloatArray:
    """What each cell adds at most to δ·y when hidden."""
    with np.errstate(invalid="ignore"):
        return np.where(delta > DUST, delta * problem.up, np.where(delta < -DUST, -delta * problem.down, 0.0))


def capacity_cut(problem: Reduced, total: FloatArray, level: float) -> Cut | None:
    """The cut Σ total_j z_j ≥ level with the free cells taken off, clipped and scaled; None where it says nothing.

    A cut without cells says that the requirement cannot be met at all.
    """
    left = level - float(total[problem.free].sum())
    if not left > 1e-9 * level:
        return None
    cells = np.flatnonzero((total > 0) & ~problem.free)
    c = np.minimum(total[cells], left) / left
    order = np.argsort(c, kind="stable")
    dropped = np.cumsum(c[order])
    k = int(np.searchsorted(dropped, 1e-5, side="right"))  # coefficients so small that taking them at 1 costs nothing
    if k:
        rest = 1.0 - float(dropped[k - 1])
        keep = np.sort(order[k:])
        cells, c = cells[keep], np.minimum(c[keep] / rest, 1.0)
    c[c > 1 - 1e-9] = 1.0
    return Cut(cells, c)


def requirement_cut(problem: Reduced, requirement: Requirement, duals: dict[int, FloatArray]) -> Cut | None:
    """The capacity cut of a requirement from multipliers for each direction it needs (sense 0: the sum of both)."""
    total = np.zeros(problem.n)
    for sense, pi in duals.items():
        delta = -(problem.by_cell @ pi)
        delta[requirement.cell] += sense
        total += reach(problem, delta)
    cut = capacity_cut(problem, total, requirement.level)
    return None if cut is None else replace(cut, need=requirement)


def line_cuts(problem: Reduced) -> list[Cut]:
    """For every requirement and every relation of its cell: what the other cells of that relation must be able to take."""
    cuts = []
    by_cell = problem.lines.tocsc()
    for r in problem.requirements:
        for row in by_cell.indices[by_cell.indptr[r.cell] : by_cell.indptr[r.cell + 1]]:
            part = slice(problem.lines.indptr[row], problem.lines.indptr[row + 1])
            cells, a = problem.lines.indices[part], problem.lines.data[part]
            own = float(a[cells == r.cell][0])
            delta = np.zeros(problem.n)
            delta[cells] = -a / own
            delta[r.cell] = 0.0
            total = np.zeros(problem.n)
            for sense in (1, -1) if r.sense == 0 else (r.sense,):
                total += reach(problem, sense * delta)
            cut = capacity_cut(problem, total, r.level)
            if cut is not None:
                cuts.append(replace(cut, need=r))
    return cuts


def bridge_cut(problem: Reduced, cell: int, support: IntArray) -> Cut | None:
    """z_cell ≤ Σ z over the other cells of a combination of relations: a secondary that can be deduced exactly is useless."""
    others = support[support != cell]
    if problem.free[others].any():
        return None
    return Cut(others.astype(np.int64), np.ones(len(others)), head=cell)


def line_bridges(problem: Reduced, x: FloatArray, least: float = 1e-3) -> list[Cut]:
    """Violated bridge cuts from single relations, all of them at once."""
    lines = problem.lines
    rows = np.repeat(np.arange(lines.shape[0]), np.diff(lines.indptr))
    sums = np.bincount(rows, weights=x[lines.indices], minlength=lines.shape[0])
    entry = np.flatnonzero(2 * x[lines.indices] > sums[rows] + least)
    cuts = []
    for k in entry:
        cell, row = int(lines.indices[k]), rows[k]
        if problem.free[cell]:
            continue
        cut = bridge_cut(problem, cell, lines.indices[lines.indptr[row] : lines.indptr[row + 1]])
        if cut is not None:
            cuts.append(cut)
    return cuts


class Pool:
    """All cuts found so far, each once."""

    def __init__(self) -> None:
        self.cuts: list[Cut] = []
        self._keys: set[tuple[bytes, bytes, int]] = set()
        self._known: tuple[int, Any, FloatArray, FloatArray] | None = None
        self._rows, self._seen = RowSet([]), 0
        self._facets: set[tuple[bytes, bytes, int]] = set()

    def add(self, cuts: Iterable[Cut]) -> list[Cut]:
        """Keep the new ones, and return them."""
        new = []
        for cut in cuts:
            if cut.key not in self._keys:
                self._keys.add(cut.key)
                self.cuts.append(cut)
                new.append(cut)
        return new

    def violated(self, x: FloatArray, most: int) -> list[Cut]:
        """The known cuts farthest from the point: one product instead of many linear programs (the newest may not be looked at yet)."""
        if self._known is None or len(self.cuts) > self._known[0] + LATEST:
            if not self.cuts:
                return []
            matrix, rhs = stack_rows(self.cuts, len(x))
            self._known = len(self.cuts), matrix, rhs, np.sqrt(matrix.power(2).sum(axis=1))
        _, matrix, rhs, norm = self._known
        distance = (rhs - matrix @ x) / norm
        return [self.cuts[i] for i in np.argsort(-distance, kind="stable")[:most] if distance[i] > FAR_OFF]

    def facets(self, x: FloatArray) -> list[Cut]:
        """Inequalities that x violates and every 0–1 point of one of the capacity cuts satisfies: the strongest of each."""
        fresh = [c for c in self.cuts[self._seen :] if c.head < 0 and c.key not in self._facets]
        self._rows.extend([Row(c.cells, c.coefficients, 1.0) for c in fresh])
        self._seen = len(self.cuts)
        found = [Cut(r.columns, np.minimum(r.values / r.rhs, 1.0)) for r in facets(self._rows, x)]
        self._facets.update(c.key for c in found)
        return found


def row_arrays(cut: Cut) -> tuple[IntArray, FloatArray, float]:
    """Cells, coefficients and right-hand side with the head on the left."""
    if cut.head < 0:
        return cut.cells, cut.coefficients, 1.0
    return np.append(cut.cells, cut.head), np.append(cut.coefficients, -1.0), 0.0


def stack_rows(cuts: list[Cut], n: int) -> tuple[Any, FloatArray]:
    """All cuts as rows over n cells, and their right-hand sides."""
    rows = [row_arrays(cut) for cut in cuts]
    starts = np.concatenate([[0], np.cumsum([len(cells) for cells, _, _ in rows])])
    cells, values = np.concatenate([r[0] for r in rows]), np.concatenate([r[1] for r in rows])
    return sp.csr_array((values, cells, starts), shape=(len(cuts), n)), np.array([r[2] for r in rows])
