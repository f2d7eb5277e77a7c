# mypy: disable-error-code="no-untyped-def"
"""Unbiased rounding of tables that are networks: cells are pushed along random cycles until all are multiples.

Reference: L. H. Cox, "A constructive procedure for unbiased controlled rounding", J. Am. Statist. Assoc. 82 (1987).
"""

from __future__ import annotations

import numba
import numpy as np

from tabprotect.rounding.grid import Grid
from tabprotect.solve.flow import flow_graph
from tabprotect.table.graph import Network
from tabprotect.types import FloatArray, IntArray


def unbiased_by_cycles(grid: Grid, network: Network, *, seed: int = 0) -> IntArray:
    """Random steps with the true value as expectation of every cell, and all relations kept (Cox 1987).

    As long as a cell is strictly between its multiples there is a cycle of such cells. Pushing along it until a cell reaches a multiple, in one
    direction or the other with probabilities in inverse proportion to the two distances, changes no expectation.
    """
    columns = network.columns
    base, target = grid.base[columns], grid.target[columns]
    # residues counted in a common decimal unit are whole numbers: then the arithmetic is exact, and short numbers are quick
    digits = _digits(base * target, base)
    if digits is None:
        share, full = target.copy(), np.ones(len(columns))
    else:
        unit = 10.0**-digits
        share, full = np.rint(target * base / unit).astype(np.int32), np.rint(base / unit).astype(np.int32)
    between = (share > 0) & (share < full)
    graph = flow_graph(network.n_nodes, network.tail, network.head, between)
    rng = np.random.default_rng(seed)
    # what belongs to an arc lies together: the walk jumps through a large table, and memory is what it waits for
    arcs = np.column_stack([network.head, network.tail, share, full]).astype(share.dtype)
    _push_cycles(network.n_nodes, graph.start, graph.end, graph.out, arcs, rng)
    share = arcs[:, 2]
    loose = between & (network.tail == network.head)  # cells in no relation: each on its own
    share[loose] = np.where(rng.random(int(loose.sum())) * full[loose] < share[loose], full[loose], 0)
    x = np.zeros(grid.n, np.int64)
    x[columns] = share == full
    return x


def _digits(residue: FloatArray, base: FloatArray) -> int | None:
    for digits in range(10):
        if base.max(initial=1.0) * 10.0**digits > 2**30:
            return None
        if _whole(residue, 10.0**digits) and _whole(base, 10.0**digits):
            return digits
    return None


@numba.njit(cache=True)
def _whole(values, scale):
    off = 0.0
    for v in values:
        off = max(off, abs(v * scale - np.rint(v * scale)))
    return off <= 1e-6


@numba.njit(cache=True)
def _push_cycles(n, start, end, out, arcs, rng):
    """Walk along arcs between multiples (head, tail, share, full) until the walk meets itself, push the cycle, go on from there."""
    at = start.copy()
    place = np.full(n, -1, np.int64)
    path = np.empty(n + 1, np.int64)
    for root in range(n):
        u, depth = root, 0
        place[u] = 0
        while True:
            came = path[depth - 1] >> 1 if depth > 0 else -1
            # arcs that have reached a multiple are passed for good; the arc we came by is only skipped
            while at[u] < end[u] and _settled(arcs, out[at[u]] >> 1):
                at[u] += 1
            k = at[u]
            while k < end[u] and (out[k] >> 1 == came or _settled(arcs, out[k] >> 1)):
                k += 1
            if k == end[u]:
                if depth == 0:
                    break
                # only rounding errors of an inexact base end up here
                arcs[came, 2] = arcs[came, 3] if 2 * arcs[came, 2] >= arcs[came, 3] else 0
                place[u] = -1
                depth -= 1
                u = _to(arcs, path[depth] ^ 1)
                continue
            h = out[k]
            v = _to(arcs, h)
            path[depth] = h
            depth += 1
            if place[v] < 0:
                place[v] = depth
                u = v
                continue
            first = place[v]
            _push(path, first, depth, arcs, rng)
            for i in range(first, depth - 1):
                place[_to(arcs, path[i])] = -1
            depth = first
            u = v
        place[root] = -1


@numba.njit(cache=True, inline="always")
def _to(arcs, h):
    return np.int64(arcs[h >> 1, h & 1])


@numba.njit(cache=True, inline="always")
def _settled(arcs, e):
    return arcs[e, 2] <= 0 or arcs[e, 2] >= arcs[e, 3]


@numba.njit(cache=True)
def _push(path, first, last, arcs, rng):
    """Move the cycle as far as it goes one way or the other."""
    ahead, back = np.inf, np.inf
    for i in range(first, last):
        e = path[i] >> 1
        up, down = arcs[e, 3] - arcs[e, 2], arcs[e, 2]
        if path[i] & 1:
            up, down = down, up
        ahead = min(ahead, up)
        back = min(back, down)
    amount = ahead if rng.random() * (ahead + back) < back else -back
    for i in range(first, last):
        e = path[i] >> 1
        share, full = arcs[e, 2] + (-amount if path[i] & 1 else amount), arcs[e, 3]
        if share <= 1e-9 * full:
            share = 0.0
        elif share >= (1 - 1e-9) * full:
            share = full
        arcs[e, 2] = share
