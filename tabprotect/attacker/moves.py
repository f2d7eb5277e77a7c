"""Moves: differences between the truth and another table that the attacker cannot tell from it, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.linalg.exact import as_fraction, decimals_of, has_decimals, integer_rows, on_grid, rationalize, within
from tabprotect.types import BoolArray, FloatArray, IntArray

GRIDS = (12, 9)
"""Digits of the largest change of a move on a grid: as many as can be reckoned with where all entries follow from each other, and where some can be chosen."""


@dataclass(frozen=True)
class Move:
    """``numerators / denominator`` on ``cells``, zero elsewhere; ``forth`` and ``back``: may be added, may be subtracted."""

    cells: tuple[int, ...]
    numerators: tuple[int, ...]
    denominator: int
    forth: bool
    back: bool

    def at(self, cell: int) -> Fraction:
        """The change of one cell."""
        try:
            return Fraction(self.numerators[self.cells.index(cell)], self.denominator)
        except ValueError:
            return Fraction(0)

    def items(self) -> Iterator[tuple[int, Fraction]]:
        for cell, v in zip(self.cells, self.numerators, strict=True):
            yield cell, Fraction(v, self.denominator)


class MoveChecker:
    """Turns floating-point moves into exact ones, or refuses: relations hold exactly, bounds hold, published cells stay.

    ``levels`` are the amounts that moves of some cells are likely to have; ``whole`` asks for whole-number moves (an attacker who knows that the cells are counts).
    Where rooms and levels have more digits than whole numbers can be reckoned with, moves are looked for on a grid: rooms rounded inwards, levels outwards.
    """

    def __init__(
        self,
        relations: Any,
        hidden: BoolArray,
        down: FloatArray,
        up: FloatArray,
        *,
        levels: dict[int, tuple[Fraction, ...]] | None = None,
        whole: bool = False,
    ) -> None:
        self.relations = integer_rows(relations)
        self._columns = sp.csc_array(self.relations)
        self.hidden, self.down, self.up, self.whole = hidden, down, up, whole
        amounts = [float(level) for some in (levels or {}).values() for level in some]
        self._likely = {
            c: tuple(sign * level / part for level in some for part in (1, 2) for sign in (1, -1))
            for c, some in (levels or {}).items()
        }
        numbers = down[hidden], up[hidden], amounts
        decimals = 0 if whole else decimals_of(*numbers)
        self.unit, self.ragged = 10**decimals, not (whole or has_decimals(decimals, *numbers))
        self._rooms: dict[int, tuple[Fraction | None, Fraction | None]] = {}

    def check_one(self, cells: Any, y: FloatArray) -> Move | None:
        """The exact move near ``y`` on ``cells``, or None."""
        support = np.flatnonzero(y)
        cells, y = np.asarray(cells)[support], y[support]
        if len(cells) == 0 or not self.hidden[cells].all():
            return None
        sub = sp.csr_array(self._columns[:, cells])
        sub = sub[np.diff(sub.indptr) > 0]
        rooms = [self._room(int(c)) for c in cells]
        low = [None if down is None else -down for down, _ in rooms]
        high = [up for _, up in rooms]
        likely = {k: self._likely[c] for k, c in enumerate(cells.tolist()) if c in self._likely}
        exact = None
        for digits in GRIDS if self.ragged else ():
            exact = exact or _on_grid(sub, y, low, high, likely, digits)
        if exact is None:
            exact = rationalize(sub, y, low, high, unit=self.unit, whole=self.whole, likely=likely)
        if exact is None:
            return None
        nums, den = exact
        back = within([-v for v in nums], den, low, high)
        return Move(tuple(int(c) for c in cells), tuple(nums), den, True, back)

    def _room(self, cell: int) -> tuple[Fraction | None, Fraction | None]:
        """Room down and up as fractions, None where unbounded."""
        found = self._rooms.get(cell)
        if found is None:
            down, up = self.down[cell], self.up[cell]
            found = (None if np.isinf(down) else as_fraction(down), None if np.isinf(up) else as_fraction(up))
            self._rooms[cell] = found
        return found

    def check_many(self, moves: Any, wanted: Callable[[IntArray, FloatArray], bool]) -> Iterator[Move]:
        """The exact moves among the rows of a sparse matrix (moves × cells).

        Whole-number rows are checked all at once and come first; the others need work and are only looked at if still ``wanted`` then.
        """
        rows = sp.csr_array(moves)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        if rows.shape[0] == 0:
            return
        scaled = rows.data * self.unit
        nums = np.rint(scaled)
        # solvers stop a little short of bounds and levels; whether the rounded numbers are a move is checked below
        near = np.abs(scaled - nums) <= np.clip(3e-8 * np.abs(scaled), 1e-6, 0.1)
        small = np.abs(nums) < 2**52
        owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        plain = _all_by(owner, near & small & (not self.ragged), rows.shape[0])
        nums = np.where(near & small, nums, 0).astype(np.int64)
        integer = sp.csr_array((nums, rows.indices, rows.indptr), shape=rows.shape)
        residual = sp.csr_array(integer @ self.relations.T.astype(np.int64))
        residual.eliminate_zeros()
        exact = plain & (np.diff(residual.indptr) == 0) & _all_by(owner, self.hidden[rows.indices], rows.shape[0])
        room_up, room_down = self._room_units()
        up, down = room_up[rows.indices], room_down[rows.indices]
        forth = exact & _all_by(owner, (nums <= up) & (-nums <= down), rows.shape[0])
        back = exact & _all_by(owner, (nums <= down) & (-nums <= up), rows.shape[0])
        for k in np.flatnonzero(forth | back):
            part = slice(rows.indptr[k], rows.indptr[k + 1])
            if part.start < part.stop:
                cells, numerators = tuple(rows.indices[part].tolist()), tuple(nums[part].tolist())
                yield Move(cells, numerators, self.unit, bool(forth[k]), bool(back[k]))
        for k in np.flatnonzero(~(forth | back)):
            part = slice(rows.indptr[k], rows.indptr[k + 1])
            if part.start < part.stop and wanted(rows.indices[part], rows.data[part]):
                move = self.check_one(rows.indices[part], rows.data[part])
                if move is not None:
                    yield move

    def _room_units(self) -> tuple[FloatArray, FloatArray]:
        """Room in whole units, rounded inwards; exact in double precision below 2^53 and conservative above."""
        with np.errstate(over="ignore", invalid="ignore"):
            rooms = []
            for room in (self.up, self.down):
                units = room * self.unit
                nearest = np.rint(units)
                close = np.abs(units - nearest) <= 1e-9 * np.maximum(1.0, np.abs(units))
                whole = np.where(close & (np.abs(units) < 2**52), nearest, np.floor(units * (1 - 1e-15)))
                rooms.append(whole)
        return rooms[0], rooms[1]


def _on_grid(
    matrix: Any,
    y: FloatArray,
    low: list[Fraction | None],
    high: list[Fraction | None],
    likely: dict[int, tuple[Fraction, ...]],
    digits: int,
) -> tuple[list[int], int] | None:
    """An exact move near y whose largest change has so many digits, inside the rooms, of at least the likely amounts."""
    unit = 10 ** max(0, digits - 1 - int(np.floor(np.log10(np.abs(y).max()))))
    low = [None if f is None else on_grid(f, unit) for f in low]
    high = [None if f is None else on_grid(f, unit) for f in high]
    likely = {k: tuple(on_grid(f, unit, up=True) for f in some) for k, some in likely.items()}
    y = y.copy()
    for k, some in likely.items():
        y[k] = next((float(f) for f in some if abs(y[k] - float(f)) <= 1e-7 * abs(y[k])), y[k])
    return rationalize(matrix, y, low, high, unit=unit, likely=likely)


def _all_by(owner: Any, flags: Any, n: int) -> BoolArray:
    """For each owner, whether all its flags are set (also when it has none)."""
    return np.bincount(owner, ~flags, n) == 0
