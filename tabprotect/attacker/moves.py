"""Moves: differences between the truth and another table that the attacker cannot tell from it, in exact arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.linalg.exact import as_fraction, decimals_of, integer_rows, rationalize
from tabprotect.types import BoolArray, FloatArray


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

    ``levels`` are the amounts moves are likely to have; ``whole`` asks for whole-number moves (an attacker who knows that the cells are counts).
    """

    def __init__(
        self,
        relations: Any,
        hidden: BoolArray,
        down: FloatArray,
        up: FloatArray,
        *,
        levels: Any = (),
        whole: bool = False,
    ) -> None:
        self.relations = integer_rows(relations)
        self._columns = sp.csc_array(self.relations)
        self.hidden, self.down, self.up, self.whole = hidden, down, up, whole
        self.unit = 1 if whole else 10 ** decimals_of(down[hidden], up[hidden], levels)

    def check_one(self, cells: Any, y: FloatArray) -> Move | None:
        """The exact move near ``y`` on ``cells``, or None."""
        support = np.flatnonzero(y)
        cells, y = np.asarray(cells)[support], y[support]
        if len(cells) == 0 or not self.hidden[cells].all():
            return None
        sub = sp.csr_array(self._columns[:, cells])
        sub = sub[np.diff(sub.indptr) > 0]
        exact = rationalize(sub, y, self.down[cells], self.up[cells], self.unit, self.whole)
        if exact is None:
            # the move may be too long for the bounds by rounding only; its direction can still be fine
            return None
        nums, den = exact
        back = all(
            (np.isinf(self.down[c]) or v <= as_fraction(self.down[c]) * den)
            and (np.isinf(self.up[c]) or -v <= as_fraction(self.up[c]) * den)
            for c, v in zip(cells, nums, strict=True)
        )
        return Move(tuple(int(c) for c in cells), tuple(nums), den, True, back)

    def check_many(self, moves: Any) -> list[Move]:
        """The exact moves among the rows of a sparse matrix (moves × cells); whole-number rows are checked all at once."""
        rows = sp.csr_array(moves)
        rows.sum_duplicates()
        rows.eliminate_zeros()
        if rows.shape[0] == 0:
            return []
        scaled = rows.data * self.unit
        nums = np.rint(scaled)
        near = np.abs(scaled - nums) <= 1e-6 * np.maximum(1.0, 1e-9 * np.abs(scaled))
        small = np.abs(nums) < 2**52
        owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        plain = _all_by(owner, near & small, rows.shape[0])
        nums = np.where(near & small, nums, 0).astype(np.int64)
        integer = sp.csr_array((nums, rows.indices, rows.indptr), shape=rows.shape)
        residual = sp.csr_array(integer @ self.relations.T.astype(np.int64))
        residual.eliminate_zeros()
        exact = plain & (np.diff(residual.indptr) == 0) & _all_by(owner, self.hidden[rows.indices], rows.shape[0])
        room_up, room_down = self._room_units()
        up, down = room_up[rows.indices], room_down[rows.indices]
        forth = exact & _all_by(owner, (nums <= up) & (-nums <= down), rows.shape[0])
        back = exact & _all_by(owner, (nums <= down) & (-nums <= up), rows.shape[0])
        found: list[Move] = []
        for k in range(rows.shape[0]):
            part = slice(rows.indptr[k], rows.indptr[k + 1])
            if part.start == part.stop:
                continue
            if forth[k] or back[k]:
                found.append(
                    Move(
                        tuple(rows.indices[part].tolist()),
                        tuple(nums[part].tolist()),
                        self.unit,
                        bool(forth[k]),
                        bool(back[k]),
                    )
                )
            elif not plain[k]:
                move = self.check_one(rows.indices[part], rows.data[part])
                if move is not None:
                    found.append(move)
        return found

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


def _all_by(owner: Any, flags: Any, n: int) -> BoolArray:
    """For each owner, whether all its flags are set (also when it has none)."""
    return np.bincount(owner, ~flags, n) == 0
