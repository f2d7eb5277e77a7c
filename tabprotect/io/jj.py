"""The JJ format: cells with bounds and protection levels, then arbitrary linear relations (J.J. Salazar González)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from tabprotect.table.table import Table


def read_jj(path: str | Path) -> Table:
    """Read a table from a JJ file."""
    text = Path(path).read_text()
    lines = text.split("\n")
    n = int(lines[1])
    rows = [line.split() for line in lines[2 : 2 + n]]
    number = np.array([[r[k] for k in (1, 2, 4, 5, 6, 7, 8)] for r in rows], float)
    m = int(lines[2 + n])
    data: list[float] = []
    cols: list[int] = []
    ptr, rhs = [0], []
    for line in lines[3 + n : 3 + n + m]:
        head, tail = line.split(":")
        tokens = tail.replace("(", " ").replace(")", " ").split()
        cols += map(int, tokens[::2])
        data += map(float, tokens[1::2])
        ptr.append(len(cols))
        rhs.append(float(head.split()[0]))
    relations = sp.csr_array((data, cols, ptr), shape=(m, n))
    value, cost, lb, ub, lpl, upl, spl = number.T
    return Table(
        value,
        relations,
        rhs=np.array(rhs),
        cost=cost,
        status=np.array([r[3] for r in rows]),
        lb=lb,
        ub=ub,
        lpl=lpl,
        upl=upl,
        spl=spl,
        name=Path(path).stem,
    )
