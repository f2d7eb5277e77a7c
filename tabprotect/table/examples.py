"""Small tables that ship with the package."""

from __future__ import annotations

import numpy as np

from tabprotect.table.cube import cube_codes, cube_relations, fill_margins
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.table.table import Table

_D272 = [
    (72, 147, 22),
    (79, 137, 16),
    (47, 101, 21),
    (11, 45, 3),
    (4, 21, 1),
    (0, 7, 1),
    (2, 5, 0),
    (2, 4, 0),
]
_SIZES = ["5-9", "10-19", "20-49", "50-99", "100-199", "200-299", "300-499", "500+"]


def d272() -> Table:
    """Establishments by size class and industry, D272 of the 2006 mining and manufacturing survey of Korea (public; report of 2008, table 3).

    >>> float(d272().values.max())
    748.0
    """
    dims = (
        Dimension("size", Hierarchy.flat(_SIZES)),
        Dimension("industry", Hierarchy.flat(["D2721", "D2722", "D2729"], total="D272")),
    )
    values = fill_margins(np.array(_D272, float), dims)
    status = np.where(values == 0, "z", "s")
    return Table(
        values,
        cube_relations(dims),
        freq=values.astype(np.int64),
        status=status,
        dims=dims,
        codes=cube_codes(dims),
        counts=True,
        name="D272",
    )
