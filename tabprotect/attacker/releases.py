"""Several releases as one system: what linked tables or another classification show together.

Differencing across releases is nothing but an attack on more relations: cells that two tables share are one unknown, and it is known if any of them shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tabprotect.attacker.published import Published
from tabprotect.errors import InputError
from tabprotect.protected import Protected
from tabprotect.table.linked import cells_by_codes, link, stack_relations
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, IntArray


def join(
    target: Table | Published, suppressed: Any, others: Sequence[Any]
) -> tuple[Table | Published, BoolArray | None, IntArray]:
    """The joined system, which of its cells are hidden (for tables with true values), and where the target's cells are in it."""
    if isinstance(target, Table):
        if not all(isinstance(o, Protected) for o in others):
            raise InputError("other releases of a table with true values are given as Protected results")
        system = link([target, *(o.table for o in others)])
        mask = target.primary if suppressed is None else np.asarray(suppressed)
        if mask.dtype != bool:
            mask = np.isin(np.arange(target.n_cells), mask)
        hidden = np.ones(system.n_cells, bool)
        for place, own in zip(system.places, [mask, *(o.suppressed for o in others)], strict=True):
            hidden[place[~own]] = False
        return system, hidden, system.places[0]
    if not all(isinstance(o, Published) for o in others):
        raise InputError("other releases of a table with gaps must be given as Published tables (read_published)")
    return _join_published([target, *others])


def _join_published(tables: Sequence[Published]) -> tuple[Published, None, IntArray]:
    names = [t.name or str(k) for k, t in enumerate(tables)]
    _, place = np.unique(cells_by_codes(tables, names), return_inverse=True)
    ends = np.cumsum([0, *(t.n_cells for t in tables)])
    places = [place[a:b] for a, b in pairwise(ends)]
    n = int(place.max()) + 1
    values = np.full(n, np.nan)
    for table, own in zip(tables, places, strict=True):
        shown = ~table.hidden
        before = values[own[shown]]
        clash = ~np.isnan(before) & (np.abs(before - table.values[shown]) > 1e-9 * np.maximum(1.0, np.abs(before)))
        if clash.any():
            cell = int(np.flatnonzero(shown)[int(clash.argmax())])
            raise InputError(f"the releases show different values for the cell {table.label(cell)}")
        values[own[shown]] = table.values[shown]
    relations, rhs = stack_relations(tables, places, n)
    return Published(values, relations, rhs, (), np.zeros((n, 0), np.int32)), None, places[0]
