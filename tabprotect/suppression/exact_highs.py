"""The tree without SCIP: the whole-number master is solved again and again by HiGHS, cuts being added where its answer is unsafe.

HiGHS has no callback for lazy constraints. Every round's dual bound is a valid lower bound of the problem, and the first safe answer
is optimal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tabprotect.solve.stop import Stop
from tabprotect.suppression.cuts import Cut, line_bridges, row_arrays
from tabprotect.suppression.exact_root import Root
from tabprotect.suppression.heuristic_state import Witnessed
from tabprotect.suppression.separation import WHOLE
from tabprotect.types import BoolArray, FloatArray


def run(root: Root, state: Witnessed, stop: Stop) -> tuple[float, bool, BoolArray]:
    """Lower bound, whether it is proved, and the best pattern."""
    bound = root.bound
    while not stop.done:
        answer = _solve(root, state, stop)
        if answer is None:
            return bound, False, state.hidden
        value, finished, x = answer
        bound = max(bound, value)
        stop.tell("tree", cost=state.cost, bound=root.lift(min(bound, state.cost)))
        if root.lift(bound) >= state.cost - 1e-9 * abs(state.cost):
            return min(bound, state.cost), True, state.hidden
        if stop.enough(state.cost, root.lift(bound)):
            return bound, False, state.hidden
        if x is None:
            return bound, False, state.hidden
        cuts = _separate(root, x, stop)
        if not root.pool.add(cuts):
            return bound, finished, x > 0.5
    return bound, False, state.hidden


def _separate(root: Root, x: FloatArray, stop: Stop) -> list[Cut]:
    cuts = line_bridges(root.problem, x, 0.5)
    for r in root.requirements:
        if stop.done:
            return cuts
        cut, _ = root.separator.requirement(x, r, capped=False, least=WHOLE)
        if cut is not None:
            cuts.append(cut)
        capped, _ = root.separator.requirement(x, r, capped=True, least=WHOLE)
        if capped is not None:
            cuts.append(capped)
    for j in np.flatnonzero((x > 0.5) & ~root.problem.free):
        if stop.done:
            break
        bridge = root.separator.bridge(x, int(j))
        if bridge is not None:
            cuts.append(bridge)
    return cuts


def _solve(root: Root, state: Witnessed, stop: Stop) -> tuple[float, bool, FloatArray | None] | None:
    """Dual bound, whether it is the optimum of the master, and its best point; None where HiGHS says nothing."""
    import highspy

    problem, master = root.problem, root.master
    h = highspy.Highs()
    for name, value in {
        "output_flag": False,
        "threads": 1,
        "random_seed": 0,
        "time_limit": float(min(stop.left, 1e9)),
    }.items():
        h.setOptionValue(name, value)
    k = len(master.columns)
    index = np.arange(k, dtype=np.int32)
    h.addVars(k, master.fixed_in[master.columns].astype(float), 1.0 - master.fixed_out[master.columns])
    h.changeColsCost(k, index, problem.weights[master.columns])
    h.changeColsIntegrality(k, index, np.array([highspy.HighsVarType.kInteger] * k))
    for cut in root.pool.cuts:
        cells, c, rhs = row_arrays(cut)
        h.addRow(rhs, highspy.kHighsInf, len(cells), master.position[cells].astype(np.int32), c)
    h.run()
    status: Any = h.getModelStatus()
    if status == highspy.HighsModelStatus.kInfeasible:
        return state.cost, True, None  # the fixed cells leave nothing cheaper than the incumbent
    info = h.getInfo()
    x = None
    if info.primal_solution_status == 2:
        x = problem.free.astype(float)
        x[master.columns] = np.round(np.array(h.getSolution().col_value))
    return problem.base + float(info.mip_dual_bound), status == highspy.HighsModelStatus.kOptimal, x
