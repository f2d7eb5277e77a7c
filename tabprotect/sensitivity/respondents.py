"""The respondents behind each cell, as a rule sees them: firms, groups of firms, sampling weights."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from tabprotect.errors import InputError
from tabprotect.table.contributions import Contributions
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, FloatArray, IntArray

Unit = Literal["all", "contributor", "holding"]
"""Who is protected: contributors, holdings (groups of contributors), or all that the table knows of."""

CLOSE = 1e-12
"""Sums that differ by less than this share of the cell total are equal: they differ by the rounding of floating-point additions."""


def check_unit(unit: str) -> None:
    if unit not in ("all", "contributor", "holding"):
        raise InputError(f"unknown unit {unit!r}: use 'contributor', 'holding' or 'all'")


def views(table: Table, unit: Unit, needed: int, name: str) -> Iterator[tuple[str, Contributions]]:
    """(suffix of the reason, contributions) for every kind of respondent the rule looks at, checked to hold enough of them."""
    known = table.contributions
    if known is None:
        raise InputError(
            f"{name} needs the {needed} largest contributions of every cell: make the table with tabulate(…, contributor=…), "
            "or add them with table.replace(contributions=tp.rules.Contributions(count=…, top=…, total=…))"
        )
    if unit == "holding" and known.holdings is None:
        raise InputError(f"{name} for holdings needs the table's holdings: make it with tabulate(…, holding=…)")
    if unit != "holding":
        yield "", _checked(known, table, needed, name)
    if unit != "contributor" and known.holdings is not None:
        yield " of holdings", _checked(known.holdings, table, needed, name)


def _checked(known: Contributions, table: Table, needed: int, name: str) -> Contributions:
    n, top = table.n_cells, np.asarray(known.top, float)
    total, count = np.asarray(known.total, float), np.asarray(known.count)
    weights = None if known.weights is None else np.asarray(known.weights, float)
    if top.ndim != 2 or len(top) != n or len(total) != n or len(count) != n:
        raise InputError(f"the contributions do not belong to this table of {n} cells: top must be {n} × k")
    if weights is not None and weights.shape != top.shape:
        raise InputError("there must be one weight for every top contribution")
    if table.count_cells is not None and not table.counts:
        # the counts of a mixed table have no contributions of their own: they are left to the frequency rules
        top = np.where(table.count_cells[:, None], 0.0, top)
        total, count = np.where(table.count_cells, 0.0, total), np.where(table.count_cells, 0, count)
    few = (count > top.shape[1]) if top.shape[1] < needed else np.zeros(n, bool)
    if few.any():
        raise InputError(
            f"{name} needs the {needed} largest contributions, the table has {top.shape[1]} "
            f"and cell {table.label(int(few.argmax()))} has more contributors: tabulate with top={needed}"
        )
    if not ((top >= 0).all() and (total >= 0).all()):
        wrong = ~(top >= 0).all(axis=1) | ~(total >= 0)
        raise InputError(
            f"{name} is defined for contributions of zero or more; cell {table.label(int(wrong.argmax()))} has negative or missing ones: "
            "tabulate with negative='absolute', or leave the records out"
        )
    if any((top[:, k + 1] > top[:, k]).any() for k in range(top.shape[1] - 1)):
        order = np.argsort(-top, axis=1, kind="stable")
        top = np.take_along_axis(top, order, axis=1)
        weights = None if weights is None else np.take_along_axis(weights, order, axis=1)
    fixed = Contributions(count, top, total, weights)
    short = largest(fixed, top.shape[1]) > total * (1 + 1e-9)
    if short.any():
        raise InputError(
            f"the largest contributions of cell {table.label(int(short.argmax()))} exceed its total: some contributions must be negative; "
            "tabulate with negative='absolute', or leave the records out"
        )
    return fixed


def largest(known: Contributions, n: int) -> FloatArray:
    """Sum of the n largest contributions of each cell.

    A sampled contribution x of weight w stands for w equal respondents, as in τ-ARGUS: the n
    largest of the population are x₁ taken w₁ times, then x₂ taken w₂ times, and so on until n are taken.
    """
    taken = np.zeros(len(known.top))
    if known.weights is None:
        for k in range(min(n, known.top.shape[1])):  # by columns: much faster than a sum along short rows
            taken += known.top[:, k]
        return taken
    rest = np.full(len(known.top), float(n))
    for k in range(known.top.shape[1]):
        times = np.minimum(np.maximum(known.weights[:, k], 0.0), rest)
        taken, rest = taken + times * known.top[:, k], rest - times
    return taken


def remainder(known: Contributions, n: int) -> FloatArray:
    """What is left of each total without the n largest contributions, zero when it is zero but for floating-point rounding."""
    rest = known.total - largest(known, n)
    return np.where(rest <= CLOSE * known.total, 0.0, rest)


def first(known: Contributions) -> FloatArray:
    """The largest contribution of each cell."""
    return known.top[:, 0] if known.top.shape[1] else np.zeros(len(known.top))


def counts(table: Table, unit: Unit, name: str) -> Iterator[tuple[str, IntArray | FloatArray]]:
    """(suffix of the reason, number of respondents of each cell) for every kind of respondent the rule looks at."""
    known = table.contributions
    if unit == "holding" and (known is None or known.holdings is None):
        raise InputError(f"{name} for holdings needs the table's holdings: make it with tabulate(…, holding=…)")
    if unit != "holding":
        if known is not None:
            yield "", known.count
        elif table.freq is not None:
            yield "", table.freq
        elif table.counts:
            yield "", table.values
        else:
            raise InputError(
                f"{name} needs the number of contributors of every cell: give freq=… to from_frame, or make the table with tabulate"
            )
    if unit != "contributor" and known is not None and known.holdings is not None:
        yield " of holdings", known.holdings.count


def occupied(known: Contributions) -> BoolArray:
    """Cells with something in them."""
    return known.total > 0
