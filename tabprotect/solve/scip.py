"""SCIP as a back end, through PySCIPOpt: integer programs with quadratic cost too."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.solve.model import LinearModel
from tabprotect.solve.result import FEASIBLE, INFEASIBLE, LIMIT, OPTIMAL, UNBOUNDED, SolveResult
from tabprotect.solve.stop import Stop
from tabprotect.types import FloatArray


class Scip:
    """SCIP (Bolusani et al., The SCIP Optimization Suite 9.0, 2024). PySCIPOpt takes rows one by one: slower to build than HiGHS."""

    name = "scip"
    kinds = frozenset({"lp", "mip", "qp", "miqp"})
    extras = frozenset({"start", "cancel"})

    def solve(
        self,
        model: LinearModel,
        stop: Stop,
        *,
        gap: float = 0.0,
        start: FloatArray | None = None,
        seed: int = 0,
        threads: int = 1,
    ) -> SolveResult:
        began = stop.seconds
        scip, columns = build(model)
        scip.setParam("randomization/randomseedshift", seed)
        scip.setParam("limits/gap", max(gap, stop.gap))
        if stop.left < float("inf"):
            scip.setParam("limits/time", stop.left)
        if start is not None:
            point = scip.createSol()
            for column, value in zip(columns, np.asarray(start, float).tolist(), strict=True):
                scip.setSolVal(point, column, value)
            scip.addSol(point)
        _watch(scip, stop)
        scip.optimize()
        return _answer(scip, columns, stop.seconds - began)


def build(model: LinearModel) -> tuple[Any, list[Any]]:
    """A PySCIPOpt model and its variables; a quadratic cost becomes a bounded extra variable, as SCIP wants it."""
    import pyscipopt

    scip = pyscipopt.Model()
    scip.hideOutput()
    columns = [
        scip.addVar(vtype="I" if w else "C", lb=_side(lo), ub=_side(up), obj=c)
        for lo, up, c, w in zip(
            model.lower.tolist(), model.upper.tolist(), model.cost.tolist(), model.integer.tolist(), strict=True
        )
    ]
    a = sp.csr_array(model.matrix)
    for r in range(model.m):
        part = slice(a.indptr[r], a.indptr[r + 1])
        terms = pyscipopt.quicksum(
            v * columns[c] for c, v in zip(a.indices[part].tolist(), a.data[part].tolist(), strict=True)
        )
        low, high = _side(model.row_lower[r]), _side(model.row_upper[r])
        if low is None and high is None:
            continue
        if low == high:
            scip.addCons(terms == low)
        else:
            if low is not None:
                scip.addCons(terms >= low)
            if high is not None:
                scip.addCons(terms <= high)
    if model.quadratic is not None:
        curve = scip.addVar(lb=0.0, ub=None, obj=1.0)
        scip.addCons(
            pyscipopt.quicksum(
                0.5 * float(model.quadratic[c]) * columns[c] * columns[c] for c in np.flatnonzero(model.quadratic)
            )
            <= curve
        )
    scip.addObjoffset(model.offset)
    return scip, columns


def _side(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _watch(scip: Any, stop: Stop) -> None:
    """Stop on cancellation, and pass on news, at every node and every LP."""
    import pyscipopt
    from pyscipopt.scip import PY_SCIP_EVENTTYPE as kinds

    class Watch(pyscipopt.Eventhdlr):
        def eventinit(self) -> None:
            self.model.catchEvent(kinds.NODESOLVED, self)
            self.model.catchEvent(kinds.LPSOLVED, self)

        def eventexec(self, event: Any) -> None:
            if stop.cancelled:
                self.model.interruptSolve()
            if self.model.getNSols():
                stop.tell("branch and bound", cost=self.model.getPrimalbound(), bound=self.model.getDualbound())

    scip.includeEventhdlr(Watch(), "tabprotect-watch", "cancellation and progress")


def _answer(scip: Any, columns: list[Any], seconds: float) -> SolveResult:
    status = scip.getStatus()
    if status == "infeasible":
        return SolveResult(INFEASIBLE, seconds=seconds, backend="scip")
    if status in ("unbounded", "inforunbd"):
        return SolveResult(UNBOUNDED, seconds=seconds, backend="scip")
    bound = float(scip.getDualbound())
    if scip.getNSols() == 0:
        return SolveResult(LIMIT, bound=bound, seconds=seconds, backend="scip")
    best = scip.getBestSol()
    x = np.array([scip.getSolVal(best, column) for column in columns])
    name = OPTIMAL if status in ("optimal", "gaplimit") else FEASIBLE
    return SolveResult(name, x, float(scip.getObjVal()), bound, seconds=seconds, backend="scip")
