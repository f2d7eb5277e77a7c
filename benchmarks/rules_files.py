"""Rules and files on tables of a million cells: ``python -m benchmarks.rules_files``; linear in cells, so ratios to 100,000 cells are given."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import tabprotect as tp
from benchmarks.common import best_of, save
from tabprotect.table.cube import cube_codes, cube_relations, fill_margins
from tabprotect.table.hierarchy import Dimension


def table_of(side: int) -> tp.Table:
    """A cube with ``side`` codes per dimension, and made-up contributions for every cell."""
    dims = tuple(Dimension(c, tp.Hierarchy.flat(range(side - 1))) for c in "abc")
    rng = np.random.default_rng(0)
    values = fill_margins(rng.integers(0, 1000, (side - 1,) * 3).astype(float), dims)
    n = len(values)
    top = values[:, None] * np.sort(rng.dirichlet(np.ones(4), n)[:, :3], axis=1)[:, ::-1]
    known = tp.rules.Contributions(rng.integers(1, 9, n), top, values)
    return tp.Table(
        values, cube_relations(dims), freq=known.count, dims=dims, codes=cube_codes(dims), contributions=known
    )


def main() -> None:
    rows: list[dict[str, Any]] = []
    base: dict[str, float] = {}
    for side in (47, 100):
        table = table_of(side)
        with tempfile.TemporaryDirectory() as folder:
            jj, csv, parquet = (Path(folder) / f"t.{e}" for e in ("jj", "csv", "parquet"))
            rules = ("p%(10)", "freq(3)", "nk(1,80)", "p%(10)|freq(3)|nk(1,80)|pq(10,50)")
            jobs: dict[str, Any] = {text: partial(table.mark, tp.rules.parse(text)) for text in rules}
            jobs |= {
                "write JJ": partial(tp.write_jj, table, jj),
                "read JJ": partial(tp.read_jj, jj),
                "write CSV": partial(tp.write_cells, table, csv),
                "read CSV": partial(tp.read_cells, csv),
                "write Parquet": partial(tp.write_cells, table, parquet),
                "read Parquet": partial(tp.read_cells, parquet),
            }
            for name, job in jobs.items():
                seconds, _ = best_of(job, repeat=2)
                base.setdefault(name, seconds)
                ratio = seconds / base[name]
                rows.append({"job": name, "cells": table.n_cells, "seconds": seconds, "times_first": ratio})
    save("rules_files", rows, "mark a table by rules; read and write it")


if __name__ == "__main__":
    main()
