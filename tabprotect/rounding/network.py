# mypy: disable-error-code="no-untyped-def"
"""Rounding of tables that are networks: minimum-cost flow for the nearest table, random cycles for the unbiased one.

In a network table every cell is an arc and every relation the conservation of flow at a node, so the relaxation that lets cells take any value
between their two multiples has whole-number corners: a controlled rounding always exists, and the nearest one is a minimum-cost flow.

References: L. H. Cox and L. R. Ernst, "Controlled rounding", INFOR 20 (1982); L. H. Cox, "A constructive procedure for unbiased controlled
rounding", J. Am. Statist. Assoc. 82 (1987).
"""

from __future__ import annotations

from dataclasses import replace

import numba
import numpy as np

from tabprotect.errors import Infeasible
from tabprotect.rounding.grid import Grid
from tabprotect.solve.flow import flow_graph
from tabprotect.table.graph import Network
from tabprotect.types import FloatArray, IntArray

# with more arcs than this, the flow is solved on the cheap ones first
MANY = 60_000
PER_NODE = 3


def nearest_by_flow(
    grid: Grid, network: Network, *, seed: int = 0, prefer: FloatArray | None = None
) -> tuple[IntArray, float]:
    """The steps of least cost and a proven lower bound of the cost; ``prefer`` is where each cell should be near to, its true place by default.

    Starting from the nearest steps of all cells, every further step is an arc of its own whose cost is what the step adds. Costs become whole
    numbers, exactly where the table is one of whole numbers, else to 10 digits (the bound says so).
    """
    wanted = grid if prefer is None else replace(grid, target=prefer)
    x = wanted.nearest()
    cells, tail, head, cost, sign = _steps(wanted, network, x)
    excess = network.divergence(x[network.columns].astype(float)) - _demand(grid, network)
    whole, unit = _whole_costs(cost, network.n_nodes)
    used = _cheapest_flow(network.n_nodes, tail, head, whole, np.rint(excess).astype(np.int64), seed)
    np.add.at(x, cells[used], sign[used])
    slack = 0.0 if np.allclose(whole * unit, cost, rtol=1e-12, atol=0) else unit * len(cells)
    total = wanted.cost(x)
    return x, total - min(slack, total)


def _demand(grid: Grid, network: Network) -> FloatArray:
    """What must flow into every node beyond the arcs: the right-hand sides, with the network's signs; the ground takes the rest."""
    y = grid.target[network.columns]
    # the true table satisfies the relations, so its own divergence is the demand, signs included
    return np.rint(network.divergence(y) * 1e6) / 1e6


def _steps(grid: Grid, network: Network, x: IntArray) -> tuple[IntArray, IntArray, IntArray, FloatArray, IntArray]:
    """All single steps away from x as arcs: cell, tail, head, cost, sign; costs are not negative and grow with the distance."""
    columns = network.columns
    tail, head = network.tail.astype(np.int64), network.head.astype(np.int64)
    now, target, weight = x[columns], grid.target[columns], grid.weight[columns]
    parts: list[tuple[IntArray, IntArray, IntArray, FloatArray, IntArray]] = []
    for sign, room in ((1, grid.high[columns] - now), (-1, now - grid.low[columns])):
        for k in range(1, int(room.max(initial=0)) + 1):
            arcs = np.flatnonzero(room >= k)
            here = now[arcs] + sign * k
            more = weight[arcs] * (np.abs(here - target[arcs]) - np.abs(here - sign - target[arcs]))
            ends = (tail[arcs], head[arcs]) if sign > 0 else (head[arcs], tail[arcs])
            parts.append((columns[arcs], *ends, np.maximum(more, 0.0), np.full(len(arcs), sign)))
    if not parts:
        none = np.zeros(0, np.int64)
        return none, none, none, np.zeros(0), none
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


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


def _cheapest_flow(n: int, tail: IntArray, head: IntArray, cost: IntArray, excess: IntArray, seed: int) -> IntArray:
    """Indices of the unit arcs used to carry away the excess at least cost.

    Large networks are solved on their cheap arcs, then arcs that the node prices say would help are added until none is left
    (column generation): of a million cells about one in a hundred is ever looked at by the flow solver.
    """
    if not excess.any():
        return np.zeros(0, np.int64)
    m = len(tail)
    chosen = np.ones(m, bool)
    if m > MANY and m > 2 * PER_NODE * n:
        key = cost + np.random.default_rng(seed).random(m)
        chosen[:] = False
        chosen[np.argpartition(key, PER_NODE * n)[: PER_NODE * n]] = True
    # emergency arcs to an extra node keep every intermediate problem solvable; they cost more than any way through the table
    dear = int(cost.max(initial=0)) * min(n, 10**4) + 1
    while True:
        arcs = np.flatnonzero(chosen)
        flow, spare, price = _solve(n, tail[arcs], head[arcs], cost[arcs], excess, dear)
        better = ~chosen
        better &= cost + price[tail] - price[head] < 0
        if not better.any():
            break
        chosen |= better
    if spare:
        raise Infeasible("no additive rounding exists with the multiples that are allowed")
    return arcs[flow > 0]


def _solve(
    n: int, tail: IntArray, head: IntArray, cost: IntArray, excess: IntArray, dear: int
) -> tuple[IntArray, bool, IntArray]:
    """Flows of the arcs, whether emergency arcs are used, and node prices at which no arc of the network would help."""
    from ortools.graph.python import min_cost_flow

    solver = min_cost_flow.SimpleMinCostFlow()
    nodes = np.arange(n, dtype=np.int64)
    room = int(np.abs(excess).sum())
    all_tails = np.concatenate([tail, nodes, np.full(n, n)])
    all_heads = np.concatenate([head, np.full(n, n), nodes])
    all_costs = np.concatenate([cost, np.full(2 * n, dear)])
    capacity = np.concatenate([np.ones(len(tail), np.int64), np.full(2 * n, room)])
    solver.add_arcs_with_capacity_and_unit_cost(all_tails, all_heads, capacity, all_costs)
    solver.set_nodes_supplies(np.arange(n + 1), np.concatenate([excess, [-excess.sum()]]))
    status = solver.solve()
    if status != solver.OPTIMAL:
        raise Infeasible(f"the flow of the rounding has no solution ({status.name.lower()})")
    flow = solver.flows(np.arange(len(all_tails)))
    price = _prices(n + 1, all_tails, all_heads, all_costs, flow, capacity)
    return flow[: len(tail)], bool(flow[len(tail) :].any()), price


@numba.njit(cache=True)
def _prices(n, tail, head, cost, flow, capacity):
    """Shortest distances over arcs with room, from everywhere at once (Bellman–Ford): an optimal flow leaves no negative cycle."""
    price = np.zeros(n, np.int64)
    for _ in range(n + 1):
        changed = False
        for e in range(len(tail)):
            u, v, c = tail[e], head[e], cost[e]
            if flow[e] < capacity[e] and price[u] + c < price[v]:
                price[v] = price[u] + c
                changed = True
            if flow[e] > 0 and price[v] - c < price[u]:
                price[u] = price[v] - c
                changed = True
        if not changed:
            break
    return price


def unbiased_by_cycles(grid: Grid, network: Network, *, seed: int = 0) -> IntArray:
    """Random steps with the true value as expectation of every cell, and all relations kept (Cox 1987).

    As long as a cell is strictly between its multiples there is a cycle of such cells. Pushing along it until a cell reaches a multiple, in one
    direction or the other with probabilities in inverse proportion to the two distances, changes no expectation.
    """
    x = np.zeros(grid.n)
    columns = network.columns
    # residues counted in a common decimal unit are whole numbers: then the arithmetic is exact
    digits = _digits(grid.base[columns] * grid.target[columns], grid.base[columns])
    size = np.rint(grid.base * 10.0**digits) if digits is not None else np.ones(grid.n)
    part = np.rint(grid.target * size) if digits is not None else grid.target.copy()
    share, full = part[columns], size[columns]
    between = (share > 0) & (share < full)
    graph = flow_graph(network.n_nodes, network.tail, network.head, between)
    rng = np.random.default_rng(seed)
    share = share.astype(float)
    _push_cycles(network.n_nodes, graph.start, graph.end, graph.out, graph.to, share, full, rng)
    loose = between & (network.tail == network.head)  # cells in no relation: each on its own
    share[loose] = np.where(rng.random(int(loose.sum())) * full[loose] < share[loose], full[loose], 0.0)
    x[columns] = np.rint(share / full)
    return np.rint(x).astype(np.int64)


def _digits(residue: FloatArray, base: FloatArray) -> int | None:
    for digits in range(10):
        scale = 10.0**digits
        if base.max(initial=1.0) * scale > 2**50:
            return None
        if all(np.all(np.abs(v * scale - np.rint(v * scale)) <= 1e-6) for v in (residue, base)):
            return digits
    return None


@numba.njit(cache=True)
def _push_cycles(n, start, end, out, to, share, full, rng):
    at = start.copy()
    place = np.full(n, -1, np.int64)
    path = np.empty(n + 1, np.int64)
    for root in range(n):
        u, depth = root, 0
        place[u] = 0
        while True:
            came = path[depth - 1] >> 1 if depth > 0 else -1
            # arcs that have reached a multiple are passed for good; the arc we came by is only skipped
            while at[u] < end[u] and _settled(share, full, out[at[u]] >> 1):
                at[u] += 1
            k = at[u]
            while k < end[u] and (out[k] >> 1 == came or _settled(share, full, out[k] >> 1)):
                k += 1
            if k == end[u]:
                if depth == 0:
                    break
                # only rounding errors of an inexact base end up here
                share[came] = full[came] if 2 * share[came] >= full[came] else 0.0
                place[u] = -1
                depth -= 1
                u = to[path[depth] ^ 1]
                continue
            h = out[k]
            v = to[h]
            path[depth] = h
            depth += 1
            if place[v] < 0:
                place[v] = depth
                u = v
                continue
            first = place[v]
            _push(path, first, depth, share, full, rng)
            for i in range(first, depth):
                w = to[path[i]]
                if w != v:
                    place[w] = -1
            depth = first
            u = v
        place[root] = -1


@numba.njit(cache=True, inline="always")
def _settled(share, full, e):
    return share[e] <= 0.0 or share[e] >= full[e]


@numba.njit(cache=True)
def _push(path, first, last, share, full, rng):
    """Move the cycle as far as it goes one way or the other."""
    ahead, back = np.inf, np.inf
    for i in range(first, last):
        e = path[i] >> 1
        up, down = full[e] - share[e], share[e]
        if path[i] & 1:
            up, down = down, up
        ahead = min(ahead, up)
        back = min(back, down)
    amount = ahead if rng.random() * (ahead + back) < back else -back
    for i in range(first, last):
        e = path[i] >> 1
        share[e] += -amount if path[i] & 1 else amount
        if share[e] <= 1e-9 * full[e]:
            share[e] = 0.0
        elif share[e] >= (1 - 1e-9) * full[e]:
            share[e] = full[e]
