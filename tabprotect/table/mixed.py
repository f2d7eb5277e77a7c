"""Mixed tables: several variables over the same cells, side by side in one table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tabprotect.errors import InputError
from tabprotect.table.contributions import Contributions
from tabprotect.table.cube import cube_codes, cube_relations
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.table.table import Table


def side_by_side(
    tables: Sequence[Table], names: Sequence[str], kinds: Sequence[bool], variable: str = "variable", name: str = ""
) -> Table:
    """Tables of several variables over the same cells as one; the variable is the last dimension and has no total.

    ``kinds`` says which of the variables are counts.
    """
    first, k = tables[0], len(tables)
    if variable in {d.name for d in first.dims}:
        raise InputError(f"a dimension is already called {variable!r}: pass variable='…'")
    if len(set(names)) < k:
        raise InputError(f"the variables need different names, got {list(names)}")
    dims = (*first.dims, Dimension(variable, Hierarchy.flat(names, total=None)))

    def merge(column: str) -> npt.NDArray[Any]:
        return np.stack([getattr(t, column) for t in tables], axis=1).ravel()

    freq = None
    if all(t.freq is not None for t in tables):
        freq = merge("freq")
    elif sum(kinds) == 1:
        people = tables[list(kinds).index(True)].values
        freq = np.repeat(np.rint(people).astype(np.int64), k)
    known = [t.contributions for t in tables if t.contributions is not None]
    contributions = None
    if len(known) == k:
        order = np.arange(k * first.n_cells).reshape(k, -1).T.ravel()
        contributions = Contributions.stack(known).take(order)
    return Table(
        merge("values"),
        cube_relations(dims),
        freq=freq,
        dims=dims,
        codes=cube_codes(dims),
        counts=all(kinds),
        count_cells=np.tile(np.array(kinds, bool), first.n_cells),
        contributions=contributions,
        name=name,
        **{c: merge(c) for c in ("cost", "status", "lb", "ub", "lpl", "upl", "spl", "reason")},
    )
