"""The whole study grid of the source, timed: null distribution, error rates, power and unequal levels, 1,000 repetitions each.

    tabprotect reproduce dp-test --out docs/sources
    python -m benchmarks.dp_study

The first command runs the studies in full on one process (it also writes the documentation page) and leaves its times; the second puts them into a result file.
"""

from __future__ import annotations

import csv
from pathlib import Path

from benchmarks.common import save

TIMES = Path(__file__).resolve().parent.parent / "docs" / "sources" / "figures" / "dp-test-timing.csv"


def main() -> None:
    with TIMES.open(newline="", encoding="utf-8") as file:
        rows = [
            {
                "study": r["study"],
                "settings": int(r["settings"]),
                "wall_s": float(r["wall_s"]),
                "cpu_s": float(r["cpu_s"]),
            }
            for r in csv.DictReader(file)
        ]
    total = {"study": "all of the source", "settings": sum(int(r["settings"]) for r in rows)}
    total |= {unit: sum(float(r[unit]) for r in rows) for unit in ("wall_s", "cpu_s")}
    save("dp_study", [*rows, total], "one process at low priority on a shared machine: the CPU time is what counts")


if __name__ == "__main__":
    main()
