"""Controlled tabular adjustment: public instances against the reference values, and large generated tables.

python -m benchmarks.cta [instances|middle|large] [--limit SECONDS] [--side N]
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path
from typing import Any

import numpy as np

import tabprotect as tp
from benchmarks.common import peak_memory_gib, save
from tabprotect.table.cube import cube_codes, cube_relations, fill_margins
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.table.table import Table

INSTANCES = Path(__file__).resolve().parents[2] / "shared" / "instances"


def instances(limit: float) -> list[dict[str, Any]]:
    """All public instances: directions fixed up (L1, L2) and free (L1)."""
    lines = [line for line in (INSTANCES / "reference.csv").read_text().splitlines() if line[0] != "#"]
    rows = []
    for known in csv.DictReader(lines):
        table = tp.read_jj(INSTANCES / f"{known['name']}.jj")
        up, squares = tp.adjust(table, direction="up"), tp.adjust(table, direction="up", norm="l2")
        cpu = time.process_time()
        # where no optimum is known, a proof to half a percent is enough
        free = tp.adjust(table, time_limit=limit, gap=1e-6 if known["cta_l1_free"] else 5e-3)
        rows.append(
            {
                "case": known["name"],
                "cells": table.n_cells,
                "sensitive": int(table.primary.sum()),
                "l1_up_to_reference": up.objective / float(known["cta_l1_fixed_up"]),
                "l2_up_to_reference": squares.objective / float(known["cta_l2_fixed_up"]),
                "l1_free": free.objective,
                "l1_free_to_reference": free.objective / float(known["cta_l1_free"]) if known["cta_l1_free"] else None,
                "bound": free.bound,
                "gap": free.gap,
                "seconds": free.runtime,
                "cpu_seconds": time.process_time() - cpu,
                "status": free.status,
                "how": free.info["how"],
            }
        )
        print(rows[-1], flush=True)
    return rows


def generated(shape: tuple[int, ...], sensitive: int, seed: int = 0) -> Table:
    """Log-normal values, random sensitive inner cells with levels of 10 to 20 percent."""
    rng = np.random.default_rng(seed)
    dims = tuple(Dimension(f"d{k}", Hierarchy.flat(range(n))) for k, n in enumerate(shape))
    values = fill_margins(np.ceil(rng.lognormal(6, 1.5, shape)), dims)
    codes = cube_codes(dims)
    inner = np.flatnonzero((codes > 0).all(axis=1))
    cells = rng.choice(inner, sensitive, replace=False)
    levels = np.ceil(rng.uniform(0.1, 0.2, sensitive) * values[cells])
    table = Table(values, cube_relations(dims), dims=dims, codes=codes)
    return table.with_status(cells, "u").with_levels(cells, levels, levels)


def one(name: str, table: Table, limit: float) -> dict[str, Any]:
    start, cpu = time.perf_counter(), time.process_time()
    res = tp.adjust(table, time_limit=limit, gap=1e-4)
    found = {
        "case": name,
        "cells": table.n_cells,
        "sensitive": int(table.primary.sum()),
        "objective": res.objective,
        "bound": res.bound,
        "gap": res.gap,
        "seconds": time.perf_counter() - start,
        "cpu_seconds": time.process_time() - cpu,
        "status": res.status,
        "how": res.info["how"],
        "peak_gib": peak_memory_gib(),
    }
    print(found, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", default="instances", choices=["instances", "middle", "large"])
    parser.add_argument("--limit", type=float)
    parser.add_argument("--side", type=int, default=1095, help="rows and columns of the large table")
    args = parser.parse_args()
    tp.adjust(generated((5, 5), 4))  # compile
    if args.what == "instances":
        save(
            "cta",
            instances(args.limit or 300.0),
            "ratios below 1 are better than the reference; free directions, L1, weights 1/a; without a reference value it stops at a gap of 0.5 %",
        )
    elif args.what == "middle":
        limit = args.limit or 60.0
        rows = [
            one("2-D 100×100", generated((100, 100), 1000), limit),
            one("2-D 223×223", generated((223, 223), 5000), limit),
            one("3-D 20×20×24", generated((20, 20, 24), 1000), limit),
        ]
        save("cta_middle", rows, "10,000 and 50,000 cells, a tenth of them sensitive")
    else:
        cells = args.side**2
        rows = [one(f"2-D {args.side}²", generated((args.side, args.side), cells // 12), args.limit or 1800.0)]
        save("cta_large", rows, "1.2 million cells and 100,000 sensitive ones at the default size")


if __name__ == "__main__":
    main()
