"""A linear program that changes a little from solve to solve: bounds move and rows are added, and the dual simplex method goes on from the last basis."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.solve.highs import to_highs
from tabprotect.solve.model import LinearModel
from tabprotect.types import FloatArray, IntArray


class WarmLP:
    """min cost·x of a `LinearModel` (integrality is ignored).

    >>> lp = WarmLP(LinearModel.of([[1, 1]], row_lower=[1.5], row_upper=[np.inf], cost=[1, 2], upper=[1, 5]))
    >>> lp.solve()
    2.0
    >>> lp.add_rows(sp.csr_array([[0.0, 1.0]]), np.array([1.0])); lp.solve()
    2.5
    >>> lp.set_bounds(np.array([0]), np.array([0.0]), np.array([0.0])); lp.solve(limit=2.9)
    inf
    """

    def __init__(self, model: LinearModel, **options: Any) -> None:
        import highspy

        self._h = highspy.Highs()
        self._kind = highspy
        for name, value in {"output_flag": False, "threads": 1, "random_seed": 0, **options}.items():
            self._h.setOptionValue(name, value)
        self._h.passModel(to_highs(model.relaxed()))

    def solve(self, limit: float = np.inf, time_limit: float = np.inf) -> float:
        """The optimal value; infinite when there is no solution, none within ``limit``, or the time was too short."""
        h, status = self._h, self._kind.HighsModelStatus
        if time_limit <= 0:
            return np.inf
        h.setOptionValue("objective_bound", float(limit))
        # HiGHS compares the limit with its own clock, which runs on from call to call
        h.setOptionValue("time_limit", h.getRunTime() + time_limit if np.isfinite(time_limit) else np.inf)
        h.run()
        if h.getModelStatus() != status.kOptimal:
            return np.inf
        value = float(h.getInfo().objective_function_value)
        return value if value <= limit else np.inf

    def set_bounds(self, columns: IntArray, lower: FloatArray, upper: FloatArray) -> None:
        self._h.changeColsBounds(len(columns), columns.astype(np.int32), lower, upper)

    def add_rows(self, rows: Any, least: FloatArray) -> None:
        """Rows ``rows @ x ≥ least``."""
        a = sp.csr_array(rows)
        self._h.addRows(
            a.shape[0], least, np.full(a.shape[0], np.inf), a.nnz,
            a.indptr[:-1].astype(np.int32), a.indices.astype(np.int32), a.data.astype(float),
        )  # fmt: skip

    def set_row_lower(self, first: int, least: FloatArray) -> None:
        """New lower sides of the rows from ``first`` on."""
        for k, value in enumerate(least.tolist()):
            self._h.changeRowBounds(first + k, value, np.inf)

    def set_column(self, column: int, first: int, values: FloatArray) -> None:
        """New coefficients of one column in the rows from ``first`` on."""
        for k, value in enumerate(values.tolist()):
            self._h.changeCoeff(first + k, column, value)

    @property
    def x(self) -> FloatArray:
        return np.array(self._h.getSolution().col_value)

    @property
    def reduced(self) -> FloatArray:
        return np.array(self._h.getSolution().col_dual)

    @property
    def duals(self) -> FloatArray:
        return np.array(self._h.getSolution().row_dual)

    @property
    def basis(self) -> Any:
        return self._h.getBasis()

    @basis.setter
    def basis(self, basis: Any) -> None:
        self._h.setBasis(basis)
