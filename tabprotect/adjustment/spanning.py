"""Relations that imply all others: programs that are solved a thousand times should not carry the same relation twice.

Relations are taken one after the other, always one with the fewest cells not seen before, as long as it has any: each then determines one new cell from cells before it, so the taken ones
are independent, and a random table that satisfies them is computed on the way. A relation left over that the random tables satisfy is implied by the taken ones; the few that are not
implied are kept too.
"""

from __future__ import annotations

import heapq
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.types import IntArray


def spanning_rows(matrix: Any) -> IntArray:
    """Rows from which all others follow.

    >>> spanning_rows(sp.csr_array([[-1, 1, 1, 0], [0, 1, 1, -1], [-1, 0, 0, 1]])).tolist()
    [0, 2]
    """
    a, by_cell = sp.csr_array(matrix), sp.csc_array(matrix)
    m, n = a.shape
    rng = np.random.default_rng(0)
    table = np.zeros((n, 2))
    seen, taken = np.zeros(n, bool), np.zeros(m, bool)
    fresh = np.diff(a.indptr).astype(np.int64)
    queue = [(int(k), r) for r, k in enumerate(fresh)]
    heapq.heapify(queue)
    while queue:
        count, r = heapq.heappop(queue)
        if taken[r] or count != fresh[r] or count == 0:
            continue  # counts that have changed since are in the queue again
        taken[r] = True
        part = slice(a.indptr[r], a.indptr[r + 1])
        cells, coefficient = a.indices[part], a.data[part]
        new = np.flatnonzero(~seen[cells])
        pivot = new[np.abs(coefficient[new]).argmax()]
        table[cells[new]] = rng.integers(-1000, 1000, (len(new), 2))
        table[cells[pivot]] = 0.0
        table[cells[pivot]] = -(coefficient @ table[cells]) / coefficient[pivot]
        seen[cells[new]] = True
        for c in cells[new]:
            for other in by_cell.indices[by_cell.indptr[c] : by_cell.indptr[c + 1]].tolist():
                fresh[other] -= 1
                if not taken[other] and fresh[other] > 0:
                    heapq.heappush(queue, (int(fresh[other]), other))
    off = np.abs(a @ table)
    broken = (off > 1e-9 * (abs(a) @ np.abs(table) + 1.0)).any(axis=1)
    return np.flatnonzero(taken | broken)
