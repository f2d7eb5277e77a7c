"""Why a cell was hidden, and what would have to give where nothing can be hidden any more."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tabprotect.attacker.audit import audit_pattern
from tabprotect.attacker.ranges import Needs
from tabprotect.errors import Infeasible, InputError
from tabprotect.protected import Protected
from tabprotect.solve.stop import Stop
from tabprotect.suppression.problem import Problem
from tabprotect.table.table import Table

if TYPE_CHECKING:
    import pandas as pd


def explain(res: Protected, cells: Iterable[int] | int | None = None) -> pd.DataFrame:
    """For every complementary cell (or those given): the primary cells that would be exposed if it were published.

    A complement that no primary needs on its own is one of several that can stand in for each other; it is listed with an empty reason.

    >>> import tabprotect as tp
    >>> res = tp.suppress(tp.examples.d272().mark(tp.rules.Threshold(2)))
    >>> bool(explain(res).needed_by.str.len().min() > 0)
    True
    """
    import pandas as pd

    if res.kind != "suppress":
        raise InputError("only suppressed tables have cells that were hidden for others")
    table = res.table
    wanted = np.flatnonzero(res.secondary) if cells is None else np.atleast_1d(np.asarray(cells, np.int64))
    needs = Needs(*table.needed_levels())
    down, up = np.maximum(table.values - table.lb, 0), np.maximum(table.ub - table.values, 0)
    rows = []
    for c in wanted:
        if not res.secondary[c]:
            raise InputError(
                f"cell {table.label(int(c))} is not a complement: it is {'sensitive itself' if table.primary[c] else 'published'}"
            )
        without = res.suppressed.copy()
        without[c] = False
        exposed = sorted(audit_pattern(table.relations, without, down, up, needs).missing)
        rows.append((int(c), table.label(int(c)), tuple(exposed), "; ".join(table.label(p) for p in exposed)))
    return pd.DataFrame(rows, columns=["cell", "hidden", "needed_by", "needed_by_label"])


def what_would_give(table: Table, problem: Problem, error: Infeasible, stop: Stop) -> Infeasible:
    """The same error with names instead of numbers, and with the cells that must be published now but would have to be hidden."""
    from tabprotect.suppression.heuristic import solve as heuristic

    short: dict[int, float] = {}
    for c, m in zip(error.cells, error.missing, strict=True):
        short[c] = max(m, short.get(c, 0.0))
    error = Infeasible(str(error), cells=tuple(short), missing=tuple(short.values()))
    names = "; ".join(f"{table.label(c)} (short of {m:g})" for c, m in list(short.items())[:5])
    message = f"{len(short)} primary cell(s) cannot be protected, nothing is left to hide: {names}"
    closed = ~(problem.fixed | problem.candidates)
    price = 1e3 * max(1.0, float(problem.weights.max(initial=1.0)))
    relaxed = replace(
        problem, candidates=~problem.fixed, weights=np.where(closed, problem.weights + price, problem.weights)
    )
    try:
        wider = heuristic(relaxed, Stop(max(1.0, min(5.0, stop.left))), 0)
    except Infeasible:
        return Infeasible(
            f"{message}. Not even hiding every cell of the table would do: lower the levels or widen the bounds outsiders are assumed to know.",
            cells=error.cells,
            missing=error.missing,
        )
    give = np.flatnonzero(wider.suppressed & closed)
    listed = "; ".join(table.label(int(c)) for c in give[:8]) + (f" and {len(give) - 8} more" if len(give) > 8 else "")
    return Infeasible(
        f"{message}. It would work if these cells, which must be published or are zero, could be hidden: {listed}",
        cells=error.cells,
        missing=error.missing,
    )
