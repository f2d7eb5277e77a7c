"""Components, network detection and bridges of the constraint graph."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tabprotect.table.cube import cube_relations
from tabprotect.table.examples import d272
from tabprotect.table.graph import components, network_of, to_networkx
from tabprotect.table.hierarchy import Dimension, Hierarchy

DEEP = Hierarchy.from_tree({"A": {"A1": ["A11", "A12"], "A2": None}, "B": ["B1", "B2", "B3"], "C": None})


def flat(n: int) -> Hierarchy:
    return Hierarchy.flat(range(n))


def relations(*hierarchies: Hierarchy):
    return cube_relations([Dimension(f"d{k}", h) for k, h in enumerate(hierarchies)])


def same_kernel(matrix, network) -> bool:
    """The conservation laws and the relations have the same solutions."""
    a = sp.csc_array(matrix)[:, network.columns].toarray()
    b = np.zeros((network.n_nodes, network.n_arcs))
    for j, (t, h) in enumerate(zip(network.tail, network.head, strict=True)):
        b[t, j] -= 1
        b[h, j] += 1
    rank = np.linalg.matrix_rank
    return rank(a) == rank(b) == rank(np.vstack([a, b]))


@pytest.mark.parametrize(
    "matrix",
    [
        relations(flat(3), flat(4)),
        relations(DEEP, flat(3)),
        relations(flat(3), DEEP),
        relations(flat(1), DEEP),
        relations(DEEP),
        relations(DEEP, Hierarchy.flat("xy", total=None)),
    ],
)
def test_network_tables_are_recognised(matrix):
    network = network_of(matrix)
    assert network is not None
    assert same_kernel(matrix, network)


@pytest.mark.parametrize("seed", range(20))
def test_recognition_survives_permutation_flips_and_scaling(seed):
    rng = np.random.default_rng(seed)
    a = relations(DEEP, flat(3)).toarray()
    a = a[rng.permutation(len(a))][:, rng.permutation(a.shape[1])] * rng.choice([-2.0, -1, 1, 3], (len(a), 1))
    network = network_of(a)
    assert network is not None
    assert same_kernel(a, network)


def test_three_dimensions_are_not_a_network():
    assert network_of(relations(flat(3), flat(3), flat(3))) is None


def test_two_hierarchies_are_not_a_network():
    h = Hierarchy.from_tree({"A": ["A1", "A2", "A3"], "B": ["B1", "B2", "B3"]})
    assert network_of(relations(h, h)) is None


def test_network_inside_a_cube():
    """Hidden cells in one slice of a three-dimensional table form a two-dimensional problem."""
    a = relations(flat(3), flat(3), flat(3))
    slice_of = np.arange(64).reshape(4, 4, 4)[1].ravel()
    # within the slice every relation along the first dimension has a single hidden cell, which is a network that fixes all of them
    network = network_of(a, slice_of)
    assert network is None or same_kernel(a, network)
    ring = [21, 22, 25, 26, 37, 38, 41, 42]
    network = network_of(a, ring)
    assert network is None or same_kernel(a, network)


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_recognised_has_the_same_solutions(seed):
    rng = np.random.default_rng(seed)
    a = [relations(flat(3), flat(2), flat(2)), relations(DEEP, DEEP), relations(DEEP, flat(2))][seed % 3]
    hidden = rng.random(a.shape[1]) < rng.uniform(0.1, 0.6)
    network = network_of(a, hidden)
    assert network is not None or seed % 3 != 2
    if network is not None:
        assert same_kernel(a, network)


def test_columns_without_relations_and_empty_input():
    network = network_of(np.zeros((1, 2)))
    assert network is not None
    assert (network.tail == network.head).all()
    assert network_of(relations(flat(2), flat(2)), np.zeros(9, bool)).n_arcs == 0


def test_components_follow_hidden_cells_only():
    a = relations(flat(3), flat(3))
    grid = np.arange(16).reshape(4, 4)
    hidden = np.array([grid[1, 1], grid[1, 2], grid[3, 3]])
    assert components(a, hidden).tolist() == [0, 0, 1]


def test_bridges_are_the_cells_the_relations_determine():
    a = relations(flat(3), flat(3))
    rng = np.random.default_rng(3)
    network = network_of(a)
    for _ in range(50):
        hidden = rng.random(16) < 0.5
        kernel = np.linalg.svd(a.toarray()[:, hidden])[2][np.linalg.matrix_rank(a.toarray()[:, hidden]) :]
        fixed = np.abs(kernel).max(axis=0, initial=0) < 1e-9
        expected = np.zeros(16, bool)
        expected[np.flatnonzero(hidden)[fixed]] = True
        assert (network.bridges(hidden) == expected).all()


def test_networkx_view_has_one_edge_per_coefficient():
    table = d272()
    graph = to_networkx(table)
    assert graph.number_of_nodes() == table.n_cells + table.n_relations
    assert graph.number_of_edges() == table.relations.nnz
    total = next(d["coefficient"] for _, _, d in graph.edges(("cell", 0), data=True))
    assert total == -1
