"""Work of the hot paths in units that do not depend on the machine: runs of HiGHS, simplex iterations, nodes, Newton and conjugate-gradient steps.

    python -m benchmarks.work

Times on a shared machine say little about small changes, and hardware instruction counters are not there on virtual machines (``perf stat -e instructions:u`` says
"not supported" here); these counts are the same in every run. ``tests/micro/test_work.py`` measures them again and fails when one has grown by half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

import numpy as np

import tabprotect as tp
from benchmarks.common import save
from tabprotect.bench.families import counts, magnitude
from tabprotect.linalg.projection import project


@contextmanager
def counted() -> Iterator[dict[str, int]]:
    """Count what HiGHS does inside the block, whoever calls it."""
    import highspy

    work = {"runs": 0, "iterations": 0, "nodes": 0}
    run = highspy.Highs.run

    def counting(self: Any, *args: Any, **options: Any) -> Any:
        answer = run(self, *args, **options)
        info = self.getInfo()
        work["runs"] += 1
        work["iterations"] += max(int(info.simplex_iteration_count), 0)
        work["nodes"] += max(int(info.mip_node_count), 0)
        return answer

    with mock.patch.object(highspy.Highs, "run", counting):
        yield work


def attack_cube() -> None:
    """Exact bounds of the hidden cells of a cube by linear programs."""
    table = magnitude(1, "6,6,6", mean=8)
    tp.attack(table, table.primary | (np.arange(table.n_cells) % 2 == 0))


def attack_verdict() -> None:
    """Only the verdict for the same cells."""
    table = magnitude(1, "6,6,6", mean=8)
    tp.attack(table, table.primary | (np.arange(table.n_cells) % 2 == 0), goal="verdict")


def round_cube() -> None:
    """Controlled rounding in three dimensions."""
    tp.round(counts(1, "5,5,5"), base=5, audit="none", time_limit=None)


def adjust_flat() -> None:
    """Controlled tabular adjustment of a small table to the proved optimum."""
    tp.adjust(magnitude(1, "8,8", mean=6), time_limit=None)


CASES: dict[str, Callable[[], None]] = {
    "attack 6³, bounds": attack_cube,
    "attack 6³, verdict": attack_verdict,
    "controlled rounding 5³": round_cube,
    "adjustment 8²": adjust_flat,
}


def projection_steps() -> dict[str, Any]:
    """Newton and conjugate-gradient steps of the projection of a noisy cube."""
    table = magnitude(1, "4x3,3x3,4")
    noisy = table.values + np.random.default_rng(0).laplace(scale=0.3 * table.values.mean(), size=table.n_cells)
    found = project(table.relations, noisy)
    return {"case": "projection 4x3,3x3,4", "newton": found.iterations, "products": found.products}


def measure() -> list[dict[str, Any]]:
    """One row per case."""
    rows = []
    for name, case in CASES.items():
        with counted() as work:
            case()
        rows.append({"case": name, **work})
    return [*rows, projection_steps()]


if __name__ == "__main__":
    save("work", measure(), "units of work, the same in every run: no times")
