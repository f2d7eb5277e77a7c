"""HiGHS as a back end: linear, mixed-integer and convex quadratic programs, with start, duals and cancellation."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.solve.model import LinearModel
from tabprotect.solve.result import FEASIBLE, INFEASIBLE, LIMIT, OPTIMAL, UNBOUNDED, SolveResult
from tabprotect.solve.stop import Stop
from tabprotect.types import FloatArray


class Highs:
    """HiGHS through highspy (Huangfu & Hall, Math. Prog. Comp. 10, 2018)."""

    name = "highs"
    kinds = frozenset({"lp", "mip", "qp"})
    extras = frozenset({"duals", "start", "cancel"})

    def __init__(self, **options: Any) -> None:
        self.options = options

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
        import highspy

        began = stop.seconds
        h = highspy.Highs()
        options = {
            # without output HiGHS has no news for the listener either
            "output_flag": stop.listener is not None,
            "log_to_console": False,
            "threads": threads,
            "random_seed": seed,
            "mip_rel_gap": max(gap, stop.gap),
            "mip_abs_gap": 1e-9,
            "time_limit": stop.left,
            **self.options,
        }
        for name, value in options.items():
            h.setOptionValue(name, value)
        h.passModel(to_highs(model))
        if model.quadratic is not None:
            _hessian(h, model.quadratic)
        if start is not None:
            point = highspy.HighsSolution()
            point.col_value = list(map(float, start))
            h.setSolution(point)
        _watch(h, stop)
        h.run()
        return _answer(h, model, stop.seconds - began)


def to_highs(model: LinearModel) -> Any:
    """The model as HiGHS takes it, without its quadratic part."""
    import highspy

    a = sp.csc_array(model.matrix)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = model.n, model.m
    lp.col_cost_, lp.offset_ = model.cost, model.offset
    lp.col_lower_, lp.col_upper_ = model.lower, model.upper
    lp.row_lower_, lp.row_upper_ = model.row_lower, model.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = a.indptr.astype(np.int32)
    lp.a_matrix_.index_ = a.indices.astype(np.int32)
    lp.a_matrix_.value_ = a.data
    if model.integer.any():
        whole, free = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        lp.integrality_ = [whole if w else free for w in model.integer.tolist()]
    return lp


def _hessian(h: Any, diagonal: FloatArray) -> None:
    n = len(diagonal)
    used = np.flatnonzero(diagonal)
    starts = np.searchsorted(used, np.arange(n))
    kind = 1  # HessianFormat.kTriangular
    h.passHessian(n, len(used), kind, starts.astype(np.int32), used.astype(np.int32), diagonal[used])


def _watch(h: Any, stop: Stop) -> None:
    """Stop on cancellation, and pass on news of the tree search."""

    def interrupt(event: Any) -> None:
        if stop.cancelled:
            event.interrupt()

    def news(event: Any) -> None:
        out = event.data_out
        best = float(out.mip_primal_bound)
        stop.tell("branch and bound", cost=best if np.isfinite(best) else None, bound=float(out.mip_dual_bound))

    for callback in (h.cbSimplexInterrupt, h.cbIpmInterrupt, h.cbMipInterrupt):
        callback.subscribe(interrupt)
    if stop.listener is not None:
        h.cbMipLogging.subscribe(news)


def _answer(h: Any, model: LinearModel, seconds: float) -> SolveResult:
    import highspy

    status, info = highspy.HighsModelStatus, h.getInfo()
    found = h.getModelStatus()
    if found == status.kInfeasible:
        return SolveResult(INFEASIBLE, seconds=seconds, backend="highs")
    if found in (status.kUnbounded, status.kUnboundedOrInfeasible):
        return SolveResult(UNBOUNDED, seconds=seconds, backend="highs")
    whole = bool(model.integer.any())
    bound = float(info.mip_dual_bound) if whole else float("-inf")
    feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    if not feasible:
        return SolveResult(LIMIT, bound=bound, seconds=seconds, backend="highs")
    solution = h.getSolution()
    x = np.array(solution.col_value)
    objective = float(info.objective_function_value)
    name = OPTIMAL if found == status.kOptimal else FEASIBLE
    if not whole and name == OPTIMAL:
        bound = objective
    duals, reduced = np.zeros(0), np.zeros(0)
    if not whole and solution.dual_valid:
        duals, reduced = np.array(solution.row_dual), np.array(solution.col_dual)
    return SolveResult(name, x, objective, bound, duals, reduced, seconds, "highs")
