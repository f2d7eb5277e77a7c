"""Flow bounds against linear programming."""

from __future__ import annotations

import numpy as np
import pytest

from tabprotect.attacker.network import network_bounds, unit_scale
from tabprotect.solve.lp import PersistentLP
from tabprotect.solve.stop import Stop
from tabprotect.table.cube import cube_relations
from tabprotect.table.examples import d272
from tabprotect.table.graph import network_of
from tabprotect.table.hierarchy import Dimension, Hierarchy

HIER = Hierarchy.from_tree({"A": {"A1": ["A11", "A12"], "A2": ["A21", "A22"]}, "B": ["B1", "B2"], "C": None})
SHAPES = [
    (Hierarchy.flat("abcd"), Hierarchy.flat("vwxyz")),
    (HIER, Hierarchy.flat("xyz")),
    (Hierarchy.flat("xy"), HIER),
    (Hierarchy.flat("ab"), Hierarchy.flat("ab"), Hierarchy.flat("ab")),
]


def by_lp(relations, down, up):
    n = len(up)
    lp = PersistentLP(relations, -down, up, np.zeros(relations.shape[0]), np.zeros(relations.shape[0]))
    low, high = np.empty(n), np.empty(n)
    for j in range(n):
        low[j] = -lp.solve({j: 1.0}).objective
        answer = lp.solve({j: 1.0}, maximize=True)
        high[j] = np.inf if answer.status == "unbounded" else answer.objective
    return low, high


@pytest.mark.parametrize("seed", range(80))
def test_flow_bounds_equal_lp_bounds(seed):
    rng = np.random.default_rng(seed)
    a = cube_relations([Dimension(f"d{k}", h) for k, h in enumerate(SHAPES[seed % 4])])
    hidden = np.flatnonzero(rng.random(a.shape[1]) < rng.uniform(0.15, 0.7))
    network = network_of(a, hidden)
    if network is None:  # only the cube may fail to be one
        assert seed % 4 == 3
        return
    down = rng.integers(0, 20, len(hidden)).astype(float)
    up = rng.integers(0, 20, len(hidden)).astype(float)
    if seed % 3 == 0:
        up[rng.random(len(up)) < 0.5] = np.inf
    low, high = by_lp(a[:, hidden], down, up)
    found = network_bounds(network, down, up, witnesses=True)
    np.testing.assert_allclose(found.decrease, low, atol=1e-7)
    np.testing.assert_allclose(found.increase, high, atol=1e-7)
    moves = found.witnesses.toarray()
    assert (moves == np.rint(moves)).all()
    assert (a[:, hidden] @ moves.T == 0).all()
    assert (moves <= up).all()
    assert (-moves <= down).all()
    for (target, side), move in zip(found.witness_of, moves, strict=True):
        assert abs(move[target]) == (found.decrease, found.increase)[side][target]


@pytest.mark.parametrize("part", range(4))
def test_thousands_of_random_networks(part):
    checked = 0
    for seed in range(500):
        rng = np.random.default_rng([part, seed])
        nodes, arcs = int(rng.integers(2, 6)), int(rng.integers(2, 9))
        tail = rng.integers(0, nodes, arcs)
        head = (tail + rng.integers(1, nodes, arcs)) % nodes if nodes > 1 else tail
        a = np.zeros((nodes, arcs))
        a[head, np.arange(arcs)] = 1.0
        a[tail, np.arange(arcs)] = -1.0
        a *= rng.choice([-1.0, 1.0], (nodes, 1))  # the signs of relations say nothing
        network = network_of(a)
        assert network is not None
        down, up = rng.integers(0, 9, (2, arcs)).astype(float)
        up[rng.random(arcs) < 0.2] = np.inf
        low, high = by_lp(a[:, network.columns], down, up)
        found = network_bounds(network, down, up)
        np.testing.assert_allclose(found.decrease, low, atol=1e-7)
        np.testing.assert_allclose(found.increase, high, atol=1e-7)
        checked += arcs
    assert checked > 2000


def test_verdict_mode_stops_at_the_need_and_leaves_out_the_rest():
    a = cube_relations([Dimension(f"d{k}", h) for k, h in enumerate(SHAPES[0])])
    network = network_of(a)
    room = np.full(a.shape[1], 10.0)
    found = network_bounds(network, room, room, targets=[3, 4], need_up=[2, 0], need_down=3)
    assert found.increase.tolist() == [2, 0]
    assert found.decrease.tolist() == [3, 3]


def test_decimals_are_exact():
    a = cube_relations([Dimension(f"d{k}", h) for k, h in enumerate(SHAPES[0])])
    network = network_of(a)
    rng = np.random.default_rng(0)
    cents = rng.integers(1, 500, a.shape[1])
    whole = network_bounds(network, cents.astype(float), cents.astype(float))
    parts = network_bounds(network, cents / 100, cents / 100)
    assert (parts.increase == whole.increase / 100).all()
    assert unit_scale(np.array([0.1, np.inf]), np.array([0.25])) == 100
    assert unit_scale(np.array([1 / 3])) == 1


def test_scaling_and_permutation_change_nothing():
    rng = np.random.default_rng(5)
    a = cube_relations([Dimension(f"d{k}", h) for k, h in enumerate(SHAPES[1])])
    n = a.shape[1]
    down, up = rng.integers(0, 9, n).astype(float), rng.integers(0, 9, n).astype(float)
    base = network_bounds(network_of(a), down, up)
    order = rng.permutation(n)
    mixed = network_bounds(network_of(a[:, order]), down[order] * 1e9, up[order] * 1e9)
    assert (mixed.increase == base.increase[order] * 1e9).all()
    assert (mixed.decrease == base.decrease[order] * 1e9).all()


def test_intervals_of_the_published_example():
    """Pattern and intervals of the 2008 report (a ≥ 1 known to the attacker)."""
    table = d272()
    sizes = dict(zip("12345678", table.dims[0].codes[1:], strict=True))
    industries = dict(zip("123", table.dims[1].codes[1:], strict=True))
    expected = {
        "41": (11, 13), "43": (1, 3), "51": (2, 4), "53": (1, 3), "62": (5, 7),
        "63": (1, 3), "71": (1, 3), "72": (4, 6), "81": (1, 3), "82": (3, 5),
    }  # fmt: skip
    cells = np.array([table.cell(size=sizes[k[0]], industry=industries[k[1]]) for k in expected])
    network = network_of(table.relations, cells)
    values = table.values[cells]
    found = network_bounds(network, values - 1, np.full(len(cells), np.inf))
    assert (values - found.decrease).tolist() == [low for low, _ in expected.values()]
    assert (values + found.increase).tolist() == [high for _, high in expected.values()]


def test_hidden_mask_closes_the_other_arcs():
    a = cube_relations([Dimension(f"d{k}", h) for k, h in enumerate(SHAPES[0])])
    network, room = network_of(a), np.full(a.shape[1], 5.0)
    rng = np.random.default_rng(1)
    hidden = rng.random(a.shape[1]) < 0.4
    inside = network_bounds(network_of(a, hidden), room[hidden], room[hidden])
    masked = network_bounds(network, room, room, targets=hidden, hidden=hidden)
    assert (inside.increase == masked.increase).all()
    assert (inside.decrease == masked.decrease).all()


def test_a_cancelled_attack_says_so():
    a = cube_relations([Dimension(f"d{k}", h) for k, h in enumerate(SHAPES[0])])
    stop = Stop()
    stop.cancel()
    with pytest.raises(TimeoutError):
        network_bounds(network_of(a), np.ones(a.shape[1]), np.ones(a.shape[1]), stop=stop)
