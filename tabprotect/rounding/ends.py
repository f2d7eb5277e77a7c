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
    # both relations of a cell lie together, as the row and whether the entry is positive in the last bit; 2m is the ground
    ends = np.full((n, 2), 2 * m, np.int32)
    tail, head = np.empty(n, np.int32), np.empty(n, np.int32)
    for r in range(m):
        for k in range(ptr[r], ptr[r + 1]):
            c, v = col[k], coef[k]
            if v == 0.0:
                continue
            if abs(v) != 1.0 or ends[c, 1] < 2 * m:
                return False, tail, head
            ends[c, 0 if ends[c, 0] == 2 * m else 1] = 2 * r + (v > 0)
    # sets of relations joined by cells, each with a sign against the first of its set: bit 0 says turned
    root, turned = np.arange(m), np.zeros(m, np.bool_)
    for c in range(n):
        if ends[c, 1] == 2 * m:
            continue
        one, two = ends[c, 0] >> 1, ends[c, 1] >> 1
        a, b = _first(root, turned, one), _first(root, turned, two)
        differ = (ends[c, 0] & 1) == (ends[c, 1] & 1)  # entries of one sign: one of the relations has to be turned
        if a == b:
            if (turned[one] != turned[two]) != differ:
                return False, tail, head
        else:
            root[b] = a
            turned[b] = (turned[one] != turned[two]) != differ
    for r in range(m):
        _first(root, turned, r)
    for c in range(n):
        # a positive entry enters the node; what has one relation only goes to or comes from the ground
        one, two = ends[c, 0] >> 1, ends[c, 1] >> 1
        enters = one < m and ((ends[c, 0] & 1) == 1) != turned[one]
        tail[c], head[c] = (two, one) if enters else (one, two)
    return True, tail, head


@numba.njit(cache=True, inline="always")
def _first(root, turned, r):
    """The first relation of r's set; afterwards r points to it, with the sign it has against it."""
    top, sign = r, False
    while root[top] != top:
        sign ^= turned[top]
        top = root[top]
    while root[r] != top and r != top:
        after, rest = root[r], sign != turned[r]
        root[r], turned[r] = top, sign
        r, sign = after, rest
    return top
