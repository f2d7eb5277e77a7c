"""Small-count rounding: only counts below the base change, the inner cells first, and all totals follow from them.

Reference: Ø. Langsrud and J. Heldal, "An algorithm for small count rounding of tabular data", Privacy in Statistical Databases (2018).
"""

from __future__ import annotations

import numpy as np

from tabprotect.errors import Infeasible, InputError
from tabprotect.linalg.totals import Totals
from tabprotect.rounding.grid import Grid
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, FloatArray


def small_grid(table: Table, base: FloatArray, *, exact: BoolArray, weights: FloatArray | None = None) -> Grid:
    """Inner cells strictly between 0 and the base become 0 or the base, all others stay; totals move as far as that moves them.

    Because a total is a sum of inner cells that are 0 or at least the base, no total below the base (other than 0) is left either.

    >>> from tabprotect.table.examples import d272
    >>> grid = small_grid(d272(), np.full(36, 3.0), exact=np.zeros(36, bool))
    >>> int((grid.low < grid.high)[d272().values < 3].sum())
    4
    """
    if (table.values < 0).any():
        raise InputError("small-count rounding is for counts: the table has negative values")
    if base.min() != base.max():
        raise InputError("small-count rounding needs one base for all cells")
    totals = Totals.of(table.relations)
    if totals is None or (table.rhs != 0).any():
        raise InputError("small-count rounding needs a table whose totals are sums of inner cells")
    a, b = table.values, base
    moving = totals.leaf & (a > 0) & (a < b) & ~exact
    # steps of every total: those of its moving inner cells, around the place that would leave it unchanged
    small = totals.add_up(np.where(moving, a, 0.0))
    place = small / b
    most = np.rint(totals.add_up(moving.astype(float))).astype(np.int64)
    near = np.rint(place)
    whole = np.abs(place - near) <= 1e-9 * np.maximum(1.0, place)
    place = np.where(whole, near, place)
    below = np.floor(place).astype(np.int64)
    is_total = ~totals.leaf
    low = np.where(is_total, -below, 0)
    high = np.where(is_total, most - below, moving.astype(np.int64))
    origin = np.where(
        moving, 0.0, a - np.where(is_total & ~whole, small - below * b, 0.0)
    )  # in counts: no digit is lost
    target = np.where(is_total, place - below, np.where(moving, a / b, 0.0))
    stuck = exact & is_total & (target > 0)
    if stuck.any():
        cell = int(stuck.argmax())
        raise Infeasible(
            f"{table.label(cell)} cannot stay exact: its small counts do not add up to a multiple of the base",
            cells=np.flatnonzero(stuck).tolist(),
        )
    low, high = np.where(exact, 0, low), np.where(exact, 0, high)
    rhs = -np.rint(table.relations @ np.where(is_total, below, 0))
    weight = b if weights is None else b * weights
    return Grid(table.relations, rhs, origin, b, target, low, high, weight, True)
