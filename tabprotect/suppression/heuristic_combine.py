"""New patterns out of the moves of known ones: the cheapest subspace of what they span, for all needs or for those of one part of the table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tabprotect.suppression.flats import Wish, cheapest_flat, echelon
from tabprotect.suppression.heuristic_state import Witnessed
from tabprotect.suppression.moves import BOTH, SHORT, Move, clean, stack
from tabprotect.types import FloatArray, IntArray

WIDE = 20
"""Most dimensions of a span to search: beyond, the tree over its subspaces is too large to get far."""
NODES = 1000


def combine(state: Witnessed, needs: Sequence[int], others: Sequence[Move], wide: int = WIDE) -> int:
    """Give these needs cheaper moves out of the span of their own and some other moves, if there are any.

    Returns the dimensions of the span, or −1 where it was too wide to be searched. Other needs keep their moves, and the cells of
    those stay hidden.
    """
    problem = state.problem
    own = {id(m): m for i in needs if (m := state.moves[i]) is not None}
    rows = stack([*own.values(), *others], problem.n)
    cells = np.unique(rows.indices)
    basis = echelon(rows[:, cells].toarray(), wide)
    if basis is None:
        return -1
    rest = state.uses.copy()
    for i in needs:
        if (m := state.moves[i]) is not None:
            rest[m.cells] -= 1
    idle = (rest[cells] > 0) | problem.free[cells]
    price = np.where(idle, 0.0, state.price[cells])
    before = float(state.price[(state.uses > 0) & (rest == 0)].sum())
    flat = cheapest_flat(basis, price, idle, wish(state, needs, cells), before * (1 - 1e-9), NODES)
    if flat is not None:
        put_moves(state, needs, cells, flat.moves)
    return len(basis)


def wish(state: Witnessed, needs: Sequence[int], cells: IntArray) -> Wish:
    problem = state.problem
    wanted = [state.needs[i] for i in needs]
    both = np.array([need.sense == BOTH for need in wanted])
    one, two = (problem.down[cells], problem.up[cells]), problem.room[cells]
    inside = 1 - SHORT
    return Wish(
        row=np.searchsorted(cells, [need.cell for need in wanted]),
        goal=np.array([need.level * (-1.0 if need.sense == -1 else 1.0) * inside for need in wanted]),
        both=both,
        low=np.where(both[:, None], -two, -one[0]) * inside,
        high=np.where(both[:, None], two, one[1]) * inside,
    )


def put_moves(state: Witnessed, needs: Sequence[int], cells: IntArray, moves: FloatArray) -> None:
    """Put the moves into the state if plain arithmetic finds them good and the pattern is cheaper."""
    before, old = state.cost, [state.moves[i] for i in needs]
    new = []
    for i, steps in zip(needs, moves, strict=True):
        need, y = state.needs[i], np.zeros(state.problem.n)
        y[cells] = steps
        move = clean(state.problem, y, both=need.sense == BOTH, scale=need.level)
        if move is None or abs(move.at(need.cell)) < need.level * (1 - 1e-7):
            return
        new.append(move)
    for i, move in zip(needs, new, strict=True):
        state.put(i, move)
    if state.cost >= before:
        for i, previous in zip(needs, old, strict=True):
            state.put(i, previous)


def neighbours(state: Witnessed, first: int, size: int) -> list[int]:
    """Needs whose moves share most secondaries with those of a first one, and of the ones taken since."""
    if size >= len(state.needs):
        return list(range(len(state.needs)))
    supports = abs(stack([m if m is not None else Move(*_NOTHING) for m in state.moves], state.problem.n))
    supports.data[:] = state.price[supports.indices] > 0
    shared = (supports @ supports.T).toarray()
    taken, score = [first], shared[first].copy()
    score[first] = -1.0
    while len(taken) < size:
        nxt = int(np.argmax(score))
        taken.append(nxt)
        score = np.where(score >= 0, score + shared[nxt], -1.0)
        score[nxt] = -1.0
    return sorted(taken)


_NOTHING: tuple[IntArray, FloatArray] = (np.zeros(0, np.int64), np.zeros(0))
