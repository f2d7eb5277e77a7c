"""How the attacker's time grows: exact bounds and verdict on tables of each family, the number of cells doubling from case to case.

    python -m benchmarks.growth

``python -m benchmarks.report`` draws the curves (docs/_static/growth-attack.svg).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import tabprotect as tp
from benchmarks.common import best_of, save
from tabprotect.bench.families import linked_pair, magnitude, magnitude_fast

Make = Callable[[int, str], tp.Table]
SERIES: dict[str, tuple[Make, tuple[str, ...]]] = {
    "2-D": (magnitude_fast, ("50,50", "71,71", "100,100", "141,141", "200,200", "283,283", "400,400")),
    "hierarchy × flat": (
        magnitude_fast,
        ("6x4x4,12", "6x4x4,25", "6x4x4,50", "6x4x4,100", "6x4x4,200", "6x4x4,400", "6x4x4,800"),
    ),
    "3-D cube": (magnitude, ("5,5,5", "6,6,6", "8,8,8", "10,10,10", "13,13,13", "16,16,16")),
    "3-D hierarchical": (magnitude, ("3x3,3x3,3", "4x4,3x3,3", "4x4,4x4,4", "5x5,5x4,5", "6x6,5x5,6", "7x7,7x6,7")),
    "linked pair": (linked_pair, ("15,15,15", "22,22,22", "32,32,32", "46,46,46", "64,64,64")),
}
SHARE = 0.15
"""So many of the cells are hidden besides the sensitive ones."""


def case(family: str, make: Make, size: str) -> dict[str, Any]:
    table = make(3, size)
    rng = np.random.default_rng(0)
    hidden = table.primary | ((rng.random(table.n_cells) < SHARE) & (table.values > 0))
    bounds_s, exact = best_of(lambda: tp.attack(table, hidden), 2, time.process_time)
    verdict_s, verdict = best_of(lambda: tp.attack(table, hidden, goal="verdict"), 2, time.process_time)
    if set(exact.exposed) != set(verdict.exposed):
        raise AssertionError(f"{family} {size}: verdict and bounds disagree")
    row = {"family": family, "size": size, "cells": table.n_cells, "hidden": int(hidden.sum())}
    return row | {"bounds_cpu_s": bounds_s, "verdict_cpu_s": verdict_s}


def exponent(rows: list[dict[str, Any]], column: str) -> float:
    """Slope of time over hidden cells on logarithmic axes."""
    x, y = (np.log([row[name] for row in rows]) for name in ("hidden", column))
    return float(np.polyfit(x, y, 1)[0])


def main() -> None:
    tp.attack(tp.examples.d272().mark(tp.rules.Threshold(2)))  # compile the kernels before timing
    rows: list[dict[str, Any]] = []
    slopes = []
    for family, (make, sizes) in SERIES.items():
        case(family, make, sizes[0])  # whatever this family compiles or imports
        series = [case(family, make, size) for size in sizes]
        print(family, [f"{row['bounds_cpu_s']:.3g}" for row in series], file=sys.stderr, flush=True)
        rows += series
        slopes.append(
            {
                "family": family,
                **{f"exponent_{c.split('_')[0]}": exponent(series, c) for c in ("bounds_cpu_s", "verdict_cpu_s")},
            }
        )
    save("growth", rows + slopes, "exponent: slope of CPU time over hidden cells on logarithmic axes; 1 is linear")


if __name__ == "__main__":
    main()
