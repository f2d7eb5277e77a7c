"""Protection against respondents: a firm alone in a hidden cell knows it, and must still not learn the others.

The known trouble with patterns that are safe against outsiders only: two hidden cells in a row, one of them a single respondent, who subtracts itself and has
the other. Each such respondent (or holding) is an attacker for whom its own cells are published; what fails against it is protected once more on top of the
pattern, until nobody gains anything. See A. Hundepool et al., Statistical Disclosure Control (Wiley, 2012), section 4.4.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tabprotect.attacker.attack import singleton_groups
from tabprotect.attacker.audit import audit_pattern
from tabprotect.attacker.ranges import Needs
from tabprotect.errors import Infeasible, InputError
from tabprotect.solve.stop import Stop
from tabprotect.suppression.heuristic import solve as heuristic
from tabprotect.suppression.problem import Pattern, Problem
from tabprotect.table.table import Table
from tabprotect.types import BoolArray


def protect_singletons(table: Table, problem: Problem, pattern: Pattern, stop: Stop, seed: int) -> Pattern:
    """Hide further cells until every primary cell keeps its levels against every respondent who is alone in a hidden cell."""
    if table.freq is None and table.contributions is None:
        raise InputError("singletons=True needs the number of contributors of each cell (freq)")
    hidden = pattern.suppressed.copy()
    levels = table.needed_levels()
    checked, clean = 0, False
    while not clean:
        clean = True
        for group in singleton_groups(table, hidden):
            checked += 1
            without = hidden.copy()
            without[group] = False
            needs = Needs(*(np.where(np.isin(np.arange(problem.n), group), 0.0, level) for level in levels))
            missing = audit_pattern(problem.relations, without, problem.down, problem.up, needs).missing
            if missing:
                hidden |= _add(table, problem, without, group, set(missing), stop, seed)
                clean = False
            stop.tell("singletons", cost=problem.cost(hidden), done=checked)
    grown = bool((hidden & ~pattern.suppressed).any())
    info = {**pattern.info, "coalitions": checked}
    return replace(pattern, suppressed=hidden, optimal=pattern.optimal and not grown, info=info)


def _add(
    table: Table, problem: Problem, without: BoolArray, group: list[int], missing: set[int], stop: Stop, seed: int
) -> BoolArray:
    """Cells that protect ``missing`` against the respondents of ``group``."""
    known = np.zeros(problem.n, bool)
    known[group] = True
    inside = replace(
        problem,
        down=np.where(known, 0.0, problem.down),
        up=np.where(known, 0.0, problem.up),
        fixed=without,
        candidates=problem.candidates & ~without & ~known,
        requirements=tuple(r for r in problem.requirements if r.cell in missing),
    )
    try:
        return heuristic(inside, Stop(max(1.0, min(stop.left, 20.0))), seed).suppressed
    except Infeasible as error:
        names = "; ".join(table.label(c) for c in sorted(missing)[:5])
        raise Infeasible(
            f"cannot be protected against the respondents of {', '.join(table.label(c) for c in group[:3])}: {names}",
            cells=error.cells,
            missing=error.missing,
        ) from None
