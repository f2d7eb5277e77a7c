"""The 2008 report's own procedure: the cheapest circuit of each primary cell, one after the other, hidden cells free.

A circuit is a set of cells that can go up and down together so that all sums stay: in a two-dimensional table a rectangle of four cells, or a longer
closed walk when hidden cells are reused. `circuits` lists the rectangles (boxes in more dimensions) of a cell as the report does, with those that contain a
zero crossed out; `solve` takes the cheapest circuit of any shape, on any table.

National Statistical Office of Korea, report on a joint study of confidentiality of macro data, 2008, section on circuits. L.H. Cox, Suppression
methodology and statistical disclosure control, JASA 75 (1980) 377–385.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np

from tabprotect.errors import InputError
from tabprotect.solve.stop import Stop
from tabprotect.suppression.heuristic_state import Witnessed
from tabprotect.suppression.moves import Router, needs_of
from tabprotect.suppression.preprocess import cannot_protect, reduce
from tabprotect.suppression.problem import Pattern, Problem
from tabprotect.table.table import Table
from tabprotect.types import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

ORDERS = 8
"""How many orders of the primary cells are tried; the first is by ascending level, the others are random."""


def circuits(table: Table, cell: int, *, margins: bool = False) -> pd.DataFrame:
    """All rectangles (boxes) through a cell: their cells, the sum of their values, and whether a zero makes them useless.

    ``margins`` also takes totals as opposite corners.

    >>> import tabprotect as tp
    >>> t = tp.examples.d272()
    >>> listed = circuits(t, t.cell(size="500+", industry="D2721"))
    >>> listed[~listed.has_zero].cells.iloc[0], float(listed[~listed.has_zero].value.iloc[0])
    ((34, 29, 30), 13.0)
    """
    import pandas as pd

    if not table.dims:
        raise InputError("circuits are listed for tables with dimensions")
    sizes = [len(d) for d in table.dims]
    index = np.full(int(np.prod(sizes)), -1)
    index[np.ravel_multi_index(tuple(table.codes.T), sizes)] = np.arange(table.n_cells)
    here = table.codes[cell]
    opposite = []
    for k, dim in enumerate(table.dims):
        others: list[int] = []
        for total, parts in dim.hierarchy.sums:
            if here[k] in parts:
                others += [c for c in parts if c != here[k]] + ([total] if margins else [])
            elif here[k] == total and margins:
                others += parts
        opposite.append(others)
    rows = []
    for corner in itertools.product(*opposite):
        ends = [(int(here[k]), int(corner[k])) for k in range(len(corner))]
        codes = np.array(list(itertools.product(*ends))).T
        box = index[np.ravel_multi_index(tuple(codes), sizes)]
        others_of_box = tuple(int(i) for i in box if i != cell)
        if min(box) >= 0:
            rows.append((others_of_box, float(table.values[box].sum()), bool((table.values[box] == 0).any())))
    found = pd.DataFrame(rows, columns=["cells", "value", "has_zero"])
    return found.sort_values(["has_zero", "value"], kind="stable").reset_index(drop=True)


def solve(problem: Problem, stop: Stop, seed: int) -> Pattern:
    """Protect the primary cells one at a time by their cheapest circuit, then reroute each once more; best of several orders."""
    small = reduce(problem)
    needs = needs_of(small)
    router = Router(small)
    rng = np.random.default_rng(seed)
    best: Witnessed | None = None
    order = np.argsort([need.level for need in needs], kind="stable")
    for attempt in range(ORDERS):
        if best is not None and stop.done:
            break
        state = Witnessed(small, needs)
        missing = _build(state, router, order, stop if best is not None else Stop())
        if missing:
            raise cannot_protect(
                {int(np.flatnonzero(small.group == needs[i].cell)[0]): needs[i].level for i in missing}
            )
        if best is None or state.cost < best.cost:
            best = state
            stop.tell("circuit", cost=state.cost, done=attempt + 1, total=ORDERS)
        order = rng.permutation(len(needs))
    assert best is not None
    return best.pattern(small.base)


def _build(state: Witnessed, router: Router, order: IntArray, stop: Stop) -> list[int]:
    """Give every need a witness at current prices, then take each out and route it again while that saves something."""
    missing = []
    for i in order:
        move = router.route(state.needs[i], _prices(state))
        if move is None:
            missing.append(int(i))
        state.put(int(i), move)
    for _ in range(3):
        before = state.cost
        for i in order:
            if stop.done or missing:
                return missing
            old, cost = state.moves[i], state.cost
            state.put(int(i), None)
            move = router.route(state.needs[i], _prices(state))
            state.put(int(i), move)
            if move is None or state.cost > cost:
                state.put(int(i), old)
        if state.cost >= before:
            break
    return missing


def _prices(state: Witnessed) -> FloatArray:
    """Hidden cells are free, up to a trifle that keeps circuits short."""
    return np.where(state.hidden, 1e-6, state.price + 1e-6)
