"""How far hidden cells can move around a base point: flow where a component is a network, LP elsewhere."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.attacker.bounds import ComponentLP
from tabprotect.attacker.network import grid_witnesses, network_bounds
from tabprotect.attacker.system import Component, components
from tabprotect.solve.stop import Stop
from tabprotect.table.graph import network_of
from tabprotect.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Needs:
    """How far down and up each cell must be able to go, and how wide its interval must be; zero where nothing is asked."""

    down: FloatArray
    up: FloatArray
    width: FloatArray

    def at(self, cells: Any) -> Needs:
        return Needs(self.down[cells], self.up[cells], self.width[cells])

    @property
    def any(self) -> BoolArray:
        return (self.down > 0) | (self.up > 0) | (self.width > 0)


@dataclass
class Ranges:
    """Per cell of the table: the reach found, whether it is proved to be all there is, and moves (moves × cells) that show it."""

    down: FloatArray
    up: FloatArray
    proved: BoolArray
    moves: list[Any] = field(default_factory=list)
    methods: dict[str, int] = field(default_factory=dict)


def ranges(
    relations: Any,
    hidden: BoolArray,
    down: FloatArray,
    up: FloatArray,
    *,
    needs: Needs | None = None,
    stop: Stop | None = None,
    executor: Executor | None = None,
    network: bool = True,
) -> Ranges:
    """Reach of all hidden cells: exact for all, or with ``needs`` only until each need is met or proved out of reach."""
    stop = stop or Stop()
    n = len(hidden)
    found = Ranges(np.zeros(n), np.zeros(n), np.zeros(n, bool))
    pieces = [c for c in components(relations, hidden, down, up) if needs is None or needs.at(c.cells).any.any()]
    jobs = [(c, None if needs is None else needs.at(c.cells), stop.left, network) for c in pieces]
    if executor is None:
        answers = (solve_component(*job, stop=stop) for job in jobs)
    else:
        answers = executor.map(_solve_remote, jobs)  # type: ignore[assignment]
    for k, (c, answer) in enumerate(zip(pieces, answers, strict=True)):
        method, low, high, proved, moves = answer
        found.down[c.cells], found.up[c.cells], found.proved[c.cells] = low, high, proved
        found.methods[method] = found.methods.get(method, 0) + 1
        if moves is not None and moves.shape[0]:
            wide = sp.csr_array((moves.data, c.cells[moves.indices], moves.indptr), shape=(moves.shape[0], n))
            found.moves.append(wide)
        stop.tell("attack", done=k + 1, total=len(pieces))
    return found


def _solve_remote(job: tuple[Component, Needs | None, float, bool]) -> Any:
    c, needs, left, network = job
    return solve_component(c, needs, left, network, stop=Stop(None if left == float("inf") else left))


def solve_component(
    c: Component, needs: Needs | None, left: float, network: bool, *, stop: Stop
) -> tuple[str, FloatArray, FloatArray, BoolArray, Any]:
    """Method used, reach down and up, proved or not, and moves that show the needs (sparse, moves × cells of the component)."""
    if c.matrix.shape[0] == 0:
        return "free", c.down.copy(), c.up.copy(), np.ones(c.n, bool), _single_moves(c, needs)
    far = (
        c.n > 500 and np.diff(sp.csc_array(c.matrix).indptr).max() > 4
    )  # detection is slow on what is far from a network
    flow = network_of(c.matrix) if network and not far else None
    if flow is not None:
        try:
            return "flow", *_by_flow(c, flow, needs, stop)
        except TimeoutError:  # nothing is shown of this component
            return "flow", np.zeros(c.n), np.zeros(c.n), np.zeros(c.n, bool), None
    lp = ComponentLP(c, stop)
    if needs is None:
        r = lp.solve_all()
        return "lp", r.down, r.up, r.proved_down & r.proved_up, None
    r = lp.solve_needed(needs.down, needs.up, needs.width)
    used = np.unique(np.concatenate([r.up_move[needs.any], r.down_move[needs.any]]))
    moves = sp.csr_array(np.array([r.moves[k] for k in used if k >= 0]).reshape(-1, c.n))
    return "lp", r.down, r.up, r.proved_down & r.proved_up, moves


def _single_moves(c: Component, needs: Needs | None) -> Any:
    """A cell in no relation moves by itself: one move per need and side."""
    if needs is None:
        return None
    up = np.minimum(c.up, np.maximum(needs.up, needs.width))
    down = np.minimum(c.down, np.maximum(needs.down, needs.width))
    return sp.csr_array(sp.vstack([sp.diags_array(up), sp.diags_array(-down)]))


def grid_moves(relations: Any, hidden: BoolArray, down: FloatArray, up: FloatArray, needs: Needs) -> Any:
    """Moves on grids (moves × cells) towards the needs of network components; see `grid_witnesses`."""
    blocks = [sp.csr_array((0, len(hidden)))]
    for c in components(relations, hidden, down, up):
        own = needs.at(c.cells)
        flow = network_of(c.matrix) if c.matrix.shape[0] and own.any.any() else None
        if flow is None:
            continue
        for target in np.flatnonzero(own.any):
            need_down, need_up = (float(max(x[target], own.width[target])) for x in (own.down, own.up))
            moves = grid_witnesses(flow, c.down, c.up, int(target), need_down, need_up)
            shape = (moves.shape[0], len(hidden))
            blocks.append(sp.csr_array((moves.data, c.cells[moves.indices], moves.indptr), shape=shape))
    return sp.csr_array(sp.vstack(blocks))


def _by_flow(c: Component, flow: Any, needs: Needs | None, stop: Stop) -> tuple[FloatArray, FloatArray, BoolArray, Any]:
    if needs is None:
        all_of = network_bounds(flow, c.down, c.up, stop=stop)
        return all_of.decrease, all_of.increase, np.ones(c.n, bool), None
    # the width can come from either side, so both are asked for as much as the width needs
    targets = np.flatnonzero(needs.any)
    some = network_bounds(
        flow,
        c.down,
        c.up,
        targets=targets,
        need_down=np.maximum(needs.down, needs.width)[targets],
        need_up=np.maximum(needs.up, needs.width)[targets],
        witnesses=True,
        stop=stop,
    )
    down, up, proved = np.zeros(c.n), np.zeros(c.n), np.zeros(c.n, bool)
    down[targets], up[targets], proved[targets] = some.decrease, some.increase, True
    return down, up, proved, some.witnesses
