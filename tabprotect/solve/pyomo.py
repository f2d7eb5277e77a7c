"""Export to Pyomo: the same model for any solver Pyomo can drive, or as an LP or MPS file.

Building through Pyomo costs some hundred times the direct load, so this is the way out to other solvers and never the default.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.errors import SolverUnavailable
from tabprotect.solve.model import LinearModel
from tabprotect.solve.result import FEASIBLE, INFEASIBLE, LIMIT, OPTIMAL, UNBOUNDED, SolveResult
from tabprotect.solve.stop import Stop
from tabprotect.types import FloatArray


def to_pyomo(model: LinearModel) -> Any:
    """A Pyomo ``ConcreteModel`` with variables ``x[j]``, constraints ``row[i]`` and objective ``cost``.

    >>> model = LinearModel.of([[1, 1]], row_lower=[1], row_upper=[1], cost=[1, 2])
    >>> len(to_pyomo(model).x)
    2
    """
    import pyomo.environ as pyo

    out = pyo.ConcreteModel()
    lower, upper = model.lower.tolist(), model.upper.tolist()
    finite = float("inf")
    out.x = pyo.Var(
        range(model.n),
        within=pyo.Reals,
        bounds=lambda _, j: (
            None if lower[j] == -finite else lower[j],
            None if upper[j] == finite else upper[j],
        ),
    )
    for j in np.flatnonzero(model.integer).tolist():
        out.x[j].domain = pyo.Integers
    a = sp.csr_array(model.matrix)
    out.row = pyo.ConstraintList()
    for r in range(model.m):
        part = slice(a.indptr[r], a.indptr[r + 1])
        if a.indptr[r] == a.indptr[r + 1]:
            continue
        terms = sum(v * out.x[c] for c, v in zip(a.indices[part].tolist(), a.data[part].tolist(), strict=True))
        low, high = float(model.row_lower[r]), float(model.row_upper[r])
        if low == high:
            out.row.add(terms == low)
        elif low > -finite or high < finite:
            out.row.add((None if low == -finite else low, terms, None if high == finite else high))
    cost = sum(float(model.cost[j]) * out.x[j] for j in np.flatnonzero(model.cost).tolist()) + model.offset
    if model.quadratic is not None:
        cost = cost + sum(
            0.5 * float(model.quadratic[j]) * out.x[j] ** 2 for j in np.flatnonzero(model.quadratic).tolist()
        )
    out.cost = pyo.Objective(expr=cost)
    return out


def export(model: LinearModel, path: str | Path) -> Path:
    """Write the model to a file another solver reads; the ending chooses the format (``.lp``, ``.mps``, ``.nl``)."""
    path = Path(path)
    part = path.with_name("." + path.stem + ".part" + path.suffix)
    to_pyomo(model).write(str(part), io_options={"symbolic_solver_labels": False})
    part.rename(path)
    return path


class Pyomo:
    """Any solver of Pyomo's list; ``engine`` is Pyomo's name of it (``appsi_highs``, ``scip``, ``gurobi``, ``cplex``, ``cbc``, …)."""

    name = "pyomo"
    kinds = frozenset({"lp", "mip"})
    extras: frozenset[str] = frozenset()

    def __init__(self, engine: str = "appsi_highs") -> None:
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
        from pyomo.contrib import appsi
        from pyomo.opt import SolverFactory

        began = stop.seconds
        built = to_pyomo(model)
        if self.engine == "appsi_highs":
            solver: Any = appsi.solvers.Highs()
            solver.config.load_solution = False
            solver.highs_options = {"output_flag": False, "random_seed": seed, "threads": threads}
            if stop.left < float("inf"):
                solver.config.time_limit = stop.left
            solver.config.mip_gap = max(gap, stop.gap)
            answer = solver.solve(built)
            return _answer(answer, built, model, stop.seconds - began)
        solver = SolverFactory(self.engine)
        if not solver.available(exception_flag=False):
            raise SolverUnavailable(f"Pyomo does not find the solver {self.engine!r} on this machine")
        outcome = solver.solve(built, timelimit=stop.left if stop.left < float("inf") else None)
        x = np.array([built.x[j].value if built.x[j].value is not None else np.nan for j in range(model.n)])
        if np.isnan(x).any():
            return SolveResult(LIMIT, seconds=stop.seconds - began, backend="pyomo")
        proved = str(outcome.solver.termination_condition) == "optimal"
        value = model.objective(x)
        bound = value if proved else float("-inf")
        return SolveResult(
            OPTIMAL if proved else FEASIBLE, x, value, bound, seconds=stop.seconds - began, backend="pyomo"
        )


def _answer(answer: Any, built: Any, model: LinearModel, seconds: float) -> SolveResult:
    from pyomo.contrib.appsi.base import TerminationCondition as End

    if answer.termination_condition == End.infeasible:
        return SolveResult(INFEASIBLE, seconds=seconds, backend="pyomo")
    if answer.termination_condition in (End.unbounded, End.infeasibleOrUnbounded):
        return SolveResult(UNBOUNDED, seconds=seconds, backend="pyomo")
    bound = answer.best_objective_bound
    bound = float("-inf") if bound is None else float(bound)
    if answer.best_feasible_objective is None:
        return SolveResult(LIMIT, bound=bound, seconds=seconds, backend="pyomo")
    answer.solution_loader.load_vars()
    x = np.array([0.0 if built.x[j].value is None else float(built.x[j].value) for j in range(model.n)])
    x = np.where(np.isnan(x), np.clip(0.0, model.lower, model.upper), x)
    name = OPTIMAL if answer.termination_condition == End.optimal else FEASIBLE
    return SolveResult(name, x, model.objective(x), bound, seconds=seconds, backend="pyomo")
