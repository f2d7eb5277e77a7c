"""Whole numbers near a consistent point: keep the relations, move every cell as little as possible.

Three ways, from best to fastest: a minimum-cost flow where the relations are a network (every cell goes to a
neighbouring whole number, the sum of all moves is the smallest possible), a mixed-integer program for other small
systems, and cumulative rounding of the leaves for anything else, in linear time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from tabprotect.errors import Infeasible, InputError, SolverUnavailable
from tabprotect.linalg.totals import Totals
from tabprotect.types import FloatArray, IntArray

METHODS = ("auto", "flow", "milp", "cumulative")
FLOW_CELLS, MILP_CELLS = 3_000_000, 400  # above these sizes "auto" takes the next, faster way
_COST = 1_000_000  # flow costs are whole numbers; this many of them make a move of one
_SNAP = 1e-6  # nearer than this to a whole number counts as that number


@dataclass(frozen=True)
class Whole:
    """Whole numbers that keep the relations; ``method`` tells how they were found and ``moved`` the largest change of
    a cell.
    """

    x: FloatArray
    method: str
    moved: float


def to_integers(relations: Any, x: Any, *, method: str = "auto", time_limit: float = 5.0) -> Whole:
    """Round a point with ``relations @ x = 0, x ≥ 0`` to whole numbers that keep the relations exactly.

    Parameters
    ----------
    relations
        Rows of whole coefficients, each defining a total from its parts (redundant ones are welcome).
    x
        The point, consistent up to rounding errors.
    method
        ``"flow"``, ``"milp"``, ``"cumulative"``, or ``"auto"`` for the best one that suits the size and structure.
    time_limit
        Seconds for the mixed-integer program.

    >>> a = [[-1, 1, 1, 1]]
    >>> to_integers(a, [7.6, 2.4, 2.6, 2.6]).x.tolist()
    [8.0, 2.0, 3.0, 3.0]

    References: Cox & Ernst, "Controlled rounding", INFOR 20 (1982), for the flow.
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}: use {', '.join(METHODS)}")
    a = sp.csr_array(relations, dtype=np.float64)
    point = np.asarray(x, dtype=np.float64)
    if point.shape != (a.shape[1],) or not np.isfinite(point).all():
        raise InputError(f"one finite value per cell is needed: got shape {point.shape} for {a.shape[1]} cells")
    if point.size and point.min() < -_SNAP:
        raise InputError("values must not be negative")
    point = np.maximum(point, 0.0)
    for name in _ways(method, a.shape[1]):
        found = {"flow": _by_flow, "milp": _by_milp, "cumulative": _by_cumulation}[name](a, point, time_limit)
        if found is not None and _holds(a, found):
            return Whole(found, name, float(np.abs(found - point).max(initial=0.0)))
    raise Infeasible(f"no whole numbers that keep the relations were found by method {method!r}")


def _ways(method: str, n: int) -> list[str]:
    if method != "auto":
        return [method]
    ways = (["flow"] if n <= FLOW_CELLS else []) + (["milp"] if n <= MILP_CELLS else [])
    return [*ways, "cumulative"]


def _holds(a: Any, z: FloatArray) -> bool:
    """Plain arithmetic, whatever the solver said."""
    return bool((z >= 0).all() and (z == np.rint(z)).all() and not (a @ z).any())


# -- cumulative rounding
# --------------------------------------------------------------------------------------------------------
def _by_cumulation(a: Any, x: FloatArray, time_limit: float) -> FloatArray | None:
    """Round running sums of the leaves: each leaf goes to a neighbour, every run of leaves keeps its sum to within
    one.
    """
    totals = Totals.of(a)
    if totals is None:
        return None
    leaves = np.flatnonzero(totals.leaf)
    # whole parts apart: running sums of fractions stay small and exact
    whole = np.floor(x[leaves] + _SNAP)
    running = np.rint(np.cumsum(np.clip(x[leaves] - whole, 0.0, None)))
    z = np.zeros_like(x)
    z[leaves] = whole + np.diff(running, prepend=0.0)
    return totals.add_up(z)


# -- network flow
# ---------------------------------------------------------------------------------------------------------------
def _by_flow(a: Any, x: FloatArray, time_limit: float) -> FloatArray | None:
    """Cox and Ernst: arcs of capacity one above the whole part, the cheapest flow that closes the sums."""
    # which definition of a total comes first decides whether the rest is a network
    for order in (slice(None), slice(None, None, -1)):
        totals = Totals.of(a[order]) if a.shape[0] else None
        if totals is None:
            continue
        chosen = sp.csr_array(a[order][np.unique(totals.rows[totals.rows >= 0])])
        arcs = network(chosen)
        if arcs is not None:
            return _cheapest(chosen, arcs, x)
    return None


def network(a: Any) -> tuple[IntArray, IntArray] | None:
    """Tail and head of every column when the rows, some of them negated, are the incidence matrix of a network; else
    None.

    Row r is node r, one more node takes the columns with a single entry.

    >>> tail, head = network(sp.csr_array([[1.0, 1, -1, 0], [0, 0, 1, -1]]))
    >>> tail.tolist(), head.tolist()
    ([2, 2, 0, 1], [0, 0, 1, 2])
    """
    columns = sp.csc_array(a)
    columns.sum_duplicates()
    m, n = columns.shape
    counts = np.diff(columns.indptr)
    if (counts > 2).any() or not np.isin(columns.data, (-1.0, 1.0)).all():
        return None
    first = columns.indptr[:-1]
    two = np.flatnonzero(counts == 2)
    r1, r2 = columns.indices[first[two]], columns.indices[first[two] + 1]
    same = columns.data[first[two]] == columns.data[first[two] + 1]
    # two copies of every row, as it is and negated; a column with equal signs asks for opposite copies
    left = np.concatenate([r1, r1 + m])
    right = np.concatenate([np.where(same, r2 + m, r2), np.where(same, r2, r2 + m)])
    graph = sp.coo_array((np.ones(left.size), (left, right)), shape=(2 * m, 2 * m))
    _, part = connected_components(graph, directed=False)
    if (part[:m] == part[m:]).any():
        return None
    sign = np.where(part[:m] < part[m:], 1.0, -1.0)
    tail, head = np.full(n, m, dtype=np.int64), np.full(n, m, dtype=np.int64)
    entry_column = np.repeat(np.arange(n), counts)
    value = columns.data * sign[columns.indices]
    head[entry_column[value > 0]] = columns.indices[value > 0]
    tail[entry_column[value < 0]] = columns.indices[value < 0]
    return tail, head


def _cheapest(a: Any, arcs: tuple[IntArray, IntArray], x: FloatArray) -> FloatArray | None:
    try:
        from ortools.graph.python import min_cost_flow
    except ImportError as error:
        raise SolverUnavailable("rounding by flow needs ortools: pip install ortools") from error
    tail, head = arcs
    whole = np.floor(x + _SNAP)
    part = np.clip(x - whole, 0.0, 1.0)
    free = part > _SNAP
    supply = np.zeros(a.shape[0] + 1, dtype=np.int64)
    np.add.at(supply, head, whole.astype(np.int64))
    np.subtract.at(supply, tail, whole.astype(np.int64))
    solver = min_cost_flow.SimpleMinCostFlow()
    used = solver.add_arcs_with_capacity_and_unit_cost(
        tail[free],
        head[free],
        np.ones(int(free.sum()), dtype=np.int64),
        np.rint(_COST * (1 - 2 * part[free])).astype(np.int64),
    )
    solver.set_nodes_supplies(np.arange(supply.size), supply)
    if solver.solve() != solver.OPTIMAL:
        return None
    z = whole
    z[free] += solver.flows(used)
    return z


# -- mixed-integer program
# ------------------------------------------------------------------------------------------------------
def _by_milp(a: Any, x: FloatArray, time_limit: float) -> FloatArray | None:
    """Leaves go to a neighbour (or one further where that is too tight), totals follow; the smallest sum of all
    moves.
    """
    from scipy.optimize import Bounds, LinearConstraint, milp

    n = x.size
    eye = sp.identity(n, format="csr")
    # z − up + down = x and A·z = 0
    constraints = [
        LinearConstraint(sp.hstack([eye, -eye, eye], format="csr"), x, x),
        LinearConstraint(sp.hstack([a, sp.csr_array((a.shape[0], 2 * n))], format="csr"), 0.0, 0.0),
    ]
    cost = np.concatenate([np.zeros(n), np.ones(2 * n)])
    for room in (0.0, 1.0):
        low = np.concatenate([np.maximum(0.0, np.floor(x + _SNAP) - room), np.zeros(2 * n)])
        high = np.concatenate([np.ceil(x - _SNAP) + room, np.full(2 * n, np.inf)])
        found = milp(
            cost,
            integrality=np.repeat([1, 0, 0], n),
            bounds=Bounds(low, high),
            constraints=constraints,
            options={"time_limit": time_limit},
        )
        if found.x is not None:
            return np.rint(found.x[:n])
    return None
