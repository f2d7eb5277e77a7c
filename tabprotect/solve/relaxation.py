"""The linear program of a branch-and-cut tree or a dive: one warm HiGHS model for each thread, and the pool of rows they share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.solve.cutting import Row
from tabprotect.solve.work import run
from tabprotect.types import BoolArray, FloatArray, IntArray

LATEST = 100
"""So many new rows wait before they are looked at with the others."""

VIOLATED = 1e-4
"""Rows of the pool are brought back from this violation on (times the right-hand side where that is larger than 1)."""


class Columns:
    """The columns a program may use, numbered 0…k−1 inside it."""

    def __init__(self, allowed: BoolArray) -> None:
        self.outside = np.flatnonzero(allowed)
        self.inside = np.full(len(allowed), -1, np.int64)
        self.inside[self.outside] = np.arange(len(self.outside))

    def local(self, row: Row) -> Row:
        """A row over these columns only, in their numbers here."""
        here = self.inside[row.columns]
        keep = here >= 0
        return Row(here[keep], row.values[keep], row.rhs, row.kind)

    def full(self, x: FloatArray) -> FloatArray:
        """A point over these columns as one over all."""
        point = np.zeros(len(self.inside))
        point[self.outside] = x
        return point


class RowPool:
    """All rows known so far over the columns 0…k−1, each once."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.rows: list[Row] = []
        self._known: set[bytes] = set()
        self._matrix = sp.csr_array((0, k))
        self._rhs: FloatArray = np.zeros(0)

    def add(self, rows: list[Row]) -> None:
        """Keep what is new."""
        for row in rows:
            if row.key not in self._known:
                self._known.add(row.key)
                self.rows.append(row)

    def settle(self) -> None:
        """Put rows that wait where `violated` looks; between two calls it may be asked by several threads."""
        seen = len(self._rhs)
        if len(self.rows) < seen + LATEST:
            return
        fresh = self.rows[seen:]
        starts = np.concatenate([[0], np.cumsum([len(r.columns) for r in fresh])])
        values, columns = np.concatenate([r.values for r in fresh]), np.concatenate([r.columns for r in fresh])
        self._matrix = sp.vstack(
            [self._matrix, sp.csr_array((values, columns, starts), shape=(len(fresh), self.k))], format="csr"
        )
        self._rhs = np.concatenate([self._rhs, [r.rhs for r in fresh]])

    def violated(self, x: FloatArray) -> IntArray:
        """Rows that a point violates (the newest may not be looked at yet)."""
        slack = self._matrix @ x - self._rhs
        return np.flatnonzero(slack < -VIOLATED * np.maximum(1.0, np.abs(self._rhs)))


@dataclass(frozen=True)
class Basis:
    """Where a program can go on: the status of its columns, and the rows that are tight; all others are slack."""

    columns: list[Any]
    rows: list[Row]


class Relaxation:
    """One thread's linear program: min cost·x over the rows that matter now, with bounds that change from node to node."""

    def __init__(self, cost: FloatArray, pool: RowPool, rows: list[Row], seed: int) -> None:
        import highspy

        self.kind, self.pool, self.k = highspy, pool, len(cost)
        self.h = highspy.Highs()
        options = {"output_flag": False, "threads": 1, "presolve": "off", "random_seed": seed % 2**31}
        for name, value in options.items():
            self.h.setOptionValue(name, value)
        empty = np.zeros(0, np.int32)
        self.h.addCols(self.k, cost, np.zeros(self.k), np.ones(self.k), 0, empty, empty, np.zeros(0))
        self.lower, self.upper = np.zeros(self.k), np.ones(self.k)
        self.inside: list[Row] = []
        self.idle = np.zeros(0, np.int64)
        self._has: set[bytes] = set()
        self.add(rows)

    def add(self, rows: list[Row]) -> int:
        """Insert rows that are not inside; how many."""
        fresh = []
        for row in rows:
            if row.key not in self._has:
                self._has.add(row.key)
                fresh.append(row)
        if fresh:
            self.inside += fresh
            starts = np.concatenate([[0], np.cumsum([len(r.columns) for r in fresh])])
            self.h.addRows(
                len(fresh), np.array([r.rhs for r in fresh]), np.full(len(fresh), np.inf), int(starts[-1]),
                starts[:-1].astype(np.int32), np.concatenate([r.columns for r in fresh]).astype(np.int32),
                np.concatenate([r.values for r in fresh]),
            )  # fmt: skip
            self.idle = np.concatenate([self.idle, np.zeros(len(fresh), np.int64)])
        return len(fresh)

    def recall(self, x: FloatArray) -> int:
        """Bring back rows of the pool that x violates."""
        pool = self.pool
        return self.add([pool.rows[i] for i in pool.violated(x)])

    def tidy(self, limit: int = 6) -> None:
        """Leave out rows that have been slack for long."""
        out = np.flatnonzero(self.idle > limit)
        if len(out) <= 20:
            return
        self.h.deleteRows(len(out), out.astype(np.int32))
        self._has.difference_update(self.inside[i].key for i in out)
        keep = self.idle <= limit
        self.inside = [row for row, stays in zip(self.inside, keep, strict=True) if stays]
        self.idle = self.idle[keep]

    def basis(self) -> Basis:
        """Where the last solve ended."""
        found = self.h.getBasis()
        basic = self.kind.HighsBasisStatus.kBasic
        tight = [row for row, status in zip(self.inside, found.row_status, strict=True) if status != basic]
        return Basis(found.col_status, tight)

    def resume(self, basis: Basis) -> None:
        """Go on from a basis, whatever rows have come and gone since."""
        self.add(basis.rows)
        status, tight = self.kind.HighsBasisStatus, {row.key for row in basis.rows}
        warm = self.kind.HighsBasis()
        warm.valid = True
        warm.col_status = basis.columns
        warm.row_status = [status.kLower if row.key in tight else status.kBasic for row in self.inside]
        self.h.setBasis(warm)

    def bounds(self, lower: FloatArray, upper: FloatArray) -> None:
        """Column bounds of the next solves."""
        changed = np.flatnonzero((lower != self.lower) | (upper != self.upper)).astype(np.int32)
        if len(changed):
            self.h.changeColsBounds(len(changed), changed, lower[changed], upper[changed])
        self.lower, self.upper = lower, upper

    def solve(self, cutoff: float, time_limit: float, steps: int | None = None) -> tuple[str, float]:
        """Solve; (``optimal`` | ``cutoff`` | ``steps`` | ``limit``, objective)."""
        h, status = self.h, self.kind.HighsModelStatus
        h.setOptionValue("objective_bound", cutoff)
        h.setOptionValue("simplex_iteration_limit", 2**31 - 1 if steps is None else steps)
        h.setOptionValue("time_limit", h.getRunTime() + time_limit if np.isfinite(time_limit) else float("inf"))
        run(h)
        found = h.getModelStatus()
        if found == status.kInfeasible or found == status.kObjectiveBound:
            return "cutoff", float("inf")
        value = float(h.getInfo().objective_function_value)
        if found == status.kOptimal:
            return ("cutoff", value) if value > cutoff else ("optimal", value)
        return ("steps", value) if found == status.kIterationLimit else ("limit", value)

    def solution(self) -> tuple[FloatArray, FloatArray]:
        """Values and reduced costs, after an optimal solve; notes which rows are slack."""
        answer = self.h.getSolution()
        self.idle = np.where(np.abs(np.array(answer.row_dual)) > 1e-9, 0, self.idle + 1)
        return np.clip(np.array(answer.col_value), 0.0, 1.0), np.array(answer.col_dual)


def most_violated(rows: list[Row], x: FloatArray, most: int) -> list[Row]:
    """The rows that x violates most, by distance."""
    if len(rows) <= most:
        return rows
    return sorted(rows, key=lambda r: r.slack(x) / float(np.sqrt(r.values @ r.values)))[:most]
