"""The adjustment once every sensitive cell has its direction: a convex problem.

L1 on a network table is a minimum-cost flow, on any other table a linear program; L2 is a projection onto the relations within bounds (dual Newton method of
`tabprotect.linalg.projection`); the maximum norm is a linear program.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tabprotect.adjustment.problem import Problem
from tabprotect.errors import Infeasible
from tabprotect.linalg.projection import project
from tabprotect.solve.highs import Highs
from tabprotect.solve.model import LinearModel
from tabprotect.solve.stop import Stop
from tabprotect.table.graph import Network
from tabprotect.types import FloatArray, IntArray

TIGHT = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}


def adjust_fixed(
    problem: Problem, sense: IntArray, norm: str, *, network: Network | None = None, stop: Stop | None = None
) -> FloatArray | None:
    """The best changes for these directions, or None when there are none (or none was found in time)."""
    low, high = problem.bounds(sense)
    if (low > high + 1e-12).any():
        return None
    if norm == "l2":
        z = _by_projection(problem, low, high)
        return z if z is None or not problem.whole else _whole_near(problem, z, low, high, stop or Stop())
    if norm == "l1" and network is not None and not problem.rhs.any():
        return _by_flow(problem, network, low, high)
    return _by_program(problem, low, high, norm, stop or Stop())


def polish(problem: Problem, z: FloatArray, sense: IntArray) -> FloatArray:
    """The nearest changes that keep bounds and levels exactly and the relations to the last digits.

    Solvers keep their promises to 1e-7 or so; levels are promises to respondents.
    """
    low, high = problem.bounds(sense)
    inside = np.clip(z, low, high)
    off = np.abs(problem.relations @ inside - problem.rhs).max(initial=0.0)
    if off == 0.0 or problem.whole:
        return inside
    s = problem.scale
    try:
        found = project(
            problem.relations, inside / s, weights=np.where(high > low, 1.0, np.inf),
            lower=low / s, upper=high / s, rhs=problem.rhs / s, tolerance=1e-14,
        ).x  # fmt: skip
    except Infeasible:
        return inside
    better = np.abs(problem.relations @ (found * s) - problem.rhs).max(initial=0.0)
    return np.clip(found * s, low, high) if better < off else inside


def _by_projection(problem: Problem, low: FloatArray, high: FloatArray) -> FloatArray | None:
    s = problem.scale
    weight = np.where(high > low, problem.weight, np.inf)
    start = np.where(high > low, 0.0, low / s)
    try:
        return project(
            problem.relations, start, weights=weight, lower=low / s, upper=high / s, rhs=problem.rhs / s
        ).x * s  # fmt: skip
    except Infeasible:
        return None


def _by_program(problem: Problem, low: FloatArray, high: FloatArray, norm: str, stop: Stop) -> FloatArray | None:
    """Columns z⁺ and z⁻ (and θ); every cell only has the side its bounds allow."""
    s, n, a = problem.scale, problem.n, problem.relations
    w = problem.weight * s
    lower = np.r_[np.maximum(low, 0.0), np.maximum(-high, 0.0)] / s
    upper = np.r_[np.maximum(high, 0.0), np.maximum(-low, 0.0)] / s
    matrix, rhs = sp.hstack([a, -a], format="csr"), problem.rhs / s
    integer = np.full(2 * n, problem.whole)
    if norm == "l1":
        model = LinearModel.of(
            matrix, row_lower=rhs, row_upper=rhs, cost=np.r_[w, w], lower=lower, upper=upper, integer=integer
        )
    else:
        movable = np.flatnonzero(high > low)
        k = len(movable)
        pick = sp.csr_array((w[movable], (np.arange(k), movable)), shape=(k, n))
        rows = sp.hstack([-pick, -pick, np.ones((k, 1))], format="csr")
        wide = sp.hstack([matrix, sp.csr_array((matrix.shape[0], 1))], format="csr")
        model = LinearModel.of(
            sp.vstack([wide, rows], format="csr"),
            row_lower=np.r_[rhs, np.zeros(k)],
            row_upper=np.r_[rhs, np.full(k, np.inf)],
            cost=np.r_[np.zeros(2 * n), 1.0],
            lower=np.r_[lower, 0.0],
            upper=np.r_[upper, np.inf],
            integer=np.r_[integer, False],
        )
    large = model.n > 40_000 and not problem.whole
    solver = Highs(**TIGHT, **({"solver": "ipm"} if large else {}))
    result = solver.solve(model, stop, gap=1e-4 if problem.whole else 0.0)
    if not result.found:
        return None
    z = (result.x[:n] - result.x[n : 2 * n]) * s
    return np.rint(z) if problem.whole else z


def _whole_near(problem: Problem, z: FloatArray, low: FloatArray, high: FloatArray, stop: Stop) -> FloatArray | None:
    """Whole changes near the best real ones: distance from them in the L1 norm, each cell at the slope its square has there."""
    n, a = problem.n, problem.relations
    slope = problem.weight * (2 * np.abs(z) + 1)
    for room in (1.0, np.inf):
        least, most = np.maximum(low, np.floor(z) - room), np.minimum(high, np.ceil(z) + room)
        model = LinearModel.of(
            sp.vstack(
                [
                    sp.hstack([a, sp.csr_array((a.shape[0], n))], format="csr"),
                    sp.hstack([sp.identity(n), -sp.identity(n)], format="csr"),
                    sp.hstack([sp.identity(n), sp.identity(n)], format="csr"),
                ],
                format="csr",
            ),
            row_lower=np.r_[problem.rhs, np.full(n, -np.inf), z],
            row_upper=np.r_[problem.rhs, z, np.full(n, np.inf)],
            cost=np.r_[np.zeros(n), slope],
            lower=np.r_[least, np.zeros(n)],
            upper=np.r_[most, np.full(n, np.inf)],
            integer=np.r_[np.ones(n, bool), np.zeros(n, bool)],
        )
        found = Highs(**TIGHT).solve(model, stop, gap=1e-3)
        if found.found:
            return np.rint(found.x[:n])
    return None


def _by_flow(problem: Problem, network: Network, low: FloatArray, high: FloatArray) -> FloatArray | None:
    """Moves in whole units small enough for all levels; what must move is sent first, the rest is a minimum-cost flow."""
    from ortools.graph.python import min_cost_flow

    unit = _unit(problem)
    columns = network.columns
    least = np.ceil(low[columns] / unit - 1e-9)
    most = np.floor(high[columns] / unit + 1e-9)
    if (least > most).any():
        return None
    must = np.clip(0.0, least, most)
    total = float(np.abs(must).sum()) + 1.0
    ahead, back = np.minimum(most - must, total), np.minimum(must - least, total)
    weight = problem.weight[columns]
    cost = np.maximum(np.rint(weight / weight.max() * min(2.0**61 / (network.n_nodes + 2), 1e12)), 1).astype(np.int64)
    tail, head = network.tail.astype(np.int64), network.head.astype(np.int64)
    # a cell that has to move one way has no arc the other way: it never takes back what it needs
    forth, backward = np.flatnonzero(ahead > 0), np.flatnonzero(back > 0)
    solver = min_cost_flow.SimpleMinCostFlow()
    solver.add_arcs_with_capacity_and_unit_cost(
        np.concatenate([tail[forth], head[backward]]),
        np.concatenate([head[forth], tail[backward]]),
        np.concatenate([ahead[forth], back[backward]]).astype(np.int64),
        np.concatenate([cost[forth], cost[backward]]),
    )
    # what arrives at a node by the needed moves has to leave it again
    solver.set_nodes_supplies(np.arange(network.n_nodes), np.rint(network.divergence(must)).astype(np.int64))
    if solver.solve() != solver.OPTIMAL:
        return None
    flow = solver.flows(np.arange(solver.num_arcs()))
    y = must.copy()
    y[forth] += flow[: len(forth)]
    y[backward] -= flow[len(forth) :]
    z = np.zeros(problem.n)
    z[columns] = y * unit
    return z


def _unit(problem: Problem) -> float:
    """A unit in which levels and rooms are whole numbers: a power of ten if they are decimals, else a millionth of a typical move."""
    if problem.whole:
        return 1.0
    numbers = np.concatenate([problem.rise, problem.fall])
    for digits in range(7):
        scaled = numbers * 10.0**digits
        if np.all(np.abs(scaled - np.rint(scaled)) <= 1e-9 * np.maximum(1.0, scaled)):
            return 10.0**-digits
    return problem.scale * 1e-6
