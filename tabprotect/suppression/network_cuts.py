# mypy: disable-error-code="no-untyped-def"
"""Inequalities that every safe pattern of a network table satisfies, separated by minimum cuts (compiled).

Capacity: for a requirement of r and any node set S that holds one end of its cell only, the hidden arcs leaving S must have room for r;
rooms beyond r count as r. Bridgeless: a secondary on no cycle of hidden arcs is useless, so an arc's other cut arcs weigh at least as much as
the arc itself. Both are violated by a fractional point exactly when a maximum flow says so.

Reference: M. Fischetti and J. J. Salazar González, "Models and algorithms for the 2-dimensional cell suppression problem in
statistical disclosure control", Mathematical Programming 84 (1999).
"""

from __future__ import annotations

import numba
import numpy as np

from tabprotect.solve.cutting import Row
from tabprotect.solve.flow import flow_graph, max_flow, reachable, undo, workspace
from tabprotect.suppression.network_model import NetworkModel
from tabprotect.types import BoolArray, FloatArray, IntArray

EPS = 1e-6


class Separator:
    """Finds violated capacity and bridgeless inequalities of one model."""

    def __init__(self, model: NetworkModel) -> None:
        self.model = model
        network = model.network
        self.full = flow_graph(network.n_nodes, network.tail, network.head, model.fixed | model.candidate)

    def equations(self) -> list[Row]:
        """The capacity inequalities of single nodes: one relation must let the cell move."""
        m, n = self.model, self.model.network.n_nodes
        rows: list[Row] = []
        for r in range(m.n_needs):
            p, sense = m.need_arc[r], m.need_sense[r]
            ends = (m.network.head[p], m.network.tail[p])
            for at_source in (True, False):
                sides = np.zeros((2, n), bool)
                for k in range(2):  # 0: upward flow from head to tail, 1: downward
                    if sense != (-1 if k == 0 else 1):
                        end = ends[k] if at_source else ends[1 - k]
                        sides[k] = at_source is False
                        sides[k, end] = at_source
                rows += self._row(r, sides, np.zeros(2))
        return rows

    def capacity(self, x: FloatArray, needs: IntArray) -> tuple[list[Row], int]:
        """Violated capacity inequalities for the given requirements, and how many requirements fail."""
        m = self.model
        used = np.flatnonzero(((x > EPS) & m.candidate) | m.fixed)
        local = np.full(m.network.n_arcs, -1, np.int64)
        local[used] = np.arange(len(used))
        graph = flow_graph(m.network.n_nodes, m.network.tail[used], m.network.head[used])
        share = np.where(m.fixed[used], 1.0, x[used])
        which, side, own = _failing(
            graph, workspace(graph), m.network.tail[used], m.network.head[used], share, m.up[used], m.down[used],
            local[m.need_arc[needs]], m.need_sense[needs], m.need_level[needs],
        )  # fmt: skip
        rows: list[Row] = []
        for i in range(len(which)):
            rows += self._row(int(needs[which[i]]), side[i], own[i])
        return [row for row in rows if row.slack(x) < -EPS * max(1.0, row.rhs)], len(which) // 2

    def bridgeless(self, x: FloatArray, least: float = 0.02) -> list[Row]:
        """Violated bridgeless inequalities."""
        m = self.model
        used = np.flatnonzero(((x > EPS) & m.candidate) | m.fixed)
        tail, head = m.network.tail[used], m.network.head[used]
        graph = flow_graph(m.network.n_nodes, tail, head)
        share = np.where(m.fixed[used], 1.0, x[used])
        which, side = _dangling(graph, workspace(graph), tail, head, share, m.fixed[used], least)
        rows = []
        seen = set()
        for i, j in enumerate(used[which]):
            columns, _, constant = self._crossing(side[i], -1, 1.0, unit=True)
            if constant > 0:
                continue
            key = (int(j), columns.tobytes())
            if key in seen or j not in columns:
                continue
            seen.add(key)
            values = np.where(columns == j, -1.0, 1.0)
            rows.append(Row(columns, values, 0.0, "bridge"))
        return rows

    def _row(self, r: int, sides: BoolArray, own: FloatArray) -> list[Row]:
        """The inequality of node sets for the upward and the downward flow.

        ``own`` is 1 where the cell's own room limits that side, −1 where the set does not part the ends of the cell (no inequality then).
        """
        if (own < 0).any():
            return []
        m = self.model
        p, sense, level = m.need_arc[r], m.need_sense[r], float(m.need_level[r])
        columns, values = [], []
        right = level
        for k in range(2):
            if sense == (-1 if k == 0 else 1):
                continue
            room = m.up[p] if k == 0 else m.down[p]
            if own[k] > 0:
                right -= room
                continue
            c, v, constant = self._crossing(sides[k], int(p), level, unit=False)
            right -= constant
            columns.append(c)
            values.append(v)
        if right <= EPS:
            return []
        if not columns:
            return [Row(np.zeros(0, np.int64), np.zeros(0), right, "capacity")]
        if len(columns) == 1:
            return [Row(columns[0], np.minimum(values[0], right), right, "capacity")]
        cols, back = np.unique(np.concatenate(columns), return_inverse=True)
        total = np.bincount(back, np.concatenate(values), len(cols))
        return [Row(cols, np.minimum(total, right), right, "capacity")]

    def _crossing(self, side: BoolArray, skip: int, level: float, *, unit: bool) -> tuple[IntArray, FloatArray, float]:
        m = self.model
        columns, values, constant = _crossing(self.full, side, m.up, m.down, m.fixed, skip, level, unit)
        order = np.argsort(columns, kind="stable")
        return columns[order], values[order], constant


@numba.njit(cache=True, nogil=True)
def _crossing(graph, side, up, down, fixed, skip, level, unit):
    """Arcs leaving a node set with their rooms (at most level; ``unit``: both directions, room 1), and the rooms of fixed ones."""
    start, end, out, to = graph
    n = len(start)
    inside = 0
    for u in range(n):
        inside += side[u]
    small = 2 * inside <= n
    columns = np.empty(len(out), np.int64)
    values = np.empty(len(out))
    found, constant = 0, 0.0
    for u in range(n):
        if side[u] != small:
            continue
        for k in range(start[u], end[u]):
            h = out[k]
            e = h >> 1
            if side[to[h]] == side[u] or e == skip:
                continue
            forward = (h & 1 == 0) == small
            room = 1.0 if unit else min(level, up[e] if forward else down[e])
            if room <= 0:
                continue
            if fixed[e]:
                constant += room
            else:
                columns[found] = e
                values[found] = room
                found += 1
    return columns[:found].copy(), values[:found].copy(), constant


@numba.njit(cache=True, nogil=True)
def _failing(graph, work, tail, head, share, up, down, need_arc, need_sense, need_level):
    """Requirements that a fractional pattern fails, with the node sets of the smallest cuts at source and at sink."""
    m, n, r = len(tail), len(graph.start), len(need_arc)
    capacity = np.empty(2 * m)
    residual = np.empty(2 * m)
    which = np.empty(2 * r, np.int64)
    side = np.zeros((2 * r, 2, n), np.bool_)
    own = np.zeros((2 * r, 2))
    queue = np.empty(n, np.int32)
    found = 0
    for i in range(r):
        p, level = need_arc[i], need_level[i]
        for e in range(m):
            capacity[2 * e] = min(up[e], level) * share[e]
            capacity[2 * e + 1] = min(down[e], level) * share[e]
        residual[:] = capacity
        got = 0.0
        for k in range(2):
            if need_sense[i] == (-1 if k == 0 else 1):
                continue
            s = head[p] if k == 0 else tail[p]
            t = tail[p] if k == 0 else head[p]
            room = min(level, up[p] if k == 0 else down[p])
            flow, n_touched = max_flow(graph, residual, s, t, p, room, work)
            got += flow
            own[found, k] = own[found + 1, k] = 1.0 if flow >= room else 0.0
            # rounding leaves specks of room on saturated arcs; they must not carry the search across the cut
            reachable(graph, residual, s, True, p, 1e-9 * level, side[found, k], queue)
            reachable(graph, residual, t, False, p, 1e-9 * level, side[found + 1, k], queue)
            for u in range(n):
                side[found + 1, k, u] = not side[found + 1, k, u]
            for j in range(found, found + 2):
                if flow < room and (side[j, k, t] or not side[j, k, s]):
                    own[j, k] = -1.0
            undo(residual, capacity, work, n_touched)
        if got < level * (1 - 1e-5):
            which[found] = which[found + 1] = i
            found += 2
    return which[:found], side[:found], own[:found]


@numba.njit(cache=True, nogil=True)
def _dangling(graph, work, tail, head, share, fixed, least):
    """Secondary arcs whose ends are not joined by as much of the pattern as they have themselves."""
    m, n = len(tail), len(graph.start)
    capacity = np.empty(2 * m)
    for e in range(m):
        capacity[2 * e] = capacity[2 * e + 1] = share[e]
    residual = capacity.copy()
    which = np.empty(m, np.int64)
    side = np.zeros((m, n), np.bool_)
    queue = np.empty(n, np.int32)
    found = 0
    for j in range(m):
        if fixed[j] or share[j] < least:
            continue
        flow, n_touched = max_flow(graph, residual, tail[j], head[j], j, share[j], work)
        if flow < share[j] - least:
            reachable(graph, residual, tail[j], True, j, 1e-9, side[found], queue)
            if not side[found, head[j]]:
                which[found] = j
                found += 1
        undo(residual, capacity, work, n_touched)
    return which[:found], side[:found]
