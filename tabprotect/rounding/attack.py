"""What an outsider learns from a rounded table: the interval of every cell implied by all published roundings together.

A single rounded cell says that the value is within one base. All cells together, with the relations of the true table, can say much more: of three
parts rounded to 0, 0 and 0 below a total rounded to 10 something must be at its upper end. The outsider of this module knows the
base, the method, the relations and the bounds of the table, but not how ties or random numbers fell.
"""

from __future__ import annotations

from concurrent.futures import Executor
from typing import Any

import numpy as np

from tabprotect.attacker.ranges import Needs, ranges
from tabprotect.protected import Protected
from tabprotect.solve.stop import Stop
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, FloatArray


def published_room(table: Table, values: FloatArray, info: dict[str, Any]) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest true value of each cell on its own, given what was published of it."""
    low: Any
    high: Any
    base, method = np.broadcast_to(np.asarray(info["base"], float), values.shape), info["method"]
    unit = 10.0**-table.decimals
    if method == "nearest":
        low, high = values - base / 2, values + base / 2
    elif method == "small":
        low, high = np.array(table.lb), np.array(table.ub)
        inner = np.asarray(info["inner"], bool)
        # an inner cell that shows 0 or the base may have been any small count; every other one is as it was
        shown_zero, shown_base = inner & (values == 0), inner & (values == base)
        other = inner & ~shown_zero & ~shown_base
        low[shown_zero], high[shown_zero] = 0.0, (base - unit)[shown_zero]
        low[shown_base], high[shown_base] = unit, base[shown_base]
        low[other] = high[other] = values[other]
    else:
        reach: Any = base * (1 + int(info["widened"]))
        # adjacent and not equal: a value one whole base away would have stayed where it was
        reach = reach - unit if info["zero_restricted"] else reach
        low, high = values - reach, values + reach
    exact = np.asarray(info["exact"], bool)
    low, high = np.where(exact, values, low), np.where(exact, values, high)
    if table.counts or table.decimals == 0:
        low, high = np.ceil(low - 1e-9), np.floor(high + 1e-9)
    low, high = np.maximum(low, table.lb), np.minimum(high, table.ub)
    # the truth is never cut off by rounding errors of the base
    return np.minimum(low, table.values), np.maximum(high, table.values)


def rounding_intervals(
    res: Protected, *, cells: BoolArray | None = None, time_limit: float | None = None, executor: Executor | None = None
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper end of what an outsider can infer of every cell (or of ``cells``; the others get what they show by themselves).

    >>> import tabprotect as tp
    >>> res = tp.round(tp.examples.d272(), base=5)
    >>> lower, upper = rounding_intervals(res)
    >>> bool((lower <= res.table.values).all() and (res.table.values <= upper).all())
    True
    """
    table = res.table
    low, high = published_room(table, res.values, dict(res.info))
    needs = None
    if cells is not None:
        wanted = np.where(cells, np.inf, 0.0)
        needs = Needs(wanted, wanted, np.zeros(table.n_cells))
    down, up = table.values - low, high - table.values
    moving = (down > 0) | (up > 0)
    found = ranges(table.relations, moving, down, up, needs=needs, stop=Stop(time_limit), executor=executor)
    known = found.proved if cells is None else found.proved & cells
    lower = np.where(known, table.values - found.down, low)
    upper = np.where(known, table.values + found.up, high)
    if table.decimals == 0:  # whole numbers: what lies between two of them is none
        lower, upper = np.ceil(lower - 1e-6), np.floor(upper + 1e-6)
    return np.minimum(lower, table.values), np.maximum(upper, table.values)


def exposed_cells(
    table: Table, values: FloatArray, info: dict[str, Any], stop: Stop, executor: Executor | None = None
) -> tuple[list[int], list[int]]:
    """Sensitive cells whose implied interval does not reach their protection levels, and those that are recovered exactly."""
    primary = table.primary
    if not primary.any():
        return [], []
    unit = 10.0**-table.decimals
    lpl, upl, spl = table.needed_levels()
    low, high = published_room(table, values, info)
    down, up = table.values - low, high - table.values
    tolerance = 1e-9 * np.maximum(1.0, np.maximum(lpl, upl))
    # what a cell shows alone may already be too much: then the levels need no search, only whether it is recovered exactly
    hopeless = primary & ((down < lpl - tolerance) | (up < upl - tolerance) | (down + up < spl - tolerance))
    width = np.where(primary, np.maximum(spl, unit), 0.0)
    needs = Needs(np.where(hopeless, 0.0, lpl), np.where(hopeless, 0.0, upl), np.where(hopeless, unit, width))
    found = ranges(table.relations, (down > 0) | (up > 0), down, up, needs=needs, stop=stop, executor=executor)
    wide = found.down + found.up
    fails = (found.down < lpl - tolerance) | (found.up < upl - tolerance) | (wide < spl - tolerance)
    narrow = primary & (wide < unit * (1 - 1e-6))
    return np.flatnonzero(primary & (hopeless | fails)).tolist(), np.flatnonzero(narrow).tolist()
