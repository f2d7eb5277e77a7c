"""Exact attacker bounds of all hidden cells of network tables, with doubling sizes: ``python -m benchmarks.network_attack``."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.common import best_of, save
from tabprotect.attacker.network import network_bounds
from tabprotect.solve.lp import PersistentLP
from tabprotect.table.cube import cube_relations, fill_margins
from tabprotect.table.graph import network_of
from tabprotect.table.hierarchy import Dimension, Hierarchy

TREE = Hierarchy.from_tree({f"{i}": {f"{i}{j}": [f"{i}{j}{k}" for k in range(4)] for j in "abcd"} for i in range(6)})


def case(name: str, hierarchies: list[Hierarchy], share: float | None, hidden_share: float = 0.08) -> dict[str, Any]:
    """Time detection and bounds; ``share``: bounds known to ± that share, None: only that values are not negative."""
    rng = np.random.default_rng(1)
    dims = [Dimension(f"d{k}", h) for k, h in enumerate(hierarchies)]
    values = fill_margins(np.ceil(rng.lognormal(3, 1.3, [len(h.leaves) for h in hierarchies])), dims)
    relations = cube_relations(dims)
    hidden = np.flatnonzero(rng.random(len(values)) < hidden_share)
    detect, network = best_of(lambda: network_of(relations, hidden))
    assert network is not None
    room = values[hidden]
    down = room if share is None else share * room
    up = np.full(len(room), np.inf) if share is None else share * room
    network_bounds(network, down, up, targets=[0])
    seconds, found = best_of(lambda: network_bounds(network, down, up))
    verdict, _ = best_of(lambda: network_bounds(network, down, up, need_up=0.1 * room, need_down=0.1 * room))
    # one linear program per bound, on a sample of the targets, for the ratio
    lp = PersistentLP(relations[:, hidden], -down, up, np.zeros(relations.shape[0]), np.zeros(relations.shape[0]))
    sample = rng.choice(len(hidden), min(10, len(hidden)), replace=False)
    once, answers = best_of(lambda: [lp.solve({int(j): 1.0}, maximize=True).objective for j in sample], 1)
    finite = np.isfinite(found.increase[sample])
    assert np.allclose(found.increase[sample][finite], np.array(answers)[finite], rtol=1e-6)
    by_lp = once / len(sample) * 2 * len(hidden)
    return {
        "table": name, "cells": len(values), "hidden": len(hidden), "detect_s": detect, "exact_s": seconds,
        "verdict_s": verdict, "microseconds_per_bound": 1e6 * seconds / (2 * len(hidden)), "lp_s_extrapolated": by_lp,
    }  # fmt: skip


def main() -> None:
    rows = []
    for n in (50, 100, 200, 400, 1000):
        rows.append(case(f"{n}x{n}, ±50 %", [Hierarchy.flat(range(n))] * 2, 0.5))
    for n in (75, 150, 300):
        rows.append(case(f"{n}x{n}, no upper bound", [Hierarchy.flat(range(n))] * 2, None))
    rows.append(case("6x4x4 levels x 25, no upper bound", [TREE, Hierarchy.flat(range(25))], None, 0.2))
    save(
        "network_attack",
        rows,
        "exact bounds of every hidden cell by compiled flow; LP time extrapolated from ten bounds",
    )


if __name__ == "__main__":
    main()
