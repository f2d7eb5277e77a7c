# mypy: disable-error-code="no-untyped-def"
"""The nearest rounding of tables that are networks: a minimum-cost flow.

In a network table every cell is an arc and every relation the conservation of flow at a node, so the relaxation that lets cells take any value
between their two multiples has whole-number corners: a controlled rounding always exists, and the nearest one is a minimum-cost flow.

Reference: L. H. Cox and L. R. Ernst, "Controlled rounding", INFOR 20 (1982).
"""

from __future__ import annotations

from dataclasses import replace

import numba
import numpy as np

from tabprotect.errors import Infeasible
from tabprotect.rounding.cheapest import certify, cheapest_flow
from tabprotect.rounding.grid import Grid
from tabprotect.table.graph import Network
from tabprotect.types import FloatArray, IntArray

# the primal-dual method needs a round for every length a path can have: few, where costs are few whole numbers or nodes are few
FEW_NODES, FEW_COSTS = 3_000, 100


def nearest_by_flow(
    grid: Grid, network: Network, *, seed: int = 0, prefer: FloatArray | None = None
) -> tuple[IntArray, float]:
    """The steps of least cost and a proven lower bound of the cost; ``prefer`` is where each cell should be near to, its true place by default.

    Starting from the nearest steps of all cells, every further step is an arc of its own whose cost is what the step adds. Costs become whole
    numbers, exactly where the table is one of whole numbers, else to 10 digits (the bound says so).
    """
    wanted = grid if prefer is None else replace(grid, target=prefer)
    x = wanted.nearest()
    columns = network.columns
    cells, tail, head, cost = _steps(
        network.tail, network.head, x[columns], wanted.low[columns], wanted.high[columns],
        wanted.target[columns], wanted.weight[columns],
    )  # fmt: skip
    # the true table satisfies the relations, so its own divergence is the demand of every node, signs included
    excess = np.rint(network.divergence(x[columns] - grid.target[columns])).astype(np.int64)
    whole, unit = _whole_costs(cost, network.n_nodes)
    if network.n_nodes <= FEW_NODES or whole.max(initial=0) <= FEW_COSTS:
        used = cheapest_flow(network.n_nodes, tail, head, whole, excess, seed)
    else:
        used = _by_cost_scaling(network.n_nodes, tail, head, whole, excess)
    up = tail[used] == network.tail[cells[used]]
    np.add.at(x, columns[cells[used]], np.where(up, 1, -1))
    slack = 0.0 if np.allclose(whole * unit, cost, rtol=1e-12, atol=0) else unit * len(cells)
    total = wanted.cost(x)
    return x, total - min(slack, total)


@numba.njit(cache=True)
def _steps(tail, head, x, low, high, target, weight):
    """All single steps away from x as arcs: position of the cell, tail, head, cost; costs are not negative and grow with the distance."""
    count = 0
    for i in range(len(x)):
        count += high[i] - low[i]
    cell, start, end = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count, np.int32)
    cost = np.empty(count)
    k = 0
    for i in range(len(x)):
        for s in range(low[i], high[i]):
            # the step between s and s + 1, upwards or downwards
            up = s >= x[i]
            more = weight[i] * (abs(s + 1 - target[i]) - abs(s - target[i]))
            cell[k], cost[k] = i, max(more if up else -more, 0.0)
            start[k], end[k] = (tail[i], head[i]) if up else (head[i], tail[i])
            k += 1
    return cell, start, end, cost


def _whole_costs(cost: FloatArray, n_nodes: int) -> tuple[IntArray, float]:
    """Costs as whole numbers and the unit they are counted in: an exact decimal unit if there is one."""
    top = float(cost.max(initial=0.0))
    limit = 2**60 / (n_nodes + 2)
    for digits in range(10):
        scaled = cost * 10.0**digits
        if top * 10.0**digits > limit:
            break
        if np.all(np.abs(scaled - np.rint(scaled)) <= 1e-9 * np.maximum(1.0, scaled)):
            return np.rint(scaled).astype(np.int64), 10.0**-digits
    unit = max(top, 1e-300) / min(limit, 1e10)
    return np.floor(cost / unit).astype(np.int64), unit


def _by_cost_scaling(n: int, tail: IntArray, head: IntArray, cost: IntArray, excess: IntArray) -> IntArray:
    """Indices of the unit arcs that carry away the excess at least cost, by the flow solver of ortools; its answer is checked by node prices."""
    from ortools.graph.python import min_cost_flow

    solver = min_cost_flow.SimpleMinCostFlow()
    solver.add_arcs_with_capacity_and_unit_cost(tail, head, np.ones(len(tail), np.int64), cost)
    solver.set_nodes_supplies(np.arange(n), excess)
    status = solver.solve()
    if status != solver.OPTIMAL:
        raise Infeasible(f"no additive rounding exists with the multiples that are allowed ({status.name.lower()})")
    used = solver.flows(np.arange(len(tail))) > 0
    certify(n, tail, head, cost, excess, used, _prices(n, tail, head, cost, used))
    return np.flatnonzero(used)


@numba.njit(cache=True)
def _prices(n, tail, head, cost, used):
    """Shortest distances over arcs with room, from everywhere at once (Bellman–Ford): an optimal flow leaves no negative cycle."""
    price = np.zeros(n, np.int64)
    for _ in range(n + 1):
        changed = False
        for e in range(len(tail)):
            u, v, c = tail[e], head[e], cost[e]
            if used[e]:
                u, v, c = v, u, -c
            if price[u] + c < price[v]:
                price[v] = price[u] + c
                changed = True
        if not changed:
            break
    return price
