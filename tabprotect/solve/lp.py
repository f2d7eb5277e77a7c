"""A linear program that is asked many times: one HiGHS model, objective and bounds reset on every call.

HiGHS keeps what it was last told; a stale objective coefficient once "proved" three different optima of one instance. So this wrapper
remembers which coefficients and bounds a call changed and puts them back before the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.solve.work import run
from tabprotect.types import FloatArray, IntArray

INFINITY = float("inf")
_NO_LIMIT = 2**31 - 1


@dataclass(frozen=True)
class LPAnswer:
    """Status ``optimal``, ``infeasible``, ``unbounded``, ``dear`` (dearer than the cutoff) or ``limit``; solution and row duals when there are any."""

    status: str
    objective: float
    x: FloatArray
    duals: FloatArray
    reduced: FloatArray


class PersistentLP:
    """min or max c·x subject to row_lower ≤ A·x ≤ row_upper, lower ≤ x ≤ upper; objective and bound changes last one call.

    >>> lp = PersistentLP([[1.0, 1.0]], lower=[0, 0], upper=[5, 5], row_lower=[4], row_upper=[4])
    >>> lp.solve({0: 1.0}, maximize=True).objective
    4.0
    >>> lp.solve({1: 1.0}).objective
    0.0
    """

    def __init__(
        self,
        matrix: Any,
        lower: Any,
        upper: Any,
        row_lower: Any,
        row_upper: Any,
        *,
        options: dict[str, Any] | None = None,
    ) -> None:
        import highspy

        self._h = highspy.Highs()
        for name, value in {"output_flag": False, "threads": 1, "random_seed": 0, **(options or {})}.items():
            self._h.setOptionValue(name, value)
        a = sp.csc_array(matrix)
        self.n, self.m = int(a.shape[1]), int(a.shape[0])
        self.lower, self.upper = np.array(lower, float), np.array(upper, float)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = self.n, self.m
        model.col_cost_ = np.zeros(self.n)
        model.col_lower_, model.col_upper_ = self.lower, self.upper
        model.row_lower_, model.row_upper_ = np.asarray(row_lower, float), np.asarray(row_upper, float)
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = a.indptr.astype(np.int32)
        model.a_matrix_.index_ = a.indices.astype(np.int32)
        model.a_matrix_.value_ = a.data.astype(float)
        self._h.passModel(model)
        self._dirty_cost: IntArray = np.zeros(0, np.int64)
        self._dirty_bounds: IntArray = np.zeros(0, np.int64)
        self._kind = highspy
        self._slow = 0

    def solve(
        self,
        objective: dict[int, float] | FloatArray,
        *,
        maximize: bool = False,
        bounds: dict[int, tuple[float, float]] | None = None,
        time_limit: float = INFINITY,
        options: dict[str, Any] | None = None,
    ) -> LPAnswer:
        """Solve with this objective (sparse dict or dense array) and these bounds instead of the model's own, for this call only."""
        h, kind = self._h, self._kind
        if isinstance(objective, dict):
            columns = np.fromiter(objective.keys(), np.int64, len(objective))
            costs = np.fromiter(objective.values(), float, len(objective))
        else:
            columns, costs = np.arange(self.n), np.asarray(objective, float)
        if len(self._dirty_cost) and len(columns) < self.n:
            h.changeColsCost(len(self._dirty_cost), self._dirty_cost.astype(np.int32), np.zeros(len(self._dirty_cost)))
        h.changeColsCost(len(columns), columns.astype(np.int32), costs)
        self._dirty_cost = columns
        if len(self._dirty_bounds):
            d = self._dirty_bounds
            h.changeColsBounds(len(d), d.astype(np.int32), self.lower[d], self.upper[d])
            self._dirty_bounds = np.zeros(0, np.int64)
        if bounds:
            d = np.fromiter(bounds.keys(), np.int64, len(bounds))
            pair = np.array(list(bounds.values()), float)
            h.changeColsBounds(len(d), d.astype(np.int32), pair[:, 0].copy(), pair[:, 1].copy())
            self._dirty_bounds = d
        h.changeObjectiveSense(kind.ObjSense.kMaximize if maximize else kind.ObjSense.kMinimize)
        for name, value in (options or {}).items():
            h.setOptionValue(name, value)
        # HiGHS compares the limit with its own clock, which runs on from call to call
        h.setOptionValue("time_limit", h.getRunTime() + time_limit if time_limit < INFINITY else INFINITY)
        run(h)
        return self._answer()

    def solve_fresh(
        self,
        objective: FloatArray,
        *,
        time_limit: float = INFINITY,
        cutoff: float = INFINITY,
    ) -> LPAnswer:
        """Minimise from the slack basis: dual simplex for some steps, then the interior point method with crossover.

        Neither is always the faster one: on small or easy programs simplex wins by 20 times, on the moves of a 20 × 20 × 20 cube it
        loses by 8. After two programs in a row that simplex could not finish, it is no longer tried. Answers dearer than ``cutoff`` are
        of no interest: simplex stops there.
        """
        if self._slow < 2:
            self.clear_basis()
            steps = max(2000, 5_000_000 // max(1, self.m))  # about half a second, but the same on every machine
            options = {"solver": "simplex", "objective_bound": cutoff, "simplex_iteration_limit": steps}
            answer = self.solve(objective, time_limit=time_limit, options=options)
            if answer.status != "limit":
                self._slow = 0
                return answer
            self._slow += 1
        self.clear_basis()
        options = {"solver": "ipm", "objective_bound": INFINITY, "simplex_iteration_limit": _NO_LIMIT}
        return self.solve(objective, time_limit=time_limit, options=options)

    def set_bounds(self, lower: FloatArray, upper: FloatArray) -> None:
        """Replace the model's own bounds for all later calls."""
        self.lower, self.upper = np.array(lower, float), np.array(upper, float)
        self._h.changeColsBounds(self.n, np.arange(self.n, dtype=np.int32), self.lower, self.upper)
        self._dirty_bounds = np.zeros(0, np.int64)

    def clear_basis(self) -> None:
        """Forget the last basis: the next call starts from the slack basis."""
        self._h.clearSolver()

    def _answer(self) -> LPAnswer:
        status = self._kind.HighsModelStatus
        names = {
            status.kOptimal: "optimal",
            status.kInfeasible: "infeasible",
            status.kUnbounded: "unbounded",
            status.kUnboundedOrInfeasible: "unbounded",
            status.kObjectiveBound: "dear",
        }
        name = names.get(self._h.getModelStatus(), "limit")
        objective = float(self._h.getInfo().objective_function_value)
        if name == "dear":
            return LPAnswer(name, objective, *[np.zeros(0)] * 3)
        solution = self._h.getSolution()
        return LPAnswer(
            name, objective, np.array(solution.col_value), np.array(solution.row_dual), np.array(solution.col_dual)
        )


class Pusher(PersistentLP):
    """Many programs max ±x_j over one matrix, each with bounds of its own: the same model with less work around each call.

    >>> lp = Pusher([[1.0, -1.0]], lower=[0, 0], upper=[0, 0], row_lower=[0], row_upper=[0])
    >>> lp.push(0, 1.0, np.zeros(2), np.array([5.0, 2.0]))[0]
    2.0
    """

    def __init__(self, *model: Any, **options: Any) -> None:
        super().__init__(*model, **options)
        self._all = np.arange(self.n, dtype=np.int32)
        self._last = 0
        self._h.changeObjectiveSense(self._kind.ObjSense.kMaximize)

    def push(
        self, column: int, sign: float, lower: FloatArray, upper: FloatArray, time_limit: float = INFINITY
    ) -> tuple[float, FloatArray, FloatArray] | None:
        """Largest ``sign · x_column``, the point and the row duals; None where the limit came first."""
        h = self._h
        h.changeColCost(self._last, 0.0)
        h.changeColCost(column, sign)
        self._last = column
        h.changeColsBounds(self.n, self._all, lower, upper)
        h.setOptionValue("time_limit", h.getRunTime() + time_limit if time_limit < INFINITY else INFINITY)
        run(h)
        if h.getModelStatus() != self._kind.HighsModelStatus.kOptimal:
            self.clear_basis()
            return None
        solution = h.getSolution()
        x = np.array(solution.col_value)
        return float(x[column] * sign), x, np.array(solution.row_dual)
