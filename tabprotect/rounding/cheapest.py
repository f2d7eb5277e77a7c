# mypy: disable-error-code="no-untyped-def"
"""Minimum-cost flow over arcs that carry one unit: few nodes, very many arcs.

A two-dimensional table of a million cells has two thousand relations. The flow that repairs its sums uses a few thousand cells and is found on a few ten thousand: the
primal-dual method (shortest distances from all nodes with an excess at once, then as many paths as the arcs of reduced cost zero allow) keeps a node price for every relation, and arcs left
out are priced with them. Those that would help are used at once, which leaves an excess behind, and the method goes on from where it stands. At the end the prices prove the flow best.

References: L. R. Ford and D. R. Fulkerson, "A primal-dual algorithm for the capacitated Hitchcock problem", Naval Research Logistics Quarterly 4 (1957); R. K. Ahuja, T. L. Magnanti and
J. B. Orlin, "Network flows" (1993), chapter 9.
"""

from __future__ import annotations

import heapq

import numba
import numpy as np

from tabprotect.errors import Infeasible, Unsafe
from tabprotect.solve.flow import flow_graph
from tabprotect.types import BoolArray, FloatArray, IntArray

# with fewer arcs than this, all are looked at from the beginning; else this many per node
FEW = 60_000
PER_NODE = 30


def cheapest_flow(n: int, tail: IntArray, head: IntArray, cost: IntArray, excess: IntArray, seed: int = 0) -> IntArray:
    """Indices of the unit arcs that carry the excess of all nodes to where it is missing, at least cost (no cost is negative).

    >>> cheapest_flow(3, np.array([0, 0, 1]), np.array([2, 1, 2]), np.array([5, 1, 2]), np.array([1, 0, -1])).tolist()
    [1, 2]
    """
    share, rank = PER_NODE * n, None
    while share < len(tail) and len(tail) > FEW:
        rank = _ranks(tail, head, cost, excess, seed) if rank is None else rank
        chosen = np.zeros(len(tail), bool)
        chosen[np.argpartition(rank, share)[:share]] = True
        used = _solve(n, tail, head, cost, excess, chosen)
        if used is not None:
            return used
        share *= 4
    used = _solve(n, tail, head, cost, excess, np.ones(len(tail), bool))
    if used is None:
        raise Infeasible("no additive rounding exists with the multiples that are allowed")
    return used


def _ranks(tail: IntArray, head: IntArray, cost: IntArray, excess: IntArray, seed: int) -> FloatArray:
    """Which arcs to look at first: cheap ones, and more of a node the more it has to send or to get.

    Arcs of equal cost are taken at random: the first ones would all be cells of the same few rows.
    """
    sends, gets = np.maximum(excess, 0) + 2.0, np.maximum(-excess, 0) + 2.0
    return (cost - cost.min() + np.random.default_rng(seed).random(len(tail), np.float32)) / (sends[tail] + gets[head])


def _solve(
    n: int, tail: IntArray, head: IntArray, cost: IntArray, excess: IntArray, chosen: BoolArray
) -> IntArray | None:
    """The arcs of the cheapest flow, found on the chosen arcs and those that help; None when the chosen ones cannot carry the excess."""
    used, price, left = np.zeros(len(tail), np.bool_), np.zeros(n, np.int64), excess.astype(np.int64)
    while left.any():
        if not _route_over(np.flatnonzero(chosen), n, tail, head, cost, used, left, price):
            return None
        helpful = _helpful(tail, head, cost, price, used)
        chosen[helpful] = used[helpful] = True
        np.subtract.at(left, tail[helpful], 1)
        np.add.at(left, head[helpful], 1)
    certify(n, tail, head, cost, excess, used, price)
    return np.flatnonzero(used)


def _route_over(
    arcs: IntArray,
    n: int,
    tail: IntArray,
    head: IntArray,
    cost: IntArray,
    used: BoolArray,
    left: IntArray,
    price: IntArray,
) -> bool:
    """Route on some arcs; changes ``used``, ``left`` and ``price``."""
    graph = flow_graph(n, tail[arcs], head[arcs])
    room = np.empty(2 * len(arcs), np.bool_)
    room[::2], room[1::2] = ~used[arcs], used[arcs]
    done = _route(graph.start, graph.end, graph.out, graph.to, cost[arcs], room, left, price)
    used[arcs] = room[1::2]
    return bool(done)


def certify(
    n: int, tail: IntArray, head: IntArray, cost: IntArray, excess: IntArray, used: BoolArray, price: IntArray
) -> None:
    """Plain arithmetic: the used arcs carry the excess, and no arc breaks complementary slackness at the prices."""
    on = np.flatnonzero(used)
    carried = np.bincount(tail[on], minlength=n) - np.bincount(head[on], minlength=n)
    dear = cost[on] + price[tail[on]] - price[head[on]] > 0
    if not np.array_equal(carried, excess) or dear.any() or len(_helpful(tail, head, cost, price, used)):
        raise Unsafe("the flow of the rounding is not what its prices say")


@numba.njit(cache=True)
def _helpful(tail, head, cost, price, used):
    """Unused arcs of negative reduced cost."""
    found = np.empty(len(tail), np.int64)
    count = 0
    for e in range(len(tail)):
        found[count] = e
        if not used[e] and cost[e] + price[tail[e]] < price[head[e]]:
            count += 1
    return found[:count].copy()


@numba.njit(cache=True)
def _route(start, end, out, to, cost, room, left, price):
    """Primal-dual method until no excess is left (True) or what is left cannot be carried away (False)."""
    n = len(start)
    distance = np.empty(n, np.int64)
    at, path, state = np.empty(n, np.int64), np.empty(n + 1, np.int64), np.empty(n, np.int8)
    while True:
        if not _distances(start, end, out, to, cost, room, left, price, distance):
            return not left.any()
        at[:], state[:] = start, 0
        for s in range(n):
            while left[s] > 0 and _carry(s, end, out, to, cost, room, left, price, at, path, state):
                pass


@numba.njit(cache=True)
def _distances(start, end, out, to, cost, room, left, price, distance):
    """Reduced distances from all nodes with an excess (Dijkstra), added to the prices; whether a node where something is missing was reached."""
    far, last = np.int64(2**62), np.int64(0)
    missing = 0
    heap = [(np.int64(0), np.int64(-1)) for _ in range(0)]
    for u in range(len(start)):
        distance[u] = far
        if left[u] > 0:
            distance[u] = 0
            heap.append((np.int64(0), np.int64(u)))
        elif left[u] < 0:
            missing += 1
    reached = False
    while heap and missing > 0:
        d, node = heapq.heappop(heap)
        u = int(node)
        if d > distance[u]:
            continue
        last = d
        if left[u] < 0:
            missing -= 1
            reached = True
        for k in range(start[u], end[u]):
            h = out[k]
            if room[h]:
                v = to[h]
                c = -cost[h >> 1] if h & 1 else cost[h >> 1]
                new = d + c + price[u] - price[v]
                if new < distance[v]:
                    distance[v] = new
                    heapq.heappush(heap, (new, np.int64(v)))
    for u in range(len(start)):
        price[u] += min(distance[u], last)
    return reached


@numba.njit(cache=True)
def _carry(s, end, out, to, cost, room, left, price, at, path, state):
    """One unit from s along arcs of reduced cost zero to where it is missing; False when there is no way."""
    u, depth = s, 0
    state[s] = 1  # 1: on the path, 2: a dead end
    while left[u] >= 0:
        found = False
        while at[u] < end[u]:
            h = out[at[u]]
            v = to[h]
            c = -cost[h >> 1] if h & 1 else cost[h >> 1]
            if room[h] and state[v] == 0 and c + price[u] == price[v]:
                found = True
                break
            at[u] += 1
        if found:
            path[depth] = h
            depth += 1
            u = v
            state[u] = 1
            continue
        state[u] = 2
        if depth == 0:
            return False
        depth -= 1
        u = to[path[depth] ^ 1]
        at[u] += 1
    left[s] -= 1
    left[u] += 1
    state[s] = state[u] = 0
    for i in range(depth):
        h = path[i]
        room[h], room[h ^ 1] = False, True
        state[to[h]] = 0
    return True
