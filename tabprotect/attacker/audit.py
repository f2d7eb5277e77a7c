"""The audit of a suppression pattern: an exact witness for every requirement, or the cell is exposed."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.attacker.certificate import FORMAT, Certificate
from tabprotect.attacker.moves import Move, MoveChecker
from tabprotect.attacker.ranges import Needs, Ranges, ranges
from tabprotect.linalg.exact import as_fraction
from tabprotect.solve.stop import Stop
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, FloatArray


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
        self.cells = {int(c) for c in np.flatnonzero(needs.any)}
        self.needs = {
            c: (as_fraction(needs.down[c]), as_fraction(needs.up[c]), as_fraction(needs.width[c])) for c in self.cells
        }
        self.moves: list[Move] = []
        self.best_up: dict[int, tuple[Fraction, int]] = dict.fromkeys(self.cells, (Fraction(0), 0))
        self.best_down: dict[int, tuple[Fraction, int]] = dict.fromkeys(self.cells, (Fraction(0), 0))

    def add(self, moves: Sequence[Move]) -> None:
        """Use each move for every needed cell it changes; keep only moves that improve something."""
        for move in moves:
            number, used = len(self.moves) + 1, False
            for cell, change in move.items():
                if cell not in self.cells or self.met(cell):
                    continue
                for allowed, sign in ((move.forth, 1), (move.back, -1)):
                    step = change * sign
                    if allowed and step > 0 and step > self.best_up[cell][0]:
                        self.best_up[cell], used = (step, sign * number), True
                    if allowed and step < 0 and -step > self.best_down[cell][0]:
                        self.best_down[cell], used = (-step, sign * number), True
            if used:
                self.moves.append(move)

    def met(self, cell: int) -> bool:
        return not self.missing(cell)

    def missing(self, cell: int) -> str:
        down, up, width = self.needs[cell]
        reach_up, reach_down = self.best_up[cell][0], self.best_down[cell][0]
        names = [("LPL", reach_down < down), ("UPL", reach_up < up), ("SPL", reach_up + reach_down < width)]
        return "+".join(name for name, fails in names if fails)

    def open(self) -> Needs | None:
        """What is still needed, as arrays, or None."""
        left = [c for c in self.cells if not self.met(c)]
        return None if not left else self._needs(left)

    def _needs(self, cells: list[int]) -> Needs:
        size = max(self.cells) + 1
        arrays = [np.zeros(size) for _ in range(3)]
        for c in cells:
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
    checker = MoveChecker(relations, hidden, down, up, whole=whole)
    if moves is not None and moves.shape[0]:
        ledger.add(checker.check_many(moves))
    found: Ranges | None = None
    left = ledger.open()
    if left is not None:
        n = len(hidden)
        wide = Needs(*(np.concatenate([a, np.zeros(n - len(a))]) for a in (left.down, left.up, left.width)))
        found = ranges(relations, hidden, down, up, needs=wide, stop=stop, executor=executor)
        for block in found.moves:
            ledger.add(checker.check_many(block))
    kept, witness = _compact(ledger)
    missing = {c: ledger.missing(c) for c in sorted(ledger.cells) if not ledger.met(c)} | visible
    return Audit(
        {c: ledger.best_down[c][0] for c in ledger.cells},
        {c: ledger.best_up[c][0] for c in ledger.cells},
        kept,
        witness,
        missing,
        found,
    )


def _compact(ledger: Ledger) -> tuple[list[Move], dict[int, tuple[int, int]]]:
    """Only the moves that some cell refers to, renumbered."""
    used = sorted({abs(ref) for best in (ledger.best_up, ledger.best_down) for _, ref in best.values() if ref})
    number = {old: k + 1 for k, old in enumerate(used)}
    number[0] = 0

    def new(ref: int) -> int:
        return number[abs(ref)] * (1 if ref >= 0 else -1)

    witness = {c: (new(ledger.best_up[c][1]), new(ledger.best_down[c][1])) for c in sorted(ledger.cells)}
    return [ledger.moves[k - 1] for k in used], witness


def make_certificate(
    table: Table, hidden: BoolArray, lb: FloatArray, ub: FloatArray, needs: Needs, audit: Audit, *, whole: bool = False
) -> Certificate:
    """The certificate of an audited pattern."""

    def text(x: float) -> str:
        f = as_fraction(x)
        return str(f.numerator) if f.denominator == 1 else repr(float(x))

    matrix = sp.csr_array(table.relations)
    coefficients = [text(c) for c in matrix.data]
    rows = [
        [[int(j), c] for j, c in zip(matrix.indices[a:b].tolist(), coefficients[a:b], strict=True)]
        for a, b in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)
    ]
    body = {
        "format": FORMAT,
        "name": table.name,
        "integer": whole,
        "values": [text(v) for v in table.values],
        "lb": [None if np.isinf(v) else text(v) for v in lb],
        "ub": [None if np.isinf(v) else text(v) for v in ub],
        "relations": rows,
        "rhs": [text(v) for v in table.rhs],
        "suppressed": np.flatnonzero(hidden).tolist(),
        "primary": np.flatnonzero(table.primary).tolist(),
        "needs": [
            [int(c), text(needs.down[c]), text(needs.up[c]), text(needs.width[c])] for c in np.flatnonzero(needs.any)
        ],
        "moves": [{"den": m.denominator, "cells": list(m.cells), "nums": list(m.numerators)} for m in audit.moves],
        "witness": [[c, up, down] for c, (up, down) in audit.witness.items()],
    }
    return Certificate(body)
