# mypy: disable-error-code="attr-defined"
"""One SCIP tree whose rows come from a Python separator through a constraint handler.

Reference: S. Bolusani et al., "The SCIP Optimization Suite 9.0" (2024), for constraint handlers; G. Codato and M. Fischetti,
"Combinatorial Benders' cuts", Operations Research 54 (2006), for the idea of a master with lazy rows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyscipopt
from pyscipopt import SCIP_HEURTIMING, SCIP_LOCKTYPE, SCIP_RESULT

from tabprotect.solve.branch import Program, TreeAnswer
from tabprotect.solve.cutting import Row
from tabprotect.solve.stop import Stop
from tabprotect.types import FloatArray

MOST_ROWS = 60
"""Most violated rows that one round of separation hands to the tree."""

ROUNDS = 2
"""Separation rounds at a node below the root."""


def solve_tree(program: Program, stop: Stop, seed: int) -> TreeAnswer:
    """Solve a program in one tree."""
    columns = np.flatnonzero(program.allowed)
    at = np.full(len(program.cost), -1, np.int64)
    at[columns] = np.arange(len(columns))
    model = pyscipopt.Model()
    model.hideOutput()
    _settings(model, stop, seed)
    variables = [model.addVar(vtype="B", obj=float(program.cost[j])) for j in columns]
    for row in program.rows:
        _constraint(model, variables, row, at)
    handler = _Handler(program, columns, at, variables, stop)
    model.includeConshdlr(
        handler, "separator", "rows found by the separator", sepapriority=100, enfopriority=-10, chckpriority=-10,
        sepafreq=1, propfreq=-1, eagerfreq=-1, maxprerounds=0, needscons=False,
    )  # fmt: skip
    if program.repair is not None:
        model.includeHeur(
            _Guided(program, columns, variables, handler), "guided", "patterns along the relaxation", "g",
            priority=1000, freq=8, timingmask=SCIP_HEURTIMING.AFTERLPNODE,
        )  # fmt: skip
    start = model.createSol()
    for v, j in zip(variables, columns, strict=True):
        model.setSolVal(start, v, float(program.start[j]))
    handler.trusted = program.start
    model.addSol(start)
    # the wrapper's optimize releases nothing to other threads, but callbacks see the stop often enough
    model.optimize()
    return _answer(program, model, columns, variables, handler)


def _settings(model: Any, stop: Stop, seed: int) -> None:
    model.setPresolve(pyscipopt.SCIP_PARAMSETTING.OFF)
    options: dict[str, Any] = {
        "misc/catchctrlc": False,
        # rows still unknown to SCIP may break the symmetries and the dual arguments it sees in those it knows
        "misc/usesymmetry": 0,
        "misc/allowstrongdualreds": False,
        "misc/allowweakdualreds": False,
        "randomization/randomseedshift": seed % 2**31,
        "separating/maxroundsroot": 60,
        "separating/maxrounds": ROUNDS,
        "separating/maxstallroundsroot": 10,
        "timing/clocktype": 2,
    }
    if np.isfinite(stop.left):
        options["limits/time"] = max(stop.left, 0.01)
    model.setParams(options)


def _constraint(model: Any, variables: list[Any], row: Row, at: Any) -> None:
    here = at[row.columns]
    keep = here >= 0
    terms = pyscipopt.quicksum(float(c) * variables[i] for i, c in zip(here[keep], row.values[keep], strict=True))
    if keep.any():
        model.addCons(terms >= row.rhs, removable=True, check=False, enforce=False)


class _Handler(pyscipopt.Conshdlr):
    """Separates fractional and integral points; integral points without violated rows are feasible."""

    def __init__(self, program: Program, columns: Any, at: Any, variables: list[Any], stop: Stop) -> None:
        self.program, self.columns, self.at, self.variables, self.stop = program, columns, at, variables, stop
        self.trusted: FloatArray | None = None
        self.best, self.best_cost = program.start, float(program.cost @ program.start)

    def point(self, solution: Any = None) -> FloatArray:
        x = np.zeros(len(self.program.cost))
        get = self.model.getSolVal
        x[self.columns] = [get(solution, v) for v in self.variables]
        return np.clip(x, 0.0, 1.0)

    def feasible(self, x: FloatArray) -> bool:
        rounded = np.rint(x)
        if self.trusted is not None and (rounded == self.trusted).all():
            return True
        if self.program.separate(rounded, True, False):
            return False
        cost = float(self.program.cost @ rounded)
        if cost < self.best_cost:
            self.best, self.best_cost = rounded, cost
        return True

    def cut(self, x: FloatArray, integral: bool) -> int:
        rows = self.program.separate(x, integral, self.model.getDepth() == 0)
        if len(rows) > MOST_ROWS:
            rows = sorted(rows, key=lambda r: r.slack(x) / float(np.sqrt(r.values @ r.values)))[:MOST_ROWS]
        model, result = self.model, SCIP_RESULT.DIDNOTFIND
        for row in rows:
            lp_row = model.createEmptyRowUnspec("cut", lhs=float(row.rhs), rhs=None, local=False, removable=True)
            model.cacheRowExtensions(lp_row)
            here = self.at[row.columns]
            for i, c in zip(here.tolist(), row.values.tolist(), strict=True):
                if i >= 0:
                    model.addVarToRow(lp_row, self.variables[i], c)
            model.flushRowExtensions(lp_row)
            infeasible = model.addCut(lp_row, forcecut=True)
            model.addPoolCut(lp_row)
            model.releaseRow(lp_row)
            if infeasible:
                return int(SCIP_RESULT.CUTOFF)
            result = SCIP_RESULT.SEPARATED
        return int(result)

    def _news(self) -> None:
        if self.stop.done:
            self.model.interruptSolve()
        self.stop.tell("tree", cost=self.best_cost, bound=min(self.model.getDualbound(), self.best_cost))

    def conssepalp(self, constraints: Any, nusefulconss: int) -> dict[str, int]:
        self._news()
        if self.stop.done:
            return {"result": SCIP_RESULT.DIDNOTRUN}
        return {"result": self.cut(self.point(), False)}

    def consenfolp(self, constraints: Any, nusefulconss: int, solinfeasible: bool) -> dict[str, int]:
        x = self.point()
        if self.feasible(x):
            return {"result": SCIP_RESULT.FEASIBLE}
        result = self.cut(np.rint(x), True)
        return {"result": SCIP_RESULT.INFEASIBLE if result == SCIP_RESULT.DIDNOTFIND else result}

    def consenfops(
        self, constraints: Any, nusefulconss: int, solinfeasible: bool, objinfeasible: bool
    ) -> dict[str, int]:
        return {"result": SCIP_RESULT.FEASIBLE if self.feasible(self.point()) else SCIP_RESULT.INFEASIBLE}

    def conscheck(
        self,
        constraints: Any,
        solution: Any,
        checkintegrality: bool,
        checklprows: bool,
        printreason: bool,
        completely: bool,
    ) -> dict[str, int]:
        return {"result": SCIP_RESULT.FEASIBLE if self.feasible(self.point(solution)) else SCIP_RESULT.INFEASIBLE}

    def conslock(self, constraint: Any, locktype: int, nlockspos: int, nlocksneg: int) -> None:
        for v in self.variables:
            self.model.addVarLocksType(v, SCIP_LOCKTYPE.MODEL, nlockspos + nlocksneg, nlockspos + nlocksneg)


class _Guided(pyscipopt.Heur):
    """Offers points that the caller builds along the relaxation."""

    def __init__(self, program: Program, columns: Any, variables: list[Any], handler: _Handler) -> None:
        self.program, self.columns, self.variables, self.handler, self.calls = program, columns, variables, handler, 0

    def heurexec(self, heurtiming: int, nodeinfeasible: bool) -> dict[str, int]:
        if nodeinfeasible or self.handler.stop.done or self.program.repair is None:
            return {"result": SCIP_RESULT.DIDNOTRUN}
        self.calls += 1
        x = self.program.repair(self.handler.point(), self.calls)
        if x is None or float(self.program.cost @ x) >= self.handler.best_cost - 1e-9:
            return {"result": SCIP_RESULT.DIDNOTFIND}
        if (x > 0.5)[~self.program.allowed].any():
            # cheaper than the start, yet with a column that reduced costs had excluded: only possible within rounding
            return {"result": SCIP_RESULT.DIDNOTFIND}
        solution = self.model.createSol(self)
        for v, j in zip(self.variables, self.columns, strict=True):
            self.model.setSolVal(solution, v, float(x[j]))
        taken = self.model.trySol(solution)
        return {"result": SCIP_RESULT.FOUNDSOL if taken else SCIP_RESULT.DIDNOTFIND}


def _answer(program: Program, model: Any, columns: Any, variables: list[Any], handler: _Handler) -> TreeAnswer:
    status, nodes = model.getStatus(), int(model.getNTotalNodes())
    finished = status in ("optimal", "infeasible")
    bound = handler.best_cost if finished else min(float(model.getDualbound()), handler.best_cost)
    return TreeAnswer(handler.best, bound, finished, nodes, "scip")
