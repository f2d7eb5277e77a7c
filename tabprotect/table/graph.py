# mypy: disable-error-code="no-untyped-def"
"""The constraint graph: components, and relations that are the conservation laws of a network.

Cells are variables and relations are equations; where every cell occurs in at most two relations with opposite signs, the relations are
conservation of flow in a graph whose nodes are relations and whose arcs are cells. A two-dimensional table is one after flipping signs, a
hierarchical dimension crossed with a flat one after leaving out relations that the others imply.

References: R. E. Bixby and R. Fourer, "Finding embedded network rows in linear programs I", Management Science 34 (1988), for row
insertion; J. Castro, "Network flows heuristics for complementary cell suppression", in Inference Control in Statistical Databases
(2002), for tables as networks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from tabprotect.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import networkx as nx

    from tabprotect.table.table import Table

_ROUNDS = 12


@dataclass(frozen=True, eq=False)
class Network:
    """Arcs for columns of a relation matrix: ``relations[:, columns] @ y = 0`` says that y is conserved at every node.

    Column ``columns[j]`` is the arc from ``tail[j]`` to ``head[j]``. Node i stands for relation ``rows[i]`` (times ±1); the last node may be
    the ground (row −1), where cells that occur in one relation only come from or go to.
    """

    n_nodes: int
    tail: npt.NDArray[np.int32]
    head: npt.NDArray[np.int32]
    columns: IntArray
    rows: IntArray

    @property
    def n_arcs(self) -> int:
        return len(self.tail)

    def divergence(self, y: FloatArray) -> FloatArray:
        """Net inflow of every node: zero for a move that respects the relations."""
        net: FloatArray = np.zeros(self.n_nodes)
        np.add.at(net, self.head, y)
        np.subtract.at(net, self.tail, y)
        return net

    def bridges(self, hidden: BoolArray | None = None) -> BoolArray:
        """Arcs (of the hidden ones) on no cycle: cells that the relations determine exactly."""
        from tabprotect.solve.flow import flow_graph

        graph = flow_graph(self.n_nodes, self.tail, self.head, hidden)
        found = _bridges(self.n_nodes, graph)
        return found if hidden is None else found & hidden


def network_of(relations: Any, columns: npt.ArrayLike | None = None) -> Network | None:
    """The relations (of some columns: mask or indices) as a network, or None if they were not recognised as one.

    Rows are inserted one after the other as long as every column keeps at most two entries of opposite sign; the rows left over must then be
    implied by the inserted ones. If one is not, it goes to the front of the order, and again.

    >>> from tabprotect.table.examples import d272
    >>> net = network_of(d272().relations)
    >>> net.n_nodes, net.n_arcs
    (13, 36)
    """
    matrix = sp.csc_array(relations)
    chosen = np.arange(matrix.shape[1]) if columns is None else np.asarray(columns)
    if chosen.dtype == np.bool_:
        chosen = np.flatnonzero(chosen)
    chosen = chosen.astype(np.int64)
    part = matrix[:, chosen] if columns is not None else matrix
    by_row = sp.csr_array(part)
    by_row.sum_duplicates()
    by_row.eliminate_zeros()
    used = np.flatnonzero(np.diff(by_row.indptr))
    by_row = sp.csr_array(by_row[used])
    sign, usable = _unit_rows(by_row)
    indptr, indices = by_row.indptr.astype(np.int64), by_row.indices.astype(np.int64)
    order = np.concatenate([np.flatnonzero(usable), np.flatnonzero(~usable)])
    n = len(chosen)
    fewest, idle = by_row.shape[0], 0
    for _ in range(_ROUNDS):
        kept, flip, first, second = _insert_rows(order, usable, indptr, indices, sign, n)
        network = _arcs(kept, flip, first, second, by_row, sign, chosen, used)
        left_out = order[~kept[order]]
        wanted = left_out[_not_implied(network, by_row, left_out)]
        if len(wanted) == 0:
            return network
        # most tables that are no networks show it by making no headway
        idle += len(wanted) > 0.9 * fewest
        fewest = min(fewest, len(wanted))
        if idle >= 3 or not usable[wanted].all():
            return None
        order = np.concatenate([wanted, order[~np.isin(order, wanted)]])
    return None


def components(relations: Any, columns: npt.ArrayLike | None = None) -> IntArray:
    """Connected component of every column (of the chosen ones): two cells belong together when a chain of relations links them.

    >>> components([[1, 1, 0, 0], [0, 0, 1, -1]]).tolist()
    [0, 0, 1, 1]
    """
    matrix = sp.csc_array(relations)
    chosen = np.arange(matrix.shape[1]) if columns is None else np.asarray(columns)
    part = sp.csc_array(matrix[:, chosen])
    m, n = part.shape
    pairs = part.tocoo()
    size = m + n
    graph = sp.coo_array((np.ones(pairs.nnz, np.int8), (pairs.coords[0], m + pairs.coords[1])), shape=(size, size))
    _, label = sp.csgraph.connected_components(graph.tocsr(), directed=False)
    _, dense = np.unique(label[m:], return_inverse=True)
    return _in_order_of_first(dense)


def to_networkx(table: Table) -> nx.MultiGraph:
    """The constraint graph for people: nodes ("cell", i) and ("relation", r), an edge with ``coefficient`` per entry.

    >>> from tabprotect.table.examples import d272
    >>> to_networkx(d272()).number_of_edges()
    72
    """
    import networkx as nx

    graph: nx.MultiGraph = nx.MultiGraph(name=table.name)
    for i in range(table.n_cells):
        graph.add_node(("cell", i), label=table.label(i), status=str(table.status[i]))
    for r in range(table.n_relations):
        graph.add_node(("relation", r), label=table.describe_relation(r))
    entries = table.relations.tocoo()
    for r, i, c in zip(*entries.coords, entries.data, strict=True):
        graph.add_edge(("relation", int(r)), ("cell", int(i)), coefficient=float(c))
    return graph


def _in_order_of_first(label: IntArray) -> IntArray:
    _, first = np.unique(label, return_index=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return rank[label]


def _unit_rows(by_row: Any) -> tuple[npt.NDArray[np.int64], BoolArray]:
    """Signs of the entries, and which rows are multiples of a row of ±1."""
    size = np.abs(by_row.data)
    if by_row.shape[0] == 0:
        return np.zeros(0, np.int64), np.zeros(0, bool)
    low = np.minimum.reduceat(size, by_row.indptr[:-1])
    high = np.maximum.reduceat(size, by_row.indptr[:-1])
    return np.sign(by_row.data).astype(np.int64), low == high


def _arcs(
    kept: BoolArray,
    flip: IntArray,
    first: IntArray,
    second: IntArray,
    by_row: Any,
    sign: IntArray,
    columns: IntArray,
    used: IntArray,
) -> Network:
    """Ends of the arcs: +1 enters a node, −1 leaves it; what has no second relation is joined to the ground."""
    n = len(columns)
    rows = np.flatnonzero(kept)
    node = np.full(len(kept) + 1, len(rows), np.int32)
    node[rows] = np.arange(len(rows))
    a = np.where(first >= 0, first, len(kept))
    b = np.where(second >= 0, second, len(kept))
    coo_rows = np.repeat(np.arange(by_row.shape[0]), np.diff(by_row.indptr))
    leading = np.zeros(n, np.int64)
    is_first = first[by_row.indices] == coo_rows
    leading[by_row.indices[is_first]] = sign[is_first] * flip[coo_rows[is_first]]
    tail = np.where(leading >= 0, node[b], node[a]).astype(np.int32)
    head = np.where(leading >= 0, node[a], node[b]).astype(np.int32)
    ground = bool((first < 0).any() or (second < 0).any())
    labels = np.concatenate([used[rows], [-1]]) if ground else used[rows]
    return Network(len(rows) + ground, tail, head, columns, labels.astype(np.int64))


def _not_implied(network: Network, by_row: Any, rows: IntArray) -> BoolArray:
    """Which of the rows are not combinations of the network's: they are, when node potentials explain their coefficients."""
    if len(rows) == 0:
        return np.zeros(0, bool)
    from tabprotect.solve.flow import flow_graph

    graph = flow_graph(network.n_nodes, network.tail, network.head)
    parent, visit = _spanning_forest(network.n_nodes, graph)
    # two random integer combinations decide the usual case, all rows implied, at once; a row that is not would slip through with
    # probability below 2**-40
    some = by_row[rows]
    rng = np.random.default_rng(0)
    mix = rng.integers(-(2**20), 2**20, size=(len(rows), 2)).astype(float)
    for k in range(mix.shape[1]):
        if not _explained(network.tail, network.head, graph.to, parent, visit, np.asarray(some.T @ mix[:, k])):
            break
    else:
        return np.zeros(len(rows), bool)
    if len(rows) * (network.n_arcs + network.n_nodes) > 10**9:
        return np.ones(len(rows), bool)
    missing = np.empty(len(rows), bool)
    for i in range(len(rows)):
        dense = some[[i]].toarray().ravel()
        missing[i] = not _explained(network.tail, network.head, graph.to, parent, visit, dense)
    return missing


@numba.njit(cache=True, nogil=True)
def _find(parent, parity, i):
    """Root of i and the parity between them; the path is compressed."""
    root, odd = i, 0
    while parent[root] != root:
        odd ^= parity[root]
        root = parent[root]
    left = odd
    while parent[i] != root and i != root:
        above, own = parent[i], parity[i]
        parent[i], parity[i] = root, left
        left ^= own
        i = above
    return root, odd


@numba.njit(cache=True, nogil=True)
def _insert_rows(order, usable, indptr, indices, sign, n):
    """Insert rows while every column keeps at most two entries that can be made opposite; parities by union-find."""
    m = len(indptr) - 1
    parent = np.arange(m)
    parity = np.zeros(m, np.int64)
    kept = np.zeros(m, np.bool_)
    first = np.full(n, -1, np.int64)
    second = np.full(n, -1, np.int64)
    first_sign = np.zeros(n, np.int64)
    wanted = np.zeros(m, np.int64)
    stamp = np.full(m, -1, np.int64)
    for r in order:
        if not usable[r]:
            continue
        fits = True
        for k in range(indptr[r], indptr[r + 1]):
            j = indices[k]
            if second[j] >= 0:
                fits = False
                break
            q = first[j]
            if q < 0:
                continue
            root, odd = _find(parent, parity, q)
            # equal signs need one of the two rows flipped
            need = odd ^ (1 if sign[k] == first_sign[j] else 0)
            if stamp[root] == r and wanted[root] != need:
                fits = False
                break
            stamp[root] = r
            wanted[root] = need
        if not fits:
            continue
        kept[r] = True
        for k in range(indptr[r], indptr[r + 1]):
            j = indices[k]
            if first[j] < 0:
                first[j] = r
                first_sign[j] = sign[k]
                continue
            root, _ = _find(parent, parity, first[j])
            second[j] = r
            if root != r:
                parent[root] = r
                parity[root] = wanted[root]
    flip = np.ones(m, np.int64)
    for r in range(m):
        _, odd = _find(parent, parity, r)
        if odd:
            flip[r] = -1
    return kept, flip, first, second


@numba.njit(cache=True, nogil=True)
def _spanning_forest(n, graph):
    """Half-arc into each node (−1 at roots) and the nodes in order of visit."""
    start, end, out, to = graph
    parent = np.full(n, -2, np.int64)
    visit = np.empty(n, np.int64)
    last = 0
    for root in range(n):
        if parent[root] != -2:
            continue
        parent[root] = -1
        visit[last] = root
        at = last
        last += 1
        while at < last:
            u = visit[at]
            at += 1
            for k in range(start[u], end[u]):
                v = to[out[k]]
                if parent[v] == -2:
                    parent[v] = out[k]
                    visit[last] = v
                    last += 1
    return parent, visit


@numba.njit(cache=True, nogil=True)
def _explained(tail, head, to, parent, visit, coefficient):
    """Whether coefficient[j] = potential[head] − potential[tail] for all arcs, with some potentials."""
    potential = np.zeros(len(visit))
    for v in visit:
        h = parent[v]
        if h >= 0:
            step = coefficient[h >> 1]
            potential[v] = potential[to[h ^ 1]] + (step if h & 1 == 0 else -step)
    wrong = 0
    for j in range(len(tail)):
        wrong += coefficient[j] != potential[head[j]] - potential[tail[j]]
    return wrong == 0


@numba.njit(cache=True, nogil=True)
def _bridges(n, graph):
    """Arcs whose removal disconnects their ends (Tarjan 1974, without recursion)."""
    start, end, out, to = graph
    found = np.zeros(len(to) // 2, np.bool_)
    seen = np.full(n, -1, np.int64)
    low = np.zeros(n, np.int64)
    arc = start.copy()
    into = np.full(n, -1, np.int64)
    stack = np.empty(n + 1, np.int64)
    clock = 0
    for root in range(n):
        if seen[root] >= 0:
            continue
        stack[0] = root
        depth = 1
        seen[root] = low[root] = clock
        clock += 1
        while depth > 0:
            u = stack[depth - 1]
            if arc[u] < end[u]:
                h = out[arc[u]]
                arc[u] += 1
                v = to[h]
                if into[u] >= 0 and h >> 1 == into[u] >> 1:
                    continue
                if seen[v] < 0:
                    into[v] = h
                    seen[v] = low[v] = clock
                    clock += 1
                    stack[depth] = v
                    depth += 1
                else:
                    low[u] = min(low[u], seen[v])
            else:
                depth -= 1
                if depth > 0:
                    w = stack[depth - 1]
                    low[w] = min(low[w], low[u])
                    if low[u] > seen[w]:
                        found[into[u] >> 1] = True
    return found
