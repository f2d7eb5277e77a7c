"""The audit of a suppression pattern: an exact witness for every requirement, or the cell is exposed."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.attacker.certificate import FORMAT, Certificate
from tabprotect.attacker.moves import Move, MoveChecker
from tabprotect.attacker.ranges import Needs, Ranges, grid_moves, ranges
from tabprotect.linalg.exact import as_fraction
from tabprotect.solve.stop import Stop
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Audit:
    """The reach of every primary cell that exact moves show, the moves, and which cells miss what."""

    down: dict[int, Fraction]
    up: dict[int, Fraction]
    moves: list[Move]
    witness: dict[int, tuple[int, int]]
    missing: dict[int, str]
    ranges: Ranges | None


class Ledger:
    """Keeps for every needed cell the best exact move each way (move number + 1, negative when subtracted)."""

    def __init__(self, needs: Needs) -> None:
        self.cells = [int(c) for c in np.flatnonzero(needs.any)]
        self.needs = {
            c: (as_fraction(needs.down[c]), as_fraction(needs.up[c]), as_fraction(needs.width[c])) for c in self.cells
        }
        self.moves: list[Move] = []
        self.best_up: dict[int, tuple[Fraction, int]] = dict.fromkeys(self.cells, (Fraction(0), 0))
        self.best_down: dict[int, tuple[Fraction, int]] = dict.fromkeys(self.cells, (Fraction(0), 0))
        self.open = set(self.cells)

    def add(self, moves: Iterable[Move]) -> None:
        """Use each move for every needed cell it changes that still lacks something; keep only moves that improve something."""
        for move in moves:
            number, used = len(self.moves) + 1, False
            for cell, numerator in zip(move.cells, move.numerators, strict=True):
                if cell not in self.open:
                    continue
                change = Fraction(numerator, move.denominator)
                for allowed, sign in ((move.forth, 1), (move.back, -1)):
                    step = change * sign
                    if allowed and step > self.best_up[cell][0]:
                        self.best_up[cell], used = (step, sign * number), True
                    if allowed and -step > self.best_down[cell][0]:
                        self.best_down[cell], used = (-step, sign * number), True
                if not self.missing(cell):
                    self.open.discard(cell)
            if used:
                self.moves.append(move)

    def wants(self, cells: IntArray, steps: FloatArray) -> bool:
        """Whether a move could take a cell further that still lacks something."""
        return any(
            abs(step) > float(min(self.best_up[cell][0], self.best_down[cell][0])) * (1 + 1e-9)
            for cell, step in zip(cells.tolist(), steps.tolist(), strict=True)
            if cell in self.open
        )

    def levels(self) -> dict[int, tuple[Fraction, ...]]:
        """The amounts a move of each cell is likely to have."""
        return {c: tuple(sorted(set(levels) - {Fraction(0)})) for c, levels in self.needs.items()}

    def missing(self, cell: int) -> str:
        down, up, width = self.needs[cell]
        reach_up, reach_down = self.best_up[cell][0], self.best_down[cell][0]
        names = [("LPL", reach_down < down), ("UPL", reach_up < up), ("SPL", reach_up + reach_down < width)]
        return "+".join(name for name, fails in names if fails)

    def still_needed(self, n: int) -> Needs | None:
        """What is still needed, as arrays over all cells, or None."""
        if not self.open:
            return None
        arrays = [np.zeros(n) for _ in range(3)]
        for c in self.open:
            for array, level in zip(arrays, self.needs[c], strict=True):
                array[c] = float(level)
        return Needs(*arrays)


def audit_pattern(
    relations: Any,
    hidden: BoolArray,
    down: FloatArray,
    up: FloatArray,
    needs: Needs,
    *,
    moves: Any = None,
    whole: bool = False,
    stop: Stop | None = None,
    executor: Executor | None = None,
) -> Audit:
    """Find and check, in exact arithmetic, moves that show every need; first among ``moves`` offered by others, then by attacking.

    Whatever is not shown exactly counts as missing: a false "safe" would need an error in whole-number arithmetic.
    """
    ledger = Ledger(needs)
    visible = {c: "published" for c in ledger.cells if not hidden[c]}
    checker = MoveChecker(relations, hidden, down, up, levels=ledger.levels(), whole=whole)
    if moves is not None and moves.shape[0]:
        ledger.add(checker.check_many(moves, ledger.wants))
    found: Ranges | None = None
    left = ledger.still_needed(len(hidden))
    if left is not None:
        found = ranges(relations, hidden, down, up, needs=left, stop=stop, executor=executor)
        for block in found.moves:
            ledger.add(checker.check_many(block, ledger.wants))
    left = ledger.still_needed(len(hidden))
    again = None if left is None or found is None else _reached(left, found)
    if again is not None:  # by moves that could not be made exact: others may be
        for block in ranges(relations, hidden, down, up, needs=again, stop=stop, executor=executor).moves:
            ledger.add(checker.check_many(block, ledger.wants))
        left = ledger.still_needed(len(hidden))
    if left is not None and checker.ragged:
        ledger.add(checker.check_many(grid_moves(relations, hidden, down, up, left), ledger.wants))
    kept, witness = _compact(ledger)
    missing = {c: ledger.missing(c) for c in sorted(ledger.open)} | visible
    return Audit(
        {c: ledger.best_down[c][0] for c in ledger.cells},
        {c: ledger.best_up[c][0] for c in ledger.cells},
        kept,
        witness,
        missing,
        found,
    )


def _reached(needs: Needs, found: Ranges) -> Needs | None:
    """The needs that are met as far as floating point can tell, or None."""
    enough = 1 - 1e-9
    met = (found.down >= needs.down * enough) & (found.up >= needs.up * enough)
    met &= needs.any & (found.down + found.up >= needs.width * enough)
    return Needs(*(np.where(met, a, 0.0) for a in (needs.down, needs.up, needs.width))) if met.any() else None


def _compact(ledger: Ledger) -> tuple[list[Move], dict[int, tuple[int, int]]]:
    """Only the moves that some cell refers to, renumbered."""
    used = sorted({abs(ref) for best in (ledger.best_up, ledger.best_down) for _, ref in best.values() if ref})
    number = {old: k + 1 for k, old in enumerate(used)}
    number[0] = 0

    def new(ref: int) -> int:
        return number[abs(ref)] * (1 if ref >= 0 else -1)

    witness = {c: (new(ledger.best_up[c][1]), new(ledger.best_down[c][1])) for c in ledger.cells}
    return [ledger.moves[k - 1] for k in used], witness


def make_certificate(
    table: Table, hidden: BoolArray, lb: FloatArray, ub: FloatArray, needs: Needs, audit: Audit, *, whole: bool = False
) -> Certificate:
    """The certificate of an audited pattern; its content is put together when first asked for."""

    def body() -> dict[str, Any]:
        matrix = sp.csr_array(table.relations)
        return {
            "format": FORMAT,
            "name": table.name,
            "integer": whole,
            "values": _texts(table.values),
            "lb": _texts(lb),
            "ub": _texts(ub),
            "relations": {
                "ends": matrix.indptr[1:].tolist(),
                "cells": matrix.indices.tolist(),
                "coefficients": _texts(matrix.data),
            },
            "rhs": _texts(table.rhs),
            "suppressed": np.flatnonzero(hidden).tolist(),
            "primary": np.flatnonzero(table.primary).tolist(),
            "needs": [
                [int(c), *_texts(np.array([needs.down[c], needs.up[c], needs.width[c]]))]
                for c in np.flatnonzero(needs.any)
            ],
            "moves": [{"den": m.denominator, "cells": list(m.cells), "nums": list(m.numerators)} for m in audit.moves],
            "witness": [[c, up, down] for c, (up, down) in audit.witness.items()],
        }

    return Certificate(body)


def _texts(numbers: FloatArray) -> list[str | None]:
    """Decimal strings that say exactly what the floats were written as; None for infinite ones."""
    finite = numbers[np.isfinite(numbers)]
    if len(finite) == len(numbers) and np.all(finite == np.rint(finite)) and np.abs(finite).max(initial=0.0) < 2**62:
        return [str(v) for v in finite.astype(np.int64).tolist()]
    return [None if np.isinf(v) else str(int(v)) if v.is_integer() else repr(v) for v in numbers.tolist()]
