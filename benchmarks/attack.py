"""The attacker on general tables: exact bounds and verdict, against one fresh LP per bound (timed on a sample and extrapolated, and labelled so).

    python -m benchmarks.attack [--quick]

Network tables are in ``benchmarks.network_attack``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

import tabprotect as tp
from benchmarks.common import save
from tabprotect.bench.families import magnitude

SHARED = Path(__file__).resolve().parents[2] / "shared" / "instances"
SAMPLE = 12


def naive_seconds(table: tp.Table, hidden: np.ndarray) -> float:
    """Seconds for all bounds by one LP each, estimated from a sample of targets."""
    cells = np.flatnonzero(hidden)
    a = sp.csr_array(table.relations)[:, cells]
    a = a[np.diff(a.indptr) > 0]
    bounds = np.column_stack([table.lb[cells] - table.values[cells], table.ub[cells] - table.values[cells]])
    start = time.perf_counter()
    for k in np.random.default_rng(0).choice(len(cells), min(SAMPLE, len(cells)), replace=False):
        cost = np.zeros(len(cells))
        cost[k] = -1.0
        linprog(cost, A_eq=a, b_eq=np.zeros(a.shape[0]), bounds=bounds, method="highs-ds")
    return (time.perf_counter() - start) / min(SAMPLE, len(cells)) * 2 * len(cells)


def cases(quick: bool) -> Iterator[tuple[str, str, tp.Table, np.ndarray]]:
    """Family, name, table and hidden cells."""
    rng = np.random.default_rng(0)
    for n in (5, 10) if quick else (5, 7, 10, 14, 20):
        table = magnitude(5, f"{n},{n},{n}", mean=12)
        hidden = table.primary.copy()
        others = np.flatnonzero(~hidden & (table.values > 0))
        want = round(0.1423 * table.n_cells)
        hidden[rng.choice(others, max(0, want - int(hidden.sum())), replace=False)] = True
        yield "cube", f"3-D {n}³", table, hidden
    for size in ("4x3,3x3,3",) if quick else ("4x3,3x3,3", "4x5,4x4,5", "5x6,5x5,6"):
        table = magnitude(7, size, mean=12)
        hidden = table.primary | (rng.random(table.n_cells) < 0.15) & (table.values > 0)
        yield "hierarchical", f"hierarchical {size}", table, hidden
    if SHARED.is_dir():
        for path in sorted(SHARED.glob("*.jj"))[: 3 if quick else None]:
            table = tp.read_jj(path)
            yield "public", path.stem, table, table.primary


def measure(family: str, name: str, table: tp.Table, hidden: np.ndarray) -> dict[str, Any]:
    start = time.perf_counter()
    exact = tp.attack(table, hidden)
    exact_seconds = time.perf_counter() - start
    start = time.perf_counter()
    verdict = tp.attack(table, hidden, goal="verdict")
    verdict_seconds = time.perf_counter() - start
    if set(exact.exposed) != set(verdict.exposed):
        raise AssertionError(f"{name}: verdict and bounds disagree")
    naive = naive_seconds(table, hidden)
    return {
        "family": family,
        "case": name,
        "cells": table.n_cells,
        "hidden": int(hidden.sum()),
        "exact_seconds": exact_seconds,
        "verdict_seconds": verdict_seconds,
        "naive_lp_seconds_extrapolated": naive,
        "speedup_exact": naive / exact_seconds,
        "methods": str(exact.info["methods"]),
        "all_proved": bool(exact.proved.all()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small sizes only; writes nothing")
    quick = parser.parse_args().quick
    tp.attack(tp.examples.d272().mark(tp.rules.Threshold(2)))  # compile the kernels before timing
    rows = [measure(*case) for case in cases(quick)]
    if quick:
        for row in rows:
            print(row)
    else:
        save("attack", rows, f"naive: one fresh LP per bound, timed on {SAMPLE} targets and extrapolated")


if __name__ == "__main__":
    main()
