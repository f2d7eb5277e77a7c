"""Suppression on three-dimensional, hierarchical and public tables through ``tp.suppress``: cost, gap, time, and the audit.

    python -m benchmarks.suppress [--limit 60] [--only c6 g3 …] [--million]

Tables whose name ends in "o" have seeds of our own; the others are the open instances of the project's peers table. Every pattern is attacked again and its certificate
checked before its row is written. With ``--only`` the rows of the other tables stay as they were; each row says when it was measured.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tabprotect as tp
from benchmarks.common import load, peak_memory_gib, save
from tabprotect.bench.families import magnitude, magnitude_fast
from tabprotect.solve.stop import Progress

SHARED = Path(__file__).resolve().parents[2] / "shared" / "instances"
GENERATED: dict[str, tuple[int, float, str]] = {
    "c6": (204, 30, "6,6,6"),
    "c6o": (1304, 30, "6,6,6"),
    "c8": (205, 30, "8,8,8"),
    "c8o": (1305, 30, "8,8,8"),
    "c10": (206, 40, "10,10,10"),
    "c10o": (1306, 40, "10,10,10"),
    "c15o": (1307, 40, "15,15,15"),
    "c20o": (1308, 30, "20,20,20"),
    "gg": (209, 40, "6x5,5x4"),
    "g3": (210, 40, "4x5,10,6"),
    "g4": (211, 30, "3x4x4,5x3,4"),
    "g5o": (1309, 40, "2x4x3,4x5,10"),
}
PUBLIC = ["hier13x7x7d", "hier13x13x7d", "hier13", "hier13x13x13a", "two5in6", "toy3dsarah", "table7"]


def cases() -> dict[str, Callable[[], tp.Table]]:
    found: dict[str, Callable[[], tp.Table]] = {
        name: (lambda seed=seed, mean=mean, size=size: magnitude(seed, size, mean=mean))
        for name, (seed, mean, size) in GENERATED.items()
    }
    if SHARED.is_dir():
        found |= {name: (lambda name=name: tp.read_jj(SHARED / f"{name}.jj")) for name in PUBLIC}
    return found


def measure(name: str, table: tp.Table, limit: float, *, again: bool = True) -> dict[str, Any]:
    """One run, its certificate verified, and attacked ``again`` without its proofs."""
    first: list[float] = []

    def listen(news: Progress) -> None:
        if news.cost is not None and not first:
            first.append(news.seconds)

    cpu = sum(os.times()[:4])  # of the process beside this one too
    res = tp.suppress(table, time_limit=limit, progress=listen)
    cpu = sum(os.times()[:4]) - cpu
    if not tp.verify(res.certificate).ok or (again and not tp.attack(res, goal="verdict").safe):
        raise AssertionError(f"{name}: the pattern does not stand the audit")
    return {
        "case": name,
        "cells": table.n_cells,
        "primary": int(table.primary.sum()),
        "secondary": res.objective - float(table.weights()[table.primary].sum()),
        "objective": res.objective,
        "bound": res.bound,
        "gap": res.gap,
        "status": res.status,
        "first_safe": first[0] if first else None,
        "wall": res.runtime,
        "cpu": cpu,
        "method": res.method,
        "measured": time.strftime("%Y-%m-%d %H:%M"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", type=float, default=60)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--million", action="store_true", help="one hierarchical table of a million cells instead")
    asked = parser.parse_args()
    tp.suppress(tp.examples.d272().mark(tp.rules.Threshold(2)))
    if asked.million:
        table = magnitude_fast(1, "10x10x8,10x10,9", mean=10)
        tp.suppress(magnitude_fast(1, "4,4,4", mean=10), method="hypercube")
        row = measure("a million cells", table, asked.limit, again=False) | {"peak_gib": peak_memory_gib()}
        save(
            "suppress_million",
            [row],
            "the certificate is verified by arithmetic; a second attack from nothing takes far longer",
        )
        return
    before = {row["case"]: row for row in load("suppress")["rows"]} if asked.only else {}
    rows = []
    for name, make in cases().items():
        if asked.only and name not in asked.only:
            rows += [before[name]] if name in before else []
            continue
        rows.append(measure(name, make(), asked.limit))
        print(rows[-1], flush=True)
    save("suppress", rows, f"tp.suppress with time_limit={asked.limit:g}; secondary: cost of the complements")


if __name__ == "__main__":
    main()
