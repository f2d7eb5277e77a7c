"""The attacker's linear system: hidden cells as unknowns, one piece per connected component."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from tabprotect.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Component:
    """One connected piece: ``cells`` (indices in the table), the relations among them, and the room around a base point.

    All tables the attacker cannot tell from ``base`` are ``base + y`` with ``matrix @ y = 0`` and ``−down ≤ y ≤ up``.
    """

    cells: IntArray
    matrix: Any
    down: FloatArray
    up: FloatArray

    @property
    def n(self) -> int:
        return len(self.cells)


def components(relations: Any, hidden: BoolArray, down: FloatArray, up: FloatArray) -> Iterator[Component]:
    """Split the hidden cells into connected components; cells in no relation form components of their own without rows."""
    cells = np.flatnonzero(hidden)
    if len(cells) == 0:
        return
    sub = sp.csr_array(sp.csc_array(relations)[:, cells])
    sub = sub[np.diff(sub.indptr) > 0]
    m, n = sub.shape
    bipartite = sp.coo_array(sub)
    row, col = bipartite.coords
    graph = sp.csr_array((np.ones(len(row), np.int8), (row, col + m)), shape=(m + n, m + n))
    count, label = connected_components(graph, directed=False)
    by_cell = np.argsort(label[m:], kind="stable")
    by_row = np.argsort(label[:m], kind="stable")
    cell_ends = np.cumsum(np.bincount(label[m:], minlength=count))
    row_ends = np.cumsum(np.bincount(label[:m], minlength=count))
    for k in range(count):
        mine = by_cell[cell_ends[k - 1] if k else 0 : cell_ends[k]]
        if len(mine) == 0:
            continue
        rows = by_row[row_ends[k - 1] if k else 0 : row_ends[k]]
        mine = np.sort(mine)
        matrix = sub[rows][:, mine] if len(rows) else sp.csr_array((0, len(mine)))
        yield Component(cells[mine], matrix, down[cells[mine]], up[cells[mine]])


def peel(matrix: Any) -> BoolArray:
    """Cells determined by graph arguments alone: the only unknown of a relation is known, which may leave another relation with one.

    >>> peel(sp.csr_array(np.array([[1.0, 0, 0], [-1, 1, 0], [0, 1, 1]]))).tolist()
    [True, True, True]
    """
    a = sp.csr_array(matrix)
    columns = sp.csc_array(a)
    known = np.zeros(a.shape[1], bool)
    unknowns = np.diff(a.indptr).copy()
    queue = list(np.flatnonzero(unknowns == 1))
    while queue:
        r = queue.pop()
        members = a.indices[a.indptr[r] : a.indptr[r + 1]]
        left = members[~known[members]]
        if len(left) != 1:
            continue
        j = int(left[0])
        known[j] = True
        for s in columns.indices[columns.indptr[j] : columns.indptr[j + 1]]:
            unknowns[s] -= 1
            if unknowns[s] == 1:
                queue.append(int(s))
    return known
