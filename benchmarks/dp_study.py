"""All studies of differential privacy in full, timed: null distribution, error rates, power, unequal levels, utility; 1,000 repetitions each.

    ( time -p tabprotect dp study all --out study --json > study.json ) 2> study.time
    python -m benchmarks.dp_study study.json study.time

The first command is the work (one process); the second puts its times into a result file.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

from benchmarks.common import save


def seconds(text: str) -> float:
    """User CPU seconds from the shell's ``time`` (``-p`` or not)."""
    found = re.search(r"^user\s+(?:(\d+)m)?([\d.]+)s?$", text, flags=re.MULTILINE)
    if found is None:
        raise ValueError("no line 'user' in the output of time")
    return 60 * float(found.group(1) or 0) + float(found.group(2))


def main(results: str, times: str) -> None:
    studies = json.loads(Path(results).read_text())["studies"]
    rows = [{"study": name, "settings": len(s["rows"]), "wall_s": s["seconds"]} for name, s in studies.items()]
    wall, settings = sum(s["seconds"] for s in studies.values()), sum(len(s["rows"]) for s in studies.values())
    cpu = {"cpu_minutes": seconds(Path(times).read_text()) / 60}
    total = {"study": "all, one process", "settings": settings, "wall_s": wall} | cpu
    save("dp_study", [*rows, total], "one process at low priority on a shared machine: the CPU time is what counts")


if __name__ == "__main__":
    main(*sys.argv[1:])
