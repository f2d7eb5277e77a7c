"""A covering program that grows by rows and columns: min c·x, rows ≥ rhs, 0 ≤ x ≤ 1, on one warm HiGHS model.

All rows are kept in a pool over all columns; the model holds the rows that matter now, restricted to the columns that matter now. Columns
outside are priced before a bound is believed, so the bound is one of the full program.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tabprotect.types import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class Row:
    """``values @ x[columns] ≥ rhs``."""

    columns: IntArray
    values: FloatArray
    rhs: float
    kind: str = ""

    @cached_property
    def key(self) -> bytes:
        """Equal rows have equal keys, whatever their scale."""
        scale = float(np.abs(self.values).max(initial=0.0)) or 1.0
        content = np.concatenate(
            [self.columns.astype(float), np.round(self.values / scale, 9), [round(self.rhs / scale, 9)]]
        )
        return content.tobytes()

    def slack(self, x: FloatArray) -> float:
        return float(self.values @ x[self.columns] - self.rhs)


@dataclass
class _Member:
    row: Row
    idle: int = 0
    at: int = -1


class CuttingLP:
    """The growing program.

    >>> lp = CuttingLP(np.array([2.0, 3.0]))
    >>> lp.add([Row(np.array([0, 1]), np.array([1.0, 1.0]), 1.0)])
    1
    >>> lp.solve()
    2.0
    >>> lp.x.tolist()
    [1.0, 0.0]
    """

    def __init__(self, cost: FloatArray, active: BoolArray | None = None) -> None:
        import highspy

        self.cost = np.asarray(cost, float)
        self.allowed = np.ones(len(cost), bool)
        self.pool: dict[bytes, _Member] = {}
        self.inside: list[_Member] = []
        self.x = np.zeros(len(cost))
        self.reduced = self.cost.copy()
        self.bound = 0.0
        self.solves = 0
        self._h = highspy.Highs()
        for name, value in {"output_flag": False, "threads": 1, "random_seed": 0, "presolve": "off"}.items():
            self._h.setOptionValue(name, value)
        self._kind = highspy
        self.columns = np.flatnonzero(np.ones(len(cost), bool) if active is None else active)
        self._at = np.full(len(cost), -1, np.int64)
        self._at[self.columns] = np.arange(len(self.columns))
        empty = np.zeros(0, np.int32)
        n = len(self.columns)
        self._h.addCols(n, self.cost[self.columns], np.zeros(n), np.ones(n), 0, empty, empty, np.zeros(0))

    @property
    def rows(self) -> list[Row]:
        """All rows of the pool."""
        return [m.row for m in self.pool.values()]

    def add(self, rows: list[Row]) -> int:
        """Put new rows into pool and model; returns how many were new."""
        fresh = []
        for row in rows:
            key = row.key
            if key not in self.pool:
                self.pool[key] = _Member(row)
                fresh.append(self.pool[key])
        self._insert(fresh)
        return len(fresh)

    def recall(self, violation: float = 1e-6) -> int:
        """Bring back pool rows that the present solution violates."""
        back = [
            m for m in self.pool.values() if m.at < 0 and m.row.slack(self.x) < -violation * max(1.0, abs(m.row.rhs))
        ]
        self._insert(back)
        return len(back)

    def solve(self, time_limit: float = float("inf")) -> float | None:
        """Solve with pricing; the bound, or None when the limit was hit or the program is infeasible (``infeasible`` tells)."""
        self.infeasible = False
        while True:
            limit = self._h.getRunTime() + time_limit if time_limit < float("inf") else float("inf")
            self._h.setOptionValue("time_limit", limit)
            self._h.run()
            self.solves += 1
            status = self._h.getModelStatus()
            empty = len(self.columns) == 0 and any(m.row.rhs > 0 for m in self.inside)
            if status == self._kind.HighsModelStatus.kInfeasible or empty:
                if self._admit(self._missing_columns()):
                    continue
                self.infeasible = True
                return None
            if status not in (self._kind.HighsModelStatus.kOptimal, self._kind.HighsModelStatus.kModelEmpty):
                return None
            solution = self._h.getSolution()
            duals = np.maximum(np.array(solution.row_dual), 0.0) if len(self.columns) else np.zeros(len(self.inside))
            self.reduced = self._reduced_costs(duals)
            outside = self.allowed & (self._at < 0) & (self.reduced < -TOLERANCE * np.maximum(1.0, self.cost))
            if not self._admit(np.flatnonzero(outside)):
                break
        self.x = np.zeros(len(self.cost))
        if len(self.columns):
            self.x[self.columns] = np.clip(np.array(solution.col_value), 0.0, 1.0)
        # the dual bound by plain arithmetic: rhs·duals plus what columns with negative reduced cost can still take off
        rhs = np.array([m.row.rhs for m in self.inside])
        self.bound = float(rhs @ duals) + float(np.minimum(self.reduced[self.allowed], 0.0).sum())
        for member, dual in zip(self.inside, duals, strict=True):
            member.idle = 0 if dual > 1e-9 else member.idle + 1
        return self.bound

    def forbid(self, columns: IntArray) -> None:
        """Fix columns at zero for good."""
        self.allowed[columns] = False
        at = self._at[columns]
        at = at[at >= 0].astype(np.int32)
        if len(at):
            self._h.changeColsBounds(len(at), at, np.zeros(len(at)), np.zeros(len(at)))

    def tidy(self, idle: int = 8) -> None:
        """Take rows out of the model that have been slack for some rounds (they stay in the pool)."""
        out = [m for m in self.inside if m.idle > idle]
        if len(out) < 20:
            return
        at = np.sort(np.array([m.at for m in out], np.int32))
        self._h.deleteRows(len(at), at)
        for m in out:
            m.at, m.idle = -1, 0
        self.inside = [m for m in self.inside if m.at >= 0]
        for i, m in enumerate(self.inside):
            m.at = i

    def _insert(self, members: list[_Member]) -> None:
        if not members:
            return
        starts, index, value = [0], [], []
        for m in members:
            at = self._at[m.row.columns]
            here = at >= 0
            index.append(at[here])
            value.append(m.row.values[here])
            starts.append(starts[-1] + int(here.sum()))
            m.at, m.idle = len(self.inside), 0
            self.inside.append(m)
        k = len(members)
        lower = np.array([m.row.rhs for m in members])
        self._h.addRows(
            k, lower, np.full(k, np.inf), starts[-1], np.array(starts[:-1], np.int32),
            np.concatenate(index).astype(np.int32), np.concatenate(value),
        )  # fmt: skip

    def _reduced_costs(self, duals: FloatArray) -> FloatArray:
        reduced: FloatArray = self.cost.copy()
        for member, dual in zip(self.inside, duals, strict=True):
            if dual > 0:
                reduced[member.row.columns] -= dual * member.row.values
        return reduced

    def _missing_columns(self) -> IntArray:
        """Columns outside the model that occur in its rows: all that could make it feasible."""
        wanted = np.zeros(len(self.cost), bool)
        for member in self.inside:
            wanted[member.row.columns] = True
        return np.flatnonzero(wanted & self.allowed & (self._at < 0))

    def _admit(self, columns: IntArray) -> bool:
        """Add columns to the model with their entries in its rows."""
        if len(columns) == 0:
            return False
        local = np.full(len(self.cost), -1, np.int64)
        local[columns] = np.arange(len(columns))
        rows, cols, values = [], [], []
        for m in self.inside:
            at = local[m.row.columns]
            here = at >= 0
            cols.append(at[here])
            rows.append(np.full(int(here.sum()), m.at))
            values.append(m.row.values[here])
        col: Any = np.concatenate(cols) if cols else np.zeros(0, np.int64)
        row = np.concatenate(rows) if rows else np.zeros(0, np.int64)
        val = np.concatenate(values) if values else np.zeros(0)
        order = np.argsort(col, kind="stable")
        starts = np.searchsorted(col[order], np.arange(len(columns)))
        n = len(columns)
        self._h.addCols(
            n, self.cost[columns], np.zeros(n), np.ones(n), len(val),
            starts.astype(np.int32), row[order].astype(np.int32), val[order],
        )  # fmt: skip
        self._at[columns] = len(self.columns) + np.arange(n)
        self.columns = np.concatenate([self.columns, columns])
        return True
