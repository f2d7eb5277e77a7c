"""The cell suppression problem as arrays, and what a method answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.errors import InputError
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Requirement:
    """The attacker's bound of ``cell`` must reach ``level`` above (sense +1) or below (−1) its value, or be ``level`` wide (0)."""

    cell: int
    sense: int
    level: float


@dataclass(frozen=True)
class Problem:
    """Choose ``z ⊇ primary`` within ``primary ∪ candidates`` at least ``weights @ z`` so that every requirement holds.

    With only the cells of z free, a requirement (p, ±, r) asks that some ``y`` with ``relations @ y = 0``, ``−down ≤ y ≤ up`` has
    ``±y_p ≥ r`` (sense 0: the largest minus the smallest y_p is at least r). ``fixed`` cells are hidden from the start (primaries and
    whatever must stay hidden).
    """

    relations: Any
    down: FloatArray
    up: FloatArray
    weights: FloatArray
    fixed: BoolArray
    candidates: BoolArray
    requirements: tuple[Requirement, ...]
    codes: Any = None
    dims: Any = None
    integer_weights: bool = field(default=False)

    @property
    def n(self) -> int:
        return len(self.weights)

    @cached_property
    def columns(self) -> Any:
        """The relations by column."""
        return sp.csc_array(self.relations)

    @property
    def fixed_cost(self) -> float:
        return float(self.weights[self.fixed].sum())

    def cost(self, suppressed: BoolArray) -> float:
        return float(self.weights[suppressed].sum())

    @classmethod
    def from_table(
        cls, table: Table, objective: Any = "value", *, zeros: bool = False, keep: BoolArray | None = None
    ) -> Problem:
        """The problem of a marked table; ``keep`` are further cells that stay hidden."""
        weights = table.weights(objective)
        fixed = table.primary | (table.status == "m")
        if keep is not None:
            if (keep & (table.status == "z")).any():
                cell = int((keep & (table.status == "z")).argmax())
                raise InputError(f"cell {table.label(cell)} is to stay hidden but may not be suppressed")
            fixed = fixed | keep
        lpl, upl, spl = table.needed_levels()
        needs = []
        for p in np.flatnonzero(table.primary):
            for sense, level in ((1, upl[p]), (-1, lpl[p]), (0, spl[p])):
                # a width is implied by the two one-sided levels when they add up to it
                if level > 0 and not (sense == 0 and lpl[p] + upl[p] >= level):
                    needs.append(Requirement(int(p), sense, float(level)))
        return cls(
            relations=table.relations,
            down=np.maximum(table.values - table.lb, 0.0),
            up=np.maximum(table.ub - table.values, 0.0),
            weights=weights,
            fixed=fixed,
            candidates=table.suppressible(zeros) & ~fixed,
            requirements=tuple(needs),
            codes=table.codes if table.dims else None,
            dims=table.dims or None,
            integer_weights=bool(np.all(weights == np.rint(weights))),
        )


@dataclass(frozen=True)
class Pattern:
    """A method's answer: the hidden cells, a lower bound of the cost of any safe pattern, and moves that prove safety.

    ``moves`` (sparse, moves × cells) are differences between the truth and tables the attacker cannot rule out; they save the audit
    work but are never trusted: the audit checks each by arithmetic.
    """

    suppressed: BoolArray
    bound: float
    optimal: bool = False
    moves: Any = None
    info: dict[str, Any] = field(default_factory=dict)


def cells_of(requirements: Sequence[Requirement]) -> IntArray:
    """The distinct cells of some requirements, ascending."""
    return np.unique(np.array([r.cell for r in requirements], dtype=np.int64))
