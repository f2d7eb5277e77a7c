"""Values and levels with as many digits as floating-point numbers have: found safe, and shown to be so in exact arithmetic."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import tabprotect as tp
from tabprotect.attacker.network import grid_witnesses, network_bounds
from tabprotect.linalg.exact import has_decimals
from tabprotect.table.cube import cube_codes, cube_relations, fill_margins
from tabprotect.table.graph import network_of
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.table.table import Table

SHAPES = {
    "2-D": (Hierarchy.flat(range(9)), Hierarchy.flat(range(7))),
    "hierarchy": (Hierarchy.from_tree({"A": ["A1", "A2", "A3"], "B": ["B1", "B2", "B3"]}), Hierarchy.flat(range(5))),
    "3-D": (Hierarchy.flat(range(4)), Hierarchy.flat(range(3)), Hierarchy.flat(range(4))),
}
VALUES = {
    "two decimals": lambda rng, shape: np.round(rng.uniform(1, 500, shape), 2),
    "all digits": lambda rng, shape: rng.uniform(1, 500, shape),
    "of all sizes": lambda rng, shape: rng.lognormal(8, 3, shape),
}


def table(rng: np.random.Generator, shape: str, kind: str) -> Table:
    """Few primaries, levels a share of their values."""
    dims = tuple(Dimension(f"d{k}", h) for k, h in enumerate(SHAPES[shape]))
    values = fill_margins(VALUES[kind](rng, [len(h.leaves) for h in SHAPES[shape]]), dims)
    codes = cube_codes(dims)
    inner = np.all([np.isin(codes[:, k], d.hierarchy.leaves) for k, d in enumerate(dims)], axis=0)
    status = np.full(len(values), "s")
    status[rng.choice(np.flatnonzero(inner), 4, replace=False)] = "u"
    need = np.where(status == "u", rng.uniform(0.02, 0.3) * values, 0.0)
    return Table(
        values, cube_relations(dims), status=status, lpl=need, upl=need,
        lb=np.zeros(len(values)), ub=np.full(len(values), 2 * values.max()), dims=dims, codes=codes,
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("shape", SHAPES)
def test_safe_whatever_the_digits(shape: str, kind: str, seed: int) -> None:
    t = table(np.random.default_rng([seed, len(shape), len(kind)]), shape, kind)
    found = tp.suppress(t, time_limit=20, threads=1)
    assert tp.verify(found.certificate).ok
    assert tp.attack(found, goal="verdict").safe
    assert tp.attack(found).safe
    # nothing was hidden only because rounding errors stood in the way of the proof
    assert found.objective >= found.bound
    if found.status == "optimal":
        assert found.objective == pytest.approx(found.bound)


@pytest.mark.parametrize("level", [1.0, 1.0 - 1e-13], ids=["the value", "a rounding error less"])
def test_a_level_as_large_as_the_value(level: float) -> None:
    """An outsider who may go down to zero: the room is the level, digit by digit."""
    rng = np.random.default_rng(4)
    t = table(rng, "2-D", "all digits")
    need = np.where(t.primary, t.values * level, 0.0)
    found = tp.suppress(t.with_levels(t.primary, lpl=need[t.primary], upl=need[t.primary]), time_limit=20)
    assert tp.attack(found, goal="verdict").safe


@pytest.mark.parametrize("seed", range(20))
def test_flows_of_any_digits(seed: int) -> None:
    """Against another maximum flow; amounts that add up to a limit only but for rounding errors once left the arrays of the search."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(3, 8)), int(rng.integers(3, 8))
    dims = tuple(Dimension(k, Hierarchy.flat(range(s))) for k, s in zip("rc", (n, m), strict=True))
    net = network_of(cube_relations(dims))
    assert net is not None
    down, up = rng.lognormal(2, 3, (2, net.n_arcs))
    targets = rng.choice(net.n_arcs, 5, replace=False)
    need = rng.uniform(0.1, 1.5, 5) * up[targets]
    found = network_bounds(net, down, up, targets, need_up=need, need_down=need)
    for k, p in enumerate(targets):
        graph = nx.DiGraph()
        graph.add_nodes_from(range(net.n_nodes))
        for e in range(net.n_arcs):
            for a, b, room in ((net.tail[e], net.head[e], up[e]), (net.head[e], net.tail[e], down[e])):
                if e != p:
                    before = graph.get_edge_data(a, b, {"capacity": 0.0})["capacity"]
                    graph.add_edge(a, b, capacity=before + room)
        most = nx.maximum_flow_value(graph, net.head[p], net.tail[p])
        assert found.increase[k] == pytest.approx(min(most, need[k], up[p]), rel=1e-9)


def test_moves_on_a_grid_are_exact() -> None:
    dims = tuple(Dimension(k, Hierarchy.flat(range(4))) for k in "rc")
    relations = cube_relations(dims)
    net = network_of(relations)
    assert net is not None
    down, up = np.random.default_rng(2).uniform(1, 300, (2, net.n_arcs))
    need = 0.7 * float(min(down[5], up[5]))
    moves = grid_witnesses(net, down, up, 5, need, need)
    assert moves.shape[0] == 2
    assert has_decimals(12, moves.data)
    for y in moves.toarray():
        assert np.abs(relations[:, net.columns] @ y).max() < 1e-9
        assert (y <= up).all()
        assert (-y <= down).all()
        assert abs(y[5]) >= need
