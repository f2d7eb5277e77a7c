# mypy: disable-error-code="no-untyped-def"
"""Maximum flow on small capacities, many times: compiled kernels over plain arrays.

A graph is kept as half-arcs: arc ``e`` is half-arc ``2e`` (tail → head) and ``2e+1`` (head → tail), so the reverse of ``h`` is ``h ^ 1``, and
one array ``residual`` holds what each half-arc can still carry. The kernels undo their own changes from a list of touched half-arcs, which
is what makes a hundred thousand flows on one graph affordable.

Capacities are floating-point numbers and may be infinite. On integers below 2**53 all arithmetic is exact.

References: E. A. Dinic, "Algorithm for solution of a problem of maximum flow in networks with power estimation", Soviet Math. Doklady 11
(1970); the first phase looks only for paths of at most three arcs, which in a table (row, column, row, column) are nearly all there are.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from tabprotect.types import FloatArray

Index = npt.NDArray[np.int32]


class FlowGraph(NamedTuple):
    """Half-arcs leaving each node: those of node u are ``out[start[u]:end[u]]``; ``to[h]`` is where half-arc h ends."""

    start: Index
    end: Index
    out: Index
    to: Index


class Workspace(NamedTuple):
    """Scratch arrays of the kernels, allocated once per graph; ``level`` is −1 and ``flag`` 0 everywhere between calls."""

    level: Index
    arc: Index
    queue: Index
    path: Index
    touched: Index
    flag: npt.NDArray[np.uint8]


def flow_graph(n_nodes: int, tail: npt.ArrayLike, head: npt.ArrayLike, keep: npt.ArrayLike | None = None) -> FlowGraph:
    """The graph of the given arcs; only arcs in ``keep`` (mask) are listed at their nodes, numbering is unchanged.

    >>> flow_graph(3, [0, 1], [1, 2]).out.tolist()
    [0, 1, 2, 3]
    """
    t, h = np.ascontiguousarray(tail, np.int32), np.ascontiguousarray(head, np.int32)
    mask = np.ones(len(t), np.bool_) if keep is None else np.ascontiguousarray(keep, np.bool_)
    start, out, to = adjacency(n_nodes, t, h, mask)
    return FlowGraph(start[:-1].copy(), start[1:].copy(), out, to)


def workspace(graph: FlowGraph) -> Workspace:
    """Fresh scratch arrays for a graph."""
    n, m = len(graph.start), len(graph.to)
    return Workspace(
        np.full(n, -1, np.int32),
        np.zeros(n, np.int32),
        np.zeros(n, np.int32),
        np.zeros(n + 1, np.int32),
        np.zeros(m + 1, np.int32),
        np.zeros(m, np.uint8),
    )


@numba.njit(cache=True, nogil=True)
def adjacency(n, tail, head, keep):
    """Counting sort of the kept arcs by their ends; arcs with both ends equal are left out (they carry nothing anywhere)."""
    m = len(tail)
    start = np.zeros(n + 1, np.int32)
    to = np.empty(2 * m, np.int32)
    for e in range(m):
        to[2 * e] = head[e]
        to[2 * e + 1] = tail[e]
        if keep[e] and tail[e] != head[e]:
            start[tail[e] + 1] += 1
            start[head[e] + 1] += 1
    for u in range(n):
        start[u + 1] += start[u]
    fill = start[:-1].copy()
    out = np.empty(start[n], np.int32)
    for e in range(m):
        if keep[e] and tail[e] != head[e]:
            out[fill[tail[e]]] = 2 * e
            fill[tail[e]] += 1
            out[fill[head[e]]] = 2 * e + 1
            fill[head[e]] += 1
    return start, out, to


@numba.njit(cache=True, nogil=True)
def push(residual, h, amount, touched, flag, n_touched):
    """Move an amount along a half-arc and note the arc as touched; returns the new number of touched arcs."""
    residual[h] -= amount
    residual[h ^ 1] += amount
    e = h & ~1
    if flag[e] == 0:
        flag[e] = 1
        touched[n_touched] = e
        n_touched += 1
    return n_touched


@numba.njit(cache=True, nogil=True)
def short_paths(graph, residual, s, t, skip, limit, work):
    """Send flow along paths of one, two and three arcs. Returns the flow and the number of touched arcs."""
    start, end, out, to = graph
    level, arc, touched, flag = work.level, work.arc, work.touched, work.flag
    flow = 0.0
    n_touched = 0
    # last[v]: the half-arc v → t; one of them is enough, the general phase finds the others
    for k in range(start[t], end[t]):
        h = out[k] ^ 1
        if residual[h] > 0 and h >> 1 != skip:
            level[to[out[k]]] = 1
            arc[to[out[k]]] = h
    for k in range(start[s], end[s]):
        first = out[k]
        x = to[first]
        if residual[first] <= 0 or first >> 1 == skip:
            continue
        if x == t:
            amount = min(residual[first], limit - flow)
            flow += amount
            if amount == np.inf:
                break
            n_touched = push(residual, first, amount, touched, flag, n_touched)
        elif level[x] == 1 and residual[arc[x]] > 0:
            amount = min(residual[first], residual[arc[x]], limit - flow)
            flow += amount
            if amount == np.inf:
                break
            n_touched = push(residual, first, amount, touched, flag, n_touched)
            n_touched = push(residual, arc[x], amount, touched, flag, n_touched)
        if flow >= limit:
            break
        if x == t:
            continue
        for i in range(start[x], end[x]):
            second = out[i]
            y = to[second]
            if level[y] != 1 or y == s or residual[second] <= 0 or second >> 1 == skip:
                continue
            third = arc[y]
            if residual[third] <= 0:
                continue
            amount = min(residual[first], residual[second], residual[third], limit - flow)
            if amount <= 0:
                break
            flow += amount
            if amount == np.inf:
                break
            n_touched = push(residual, first, amount, touched, flag, n_touched)
            n_touched = push(residual, second, amount, touched, flag, n_touched)
            n_touched = push(residual, third, amount, touched, flag, n_touched)
            if flow >= limit or residual[first] <= 0:
                break
        if flow >= limit or flow == np.inf:
            break
    for k in range(start[t], end[t]):
        level[to[out[k]]] = -1
    return flow, n_touched


@numba.njit(cache=True, nogil=True)
def max_flow(graph, residual, s, t, skip, limit, work):
    """Flow from s to t without arc ``skip``, no more than ``limit``; ``residual`` is left as the flow makes it.

    Returns the flow (infinite when unbounded) and the number of touched arcs, listed in ``work.touched`` as even half-arcs; see `undo`.
    """
    start, end, out, to = graph
    level, arc, queue, path, touched, flag = work
    if s == t:
        return limit, 0
    # the cuts around s and t often are the smallest: reaching them saves the search that would prove it
    leaving, entering = 0.0, 0.0
    for k in range(start[s], end[s]):
        if out[k] >> 1 != skip:
            leaving += residual[out[k]]
    for k in range(start[t], end[t]):
        if out[k] >> 1 != skip:
            entering += residual[out[k] ^ 1]
    limit = min(limit, leaving, entering)
    flow, n_touched = short_paths(graph, residual, s, t, skip, limit, work)
    while flow < limit:
        # distances to t over half-arcs with room, as far as s
        level[t] = 0
        queue[0] = t
        first, last = 0, 1
        while first < last and level[s] < 0:
            u = queue[first]
            first += 1
            for k in range(start[u], end[u]):
                h = out[k]
                v = to[h]
                if level[v] < 0 and residual[h ^ 1] > 0 and h >> 1 != skip:
                    level[v] = level[u] + 1
                    queue[last] = v
                    last += 1
        reached = level[s] >= 0
        if reached:
            for i in range(last):
                arc[queue[i]] = start[queue[i]]
            depth = 0
            u = s
            while True:
                if u == t:
                    rest = limit - flow
                    amount = rest
                    for i in range(depth):
                        amount = min(amount, residual[path[i]])
                    # flow + (limit - flow) may fall short of the limit by a rounding error, with no arc full to go on from
                    flow = limit if amount == rest else flow + amount
                    if amount == np.inf:
                        break
                    back = depth
                    for i in range(depth - 1, -1, -1):
                        n_touched = push(residual, path[i], amount, touched, flag, n_touched)
                        if residual[path[i]] <= 0:
                            back = i
                    if flow >= limit:
                        break
                    depth = back
                    u = to[path[depth] ^ 1]
                    continue
                moved = False
                while arc[u] < end[u]:
                    h = out[arc[u]]
                    v = to[h]
                    if level[v] == level[u] - 1 and level[v] >= 0 and residual[h] > 0 and h >> 1 != skip:
                        path[depth] = h
                        depth += 1
                        u = v
                        moved = True
                        break
                    arc[u] += 1
                if not moved:
                    if u == s:
                        break
                    level[u] = 1 << 30
                    depth -= 1
                    u = to[path[depth] ^ 1]
                    arc[u] += 1
        for i in range(last):
            level[queue[i]] = -1
        if not reached:
            break
    return flow, n_touched


@numba.njit(cache=True, nogil=True)
def undo(residual, capacity, work, n_touched):
    """Put back the capacities of the touched arcs."""
    for i in range(n_touched):
        h = work.touched[i]
        residual[h] = capacity[h]
        residual[h + 1] = capacity[h + 1]
        work.flag[h] = 0


@numba.njit(cache=True, nogil=True)
def reachable(graph, residual, root, forward, skip, least, side, queue):
    """Mark in ``side`` what can be reached from root over half-arcs with more room than ``least`` (not ``forward``: what can reach root)."""
    start, end, out, to = graph
    side[:] = False
    side[root] = True
    queue[0] = root
    first, last = 0, 1
    while first < last:
        u = queue[first]
        first += 1
        for k in range(start[u], end[u]):
            h = out[k]
            v = to[h]
            if not side[v] and h >> 1 != skip and residual[h if forward else h ^ 1] > least:
                side[v] = True
                queue[last] = v
                last += 1
    return last


def half_arc_capacities(up: FloatArray, down: FloatArray) -> FloatArray:
    """Room of every half-arc: arc e may change by at most ``up[e]`` along its direction and ``down[e]`` against it."""
    capacity = np.empty(2 * len(up))
    capacity[0::2], capacity[1::2] = up, down
    return capacity
