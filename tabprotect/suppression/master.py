"""The master problem: min w·z over the cuts found so far, as a linear program that keeps its basis."""

from __future__ import annotations

import numpy as np

from tabprotect.solve.work import run
from tabprotect.suppression.cuts import Cut, stack_rows
from tabprotect.suppression.preprocess import Reduced
from tabprotect.types import BoolArray, FloatArray, IntArray


class Master:
    """z of every cell that is not hidden anyway; rows that stay slack are dropped (the pool remembers them)."""

    def __init__(self, problem: Reduced) -> None:
        import highspy

        self.problem = problem
        self.columns: IntArray = np.flatnonzero(~problem.free)
        self.position = np.full(problem.n, -1)
        self.position[self.columns] = np.arange(len(self.columns))
        self._kind = highspy
        h = self._h = highspy.Highs()
        for name, value in {"output_flag": False, "threads": 1, "random_seed": 0, "presolve": "off"}.items():
            h.setOptionValue(name, value)
        k = len(self.columns)
        h.addVars(k, np.zeros(k), np.ones(k))
        h.changeColsCost(k, np.arange(k, dtype=np.int32), problem.weights[self.columns])
        self.rows: list[Cut] = []
        self.age: list[int] = []
        self.fixed_out = np.zeros(problem.n, bool)
        self.fixed_in = np.zeros(problem.n, bool)

    def add(self, cuts: list[Cut]) -> None:
        """Append rows."""
        if not cuts:
            return
        matrix, lower = stack_rows(cuts, self.problem.n)
        m, index = len(cuts), self.position[matrix.indices].astype(np.int32)
        self._h.addRows(
            m, lower, np.full(m, np.inf), len(index), matrix.indptr[:-1].astype(np.int32), index, matrix.data
        )
        self.rows += cuts
        self.age += [0] * m

    def solve(self, time_limit: float) -> tuple[float, FloatArray, FloatArray] | None:
        """Bound (cost of the whole pattern), point over all cells and reduced costs; None at the limit or when infeasible."""
        h = self._h
        h.setOptionValue("time_limit", h.getRunTime() + time_limit if time_limit < float("inf") else float("inf"))
        run(h)
        if h.getModelStatus() != self._kind.HighsModelStatus.kOptimal:
            return None
        solution = h.getSolution()
        x = self.problem.free.astype(float)
        x[self.columns] = np.clip(np.array(solution.col_value), 0.0, 1.0)
        reduced = np.zeros(self.problem.n)
        reduced[self.columns] = np.array(solution.col_dual)
        value = self.problem.base + float(h.getInfo().objective_function_value)
        self._duals = np.array(solution.row_dual)
        return value, x, reduced

    @property
    def infeasible(self) -> bool:
        return bool(self._h.getModelStatus() == self._kind.HighsModelStatus.kInfeasible)

    def purge(self, patience: int = 8) -> None:
        """Drop rows that have not been tight for some solves."""
        self.age = [0 if abs(d) > 1e-9 else a + 1 for a, d in zip(self.age, self._duals, strict=True)]
        old = [i for i, a in enumerate(self.age) if a > patience]
        if len(old) < 20:
            return
        self._h.deleteRows(len(old), np.array(old, dtype=np.int32))
        gone = set(old)
        self.rows = [c for i, c in enumerate(self.rows) if i not in gone]
        self.age = [a for i, a in enumerate(self.age) if i not in gone]

    def fix(self, out: BoolArray, inside: BoolArray) -> None:
        """Fix cells at 0 or 1 for good."""
        new = (out & ~self.fixed_out) | (inside & ~self.fixed_in)
        self.fixed_out |= out
        self.fixed_in |= inside
        cells = np.flatnonzero(new & ~self.problem.free)
        if len(cells) == 0:
            return
        low = self.fixed_in[cells].astype(float)
        high = 1.0 - self.fixed_out[cells].astype(float)
        self._h.changeColsBounds(len(cells), self.position[cells].astype(np.int32), low, high)

    def active(self) -> list[Cut]:
        """Rows of the linear program now."""
        return list(self.rows)


def fixable(value: float, reduced: FloatArray, x: FloatArray, best: float, step: float) -> tuple[BoolArray, BoolArray]:
    """Cells whose reduced cost shows that no pattern cheaper than ``best`` has (first) or lacks (second) them."""
    target = best - step + 1e-6 * max(1.0, abs(best))
    out = (x < 1e-6) & (value + reduced > target)
    inside = (x > 1 - 1e-6) & (value - reduced > target)
    return out, inside
