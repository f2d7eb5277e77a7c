# mypy: disable-error-code="no-untyped-def"
"""The network of a plain table, read off in one pass.

`network_of` recognises any network; most tables that are one have every cell in at most two relations already (two dimensions, flat), and a million cells of those take it longer than the flow.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import scipy.sparse as sp

from tabprotect.table.graph import Network
from tabprotect.types import BoolArray


def plain_network(matrix: Any, moving: BoolArray) -> Network | None:
    """The moving cells as arcs between their two relations (or a relation and the ground); None when that is not what the matrix is.

    >>> from tabprotect.table.examples import d272
    >>> net = plain_network(d272().relations, np.ones(36, bool))
    >>> net.n_nodes, net.n_arcs
    (13, 36)
    """
    a = sp.csr_array(matrix)
    m, n = a.shape
    fits, tail, head = _ends(a.indptr, a.indices, a.data, n)
    if not fits:
        return None
    columns = np.flatnonzero(moving)
    tail, head = tail[columns], head[columns]
    ground = bool((tail == m).any() or (head == m).any())
    rows = np.r_[np.arange(m), -1] if ground else np.arange(m)
    return Network(m + ground, tail, head, columns, rows)


@numba.njit(cache=True)
def _ends(ptr, col, coef, n):
    """Whether every cell has at most two entries ±1 and the rows can be given signs that make them opposite; tails and heads."""
    m = len(ptr) - 1
    one, two = np.full(n, m, np.int32), np.full(n, m, np.int32)
    up_one, up_two = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    for r in range(m):
        for k in range(ptr[r], ptr[r + 1]):
            c, v = col[k], coef[k]
            if v == 0.0:
                continue
            if abs(v) != 1.0 or two[c] < m:
                return False, one, two
            if one[c] == m:
                one[c], up_one[c] = r, v > 0
            else:
                two[c], up_two[c] = r, v > 0
    turn = np.zeros(m, np.int8)
    stack = np.empty(m, np.int64)
    for root in range(m):
        if turn[root] != 0:
            continue
        turn[root], stack[0], size = 1, root, 1
        while size > 0:
            size -= 1
            r = stack[size]
            for k in range(ptr[r], ptr[r + 1]):
                c = col[k]
                if coef[k] == 0.0 or two[c] == m:
                    continue
                other = two[c] if one[c] == r else one[c]
                wanted = -turn[r] if up_one[c] == up_two[c] else turn[r]
                if turn[other] == 0:
                    turn[other] = wanted
                    stack[size] = other
                    size += 1
                elif turn[other] != wanted:
                    return False, one, two
    for c in range(n):
        # a positive entry enters the node; what has one relation only goes to or comes from the ground, m
        if one[c] < m and up_one[c] != (turn[one[c]] > 0):
            continue  # leaves the first: tail already
        one[c], two[c] = two[c], one[c]
    return True, one, two
