"""Building tables of three dimensions from a frame of cells: time and memory against the number of cells.

python -m benchmarks.build               # 100,000, 300,000 and 1,000,000 inner cells
"""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np

from benchmarks.common import peak_memory_gib, save


def one(side: int, totals: bool) -> dict[str, float]:
    """Build a table of side³ inner cells, two flat dimensions and a hierarchical one; with ``totals`` from a frame that has them."""
    import pandas as pd

    import tabprotect as tp

    codes = [f"{i:02d}" for i in range(side)]
    by = {"a": tp.Hierarchy.from_digits([1, 1], codes), "b": codes, "c": codes}
    grid = np.indices((side, side, side)).reshape(3, -1)
    frame = pd.DataFrame({c: pd.Categorical.from_codes(grid[k], codes) for k, c in enumerate("abc")})
    frame["v"] = np.random.default_rng(0).integers(0, 10_000, len(frame)) / 100
    if totals:
        frame = (
            tp.Table.from_frame(frame, by=by, value="v").cells[["a", "b", "c", "value"]].rename(columns={"value": "v"})
        )
    before = (
        peak_memory_gib()
    )  # of a frame with totals this holds the table already, so memory is told for inner cells only
    start = time.perf_counter(), time.process_time()
    table = tp.Table.from_frame(frame, by=by, value="v")
    wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
    return {
        "cells": table.n_cells,
        "relations": table.n_relations,
        "nonzeros": int(table.relations.nnz),
        "seconds": wall,
        "cpu_seconds": cpu,
        "cpu_us_per_nonzero": 1e6 * cpu / table.relations.nnz,
        "peak_gib": peak_memory_gib(),
        **({} if totals else {"bytes_per_nonzero": (peak_memory_gib() - before) * 2**30 / table.relations.nnz}),
    }


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "--one":
        print(json.dumps(one(int(sys.argv[2]), sys.argv[3] == "totals")))
        return
    rows = []
    for side in (46, 67, 100):
        for kind in ("inner", "totals"):
            command = [sys.executable, "-m", "benchmarks.build", "--one", str(side), kind]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            rows.append({"inner_cells": side**3, "frame": kind, **json.loads(done.stdout)})
    save("build", rows, "Table.from_frame of three dimensions, one of them hierarchical, margins computed or checked")


if __name__ == "__main__":
    main()
