"""The suppression problem of a network table as arrays of arcs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.attacker.network import network_bounds, unit_scale
from tabprotect.errors import Infeasible, InputError
from tabprotect.solve.flow import half_arc_capacities
from tabprotect.suppression.problem import Pattern, Problem
from tabprotect.table.graph import Network, network_of
from tabprotect.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class NetworkModel:
    """Cells that may be hidden as arcs, and the requirements that the fixed cells alone do not meet.

    ``up`` and ``down`` are rooms in units of ``1 / scale`` (integers when the data have few decimals), capped at the largest open level:
    no requirement can use more. ``need_*`` are the open requirements. Arcs that lie on no cycle or have no room are not candidates.
    """

    problem: Problem
    network: Network
    scale: float
    up: FloatArray
    down: FloatArray
    weight: FloatArray
    fixed: BoolArray
    candidate: BoolArray
    need_arc: IntArray
    need_sense: IntArray
    need_level: FloatArray
    all_need: tuple[IntArray, IntArray, FloatArray]

    @property
    def capacity(self) -> FloatArray:
        return half_arc_capacities(self.up, self.down)

    @property
    def n_needs(self) -> int:
        return len(self.need_arc)

    @property
    def fixed_cost(self) -> float:
        return float(self.weight[self.fixed].sum())

    def cost(self, hidden: BoolArray) -> float:
        return float(self.weight[hidden].sum())

    @classmethod
    def of(cls, problem: Problem) -> NetworkModel:
        """Build the model; raises Infeasible when even hiding everything leaves a requirement open."""
        usable = problem.fixed | problem.candidates
        network = network_of(problem.relations, usable)
        if network is None:
            raise InputError("the relations are not those of a network; use method='exact' or 'auto'")
        cells = network.columns
        at = np.full(problem.n, -1, np.int64)
        at[cells] = np.arange(len(cells))
        arc = at[np.array([r.cell for r in problem.requirements], dtype=np.int64)]
        sense = np.array([r.sense for r in problem.requirements], dtype=np.int64)
        level = np.array([r.level for r in problem.requirements], dtype=float)
        fixed = problem.fixed[cells]
        if len(arc) and ((arc < 0).any() or not fixed[arc].all()):
            cell = problem.requirements[int(((arc < 0) | ~fixed[np.maximum(arc, 0)]).argmax())].cell
            raise InputError(f"cell {cell} has a protection level but is not hidden from the start")
        up, down = problem.up[cells], problem.down[cells]
        scale = unit_scale(up, down, level)
        up, down, level = up * scale, down * scale, level * scale
        if scale > 1 or unit_scale(up, down, level) == 1.0:
            level = np.where(np.abs(level - np.rint(level)) < 1e-9, np.rint(level), level)
        open_ = unmet(network, up, down, fixed, arc, sense, level) > 0
        top = float(level[open_].max(initial=0.0))
        usable_up, usable_down = np.minimum(up, top), np.minimum(down, top)
        idle = network.bridges() | ((up <= 0) & (down <= 0)) | (network.tail == network.head)
        candidate = ~fixed & ~idle
        missing = unmet(network, up, down, fixed | candidate, arc[open_], sense[open_], level[open_])
        if (missing > 0).any():
            _raise_infeasible(cells[arc[open_]][missing > 0], missing[missing > 0] / scale)
        return cls(
            problem, network, scale, usable_up, usable_down, problem.weights[cells], fixed, candidate,
            arc[open_], sense[open_], level[open_], (arc, sense, level),
        )  # fmt: skip

    def is_safe(self, hidden: BoolArray) -> bool:
        """Whether every open requirement holds when these arcs are hidden (needs met by the fixed arcs stay met)."""
        needs = (self.need_arc, self.need_sense, self.need_level)
        return not (unmet(self.network, self.up, self.down, hidden, *needs) > 0).any()

    def pattern(self, hidden: BoolArray, bound: float, *, optimal: bool = False, info: dict[str, Any]) -> Pattern:
        """The answer in cells of the problem, with moves that prove every requirement."""
        cells = self.network.columns
        suppressed = self.problem.fixed.copy()
        suppressed[cells[hidden]] = True
        return Pattern(suppressed, bound, optimal, self.moves(hidden), info)

    def moves(self, hidden: BoolArray) -> Any:
        """Few sparse moves (moves × cells) that together prove every requirement of the problem."""
        arc, sense, level = self.all_need
        targets, which = np.unique(arc, return_inverse=True)
        cells = self.network.columns
        need_up, need_down = np.zeros(len(targets)), np.zeros(len(targets))
        np.maximum.at(need_up, which, np.where(sense >= 0, level, 0.0))
        np.maximum.at(need_down, which, np.where(sense <= 0, level, 0.0))
        rooms = self.problem.down[cells] * self.scale, self.problem.up[cells] * self.scale
        found = network_bounds(
            self.network, *rooms, targets, need_up=need_up, need_down=need_down, hidden=hidden, witnesses=True
        )
        moves = sp.csr_array(found.witnesses).tocoo()
        shape = (moves.shape[0], self.problem.n)
        return sp.csr_array((moves.data / self.scale, (moves.coords[0], cells[moves.coords[1]])), shape=shape)


def unmet(
    network: Network,
    up: FloatArray,
    down: FloatArray,
    hidden: BoolArray,
    arc: IntArray,
    sense: IntArray,
    level: FloatArray,
) -> FloatArray:
    """How much each requirement lacks when only the hidden arcs can change (zero: it holds)."""
    if len(arc) == 0:
        return np.zeros(0)
    found = network_bounds(
        network, down, up, arc,
        need_up=np.where(sense >= 0, level, 0.0), need_down=np.where(sense <= 0, level, 0.0), hidden=hidden,
    )  # fmt: skip
    return np.maximum(level - found.increase - found.decrease, 0.0)


def _raise_infeasible(cells: IntArray, missing: FloatArray) -> None:
    order = np.argsort(-missing, kind="stable")
    shown = ", ".join(f"cell {cells[i]} lacks {missing[i]:g}" for i in order[:5])
    more = f" and {len(cells) - 5} more" if len(cells) > 5 else ""
    raise Infeasible(
        f"{len(np.unique(cells))} primary cells cannot be protected even if every allowed cell is hidden: {shown}{more}",
        cells=[int(c) for c in cells],
        missing=[float(m) for m in missing],
    )
