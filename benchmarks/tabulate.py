"""Tabulating millions of records: the whole cube with top contributions per contributor, from Parquet through DuckDB.

Three dimensions of 1,000 × 100 × 10 leaves (1,111 × 111 × 11 codes, 1.36 million cells). A quarter as many contributors as records; half of
a contributor's records are in its home cell, the others anywhere, so that nearly every contributor is in several cells: the hard case, in
which top contributions of totals cannot be merged from those of their parts. Every run is a process of its own, for its peak memory.

    python -m benchmarks.tabulate            # 1, 3 and 10 million records
    python -m benchmarks.tabulate 1 2        # other sizes, in millions
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.common import peak_memory_gib, save

SIZES = {"region": 1000, "nace": 100, "size": 10}


def generate(n: int, path: Path, seed: int = 0) -> None:
    """Seeded records in batches of a million."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    firms = max(n // 4, 1)
    home = {c: rng.integers(0, size, firms) for c, size in SIZES.items()}
    texts = {c: pa.array([f"{i:0{len(str(size - 1))}d}" for i in range(size)]) for c, size in SIZES.items()}
    writer = None
    for start in range(0, n, 1_000_000):
        m = min(1_000_000, n - start)
        firm, stays = rng.integers(0, firms, m), rng.random(m) < 0.5
        columns = {}
        for c, size in SIZES.items():
            codes = np.where(stays, home[c][firm], rng.integers(0, size, m)).astype(np.int32)
            columns[c] = pa.DictionaryArray.from_arrays(pa.array(codes), texts[c]).dictionary_decode()
        columns["firm"] = pa.array(firm)
        columns["group"] = pa.array(np.where(firm % 3 == 0, firm // 50, 0), mask=firm % 3 != 0)
        columns["turnover"] = pa.array(rng.lognormal(5, 1.5, m).round(2))
        table = pa.table(columns)
        writer = writer or pq.ParquetWriter(path, table.schema)
        writer.write_table(table)
    if writer:
        writer.close()


def one(path: str, holding: bool) -> dict[str, float]:
    """Tabulate once and measure."""
    import tabprotect as tp

    digits = tp.Hierarchy.from_digits
    by = {"region": digits([1, 1, 1]), "nace": digits([1, 1]), "size": None}
    # the kernels are compiled at the first use and kept on disk: that is not part of the work
    tp.tabulate(
        {"region": ["000"], "nace": ["00"], "size": ["0"], "x": [1.0], "f": [1]}, by=by, value="x", contributor="f"
    )
    wall, cpu = time.perf_counter(), time.process_time()
    table = tp.tabulate(path, by=by, value="turnover", contributor="firm", holding="group" if holding else None, top=3)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    marked = table.mark(tp.rules.PPercent(10) | tp.rules.Dominance(n=3, k=80))
    return {
        "seconds": wall,
        "cpu_seconds": cpu,
        "peak_gib": peak_memory_gib(),
        "cells": table.n_cells,
        "nonempty": int((table.freq > 0).sum()),
        "primary": int(marked.primary.sum()),
    }


def main() -> None:
    if len(sys.argv) > 2 and sys.argv[1] == "--one":
        print(json.dumps(one(sys.argv[2], sys.argv[3] == "holding")))
        return
    millions = [float(a) for a in sys.argv[1:]] or [1, 3, 10]
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for size in millions:
            n, path = int(size * 1e6), Path(folder) / "records.parquet"
            generate(n, path)
            for kind in ["contributor"] + ["holding"] * (size == millions[-1]):
                command = [sys.executable, "-m", "benchmarks.tabulate", "--one", str(path), kind]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                found = json.loads(done.stdout)
                rows.append({"records": n, "respondents": kind, "mib": path.stat().st_size / 2**20, **found})
                rows[-1]["cpu_us_per_record"] = 1e6 * found["cpu_seconds"] / n
    save(
        "tabulate",
        rows,
        "records from Parquet through DuckDB to the cube of 1,111 × 111 × 11 codes with the 3 largest contributions",
    )


if __name__ == "__main__":
    main()
