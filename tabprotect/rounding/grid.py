# mypy: disable-error-code="no-untyped-def"
"""The rounding problem in steps of the base: which multiples each cell may take, how far each is, and how cells must add up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import scipy.sparse as sp

from tabprotect.errors import Infeasible, InputError
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from tabprotect.rounding.search import Leaves

CLOSE = 1e-9


@dataclass(frozen=True, eq=False)
class Grid:
    """Cell i is published as ``origin + base·x`` with a whole number of steps ``low ≤ x ≤ high``; ``matrix @ x = rhs`` keeps the relations.

    ``target`` is where the true value lies on the scale of steps (0 ≤ target < 1 unless the cell is exact) and ``weight`` what one step of
    distance costs, so that the cost of x is Σ weight·|x − target|. ``unit`` says whether all cells of every relation share one base:
    then ``matrix`` is the relations themselves.
    """

    matrix: Any
    rhs: FloatArray
    origin: FloatArray
    base: FloatArray
    target: FloatArray
    low: IntArray
    high: IntArray
    weight: FloatArray
    unit: bool

    @property
    def n(self) -> int:
        return len(self.target)

    def nearest(self) -> IntArray:
        """The nearest allowed step of every cell on its own; a half goes up."""
        return np.clip(np.floor(self.target + 0.5 + CLOSE), self.low, self.high).astype(np.int64)

    def cost(self, x: IntArray) -> float:
        return float(_distance(self.weight, x, self.target))

    def values(self, x: IntArray) -> FloatArray:
        """Published values of a choice of steps; added to the origin in steps, so that whole numbers stay whole."""
        plain = self.origin + self.base * x
        if np.array_equal(self.base, np.rint(self.base)):
            return plain
        # 3·0.1 is not 0.3 in floating point: what is a multiple of a decimal base is written with its decimals
        for digits in range(1, 10):
            if np.all(np.abs(self.base * 10.0**digits - np.rint(self.base * 10.0**digits)) <= CLOSE):
                multiples = np.round(np.rint(plain / self.base) * self.base, digits)
                return np.where(np.abs(multiples - plain) <= CLOSE * np.maximum(1.0, np.abs(plain)), multiples, plain)
        return plain

    def additive(self, x: IntArray) -> bool:
        """Whether the relations hold."""
        off = np.abs(self.matrix @ x.astype(float) - self.rhs)
        if (off <= CLOSE).all():  # whole numbers: nothing to allow for
            return True
        scale = np.abs(self.matrix) @ np.abs(x) + np.abs(self.rhs) + 1.0
        return bool(np.all(off <= CLOSE * scale))

    def constant(self, leaves: Leaves) -> FloatArray:
        """What each total has beyond the steps of its inner cells: the inner cells' origins, in steps of the total."""
        from_leaves = (leaves.down @ (self.origin[leaves.leaf] / self.base[leaves.leaf])) - (
            self.origin[leaves.total] / self.base[leaves.total]
        )
        return np.rint(from_leaves)

    def widened(self, steps: int, keep: BoolArray) -> Grid:
        """The same with ``steps`` more multiples allowed on both sides, except for the cells of ``keep``."""
        more = np.where(keep, 0, steps)
        low, high = self.low - more, self.high + more
        return Grid(self.matrix, self.rhs, self.origin, self.base, self.target, low, high, self.weight, self.unit)


def make_grid(
    table: Table,
    base: FloatArray,
    *,
    zero_restricted: bool = True,
    exact: BoolArray | None = None,
    weights: FloatArray | None = None,
) -> Grid:
    """The grid of a table; see `tabprotect.rounding.round_table` for the parameters.

    >>> from tabprotect.table.examples import d272
    >>> grid = make_grid(d272(), np.full(36, 5.0))
    >>> grid.nearest()[:4].tolist(), grid.target[:4].round(1).tolist()
    ([1, 0, 0, 1], [0.6, 0.4, 0.4, 0.8])
    """
    a = table.values
    kept = np.zeros(table.n_cells, bool) if exact is None else exact
    target, origin, high = _places(a, base, kept)
    low = np.zeros(table.n_cells, np.int64)
    if not zero_restricted:
        on_grid = (target == 0) & ~kept
        # nobody publishes a negative count
        low[on_grid & ~((table.lb >= 0) & (origin - base < 0))] = -1
        high[on_grid] = 1
    weight = base if weights is None else base * weights
    matrix, rhs, unit = _relations(table, base, origin, kept)
    return Grid(matrix, rhs, origin, base, target, low, high, weight, unit)


@numba.njit(cache=True)
def _places(values, base, kept):
    """Where every value lies between its multiples (0 ≤ target < 1), the multiple below it, and how many steps up are allowed."""
    n = len(values)
    target, origin, high = np.zeros(n), values.copy(), np.zeros(n, np.int64)
    for i in range(n):
        if kept[i]:
            continue
        steps = values[i] / base[i]
        near = np.rint(steps)
        on_grid = abs(steps - near) <= CLOSE * max(1.0, abs(steps))
        below = near if on_grid else np.floor(steps)
        origin[i] = below * base[i]
        # the residue first: of whole numbers it is exact, a difference of large quotients is not
        target[i] = 0.0 if on_grid or below == steps else (values[i] - origin[i]) / base[i]
        high[i] = target[i] > 0
    return target, origin, high


@numba.njit(cache=True)
def _distance(weight, x, target):
    total = 0.0
    for i in range(len(x)):
        total += weight[i] * abs(x[i] - target[i])
    return total


def _relations(table: Table, base: FloatArray, origin: FloatArray, exact: BoolArray) -> tuple[Any, FloatArray, bool]:
    """The relations in steps, each divided by the base its cells share; rows whose sides cannot meet are an error."""
    rows = sp.csr_array(table.relations)
    m = rows.shape[0]
    if not exact.any() and base.size and base.min() == base.max():  # the usual case, in one pass over a large table
        own, matrix, unit = np.full(m, base[0]), rows, True
    else:
        line = np.repeat(np.arange(m), np.diff(rows.indptr))
        moving = ~exact[rows.indices]
        own = np.zeros(m)
        np.maximum.at(own, line[moving], base[rows.indices[moving]])
        own[own == 0] = 1.0
        in_steps = base[rows.indices] / own[line]
        unit = bool(np.all(in_steps[moving] == 1.0))
        matrix = sp.csr_array(
            (rows.data * np.where(moving, in_steps, 0.0), rows.indices, rows.indptr), shape=rows.shape
        )
    rhs = (table.rhs - rows @ origin) / own
    near = np.rint(rhs)
    whole = np.abs(rhs - near) <= CLOSE * (1.0 + np.abs(origin).max(initial=0.0) / own)
    rhs = np.where(whole, near, rhs)
    if unit and not whole.all() and np.array_equal(rows.data, np.rint(rows.data)):
        stuck = np.flatnonzero(~whole)
        if len(stuck):
            raise Infeasible(
                f"{table.describe_relation(int(stuck[0]))} cannot hold: what stays exact in it is not a multiple of the base of the "
                f"others ({len(stuck)} such relation{'s' * (len(stuck) > 1)}); let the total or another of its cells be rounded",
                cells=rows.indices[rows.indptr[stuck[0]] : rows.indptr[stuck[0] + 1]].tolist(),
            )
    return matrix, rhs, unit


def check_base(table: Table, base: Any) -> FloatArray:
    """One positive base per cell."""
    array = np.asarray(base, float)
    if array.ndim == 0:
        array = np.full(table.n_cells, float(array))
    if array.shape != (table.n_cells,):
        raise InputError(f"base must be one number or one per cell: got shape {array.shape} for {table.n_cells} cells")
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise InputError("the base must be a positive number")
    return array
