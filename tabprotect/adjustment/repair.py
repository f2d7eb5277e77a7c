"""When no adjustment exists: which cells block it, and conditions under which one does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.adjustment.model import sense_model
from tabprotect.adjustment.problem import Problem
from tabprotect.errors import Infeasible
from tabprotect.solve.highs import Highs
from tabprotect.solve.model import LinearModel
from tabprotect.solve.stop import Stop
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, FloatArray

# lowering the protection of a respondent is the last resort: it costs this much more than releasing a bound
RELUCTANCE = 1e4


@dataclass(frozen=True, eq=False)
class Proposal:
    """Conditions under which an adjustment exists: ``adjust(proposal.table, **proposal.options)`` will find it.

    ``released`` says by how much the range of a cell has to be widened (cell index -> amount), ``lowered`` by how much the level of a sensitive cell falls short.
    """

    table: Table
    options: Mapping[str, Any]
    released: Mapping[int, float] = field(default_factory=dict)
    lowered: Mapping[int, float] = field(default_factory=dict)

    def summary(self) -> str:
        """What would have to change, cell by cell (at most ten)."""
        lines = [f"let {self.table.label(c)} move by {v:g} more" for c, v in self.released.items()]
        lines += [f"accept {v:g} less protection for {self.table.label(c)}" for c, v in self.lowered.items()]
        more = len(lines) - 10
        return "; ".join(lines[:10]) + (f"; and {more} more" if more > 0 else "")


class NoAdjustment(Infeasible):
    """`Infeasible` with a ``proposal`` (None if none was found in time)."""

    def __init__(self, message: str, proposal: Proposal | None, **where: Any) -> None:
        super().__init__(message, **where)
        self.proposal = proposal


def blocked(table: Table, problem: Problem, options: Mapping[str, Any], stop: Stop) -> NoAdjustment:
    """The error to raise: what blocks, and the cheapest change of the conditions."""
    found = elastic(problem, stop)
    if found is None:
        can_rise, can_fall = problem.possible()
        stuck = problem.sensitive[~(can_rise | can_fall)]
        return NoAdjustment(
            "no adjustment exists within the bounds, and no repair was found in the time given"
            + (f"; {table.label(int(stuck[0]))} cannot move far enough within its own bounds" if len(stuck) else ""),
            None,
            cells=stuck.tolist(),
        )
    wider, short = found
    tiny = 1e-7 * problem.scale
    released = {int(c): float(wider[c]) for c in np.flatnonzero(wider > tiny)}
    lowered = {int(c): float(short[c]) for c in np.flatnonzero(short > tiny)}
    # a little more than needed, so that the proposal is feasible in floating point too
    room = np.where(wider > tiny, wider * (1 + 1e-6) + tiny, 0.0)
    less = np.where(short > tiny, short * (1 + 1e-6) + tiny, 0.0)
    if problem.whole:
        room, less = np.ceil(room - 1e-6), np.ceil(less - 1e-6)
    levels = {name: np.maximum(getattr(table, name) - less, 0.0) for name in ("lpl", "upl", "spl")}
    changed = dict(options) | {
        "lb": table.values - problem.down - room,
        "ub": table.values + problem.up + room,
        "fixed": None,
        "totals": "free",
    }
    proposal = Proposal(table.replace(**levels), changed, released, lowered)
    cells = [*lowered, *released]
    return NoAdjustment(
        f"no adjustment exists: {len(lowered)} sensitive cells and {len(released)} bounds block it. Proposal: {proposal.summary()}",
        proposal,
        cells=cells,
        missing=[*lowered.values(), *released.values()],
    )


def elastic(problem: Problem, stop: Stop) -> tuple[FloatArray, FloatArray] | None:
    """Least widening of ranges and lowering of levels (arrays over all cells) that makes an adjustment possible."""
    base = sense_model(problem, "l1")
    n, k, s = problem.n, len(problem.sensitive), problem.scale
    a = problem.relations
    # columns added: wider up, wider down (per cell), shortfall (per sensitive cell)
    rows = base.matrix.shape[0]
    m = a.shape[0]
    relation_part = sp.hstack([a, -a], format="csr")
    wide = sp.vstack([relation_part, sp.csr_array((rows - m, 2 * n))], format="lil")
    short = sp.lil_array((rows, k))
    for j in range(k):
        short[m + j, j] = 1.0  # z⁺ + wider + shortfall ≥ rise·y
        short[m + 2 * k + j, j] = 1.0
        wide[m + j, problem.sensitive[j]] = 1.0
        wide[m + 2 * k + j, n + problem.sensitive[j]] = 1.0
    keep = m + 4 * k  # the polygon inequalities speak of z alone and would forbid the repair
    lower_y = base.lower.copy()
    upper_y = base.upper.copy()
    lower_y[2 * n :], upper_y[2 * n :] = 0.0, 1.0
    given = np.where(problem.sense > 0, 1.0, 0.0), np.where(problem.sense < 0, 0.0, 1.0)
    lower_y[2 * n : 2 * n + k], upper_y[2 * n : 2 * n + k] = given
    weight = problem.weight / problem.weight[problem.sensitive].mean()
    finite_up, finite_down = np.isfinite(problem.up), np.isfinite(problem.down)
    model = LinearModel.of(
        sp.csr_array(sp.hstack([base.matrix, wide, short], format="csr")[:keep]),
        row_lower=base.row_lower[:keep],
        row_upper=base.row_upper[:keep],
        cost=np.r_[1e-6 * base.cost, weight + 1e-3, weight + 1e-3, np.full(k, RELUCTANCE)],
        lower=np.r_[lower_y, np.zeros(2 * n + k)],
        upper=np.r_[
            upper_y, np.where(finite_up, np.inf, 0.0), _not_below_zero(problem, finite_down), np.full(k, np.inf)
        ],
        integer=np.r_[base.integer, np.zeros(2 * n + k, bool)],
    )
    result = Highs().solve(model, stop, gap=1e-3)
    if not result.found:
        return None
    x = result.x[base.n :]
    released = (np.maximum(x[:n], x[n : 2 * n])) * s
    lowered = np.zeros(n)
    lowered[problem.sensitive] = x[2 * n :] * s
    return released, lowered


def _not_below_zero(problem: Problem, finite: BoolArray) -> FloatArray:
    """A cell may be let down only where it had been kept from falling by the caller: never below what was its natural bound."""
    return np.where(finite & (problem.down == 0) & (problem.up == 0), np.inf, 0.0)
