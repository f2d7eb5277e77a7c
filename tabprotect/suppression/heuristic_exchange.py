"""Better patterns by exchanging circuits: published cells are routed through the pattern, and what becomes superfluous is published.

What such moves and the space of the pattern span is searched by a compiled walk (`exchange`), where destroying and
repairing needs several linear programs a step.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.solve.stop import Stop
from tabprotect.suppression.exchange import Rows, wander
from tabprotect.suppression.flats import echelon, needed_moves
from tabprotect.suppression.heuristic_combine import WIDE, put_moves, wish
from tabprotect.suppression.heuristic_local import reroute
from tabprotect.suppression.heuristic_state import Witnessed
from tabprotect.suppression.moves import Move, Need, Router, stack
from tabprotect.types import FloatArray

FRESH = 20
"""Cells routed anew before each walk, through the pattern as it is now."""
STEPS = 200
"""Steps of a walk."""
NODES = 150
"""Subspaces looked at in a step."""
HEAT = (0.3, 0.03)
"""How much dearer a step may be, in average prices of a hidden cell, at first and in the end."""
MOST = 1500
"""Moves that are remembered at least."""
NOISE = (0.0, 0.2, 0.5)
"""Disturbances of the costs by which cells are routed."""
ROOM = 3
"""Dimensions of the widest space that are kept for moves to add."""
SKEW = 1e-12
"""Moves that miss a relation by more are made exact: small errors grow from step to step."""


class Exchange:
    """Walks from one pattern after the other on the same problem; moves found for one serve the next."""

    def __init__(self, router: Router, seed: int) -> None:
        self.router, self.problem = router, router.problem
        self._rng = np.random.default_rng([seed, 2])
        self._moves: list[Move] = []
        self._seen: set[bytes] = set()
        self._columns = sp.csc_array(self.problem.matrix)
        self._relations = _rows(self.problem.matrix)

    def add(self, moves: Iterable[Move]) -> None:
        """Remember moves, one for each support."""
        for move in moves:
            key = move.cells.tobytes()
            if key not in self._seen:
                self._seen.add(key)
                exact = self._exact(move)
                if exact is not None:
                    self._moves.append(exact)
        if len(self._moves) > 2 * MOST:
            self._moves = self._moves[-MOST:]
            self._seen = {m.cells.tobytes() for m in self._moves}

    def _exact(self, move: Move) -> Move | None:
        """The nearest vector on the same cells that keeps all relations, 1 at its largest; None if it is not near."""
        steps = move.steps / np.abs(move.steps).max()
        part = self._columns[:, move.cells]
        off = part @ steps
        if np.abs(off).max(initial=0.0) > SKEW:
            rows = np.unique(part.indices)
            change = np.linalg.lstsq(part.toarray()[rows], off[rows], rcond=None)[0]
            if np.abs(change).max() > 1e-5:
                return None
            steps = steps - change
        return Move(move.cells, steps)

    def _space(self, state: Witnessed) -> FloatArray | None:
        """A basis of what the moves of a pattern span (dimensions × cells); None where it is too wide to walk in."""
        own = list({id(move): move for move in state.moves if move is not None}.values())
        cells = np.unique(np.concatenate([move.cells for move in own]))
        if echelon(stack(own, self.problem.n)[:, cells].toarray(), WIDE - 2 * ROOM) is None:
            return None
        exact = [move for move in map(self._exact, own) if move is not None]
        small = echelon(stack(exact, self.problem.n)[:, cells].toarray(), WIDE - 2 * ROOM)
        if small is None or len(exact) < len(own):
            return None
        basis = np.zeros((len(small), self.problem.n))
        basis[:, cells] = small
        return basis

    def _route(self, state: Witnessed, likely: FloatArray, stop: Stop) -> None:
        """Remember cheap moves of some published cells, likely ones more often."""
        hidden = state.hidden
        p = np.where(hidden, 0.0, np.maximum(likely, 0.02))
        if not p.any():
            return
        for cell in self._rng.choice(len(p), size=min(FRESH, np.count_nonzero(p)), replace=False, p=p / p.sum()):
            if stop.done:
                return
            need = Need(int(cell), 1, state.needs[int(self._rng.integers(len(state.needs)))].level)
            noise = float(self._rng.choice(NOISE))
            move = reroute(state, self.router, need, hidden, self._rng, noise=noise, limit=min(2.0, stop.left))
            if move is not None:
                self.add([move])

    def improve(self, state: Witnessed, likely: FloatArray, stop: Stop) -> bool | None:
        """Walk from a pattern and take the best one on the way; whether it is cheaper, None where the pattern's space is too wide.

        ``likely`` says how likely each cell is to be hidden in a good pattern.
        """
        problem, needs = state.problem, range(len(state.needs))
        basis = self._space(state)
        if basis is None:
            return None
        self._route(state, likely, stop)
        if stop.done or not self._moves:
            return False
        unit = (state.cost - problem.base) / max(1, len(state.secondaries))
        walk = wander(
            basis, _rows(stack(self._moves, problem.n)), self._relations, state.price, problem.free,
            wish(state, needs, np.arange(problem.n)), heat=(unit * HEAT[0], unit * HEAT[1]),
            steps=STEPS, widest=WIDE - ROOM, nodes=NODES, seed=int(self._rng.integers(2**31)),
        )  # fmt: skip
        before = state.cost
        if walk.least < before - problem.base:
            moving = (walk.best != 0).any(axis=0)
            moving[[need.cell for need in state.needs]] = True
            cells = np.flatnonzero(moving)
            moves = needed_moves(walk.best[:, cells], wish(state, needs, cells))
            if moves is not None:
                put_moves(state, needs, cells, moves)
        return state.cost < before - 1e-9 * abs(before)


def _rows(matrix: Any) -> Rows:
    m = sp.csr_array(matrix)
    return Rows(m.indptr.astype(np.int64), m.indices.astype(np.int64), m.data.astype(float))
