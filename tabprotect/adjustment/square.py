# mypy: disable-error-code="no-untyped-def"
"""A lower bound for L2: the relaxation over absolute changes, by dual coordinate ascent.

For t = |z| the polygon inequalities ``C·t ≥ 0`` and the needs ``t ≥ l`` must hold whatever the directions. The dual of min Σ w·t² over them has one multiplier per inequality;
every choice of multipliers gives a valid bound, and raising one at a time to its best value never lowers it.
"""

from __future__ import annotations

import numba
import numpy as np

from tabprotect.adjustment.bound import least_moves
from tabprotect.adjustment.model import polygon_rows
from tabprotect.adjustment.problem import Problem
from tabprotect.solve.stop import Stop


def square_bound(problem: Problem, stop: Stop, sweeps: int = 60) -> float:
    """A proven lower bound of Σ w·z² over all adjustments."""
    rows, slack = polygon_rows(problem)
    if rows.shape[0] == 0 or slack.any():
        return least_moves(problem, "l2")
    can_rise, can_fall = problem.possible()
    need = np.zeros(problem.n)
    move = np.minimum(np.where(can_rise, problem.rise, np.inf), np.where(can_fall, problem.fall, np.inf))
    need[problem.sensitive] = np.where(np.isfinite(move), move, 0.0) / problem.scale
    multiplier, pull = np.zeros(rows.shape[0]), np.zeros(problem.n)
    for _ in range(sweeps):
        moved = _ascend(rows.indptr, rows.indices, rows.data, multiplier, pull, problem.weight, need)
        if moved < 1e-9 or stop.done:
            break
    # at these multipliers the inner minimum is at t = max(need, pull/2w)
    t = np.maximum(need, pull / (2 * problem.weight))
    value = float(problem.weight @ (t * t) - pull @ t)
    return max(value * problem.scale**2, least_moves(problem, "l2"))


@numba.njit(cache=True)
def _ascend(ptr, col, coef, multiplier, pull, weight, need):
    """One sweep: each multiplier to the root of its slope −C_r·t(multiplier), by bisection."""
    largest = 0.0
    for r in range(len(ptr) - 1):
        slope = 0.0
        for k in range(ptr[r], ptr[r + 1]):
            c = col[k]
            slope -= coef[k] * max(need[c], pull[c] / (2 * weight[c]))
        low, high = -multiplier[r], 0.0
        if slope > 0:
            low, high = 0.0, 1e-3
            while _slope(ptr, col, coef, pull, weight, need, r, high) > 0 and high < 1e12:
                low, high = high, high * 4
        elif multiplier[r] <= 0:
            continue
        for _ in range(40):
            middle = 0.5 * (low + high)
            if _slope(ptr, col, coef, pull, weight, need, r, middle) > 0:
                low = middle
            else:
                high = middle
        step = low
        if step == 0.0:
            continue
        multiplier[r] += step
        largest = max(largest, abs(step))
        for k in range(ptr[r], ptr[r + 1]):
            pull[col[k]] += step * coef[k]
    return largest


@numba.njit(cache=True)
def _slope(ptr, col, coef, pull, weight, need, r, step):
    slope = 0.0
    for k in range(ptr[r], ptr[r + 1]):
        c = col[k]
        slope -= coef[k] * max(need[c], (pull[c] + step * coef[k]) / (2 * weight[c]))
    return slope
