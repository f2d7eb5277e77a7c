"""Tables with a hidden value that occurs nowhere else, and protected versions of them, for the tests of the reports."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
from scipy import sparse

import tabprotect as tp

SECRET = 7919
"""The true value of a sensitive cell of every table here; no other number contains its digits."""
TRACES = ("7919", "7,919", "7 919", "7.919")


@cache
def flat() -> tp.Protected:
    """Two dimensions, 5 × 4 inner cells."""
    rng = np.random.default_rng(1)
    values = rng.integers(20_000, 60_000, (5, 4)).astype(float)
    values[2, 1] = SECRET
    cells = [(f"r{i}", f"c{j}", values[i, j]) for i in range(5) for j in range(4)]
    table = tp.Table.from_frame(pd.DataFrame(cells, columns=["row", "column", "v"]), by=["row", "column"], value="v")
    return protect(table, int(table.cell(row="r2", column="c1")))


@cache
def hierarchical() -> tp.Protected:
    """Three dimensions, two of them with subtotals."""
    rng = np.random.default_rng(3)
    region, activity = {"N": ["N1", "N2"], "S": ["S1", "S2"]}, {"A": ["A1", "A2"], "B": ["B1", "B2"]}
    rows = [
        (r, a, s, float(rng.integers(20_000, 60_000)))
        for r in ("N1", "N2", "S1", "S2")
        for a in ("A1", "A2", "B1", "B2")
        for s in ("small", "large")
    ]
    frame = pd.DataFrame(rows, columns=["region", "activity", "size", "v"])
    frame.loc[5, "v"] = SECRET
    codes = frame.loc[5, ["region", "activity", "size"]].to_dict()
    by = {
        "region": tp.Hierarchy.from_tree(region),
        "activity": tp.Hierarchy.from_tree(activity),
        "size": tp.Hierarchy.flat(["small", "large"]),
    }
    table = tp.Table.from_frame(frame, by=by, value="v")
    return protect(table, int(table.cell(**codes)))


@cache
def bare() -> tp.Protected:
    """No dimensions, only relations: two sums of three parts that share their parts with two others."""
    inner = np.array([SECRET, 31_501.0, 42_312.0, 53_127.0, 64_893.0, 25_066.0])
    rows = inner.reshape(2, 3)
    values = np.concatenate([inner, rows.sum(axis=1), rows.sum(axis=0), [inner.sum()]])
    matrix = np.zeros((6, 12))
    for r in range(2):
        matrix[r, 3 * r : 3 * r + 3], matrix[r, 6 + r] = 1, -1
    for c in range(3):
        matrix[2 + c, [c, 3 + c]], matrix[2 + c, 8 + c] = 1, -1
    matrix[5, [6, 7]], matrix[5, 11] = 1, -1
    return protect(tp.Table.from_relations(values, sparse.csr_array(matrix)), 0)


def protect(table: tp.Table, secret: int) -> tp.Protected:
    """One sensitive cell that must move by a tenth to both sides."""
    level = np.ceil(0.1 * table.values)
    marked = table.with_status([secret], "u", reason="test").with_levels([secret], lpl=level[secret], upl=level[secret])
    res = tp.suppress(marked, time_limit=None)
    assert res.suppressed[secret]
    assert table.values[secret] == SECRET
    others = [f"{v:.0f} {v:,.0f}" for v in np.delete(table.values, secret)]
    assert not any(trace in text for text in others for trace in TRACES), (
        "a published number contains the secret's digits"
    )
    return res


ALL = {"2-D": flat, "3-D hierarchical": hierarchical, "no dimensions": bare}
