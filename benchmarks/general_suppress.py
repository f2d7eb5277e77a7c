"""General suppression (3-D, hierarchical, public instances): cost, bound, gap and time at a limit.

    python -m benchmarks.general_suppress [--limit 60] [--only c6 g3 …] [--million]

Generated tables use ``../shared/tools/make_table.py`` with the seeds of the open peers table and with seeds of our own (names ending in 'o').
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.common import peak_memory_gib, save
from tabprotect.io.jj import read_jj
from tabprotect.solve.stop import Progress, Stop
from tabprotect.suppression import boxes, exact
from tabprotect.suppression.problem import Problem
from tabprotect.table.cube import cube_codes, cube_relations, fill_margins
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.table.table import Table

SHARED = Path(__file__).resolve().parents[2] / "shared"
FAMILIES: dict[str, tuple[int, float, str]] = {
    "c6": (204, 30, "6 6 6"),
    "c6o": (1304, 30, "6 6 6"),
    "c8": (205, 30, "8 8 8"),
    "c8o": (1305, 30, "8 8 8"),
    "c10": (206, 40, "10 10 10"),
    "c10o": (1306, 40, "10 10 10"),
    "c15o": (1307, 40, "15 15 15"),
    "c20o": (1308, 30, "20 20 20"),
    "g30": (208, 40, "6x5 30"),
    "gg": (209, 40, "6x5 5x4"),
    "ggo": (1309, 40, "6x5 5x4"),
    "g3": (210, 40, "4x5 10 6"),
    "g3o": (1310, 40, "4x5 10 6"),
    "g4": (211, 30, "3x4x4 5x3 4"),
}
PUBLIC = [
    "hier13x7x7d",
    "hier13x13x7d",
    "hier13",
    "hier13x13x13a",
    "two5in6",
    "toy3dsarah",
    "cbs",
    "targus",
    "table7",
    "table8",
    "osorio",
]


def generated(seed: int, mean: float, dims: str) -> Problem:
    """A table of the peers' generator as a problem."""
    spec = importlib.util.spec_from_file_location("make_table", SHARED / "tools" / "make_table.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    cells, relations = module.make(seed, mean, 10, dims.split())
    values = np.array([c[1] for c in cells], float)
    status = np.array([c[2] for c in cells])
    level = np.array([c[3] for c in cells], float)
    rows = np.repeat(np.arange(len(relations)), [len(r) for r in relations])
    columns = np.array([i for r in relations for i, _ in r])
    signs = np.array([s for r in relations for _, s in r], float)
    matrix = sp.csr_array((signs, (rows, columns)), shape=(len(relations), len(cells)))
    table = Table(
        values,
        matrix,
        status=status,
        lpl=level,
        upl=level,
        cost=np.maximum(values, 1),
        ub=np.full(len(values), 2 * values.max()),
    )
    return Problem.from_table(table)


def hierarchical(widths: str, seed: int) -> Problem:
    """A large table with two dimensions of two levels each, 5 % of its smaller cells primary."""
    groups, leaves = map(int, widths.split("x"))
    tree = {f"g{i}": [f"g{i}.{j}" for j in range(leaves)] for i in range(groups)}
    dims = tuple(Dimension(name, Hierarchy.from_tree(tree)) for name in ("rows", "columns"))
    rng = np.random.default_rng(seed)
    shape = [len(d.hierarchy.leaves) for d in dims]
    values = fill_margins(np.ceil(rng.lognormal(4, 1.5, shape)) * (rng.random(shape) < 0.9), dims)
    primary = (values > 0) & (values < np.quantile(values, 0.6)) & (rng.random(len(values)) < 0.08)
    level = np.where(primary, np.ceil(0.15 * values), 0)
    status = np.where(values == 0, "z", np.where(primary, "u", "s"))
    table = Table(
        values,
        cube_relations(dims),
        status=status,
        lpl=level,
        upl=level,
        ub=2 * values + 100,
        dims=dims,
        codes=cube_codes(dims),
    )
    return Problem.from_table(table)


def measure(name: str, problem: Problem, limit: float, method: Any = exact.solve) -> dict[str, Any]:
    """One run: what was found, when the first safe pattern was there, how long it took."""
    first: list[float] = []

    def listen(news: Progress) -> None:
        if news.phase == "first safe pattern":
            first.append(news.seconds)

    wall, cpu = time.perf_counter(), time.process_time()
    pattern = method(problem, Stop(limit, listener=listen), 0)
    cost = problem.cost(pattern.suppressed)
    return {
        "table": name,
        "cells": problem.n,
        "primary": int(problem.fixed.sum()),
        "secondary_cost": cost - problem.fixed_cost,
        "bound": pattern.bound,
        "gap_percent": round(100 * (cost - pattern.bound) / cost, 2),
        "proved": pattern.optimal,
        "first_safe_s": round(first[0], 2) if first else None,
        "wall_s": round(time.perf_counter() - wall, 2),
        "cpu_s": round(time.process_time() - cpu, 2),
    }


def main() -> None:
    """Run the chosen tables and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--million", action="store_true")
    args = parser.parse_args()
    names = args.only or [*FAMILIES, *PUBLIC]
    rows = []
    for name in names:
        problem = (
            generated(*FAMILIES[name])
            if name in FAMILIES
            else Problem.from_table(read_jj(SHARED / "instances" / f"{name}.jj"))
        )
        rows.append(measure(name, problem, args.limit))
        print(rows[-1], flush=True)
    if args.million:
        rows.append(measure("1101 × 1101 hierarchical", hierarchical("100x10", 1), args.limit, boxes.solve))
        rows[-1]["peak_gib"] = round(peak_memory_gib(), 2)
    save("general_suppress", rows, note="exact.solve (boxes.solve for the last); gap with the primaries' value in both")


if __name__ == "__main__":
    main()
