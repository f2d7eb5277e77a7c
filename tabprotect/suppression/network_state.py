# mypy: disable-error-code="no-untyped-def"
"""State of a suppression pattern during a search, and how one requirement is met at least extra cost (compiled).

Hidden arcs stand first in each node's list, so that flows see only them; every change is logged and can be taken back.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from tabprotect.solve.flow import FlowGraph, flow_graph, max_flow, push, undo, workspace
from tabprotect.suppression.network_model import NetworkModel
from tabprotect.types import FloatArray

WIDTH = 48
"""Secondary arcs remembered per requirement; a requirement that uses more counts as using all."""


class Instance(NamedTuple):
    """What does not change: the graph sorted by price, rooms, prices, requirements."""

    graph: FlowGraph
    capacity: FloatArray
    price: FloatArray
    weight: FloatArray
    need_arc: npt.NDArray[np.int64]
    need_sense: npt.NDArray[np.int64]
    need_level: FloatArray


class State(NamedTuple):
    """The pattern: 0 published, 1 secondary, 2 fixed; and for each requirement the secondaries that its flow uses."""

    hidden: npt.NDArray[np.uint8]
    inside: FlowGraph
    place: npt.NDArray[np.int32]
    residual: FloatArray
    support: npt.NDArray[np.int64]
    n_support: npt.NDArray[np.int64]
    use: npt.NDArray[np.int64]
    secondary: npt.NDArray[np.int64]
    rank: npt.NDArray[np.int64]
    tally: npt.NDArray[np.int64]
    log: npt.NDArray[np.int64]
    saved: npt.NDArray[np.int64]
    saved_support: npt.NDArray[np.int64]
    stamp: npt.NDArray[np.int64]
    work: object
    distance: FloatArray
    into: npt.NDArray[np.int32]
    heap: npt.NDArray[np.int32]
    spot: npt.NDArray[np.int32]
    chain: npt.NDArray[np.int32]


inner = numba.njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]
"""For functions that only compiled code calls: leaving out the wrappers for Python halves the compilation."""

N_SECONDARY, N_LOG, N_SAVED, CLOCK, N_LONG = 0, 1, 2, 3, 4
"""Places in ``State.tally``."""


def instance(model: NetworkModel, price: FloatArray | None = None) -> Instance:
    """Arrays for the kernels; ``price`` (default: the weights) steers the choice of new secondaries."""
    cost = model.weight if price is None else price
    keep = model.fixed | model.candidate
    order = np.argsort(np.where(keep, cost, np.inf), kind="stable")
    tail, head = model.network.tail, model.network.head
    graph = flow_graph(model.network.n_nodes, tail, head, keep)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    nodes = np.repeat(np.arange(model.network.n_nodes), graph.end - graph.start)
    by_price = graph.out[np.lexsort((rank[graph.out >> 1], nodes))]
    graph = FlowGraph(graph.start, graph.end, by_price, graph.to)
    needs = (model.need_arc, model.need_sense, model.need_level)
    return Instance(graph, model.capacity, np.asarray(cost, float), model.weight, *needs)


def empty_state(model: NetworkModel, problem: Instance) -> State:
    """Only the fixed arcs hidden, no requirement met yet."""
    n, m, r = model.network.n_nodes, model.network.n_arcs, model.n_needs
    graph = problem.graph
    inside = FlowGraph(graph.start, graph.start.copy(), graph.out.copy(), graph.to)
    place = np.full(2 * m, -1, np.int32)
    place[inside.out] = np.arange(len(inside.out))
    i32, i64 = np.int32, np.int64
    state = State(
        np.zeros(m, np.uint8), inside, place, problem.capacity.copy(),
        np.zeros((r, WIDTH), i64), np.zeros(r, i64), np.zeros(m, i64),
        np.zeros(m, i64), np.full(m, -1, i64), np.zeros(5, i64),
        np.zeros(4 * m + 16, i64), np.zeros(r, i64), np.zeros((r, WIDTH + 1), i64), np.full(r, -1, i64),
        workspace(graph), np.full(n, np.inf), np.full(n, -1, i32), np.zeros(n + 1, i32), np.full(n, -1, i32), np.zeros(n + 1, i32),
    )  # fmt: skip
    hide_all(state, np.flatnonzero(model.fixed), 2)
    return state


@numba.njit(cache=True, nogil=True)
def hide_all(state, arcs, kind):
    """Hide many arcs; not logged."""
    for e in arcs:
        hide(state, e, kind)
        state.tally[N_LOG] = 0


@inner
def hide(state, e, kind):
    """Make arc e visible to flows as secondary (1) or fixed (2)."""
    _, end, out, to = state.inside
    state.hidden[e] = kind
    for h in (2 * e, 2 * e + 1):
        at = state.place[h]
        if at >= 0:
            u = to[h ^ 1]
            other = out[end[u]]
            out[at], out[end[u]] = other, h
            state.place[other], state.place[h] = at, end[u]
            end[u] += 1
    if kind == 1:
        n = state.tally[N_SECONDARY]
        state.secondary[n] = e
        state.rank[e] = n
        state.tally[N_SECONDARY] = n + 1
    state.log[state.tally[N_LOG]] = e
    state.tally[N_LOG] += 1


@inner
def show(state, e):
    """Publish the secondary arc e again."""
    _, end, out, to = state.inside
    state.hidden[e] = 0
    for h in (2 * e, 2 * e + 1):
        at = state.place[h]
        if at >= 0:
            u = to[h ^ 1]
            end[u] -= 1
            other = out[end[u]]
            out[at], out[end[u]] = other, h
            state.place[other], state.place[h] = at, end[u]
    n = state.tally[N_SECONDARY] - 1
    last = state.secondary[n]
    state.secondary[state.rank[e]] = last
    state.rank[last] = state.rank[e]
    state.rank[e] = -1
    state.tally[N_SECONDARY] = n
    state.log[state.tally[N_LOG]] = e
    state.tally[N_LOG] += 1


@inner
def begin(state):
    """Start a transaction."""
    state.tally[N_LOG] = 0
    state.tally[N_SAVED] = 0
    state.tally[CLOCK] += 1


@inner
def roll_back(state):
    """Take back everything since `begin`."""
    for i in range(state.tally[N_LOG] - 1, -1, -1):
        e = state.log[i]
        if state.hidden[e] == 0:
            hide(state, e, 1)
        else:
            show(state, e)
    for i in range(state.tally[N_SAVED]):
        r = state.saved[i]
        state.tally[N_LONG] += (state.saved_support[i, WIDTH] < 0) - (state.n_support[r] < 0)
        for k in range(state.n_support[r]):
            state.use[state.support[r, k]] -= 1
        n = state.saved_support[i, WIDTH]
        state.n_support[r] = n
        for k in range(n):
            state.support[r, k] = state.saved_support[i, k]
            state.use[state.support[r, k]] += 1
    begin(state)


@inner
def forget_support(state, r):
    """Empty the support of requirement r, saving it once per transaction."""
    if state.stamp[r] != state.tally[CLOCK]:
        state.stamp[r] = state.tally[CLOCK]
        i = state.tally[N_SAVED]
        state.saved[i] = r
        state.saved_support[i, WIDTH] = state.n_support[r]
        for k in range(state.n_support[r]):
            state.saved_support[i, k] = state.support[r, k]
        state.tally[N_SAVED] = i + 1
    for k in range(state.n_support[r]):
        state.use[state.support[r, k]] -= 1
    state.tally[N_LONG] -= state.n_support[r] < 0
    state.n_support[r] = 0


@inner
def add_support(problem, state, r, n_touched):
    """Remember the secondaries that the present flow uses for requirement r."""
    n = state.n_support[r]
    if n < 0:
        return
    for i in range(n_touched):
        h = state.work.touched[i]
        e = h >> 1
        if state.hidden[e] == 1 and state.residual[h] != problem.capacity[h]:
            known = False
            for k in range(n):
                known = known or state.support[r, k] == e
            if known:
                continue
            if n == WIDTH:
                for k in range(n):
                    state.use[state.support[r, k]] -= 1
                state.n_support[r] = -1
                state.tally[N_LONG] += 1
                return
            state.support[r, n] = e
            state.use[e] += 1
            n += 1
    state.n_support[r] = n


@inner
def _sift_up(heap, spot, key, i):
    v = heap[i]
    while i > 0:
        above = (i - 1) >> 1
        if key[heap[above]] <= key[v]:
            break
        heap[i] = heap[above]
        spot[heap[i]] = i
        i = above
    heap[i] = v
    spot[v] = i


@inner
def _pop(heap, spot, key, n):
    """Take the smallest off a heap of n; the caller knows that n−1 are left."""
    top = heap[0]
    spot[top] = -2
    n -= 1
    if n > 0:
        v = heap[n]
        i = 0
        while True:
            child = 2 * i + 1
            if child >= n:
                break
            if child + 1 < n and key[heap[child + 1]] < key[heap[child]]:
                child += 1
            if key[v] <= key[heap[child]]:
                break
            heap[i] = heap[child]
            spot[heap[i]] = i
            i = child
        heap[i] = v
        spot[v] = i
    return top


@inner
def _noise(e, seed):
    """A number in [0, 1) that depends on arc and seed only."""
    x = np.uint64(e) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed) * np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(31)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(29)
    return float(x >> np.uint64(11)) / 9007199254740992.0


@inner
def cheapest_path(problem, state, s, t, skip, missing, rho, seed):
    """Dijkstra over hidden arcs (free) and others (price, times missing/room when they cannot carry all). Path length or −1.

    The path is left in ``state.chain`` from t back to s. Lists are sorted by price, so a list ends where it cannot improve on the way to t.
    """
    start, end, out, to = problem.graph
    inside = state.inside
    distance, into, heap, spot = state.distance, state.into, state.heap, state.spot
    seen, n_seen = state.work.queue, 0
    distance[s] = 0.0
    heap[0] = s
    spot[s] = 0
    n_heap = 1
    seen[0] = s
    n_seen = 1
    while n_heap > 0:
        u = _pop(heap, spot, distance, n_heap)
        n_heap -= 1
        if u == t:
            break
        base = distance[u]
        for phase in range(2):
            first = inside.start[u] if phase == 0 else start[u]
            last = inside.end[u] if phase == 0 else end[u]
            for k in range(first, last):
                h = inside.out[k] if phase == 0 else out[k]
                e = h >> 1
                if phase == 0:
                    if state.residual[h] <= 0 or e == skip:
                        continue
                    d = base + 1e-9
                else:
                    price = problem.price[e]
                    if base + price >= distance[t]:
                        break
                    room = problem.capacity[h]
                    if room <= 0 or state.hidden[e] != 0:
                        continue
                    d = base + price * max(1.0, missing / room) * (1.0 + rho * _noise(e, seed)) + 1e-9
                v = to[h]
                if d < distance[v]:
                    if spot[v] == -1:
                        seen[n_seen] = v
                        n_seen += 1
                        spot[v] = n_heap
                        heap[n_heap] = v
                        n_heap += 1
                    distance[v] = d
                    into[v] = h
                    _sift_up(heap, spot, distance, spot[v])
    length = -1
    if distance[t] < np.inf:
        length = 0
        v = t
        while v != s:
            state.chain[length] = into[v]
            length += 1
            v = to[into[v] ^ 1]
    for i in range(n_seen):
        v = seen[i]
        distance[v] = np.inf
        spot[v] = -1
    return length


@inner
def _ends(problem, p, upward):
    head, tail = problem.graph.to[2 * p], problem.graph.to[2 * p + 1]
    return (head, tail) if upward else (tail, head)


@inner
def route(problem, state, r, upward, target, budget, rho, seed):
    """Let requirement r's cell move by ``target`` in one direction, hiding arcs while their weight stays within the budget.

    The arcs used are added to the support of r. Returns the flow and the weight of newly hidden arcs.
    """
    p = problem.need_arc[r]
    target = min(target, problem.capacity[2 * p if upward else 2 * p + 1])
    s, t = _ends(problem, p, upward)
    flow, n_touched = max_flow(state.inside, state.residual, s, t, p, target, state.work)
    spent = 0.0
    while flow < target:
        length = cheapest_path(problem, state, s, t, p, target - flow, rho, seed)
        if length < 0:
            break
        rest = target - flow
        amount = rest
        for i in range(length):
            h = state.chain[i]
            amount = min(amount, state.residual[h])
            if state.hidden[h >> 1] == 0:
                spent += problem.weight[h >> 1]
                hide(state, h >> 1, 1)
        if spent > budget:
            break
        for i in range(length):
            n_touched = push(state.residual, state.chain[i], amount, state.work.touched, state.work.flag, n_touched)
        flow = target if amount == rest else flow + amount
    add_support(problem, state, r, n_touched)
    undo(state.residual, problem.capacity, state.work, n_touched)
    return flow, spent


@inner
def holds(problem, state, r):
    """Whether requirement r holds on the hidden arcs; if so its support is renewed."""
    p, sense, level = problem.need_arc[r], problem.need_sense[r], problem.need_level[r]
    # a width takes two flows: the support is renewed in a second pass, when it is known that they suffice
    for record in range(2 if sense == 0 else 1):
        got = 0.0
        for upward in (True, False):
            if sense == (-1 if upward else 1) or got >= level:
                continue
            s, t = _ends(problem, p, upward)
            target = min(level - got, problem.capacity[2 * p if upward else 2 * p + 1])
            flow, n_touched = max_flow(state.inside, state.residual, s, t, p, target, state.work)
            if sense != 0 and flow >= target:
                forget_support(state, r)
            if (sense != 0 and flow >= target) or record == 1:
                add_support(problem, state, r, n_touched)
            got += flow
            undo(state.residual, problem.capacity, state.work, n_touched)
        if got < level:
            return False
        if sense == 0 and record == 0:
            forget_support(state, r)
    return True


@inner
def ensure(problem, state, r, budget, rho, seed):
    """Make requirement r hold at little extra weight. Returns the weight spent, infinite when it failed (then roll back).

    For a width both orders of paying for the two directions are tried (what the other one has for free need not be paid), and
    the cheaper one is done again.
    """
    p, sense, level = problem.need_arc[r], problem.need_sense[r], problem.need_level[r]
    best, best_first = np.inf, True
    for attempt in range(3):
        last = attempt == 2 or sense != 0
        upward = sense > 0 if sense != 0 else (best_first if last else attempt == 0)
        if last and sense == 0 and best == np.inf:
            break
        mark = state.tally[N_LOG]
        forget_support(state, r)
        free = 0.0
        if sense == 0:
            s, t = _ends(problem, p, not upward)
            room = min(level, problem.capacity[2 * p + 1 if upward else 2 * p])
            free, n_touched = max_flow(state.inside, state.residual, s, t, p, room, state.work)
            undo(state.residual, problem.capacity, state.work, n_touched)
        total, got = 0.0, 0.0
        for leg in range(1 if sense != 0 else 2):
            if got < level:
                wanted = level - (free if leg == 0 else got)
                flow, spent = route(
                    problem, state, r, upward if leg == 0 else not upward, wanted, budget - total, rho, seed
                )
                got += flow
                total += spent
        if got < level:
            total = np.inf
        if last:
            return total
        if total < best:
            best, best_first = total, upward
        while state.tally[N_LOG] > mark:
            show(state, state.log[state.tally[N_LOG] - 1])
            state.tally[N_LOG] -= 2
    return np.inf
