"""The verb: adjust a table."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

from tabprotect.adjustment.attack import adjustment_intervals, guesses
from tabprotect.adjustment.problem import Problem, make_problem, moves_needed
from tabprotect.adjustment.repair import blocked
from tabprotect.adjustment.search import Adjusted, search
from tabprotect.errors import InputError, Unsafe
from tabprotect.protected import Protected
from tabprotect.sensitivity.locate import locate
from tabprotect.solve.stop import Listener, Stop, interruptible
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, FloatArray, IntArray

NORMS = ("l1", "l2", "linf")


def adjust(
    table: Table,
    *,
    norm: str = "l1",
    weights: str | Sequence[float] | FloatArray = "inverse",
    direction: str | Sequence[int] | IntArray = "free",
    fixed: Any = None,
    totals: str | float = "free",
    lb: Any = None,
    ub: Any = None,
    integer: bool | None = None,
    audit: str = "levels",
    time_limit: float | None = 60.0,
    gap: float = 1e-6,
    seed: int = 0,
    backend: str = "highs",
    progress: Listener | None = None,
    executor: Executor | None = None,
) -> Protected:
    """Controlled tabular adjustment: sensitive cells move by at least their levels, all others as little as possible, and everything adds up.

    Parameters
    ----------
    norm
        What is least: ``l1`` (``Σ w·|x − a|``), ``l2`` (``Σ w·(x − a)²``), ``linf`` (``max w·|x − a|``).
    weights
        ``inverse`` (``1/|a|``, 1 where a is 0), ``unit``, or one per cell.
    direction
        Of the sensitive cells: ``free`` (chosen), ``balanced`` (chosen, as many up as down), ``up``, ``down``, or −1, 0, 1 per cell.
    fixed
        Cells that must not move (mask, indices, or codes).
    totals
        ``free``, ``fixed``, or the share of its value by which a total may move; sensitive totals always move.
    lb, ub
        Bounds of the adjusted values, instead of those of the table.
    integer
        Whole-number results; default: as the table says (`Table.counts`).
    audit
        ``levels`` (default) checks that every sensitive cell moved by its level; ``attack`` also that an outsider's interval honours the levels, and raises `Unsafe` if not.
    gap
        Stop when the cost is proved within this share of the best.

    An impossible problem raises `NoAdjustment` with what blocks it and a ``proposal``. A safe table without a sensitive cell comes back unchanged.

    >>> import tabprotect as tp
    >>> res = tp.adjust(tp.examples.d272().mark(tp.rules.Threshold(2)))
    >>> res.status, bool(np.abs(res.table.relations @ res.values).max() == 0)
    ('optimal', True)

    References: R. A. Dandekar and L. H. Cox (2002); J. Castro, "Minimum-distance controlled perturbation methods for large-scale tabular data protection", EJOR 171 (2006).
    """
    if norm not in NORMS:
        raise InputError(f"unknown norm {norm!r}: use one of {', '.join(NORMS)}")
    if audit not in ("levels", "attack"):
        raise InputError(f"unknown audit {audit!r}: use 'levels' or 'attack'")
    stop = Stop(time_limit, 0.0, progress)
    table.check_additive()
    kept = np.zeros(table.n_cells, bool)
    if fixed is not None:
        kept[locate(table, fixed)] = True
    problem = make_problem(
        table, weights=weights, direction=direction, fixed=kept, totals=totals, integer=integer, lb=lb, ub=ub
    )
    options = {"norm": norm, "weights": weights, "direction": direction, "integer": integer}
    with interruptible(stop):
        found = _find(table, problem, norm, options, stop, gap=gap, backend=backend, seed=seed)
    result = _checked(table, problem, norm, found, stop)
    if audit == "attack":
        _attacked(result, executor)
    return result


def _checked(table: Table, problem: Problem, norm: str, found: Adjusted, stop: Stop) -> Protected:
    """The result, once plain arithmetic agrees."""
    values = table.values + found.z
    _recheck(table, problem, found.z, values)
    return Protected(
        table=table,
        kind="adjust",
        method=norm,
        values=values,
        suppressed=np.zeros(table.n_cells, bool),
        status="optimal" if found.optimal else "feasible",
        objective=found.cost,
        bound=found.bound,
        runtime=stop.seconds,
        info=_details(table, problem, found, values),
    )


def _find(
    table: Table,
    problem: Problem,
    norm: str,
    options: dict[str, Any],
    stop: Stop,
    *,
    gap: float,
    backend: str,
    seed: int,
) -> Adjusted:
    if len(problem.sensitive) == 0:
        return Adjusted(np.zeros(problem.n), 0.0, 0.0, True, "no sensitive cell")
    can_rise, can_fall = problem.possible()
    found = None
    if (can_rise | can_fall).all():
        found = search(problem, norm, stop, gap=gap, backend=backend, seed=seed)
    if found is None:
        raise blocked(table, problem, options, Stop(30.0))
    return found


def _recheck(table: Table, problem: Problem, z: FloatArray, values: FloatArray) -> None:
    """Plain arithmetic on what is to be published: levels, bounds, relations. A failure is a fault of a solver or of this package."""
    moved = z[problem.sensitive]
    slack = 1e-9 * np.maximum(problem.rise, problem.fall)
    short = ~((moved >= problem.rise - slack) | (-moved >= problem.fall - slack))
    if short.any():
        cells = problem.sensitive[short].tolist()
        raise Unsafe(f"{len(cells)} sensitive cells did not move far enough, e.g. {table.label(cells[0])}", cells=cells)
    room = 1e-9 * np.maximum(1.0, np.abs(table.values)) + 1e-9 * problem.scale
    outside = (z > problem.up + room) | (-z > problem.down + room)
    if outside.any():
        cells = np.flatnonzero(outside).tolist()
        raise Unsafe(f"{len(cells)} cells left their bounds, e.g. {table.label(cells[0])}", cells=cells)
    if problem.whole and not np.array_equal(values, np.rint(values)):
        raise Unsafe("the adjusted table has values that are not whole numbers")
    # the changes by themselves: beside values of 10¹¹ a lost level of 10³ would look like a rounding error
    off = np.abs(problem.relations @ z - problem.rhs)
    size = np.abs(table.relations) @ np.abs(values)
    wrong = off > 1e-13 * size + 1e-8 * problem.scale
    if wrong.any():
        raise Unsafe(f"the adjusted table does not add up in {table.describe_relation(int((off * wrong).argmax()))}")


def _details(table: Table, problem: Problem, found: Adjusted, values: FloatArray) -> dict[str, Any]:
    """What the result tells beside the values; nothing here is a true value of a cell."""
    primary = table.primary
    share = np.abs(found.z) / np.where(table.values == 0, 1.0, np.abs(table.values))
    moved = found.z[problem.sensitive]
    guessed = guesses(table, values)
    tiny = 1e-9 * problem.scale
    return {
        "how": found.how,
        "why": found.how,
        "changed": int((np.abs(found.z) > tiny).sum()),
        "largest_change": float(np.abs(found.z).max(initial=0.0)),
        "largest_share_other": float(share[~primary].max(initial=0.0)),
        "up": int((moved > 0).sum()),
        "down": int((moved < 0).sum()),
        "guesses": {
            "minimal": int(guessed.minimal.sum()),
            "single": guessed.cells[guessed.single].tolist(),
        },
        "additivity": {"broken": 0, "largest": float(np.abs(table.relations @ values - table.rhs).max(initial=0.0))},
    }


def _attacked(res: Protected, executor: Executor | None) -> None:
    """Raise when an outsider's interval of a sensitive cell does not reach its levels."""
    table = res.table
    lower, upper = adjustment_intervals(res, executor=executor)
    lpl, upl, spl = table.needed_levels()
    slack = 1e-7 * np.maximum(1.0, np.maximum(lpl, upl))
    fails: BoolArray = table.primary & (
        (table.values - lower < lpl - slack) | (upper - table.values < upl - slack) | (upper - lower < spl - slack)
    )
    if fails.any():
        cells = np.flatnonzero(fails).tolist()
        raise Unsafe(
            f"{len(cells)} sensitive cells can be inferred more closely than their levels, e.g. {table.label(cells[0])}",
            cells=cells,
        )


__all__ = ["adjust", "moves_needed"]
