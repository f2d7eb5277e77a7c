"""Suppression on network tables, heuristic and exact: ``python -m benchmarks.network_suppress [seconds]``."""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

from benchmarks.common import save
from tabprotect.solve.stop import Stop
from tabprotect.suppression import network, network_exact
from tabprotect.suppression.problem import Problem
from tabprotect.table.cube import cube_codes, cube_relations, fill_margins
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.table.table import Table


def uniform(n: int, seed: int, share: float = 0.01, level: float = 0.15) -> Table:
    """Values 0–499, a share of inner cells primary, levels a share of their values."""
    rng = np.random.default_rng(seed)
    dims = tuple(Dimension(k, Hierarchy.flat(range(n))) for k in "rc")
    values = fill_margins(rng.integers(0, 500, (n, n)).astype(float), dims)
    codes = cube_codes(dims)
    inner = np.flatnonzero((codes > 0).all(axis=1) & (values > 0))
    status = np.where(values == 0, "z", "s")
    status[rng.choice(inner, round(share * n * n), replace=False)] = "u"
    need = np.where(status == "u", np.ceil(level * values), 0.0)
    return Table(
        values, cube_relations(dims), status=status, lpl=need, upl=need,
        lb=np.zeros(len(values)), ub=np.full(len(values), 2 * values.max()), dims=dims, codes=codes,
    )  # fmt: skip


def skewed(shape: tuple[Hierarchy, ...], seed: int, mean: float, p: float = 10.0) -> Table:
    """Negative-binomial numbers of log-normal contributors, primaries and levels by the p% rule."""
    rng = np.random.default_rng(seed)
    dims = tuple(Dimension(f"d{k}", h) for k, h in enumerate(shape))
    sizes = [len(h.leaves) for h in shape]
    counts = rng.negative_binomial(1.3, 1.3 / (1.3 + mean), int(np.prod(sizes)))
    total, largest, rest = np.zeros(len(counts)), np.zeros(len(counts)), np.zeros(len(counts))
    for i, k in enumerate(counts):
        x = np.sort(np.ceil(rng.lognormal(3, 1.3, k)))[::-1]
        total[i], largest[i], rest[i] = x.sum(), x[:1].sum(), x[2:].sum()
    values = fill_margins(total.reshape(sizes), dims)
    codes = cube_codes(dims)
    leaf = np.ones(len(values), bool)
    for k, h in enumerate(shape):
        leaf &= np.isin(codes[:, k], h.leaves)
    need = np.zeros(len(values))
    need[leaf] = np.maximum(np.ceil(p / 100 * largest - rest), 0.0)
    status = np.where(need > 0, "u", np.where(values == 0, "z", "s"))
    return Table(
        values, cube_relations(dims), status=status, lpl=need, upl=need,
        lb=np.zeros(len(values)), ub=np.full(len(values), 2 * values.max()), dims=dims, codes=codes,
    )  # fmt: skip


def run(name: str, table: Table, limit: float) -> dict[str, Any]:
    problem = Problem.from_table(table)
    row: dict[str, Any] = {"table": name, "cells": table.n_cells, "primary": int(table.primary.sum())}
    for label, solve in (("heuristic", network.solve), ("exact", network_exact.solve)):
        wall, cpu = time.perf_counter(), time.process_time()
        answer = solve(problem, Stop(limit), 0)
        cost = problem.cost(answer.suppressed)
        row |= {
            f"{label}_cost": cost - problem.fixed_cost,
            f"{label}_bound": answer.bound - problem.fixed_cost,
            f"{label}_gap_percent": 100 * (cost - answer.bound) / cost,
            f"{label}_gap_of_complements_percent": 100 * (cost - answer.bound) / max(cost - problem.fixed_cost, 1.0),
            f"{label}_wall_s": time.perf_counter() - wall,
            f"{label}_cpu_s": time.process_time() - cpu,
        }
        row[f"{label}_optimal"] = answer.optimal
    row["nodes"] = answer.info["nodes"]
    return row


def main() -> None:
    limit = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    groups = Hierarchy.from_tree({f"g{i}": [f"g{i}.{j}" for j in range(5)] for i in range(6)})
    flat = Hierarchy.flat
    run("compile", uniform(10, 0, 0.03), limit)
    rows = [run(f"p% {n}x{n}", skewed((flat(range(n)),) * 2, n, m), limit) for n, m in ((50, 50), (100, 70), (200, 90))]
    rows.append(run("p% 6x5 levels x 30", skewed((groups, flat(range(30))), 8, 40), limit))
    rows += [
        run(f"uniform {n}x{n}, 1 %, seed {seed}", uniform(n, seed), limit)
        for n, seeds in ((25, (1,)), (50, (1, 2, 3, 4)), (100, (1, 2)), (500, (1,)))
        for seed in seeds
    ]
    save(
        "network_suppress",
        rows,
        "cost and bound of secondaries; one gap includes the primaries' value as in peers.md, the other does not",
    )


if __name__ == "__main__":
    main()
