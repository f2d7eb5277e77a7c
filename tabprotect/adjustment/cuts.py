"""A stronger relaxation of L1: what the absolute changes t = |z| of all solutions have in common.

A cell that moves must be answered in every relation it is in, and so must the cells that answer it. The polygon inequalities of *all* cells (`model.polygon_rows` gives those of the sensitive
ones) say so: ``|c_q|·t_q ≤ Σ_{i≠q} |c_i|·t_i``. There are as many as coefficients, and few matter: they are added where the solution of the relaxation breaks them. Then come the
inequalities of neighbourhoods (`windows`). On hier13 the bound of the root rises from 10.79 to 12.16 and 12.50; the optimum is 12.76.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from tabprotect.adjustment.model import LONGEST
from tabprotect.adjustment.problem import Problem
from tabprotect.adjustment.windows import make_windows
from tabprotect.solve.model import LinearModel
from tabprotect.solve.stop import Stop
from tabprotect.solve.warm import WarmLP
from tabprotect.types import FloatArray

# sensitive cells per window, and whether it is wide: small ones first, they are quick
SIZES = ((4, False), (6, False), (3, True))
ROUNDS = 8


class Relaxation:
    """The relaxation of `model.sense_model` with inequalities on |z| added as long as they help."""

    def __init__(self, problem: Problem, model: LinearModel) -> None:
        self.problem, self.model = problem, model
        self.lp = WarmLP(model)
        self.bound = -np.inf
        self.t: FloatArray = np.zeros(problem.n)
        self.added: list[sp.csr_array] = []
        self.least: list[FloatArray] = []
        self.relations = abs(sp.csr_array(problem.relations))
        size = np.diff(self.relations.indptr)
        self.line = np.repeat(np.arange(len(size)), size)
        self.short = (size <= LONGEST)[self.line]

    def solve(self, stop: Stop) -> bool:
        """Solve as it stands, then with all polygon inequalities; False when time ran out before that."""
        while True:
            value = self.lp.solve(time_limit=stop.left)
            if not np.isfinite(value):
                return False
            self.bound = max(self.bound, value)
            x, n = self.lp.x, self.problem.n
            self.t = np.maximum(x[:n] + x[n : 2 * n], 0.0)
            if not self._polygons():
                return True

    def add(self, rows: sp.csr_array, least: FloatArray) -> None:
        """Inequalities ``rows @ |z| ≥ least``."""
        rest = sp.csr_array((rows.shape[0], self.model.n - 2 * self.problem.n))
        self.added.append(sp.csr_array(sp.hstack([rows, rows, rest], format="csr")))
        self.least.append(least)
        self.lp.add_rows(self.added[-1], least)

    def _polygons(self) -> int:
        a, s = self.relations, self.problem.scale
        slack = np.abs(self.problem.rhs) / s
        over = 2 * a.data * self.t[a.indices] - (a @ self.t + slack)[self.line]
        bad = np.flatnonzero((over > 1e-6) & self.short)
        if len(bad):
            own = sp.csr_array(
                (2 * a.data[bad], (np.arange(len(bad)), a.indices[bad])), shape=(len(bad), self.problem.n)
            )
            self.add(sp.csr_array(a[self.line[bad]] - own), -slack[self.line[bad]])
        return len(bad)

    def tight(self) -> LinearModel:
        """The model with the added inequalities that hold the bound up."""
        if not self.added:
            return self.model
        rows, least = sp.vstack(self.added, format="csr"), np.concatenate(self.least)
        duals = self.lp.duals[self.model.m :]
        keep = np.abs(duals) > 1e-9 if len(duals) == len(least) else np.ones(len(least), bool)
        return replace(
            self.model,
            matrix=sp.vstack([self.model.matrix, rows[keep]], format="csr"),
            row_lower=np.r_[self.model.row_lower, least[keep]],
            row_upper=np.r_[self.model.row_upper, np.full(int(keep.sum()), np.inf)],
        )


def tighten(problem: Problem, model: LinearModel, stop: Stop, *, goal: float) -> tuple[LinearModel, float]:
    """The model with inequalities that raise its relaxation, and the bound; stops when the bound reaches the ``goal`` or nothing helps."""
    relaxation = Relaxation(problem, model)
    in_time = relaxation.solve(stop)
    for most, wide in SIZES if not problem.rhs.any() else ():
        windows = make_windows(problem, most, wide=wide) if in_time and relaxation.bound < goal else []
        for _ in range(ROUNDS):
            if not windows or relaxation.bound >= goal:
                break
            stop.tell("relaxation", bound=relaxation.bound)
            before = relaxation.bound
            found = [w.separate(relaxation.t, stop) for w in windows]
            # a window without a violated inequality seldom has one later
            windows = [w for w, cut in zip(windows, found, strict=True) if cut is not None]
            cuts = [cut for cut in found if cut is not None]
            if cuts:
                relaxation.add(sp.vstack([row for row, _ in cuts], format="csr"), np.array([v for _, v in cuts]))
                in_time = relaxation.solve(stop)
            if not in_time or stop.done:
                return relaxation.tight(), relaxation.bound
            if relaxation.bound - before < 1e-4 * abs(before):
                break
    return relaxation.tight(), relaxation.bound
