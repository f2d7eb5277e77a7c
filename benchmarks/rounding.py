"""Rounding: a large two-dimensional table by flow, three-dimensional ones by annealing and integer program, and a large hierarchical one.

python -m benchmarks.rounding [--quick]
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import tabprotect as tp
from benchmarks.common import best_of, peak_memory_gib, save
from tabprotect.table.cube import cube_codes, cube_relations, fill_margins
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.table.table import Table


def cube(hierarchies: list[Hierarchy], seed: int = 0, high: int = 50) -> Table:
    """Counts between 0 and ``high`` in all inner cells."""
    dims = tuple(Dimension(f"d{k}", h) for k, h in enumerate(hierarchies))
    shape = tuple(len(h.leaves) for h in hierarchies)
    values = fill_margins(np.random.default_rng(seed).integers(0, high, shape).astype(float), dims)
    return Table(values, cube_relations(dims), dims=dims, codes=cube_codes(dims), counts=True)


def tree(*widths: int) -> Hierarchy:
    """A balanced hierarchy: ``tree(3, 4)`` has three groups of four."""

    def below(prefix: str, rest: tuple[int, ...]) -> dict[str, Any]:
        if not rest:
            return {}
        return {f"{prefix}{i}": below(f"{prefix}{i}.", rest[1:]) for i in range(rest[0])}

    return Hierarchy.from_tree(below("", widths))


def row(name: str, table: Table, **options: Any) -> dict[str, Any]:
    start, cpu = time.perf_counter(), time.process_time()
    res = tp.round(table, base=5, **options)
    return {
        "case": name,
        "cells": table.n_cells,
        "method": res.method,
        "how": res.info["how"],
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
        "status": res.status,
        "objective": res.objective,
        "gap": res.gap,
        "widened": res.info["widened"],
        "sums_broken": res.info["additivity"]["broken"],
        "peak_gib": peak_memory_gib(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    quick = parser.parse_args().quick
    flat = Hierarchy.flat
    for method in ("controlled", "unbiased"):  # compile
        tp.round(cube([flat(range(6)), flat(range(6))]), base=5, method=method)
    tp.round(cube([flat(range(8))] * 3), base=5, time_limit=5)
    rows = []
    side = 200 if quick else 1000
    large = cube([flat(range(side)), flat(range(side))])
    seconds, _ = best_of(lambda: tp.round(large, base=5, audit="none"))
    rows.append(row(f"2-D {side}×{side}", large) | {"best_of_three": seconds})
    rows.append(row(f"2-D {side}×{side} unbiased", large, method="unbiased"))
    for n, limit in ((10, 60.0), (20, 30.0)) if not quick else ((6, 20.0),):
        rows.append(row(f"3-D {n}³", cube([flat(range(n))] * 3), time_limit=limit))
    if not quick:
        rows.append(row("5-D 7·7·6·6·5", cube([flat(range(k)) for k in (7, 7, 6, 6, 5)]), time_limit=120))
        deep = cube([tree(5, 6), tree(6, 8), tree(4, 6), flat(range(2))])
        rows.append(row("4-D hierarchical", deep, time_limit=240))
    save(
        "rounding",
        rows,
        "additive rounding to base 5; times include building the flow or program and the arithmetic checks",
    )


if __name__ == "__main__":
    main()
