# mypy: disable-error-code="no-untyped-def"
"""What an outsider can deduce of every hidden cell of a network table, by maximum flow.

Raising cell p by r while all relations hold means sending r units around a cycle through p: the largest increase is its own room, capped
by a maximum flow from its head to its tail through the other hidden cells. One compiled call does all cells and both sides.

Reference: M. Fischetti and J. J. Salazar González, "Models and algorithms for the 2-dimensional cell suppression problem in
statistical disclosure control", Mathematical Programming 84 (1999).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from tabprotect.solve.flow import flow_graph, half_arc_capacities, max_flow, undo, workspace
from tabprotect.solve.stop import Stop
from tabprotect.table.graph import Network
from tabprotect.types import BoolArray, FloatArray, IntArray

CHUNK = 4096
"""Targets per compiled call: between two calls the caller's stop is looked at."""


@dataclass(frozen=True, eq=False)
class NetworkBounds:
    """Largest decrease and increase of each target; ``witnesses`` (moves × arcs) attain them, ``witness_of`` names target and side.

    Row i of ``witnesses`` is a move that lowers (side 0) or raises (side 1) target ``witness_of[i, 0]`` by the amount found.
    """

    decrease: FloatArray
    increase: FloatArray
    witnesses: Any = None
    witness_of: IntArray | None = None


def network_bounds(
    network: Network,
    down: npt.ArrayLike,
    up: npt.ArrayLike,
    targets: npt.ArrayLike | None = None,
    need_up: npt.ArrayLike | None = None,
    need_down: npt.ArrayLike | None = None,
    *,
    hidden: BoolArray | None = None,
    witnesses: bool = False,
    stop: Stop | None = None,
) -> NetworkBounds:
    """Exact largest decrease and increase of arcs when arc j may change by at most ``down[j]`` and ``up[j]`` (may be infinite).

    Only ``hidden`` arcs can change (default: all). With ``need_up`` or ``need_down`` (one number per target) that side stops at the
    needed amount, so only "at least" is learnt beyond it; a need of 0 leaves the side out. Rooms with few decimals are scaled to integers first, so that
    answers are exact and witnesses have no more decimals than the rooms.

    >>> from tabprotect.table.graph import network_of
    >>> net = network_of([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 0, 1]])
    >>> b = network_bounds(net, down=[2, 5, 4, 1], up=[9, 9, 9, 9])
    >>> b.decrease.tolist(), b.increase.tolist()
    ([1.0, 4.0, 4.0, 1.0], [4.0, 1.0, 1.0, 4.0])
    """
    room_down, room_up = np.array(down, float), np.array(up, float)
    if witnesses and need_up is not None and need_down is not None:
        # a flow for a need never takes more than the need through an arc, and finite rooms let its moves be read off
        most = max(float(np.max(need_up, initial=0.0)), float(np.max(need_down, initial=0.0)))
        room_down, room_up = (np.where(np.isinf(r), most, r) for r in (room_down, room_up))
    if hidden is not None:
        room_down, room_up = np.where(hidden, room_down, 0.0), np.where(hidden, room_up, 0.0)
    scale = unit_scale(room_down, room_up)
    chosen = np.arange(network.n_arcs) if targets is None else np.asarray(targets)
    if chosen.dtype == np.bool_:
        chosen = np.flatnonzero(chosen)
    chosen = chosen.astype(np.int64)
    capacity = half_arc_capacities(room_up * scale, room_down * scale)
    limit = np.column_stack([room_down[chosen], room_up[chosen]])
    for side, need in enumerate((need_down, need_up)):
        if need is not None:
            limit[:, side] = np.minimum(limit[:, side], np.broadcast_to(np.asarray(need, float), chosen.shape))
    graph = flow_graph(network.n_nodes, network.tail, network.head, (capacity[0::2] > 0) | (capacity[1::2] > 0))
    work = workspace(graph)
    residual = capacity.copy()
    found = np.zeros_like(limit)
    entries: list[tuple[IntArray, IntArray, FloatArray]] = []
    for first in range(0, len(chosen), CHUNK):
        if stop is not None and stop.done:
            raise TimeoutError("the attack was stopped before all bounds were known")
        part = slice(first, first + CHUNK)
        found[part], *entry = _bounds(
            graph, residual, capacity, network.tail, network.head, chosen[part], limit[part] * scale, witnesses, work
        )
        if witnesses:
            entries.append((entry[0] + 2 * first, entry[1], entry[2]))
    moves, of = _moves(entries, len(chosen), network.n_arcs, scale) if witnesses else (None, None)
    return NetworkBounds(found[:, 0] / scale, found[:, 1] / scale, moves, of)


def grid_witnesses(
    network: Network, down: FloatArray, up: FloatArray, target: int, need_down: float, need_up: float
) -> Any:
    """Moves (moves × arcs) of one target by its needs where rooms have too many digits for exact flows.

    Rooms are rounded inwards to a grid of which the need has twelve digits, the needs outwards; flows on the grid are exact.
    """
    most = max(need_down, need_up)
    if most <= 0.0:
        return sp.csr_array((0, network.n_arcs))
    scale = 10.0 ** (11 - int(np.floor(np.log10(most))))
    low, high = (np.floor(np.nextafter(np.minimum(room, 2.0 * most) * scale, 0.0)) for room in (down, up))
    need = [[float(np.ceil(np.nextafter(x * scale, np.inf)))] if x > 0 else [0.0] for x in (need_down, need_up)]
    found = network_bounds(network, low, high, [target], need_down=need[0], need_up=need[1], witnesses=True)
    return sp.csr_array(found.witnesses / scale)


def unit_scale(*rooms: FloatArray) -> float:
    """A power of ten that makes all finite rooms integers below 2**50, or 1 if there is none."""
    finite = np.concatenate([r[np.isfinite(r)] for r in rooms])
    top = float(np.abs(finite).sum(initial=0.0))
    for d in range(7):
        scaled = finite * 10.0**d
        if top * 10.0**d >= 2**50:
            break
        if np.all(scaled == np.rint(scaled)):
            return 10.0**d
    return 1.0


def _moves(
    entries: list[tuple[IntArray, IntArray, FloatArray]], n_targets: int, n_arcs: int, scale: float
) -> tuple[Any, IntArray]:
    row = np.concatenate([e[0] for e in entries]) if entries else np.zeros(0, np.int64)
    arc = np.concatenate([e[1] for e in entries]) if entries else np.zeros(0, np.int64)
    amount = np.concatenate([e[2] for e in entries]) if entries else np.zeros(0)
    used, dense = np.unique(row, return_inverse=True)
    moves = sp.csr_array((amount / scale, (dense, arc)), shape=(len(used), n_arcs))
    return moves, np.column_stack([used // 2, used % 2]).astype(np.int64)


@numba.njit(cache=True, nogil=True)
def _bounds(graph, residual, capacity, tail, head, targets, limit, witnesses, work):
    """Flow values for every target and side; with ``witnesses`` also (2·target + side, arc, change) of every move."""
    k = len(targets)
    found = np.zeros((k, 2))
    size = 1024 if witnesses else 1
    row = np.empty(size, np.int64)
    col = np.empty(size, np.int64)
    val = np.empty(size)
    used = 0
    for i in range(k):
        p = targets[i]
        for side in range(2):
            if limit[i, side] <= 0:
                continue
            s = head[p] if side == 1 else tail[p]
            t = tail[p] if side == 1 else head[p]
            flow, n_touched = max_flow(graph, residual, s, t, p, limit[i, side], work)
            found[i, side] = flow
            if witnesses and flow > 0 and flow < np.inf:
                while used + n_touched + 1 > size:
                    size *= 2
                    row = np.concatenate((row, np.empty(size - len(row), np.int64)))
                    col = np.concatenate((col, np.empty(size - len(col), np.int64)))
                    val = np.concatenate((val, np.empty(size - len(val))))
                row[used], col[used], val[used] = 2 * i + side, p, flow if side == 1 else -flow
                used += 1
                for j in range(n_touched):
                    h = work.touched[j]
                    # what the flow took from one direction it gave to the other; the finite one tells how much
                    change = capacity[h] - residual[h] if capacity[h] < np.inf else residual[h + 1] - capacity[h + 1]
                    if change != 0:
                        row[used], col[used], val[used] = 2 * i + side, h >> 1, change
                        used += 1
            undo(residual, capacity, work, n_touched)
    return found, row[:used], col[:used], val[:used]
