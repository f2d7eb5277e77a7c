"""The adjustment problem as arrays: what may move, how far, at which price, and what must move how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.errors import InputError
from tabprotect.linalg.independent import independent_rows
from tabprotect.linalg.totals import Totals
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, FloatArray, IntArray

DIRECTIONS = ("free", "balanced", "up", "down")


@dataclass(frozen=True, eq=False)
class Problem:
    """Find changes z with ``relations @ z = rhs`` (zero for a whole table), ``−down ≤ z ≤ up`` and, for every sensitive cell, ``z ≥ rise`` or ``z ≤ −fall``.

    ``sensitive`` are cell indices; ``rise`` and ``fall`` (one per sensitive cell) the least moves, ``sense`` the direction where it is given
    (+1, −1; 0 is free); ``whole`` asks for whole numbers (of the unit of the table); ``balanced`` for as many up as down.
    """

    relations: Any
    down: FloatArray
    up: FloatArray
    weight: FloatArray
    sensitive: IntArray
    rise: FloatArray
    fall: FloatArray
    sense: IntArray
    rhs: FloatArray
    whole: bool = False
    balanced: bool = False

    @property
    def n(self) -> int:
        return len(self.weight)

    @cached_property
    def is_sensitive(self) -> BoolArray:
        mask = np.zeros(self.n, bool)
        mask[self.sensitive] = True
        return mask

    @cached_property
    def spanning(self) -> IntArray:
        """Relations from which all others follow."""
        return np.flatnonzero(independent_rows(self.relations))

    @cached_property
    def scale(self) -> float:
        """The size of a typical move: models are written in this unit, because solvers have absolute tolerances."""
        if self.whole:
            return 1.0
        moves = np.concatenate([self.rise, self.fall])
        moves = moves[np.isfinite(moves) & (moves > 0)]
        return float(np.exp(np.log(moves).mean())) if len(moves) else 1.0

    def bounds(self, sense: IntArray) -> tuple[FloatArray, FloatArray]:
        """Bounds of z once every sensitive cell has its direction."""
        low, high = -self.down, self.up.copy()
        raised, lowered = self.sensitive[sense > 0], self.sensitive[sense < 0]
        low[raised] = self.rise[sense > 0]
        high[lowered] = -self.fall[sense < 0]
        return low, high

    def cost(self, z: FloatArray, norm: str) -> float:
        if norm == "l1":
            return float(self.weight @ np.abs(z))
        if norm == "l2":
            return float(self.weight @ (z * z))
        return float((self.weight * np.abs(z)).max(initial=0.0))

    def possible(self) -> tuple[BoolArray, BoolArray]:
        """Which sensitive cells can go up, and down, as far as their own bounds and given senses say."""
        slack = 1e-9 * np.maximum(1.0, np.maximum(self.rise, self.fall))
        can_rise = (self.up[self.sensitive] >= self.rise - slack) & (self.sense >= 0)
        can_fall = (self.down[self.sensitive] >= self.fall - slack) & (self.sense <= 0)
        return can_rise, can_fall

    def part(self, free: BoolArray, around: FloatArray) -> Problem:
        """The same problem for some cells only, all others staying where ``around`` has them."""
        inside = self.is_sensitive[self.sensitive] & free[self.sensitive]
        number = np.cumsum(free) - 1
        columns = sp.csc_array(self.relations)
        mine = sp.csr_array(columns[:, np.flatnonzero(free)])
        rows = np.flatnonzero(np.diff(mine.indptr))
        outside = np.where(free, 0.0, around)
        rhs = (self.rhs - self.relations @ outside)[rows]
        return Problem(
            mine[rows],
            self.down[free],
            self.up[free],
            self.weight[free],
            number[self.sensitive[inside]],
            self.rise[inside],
            self.fall[inside],
            self.sense[inside],
            np.rint(rhs) if self.whole else rhs,
            self.whole,
            False,
        )


def make_problem(
    table: Table,
    *,
    weights: Any = "inverse",
    direction: Any = "free",
    fixed: BoolArray | None = None,
    totals: str | float = "free",
    integer: bool | None = None,
    lb: Any = None,
    ub: Any = None,
) -> Problem:
    """The problem of a marked table; see `tabprotect.adjustment.adjust` for the parameters."""
    a = table.values
    low = table.lb if lb is None else np.broadcast_to(np.asarray(lb, float), a.shape)
    high = table.ub if ub is None else np.broadcast_to(np.asarray(ub, float), a.shape)
    down, up = np.maximum(a - low, 0.0), np.maximum(high - a, 0.0)
    kept = np.zeros(table.n_cells, bool) if fixed is None else fixed
    sensitive = np.flatnonzero(table.primary)
    rise, fall = moves_needed(table)
    whole = table.counts if integer is None else integer
    if whole:
        if table.decimals > 0:
            raise InputError("whole-number results were asked for, but the table has values that are not whole numbers")
        rise, fall = np.ceil(rise - 1e-9), np.ceil(fall - 1e-9)
        down, up = np.floor(down + 1e-9), np.floor(up + 1e-9)
    if totals != "free":
        is_total = _totals(table) & ~table.primary
        room = 0.0 if totals == "fixed" else _share(totals) * np.abs(a)
        down, up = np.where(is_total, np.minimum(down, room), down), np.where(is_total, np.minimum(up, room), up)
    if (kept & table.primary).any():
        cell = int((kept & table.primary).argmax())
        raise InputError(f"sensitive cell {table.label(cell)} is to stay fixed, but it has to move")
    down, up = np.where(kept, 0.0, down), np.where(kept, 0.0, up)
    sense = _senses(table, sensitive, direction)
    weight = _weights(table, weights)
    relations = sp.csr_array(table.relations)
    balanced = isinstance(direction, str) and direction == "balanced"
    return Problem(
        relations, down, up, weight, sensitive, rise, fall, sense, np.zeros(relations.shape[0]), bool(whole), balanced
    )


def moves_needed(table: Table) -> tuple[FloatArray, FloatArray]:
    """How far each sensitive cell must go up or down: its UPL and LPL, at least half its SPL, and never nothing.

    A level that is zero while the other is not would allow "no move in that direction": it counts as the other one. A cell with no level at
    all must move by one unit of the table.
    """
    sensitive = np.flatnonzero(table.primary)
    lpl, upl, spl = (level[sensitive] for level in (table.lpl, table.upl, table.spl))
    rise, fall = np.maximum(upl, spl / 2), np.maximum(lpl, spl / 2)
    rise, fall = np.where(rise == 0, fall, rise), np.where(fall == 0, rise, fall)
    unit = 10.0**-table.decimals
    return np.where(rise == 0, unit, rise), np.where(fall == 0, unit, fall)


def _totals(table: Table) -> BoolArray:
    found = Totals.of(table.relations)
    if found is None:
        raise InputError("totals cannot be told from parts in this table: name the cells to fix with fixed=")
    return ~found.leaf


def _share(totals: str | float) -> float:
    if isinstance(totals, str) or not 0 <= float(totals) < 1:
        raise InputError(f"totals must be 'free', 'fixed' or a share between 0 and 1, not {totals!r}")
    return float(totals)


def _senses(table: Table, sensitive: IntArray, direction: str | Sequence[int] | IntArray) -> IntArray:
    if isinstance(direction, str):
        if direction not in DIRECTIONS:
            raise InputError(
                f"unknown direction {direction!r}: use one of {', '.join(DIRECTIONS)}, or one sign per cell"
            )
        one = {"up": 1, "down": -1}.get(direction, 0)
        return np.full(len(sensitive), one, np.int64)
    signs = np.asarray(direction)
    if signs.shape == (table.n_cells,):
        signs = signs[sensitive]
    if signs.shape != (len(sensitive),) or not np.isin(signs, (-1, 0, 1)).all():
        raise InputError("direction must be one of −1, 0 or 1 per cell (or per sensitive cell)")
    return signs.astype(np.int64)


def _weights(table: Table, weights: Any) -> FloatArray:
    a = np.abs(table.values)
    if isinstance(weights, str):
        if weights == "inverse":
            return 1.0 / np.where(a == 0, 1.0, a)
        if weights == "unit":
            return np.ones(table.n_cells)
        raise InputError(f"unknown weights {weights!r}: use 'inverse', 'unit' or one per cell")
    array = np.asarray(weights, float)
    if array.shape != a.shape:
        raise InputError(f"one weight per cell is needed: got {array.size} for {table.n_cells} cells")
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise InputError("weights must be positive and finite")
    return array
