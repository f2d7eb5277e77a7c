"""OR-Tools as a back end: Glop or PDLP for linear, SCIP or CP-SAT for integer programs, loaded from arrays in one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.solve.model import LinearModel
from tabprotect.solve.result import FEASIBLE, INFEASIBLE, LIMIT, OPTIMAL, UNBOUNDED, SolveResult
from tabprotect.solve.stop import Stop
from tabprotect.types import FloatArray


class OrTools:
    """Solvers shipped with OR-Tools, through its model builder; ``engine`` is one of its names (``glop``, ``pdlp``, ``scip``, ``sat``).

    Its SCIP cannot be interrupted from outside: a cancelled `Stop` is seen when the call ends, a time limit is kept.
    """

    name = "ortools"
    kinds = frozenset({"lp", "mip"})
    extras = frozenset({"duals", "start"})

    def __init__(self, engine: str | None = None) -> None:
        self.engine = engine

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
        from ortools.linear_solver.python import model_builder_helper as mb

        began = stop.seconds
        whole = bool(model.integer.any())
        engine = self.engine or ("scip" if whole else "glop")
        helper = mb.ModelBuilderHelper()
        helper.fill_model_from_sparse_data(
            model.lower, model.upper, model.cost, model.row_lower, model.row_upper, sp.csr_matrix(model.matrix)
        )
        helper.set_objective_offset(model.offset)
        for column in np.flatnonzero(model.integer).tolist():
            helper.set_var_integrality(column, True)
        if start is not None and whole:
            for column, value in enumerate(np.asarray(start, float).tolist()):
                helper.add_hint(column, value)
        solver = mb.ModelSolverHelper(engine)
        if stop.left < float("inf"):
            solver.set_time_limit_in_seconds(max(stop.left, 1e-3))
        if engine == "scip":
            solver.set_solver_specific_parameters(
                f"limits/gap={max(gap, stop.gap)}\nrandomization/randomseedshift={seed}"
            )
        solver.solve(helper)
        return _answer(solver, model, stop.seconds - began)


def _answer(solver: Any, model: LinearModel, seconds: float) -> SolveResult:
    from ortools.linear_solver.python.model_builder_helper import SolveStatus

    status = solver.status() if solver.has_response() else None
    if status == SolveStatus.INFEASIBLE:
        return SolveResult(INFEASIBLE, seconds=seconds, backend="ortools")
    if status == SolveStatus.UNBOUNDED:
        return SolveResult(UNBOUNDED, seconds=seconds, backend="ortools")
    if not solver.has_response() or not solver.has_solution():
        return SolveResult(LIMIT, seconds=seconds, backend="ortools")
    objective = float(solver.objective_value())
    whole = bool(model.integer.any())
    name = OPTIMAL if status == SolveStatus.OPTIMAL else FEASIBLE
    bound = float(solver.best_objective_bound()) if whole else objective if name == OPTIMAL else float("-inf")
    duals, reduced = np.zeros(0), np.zeros(0)
    if not whole:
        duals, reduced = np.array(solver.dual_values()), np.array(solver.reduced_costs())
    return SolveResult(name, np.array(solver.variable_values()), objective, bound, duals, reduced, seconds, "ortools")
