"""Inequalities of neighbourhoods: what a few sensitive cells and the relations around them cost together, whatever their directions.

A window is a small set of sensitive cells and all relations they are in. Its solutions for one choice of directions are a polyhedron; over all choices (half of them, since z and −z cost the
same) the absolute changes t of a solution lie in the convex hull of their union, made larger by everything above it. Whether a given t is inside is a small linear program with one copy of
the window per choice (Balas); when it is not, the dual gives an inequality ``α·t ≥ γ`` with α ≥ 0 that every adjustment satisfies. Bounds of the cells are left out, and each cell's
need is the smaller of its two, so the inequality is valid for all solutions.

Reference: E. Balas, "Disjunctive programming", Annals of Discrete Mathematics 5 (1979).
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.adjustment.problem import Problem
from tabprotect.solve.model import LinearModel
from tabprotect.solve.stop import Stop
from tabprotect.solve.warm import WarmLP
from tabprotect.types import FloatArray, IntArray

# larger programs (coefficients) take longer than what they are worth
LARGEST = 120_000
# an inequality must be violated by this share
LEAST = 1e-4
# beyond this many windows a round takes too long
MOST = 400


class Window:
    """The membership program of one window: columns z⁺, z⁻ and λ of every choice of directions, and θ, by how much t has to grow."""

    def __init__(self, problem: Problem, relations: Any, hot: IntArray, need: FloatArray) -> None:
        self.n = problem.n
        self.cells: IntArray = np.unique(relations.indices)
        part, self.gather, place = _gathered(sp.csr_array(relations[:, self.cells]), np.searchsorted(self.cells, hot))
        k = part.shape[1]
        choices = [(1, *rest) for rest in product((1, -1), repeat=len(hot) - 1)]
        c = len(choices)
        signs = np.array(choices)  # choice × sensitive cell
        first = np.arange(c)[:, None] * 2 * k + place
        right, wrong = np.where(signs > 0, first, first + k).ravel(), np.where(signs > 0, first + k, first).ravel()
        moves, width = len(right), 2 * k * c + c
        per_choice = np.repeat(2 * k * c + np.arange(c), len(hot))
        line = np.arange(moves)
        levels = sp.csr_array((np.ones(moves), (line, right)), shape=(moves, width))
        levels = levels - sp.csr_array((np.tile(need, c), (line, per_choice)), shape=(moves, width))
        both = sp.hstack([part, -part], format="csr")
        keeps = sp.hstack([sp.block_diag([both] * c, format="csr"), sp.csr_array((part.shape[0] * c, c))], format="csr")
        covers = sp.hstack([-sp.identity(k)] * (2 * c) + [sp.csr_array((k, c))], format="csr")
        shares = sp.csr_array((np.ones(c), (np.zeros(c, int), 2 * k * c + np.arange(c))), shape=(1, width))
        body = sp.vstack([keeps, levels, covers, shares], format="csr")
        m = body.shape[0]
        self.first, self.theta = m - 1 - k, width
        growth = np.zeros((m, 1))
        growth[self.first : self.first + k] = 1.0
        upper = np.full(width + 1, np.inf)
        upper[wrong] = 0.0
        low, high = np.zeros(m), np.full(m, np.inf)
        high[: keeps.shape[0]] = 0.0
        low[-1] = high[-1] = 1.0
        self.model = LinearModel.of(
            sp.hstack([body, sp.csr_array(growth)], format="csr"),
            row_lower=low,
            row_upper=high,
            cost=np.r_[np.zeros(width), 1.0],
            lower=np.r_[np.zeros(width), -1.0],
            upper=upper,
        )
        self.lp: WarmLP | None = None

    def separate(self, t: FloatArray, stop: Stop) -> tuple[sp.csr_array, float] | None:
        """An inequality (coefficients of t, right-hand side) that t violates, or None."""
        if self.lp is None:
            self.lp = WarmLP(self.model)
        mine = self.gather @ t[self.cells]
        self.lp.set_row_lower(self.first, -mine)
        # growth in proportion to t, and a little for cells that do not move at all
        self.lp.set_column(self.theta, self.first, mine + 0.02)
        value = self.lp.solve(time_limit=stop.left)
        if not LEAST < value < np.inf:
            return None
        duals = self.lp.duals
        alpha = np.maximum(duals[self.first : self.first + len(mine)], 0.0)
        alpha[alpha < 1e-9] = 0.0
        alpha = alpha @ self.gather
        used = np.flatnonzero(alpha)
        row = sp.csr_array((alpha[used], (np.zeros(len(used), int), self.cells[used])), shape=(1, self.n))
        # less than the dual says, by more than the solver's tolerance can be wrong
        return row, float(duals[-1]) * (1 - 1e-6)


def _gathered(part: sp.csr_array, hot: IntArray) -> tuple[sp.csr_array, sp.csr_array, IntArray]:
    """The window with fewer variables: cells that are in one of its relations only stand for each other there.

    All that counts of them is the sum of their changes, which can be anything up to the sum of their |coefficient|·t. Returned are the smaller relations, the matrix that sums t, and the
    new places of the sensitive cells.
    """
    columns = sp.csc_array(part)
    single = np.diff(columns.indptr) == 1
    single[hot] = False
    kept, spare = np.flatnonzero(~single), np.flatnonzero(single)
    line, size = columns[:, spare].indices, np.abs(columns[:, spare].data)
    rows, group = np.unique(line, return_inverse=True)
    k, g = len(kept), len(rows)
    gather = sp.csr_array(
        (np.r_[np.ones(k), size], (np.r_[np.arange(k), k + group], np.r_[kept, spare])), shape=(k + g, part.shape[1])
    )
    sums = sp.csr_array((np.ones(g), (rows, np.arange(g))), shape=(part.shape[0], g))
    return sp.csr_array(sp.hstack([columns[:, kept], sums], format="csr")), gather, np.searchsorted(kept, hot)


def make_windows(problem: Problem, most: int, *, wide: bool = False) -> list[Window]:
    """Windows of up to ``most`` sensitive cells: those of each relation, and each cell with the ones it shares most relations with.

    ``wide`` windows also have the relations that join two cells of theirs.
    """
    rows, cols = sp.csr_array(problem.relations), sp.csc_array(problem.relations)
    need = np.minimum(problem.rise, problem.fall) / problem.scale
    joined = sp.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), shape=rows.shape)
    windows = []
    for group in _groups(problem, rows, cols, most):
        members = np.array(group)
        hot = problem.sensitive[members]
        order = np.argsort(hot)
        touched = np.unique(np.concatenate([cols.indices[cols.indptr[p] : cols.indptr[p + 1]] for p in hot]))
        if wide:
            inside = np.zeros(problem.n)
            inside[rows[touched].indices] = 1.0
            touched = np.flatnonzero(joined @ inside >= 2)
        part = sp.csr_array(rows[touched])
        if part.nnz * 2 ** len(hot) <= LARGEST:
            windows.append(Window(problem, part, hot[order], need[members][order]))
    return windows


def _groups(problem: Problem, rows: Any, cols: Any, most: int) -> list[tuple[int, ...]]:
    place = np.full(problem.n, -1)
    place[problem.sensitive] = np.arange(len(problem.sensitive))
    groups: set[tuple[int, ...]] = set()
    for r in range(rows.shape[0]):
        inside = place[rows.indices[rows.indptr[r] : rows.indptr[r + 1]]]
        inside = inside[inside >= 0]
        if 2 <= len(inside) <= most:
            groups.add(tuple(sorted(inside.tolist())))
    part = abs(cols[:, problem.sensitive])
    shared = sp.csr_array(part.T @ part)
    for i in range(len(problem.sensitive)):
        span = slice(shared.indptr[i], shared.indptr[i + 1])
        others, count = shared.indices[span], shared.data[span]
        others = others[np.lexsort((others, -count))]
        closest = others[others != i][: most - 1].tolist()
        if closest:
            groups.add(tuple(sorted([i, *closest])))
    if len(groups) > 4 * MOST:
        return []
    sets = [set(g) for g in groups]
    largest = sorted(g for g in groups if not any(set(g) < other for other in sets))
    return largest if len(largest) <= MOST else []
