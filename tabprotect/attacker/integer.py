"""The attacker who knows that the hidden cells are whole numbers: bounds by MILP where the LP's are not whole already."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.attacker.system import Component, components
from tabprotect.solve.stop import Stop
from tabprotect.table.graph import network_of
from tabprotect.types import BoolArray, FloatArray


def integer_ranges(
    relations: Any,
    hidden: BoolArray,
    base: FloatArray,
    down: FloatArray,
    up: FloatArray,
    low: FloatArray,
    high: FloatArray,
    proved: BoolArray,
    stop: Stop,
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Reach of every hidden cell over whole-number tables; ``low`` and ``high`` are the reaches without that knowledge.

    In a network component with whole data the two agree. Elsewhere one MILP per side; a side whose MILP is not finished in time keeps what was attained, which is
    inside the true interval.
    """
    whole_base = np.rint(base)
    low, high, proved = low.copy(), high.copy(), proved.copy()
    for c in components(relations, hidden, down, up):
        room_down, room_up = np.floor(c.down + 1e-9), np.floor(c.up + 1e-9)
        fractional = np.abs(base[c.cells] - whole_base[c.cells]) > 1e-6
        if c.matrix.shape[0] == 0 or (network_of(c.matrix) is not None and not fractional.any()):
            low[c.cells], high[c.cells] = np.floor(low[c.cells] + 1e-9), np.floor(high[c.cells] + 1e-9)
            continue
        if fractional.any():
            # a completion that is not whole (a found table): bounds of the relaxation are all that is shown
            proved[c.cells] = False
            continue
        mip = _Mip(Component(c.cells, c.matrix, room_down, room_up))
        for k, cell in enumerate(c.cells):
            high[cell], ok_up = mip.reach(k, 1.0, high[cell], stop)
            low[cell], ok_down = mip.reach(k, -1.0, low[cell], stop)
            proved[cell] = ok_up and ok_down
    return low, high, proved


class _Mip:
    """max ±y_k over whole moves of one component."""

    def __init__(self, c: Component) -> None:
        import highspy

        self._h, self._kind = highspy.Highs(), highspy
        self._h.setOptionValue("output_flag", False)
        self._h.setOptionValue("threads", 1)
        a = sp.csc_array(c.matrix)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = a.shape[1], a.shape[0]
        lp.col_cost_ = np.zeros(c.n)
        lp.col_lower_, lp.col_upper_ = -c.down, c.up
        lp.row_lower_ = lp.row_upper_ = np.zeros(a.shape[0])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        lp.a_matrix_.start_, lp.a_matrix_.index_ = a.indptr.astype(np.int32), a.indices.astype(np.int32)
        lp.a_matrix_.value_ = a.data.astype(float)
        lp.integrality_ = [highspy.HighsVarType.kInteger] * c.n
        self._h.passModel(lp)

    def reach(self, k: int, sign: float, relaxed: float, stop: Stop) -> tuple[float, bool]:
        h = self._h
        if relaxed < 1 - 1e-9:
            return 0.0, True
        if not np.isfinite(relaxed):
            return relaxed, True
        h.clearSolver()
        h.changeColCost(k, sign)
        h.changeObjectiveSense(self._kind.ObjSense.kMaximize)
        h.setOptionValue("time_limit", min(stop.left, 1e9) + h.getRunTime())
        h.run()
        h.changeColCost(k, 0.0)
        optimal = h.getModelStatus() == self._kind.HighsModelStatus.kOptimal
        solution = np.array(h.getSolution().col_value)
        attained = (
            sign * float(np.rint(solution[k])) if len(solution) and h.getInfo().primal_solution_status == 2 else 0.0
        )
        return max(attained, 0.0), optimal
