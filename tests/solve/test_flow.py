"""The flow kernels against networkx."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from tabprotect.solve.flow import flow_graph, half_arc_capacities, max_flow, reachable, undo, workspace


def solve(graph, capacity, s, t, skip=-1, limit=np.inf, residual=None):
    work = workspace(graph)
    residual = capacity.copy() if residual is None else residual
    flow, n = max_flow(graph, residual, s, t, skip, limit, work)
    return flow, residual, work, n


def random_graph(rng, n, m):
    tail, head = rng.integers(0, n, m), rng.integers(0, n, m)
    up, down = rng.integers(0, 12, m).astype(float), rng.integers(0, 12, m).astype(float)
    reference = nx.DiGraph()
    reference.add_nodes_from(range(n))
    for a, b, u, d in zip(tail, head, up, down, strict=True):
        for x, y, c in ((a, b, u), (b, a, d)):
            if x != y:
                old = reference.get_edge_data(x, y, {"capacity": 0})["capacity"]
                reference.add_edge(x, y, capacity=old + c)
    return flow_graph(n, tail, head), half_arc_capacities(up, down), reference


@pytest.mark.parametrize("seed", range(200))
def test_value_conservation_and_cuts(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 12))
    graph, capacity, reference = random_graph(rng, n, int(rng.integers(1, 30)))
    s, t = rng.choice(n, 2, replace=False)
    flow, residual, work, touched = solve(graph, capacity, s, t)
    assert flow == nx.maximum_flow_value(reference, s, t)
    change = (capacity - residual)[0::2]
    balance = np.bincount(graph.to[0::2], change, n) - np.bincount(graph.to[1::2], change, n)
    expected = np.zeros(n)
    expected[s], expected[t] = -flow, flow
    assert (balance == expected).all()
    assert (residual >= 0).all()
    for root, forward in ((s, True), (t, False)):
        side = np.zeros(n, bool)
        reachable(graph, residual, root, forward, -1, 0.0, side, work.queue)
        source = side if forward else ~side
        crossing = source[graph.to[np.arange(len(graph.to)) ^ 1]] & ~source[graph.to]
        assert capacity[crossing].sum() == flow
    undo(residual, capacity, work, touched)
    assert (residual == capacity).all()
    assert (work.level == -1).all()


def test_limit_skip_and_infinity():
    graph = flow_graph(3, [0, 0, 1], [2, 1, 2])
    capacity = half_arc_capacities(np.array([5.0, np.inf, np.inf]), np.zeros(3))
    assert solve(graph, capacity, 0, 2)[0] == np.inf
    assert solve(graph, capacity, 0, 2, limit=7.0)[0] == 7.0
    assert solve(graph, capacity, 0, 2, skip=1)[0] == 5.0
    assert solve(graph, capacity, 2, 0)[0] == 0.0


def test_long_paths_with_many_phases():
    """A ladder whose only way needs flow to be sent back: the general phase after the short one."""
    rng = np.random.default_rng(0)
    n = 60
    reference = nx.DiGraph()
    tail, head, up = [], [], []
    for i in range(n - 1):
        for j in range(i + 1, min(n, i + 4)):
            tail.append(i), head.append(j), up.append(float(rng.integers(1, 5)))
            reference.add_edge(i, j, capacity=up[-1])
    graph = flow_graph(n, tail, head)
    capacity = half_arc_capacities(np.array(up), np.zeros(len(up)))
    assert solve(graph, capacity, 0, n - 1)[0] == nx.maximum_flow_value(reference, 0, n - 1)
