"""What every benchmark shares: timing, and a result file that says on which machine, when and with what it was made."""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tabprotect.bench.environment import calibrate, environment

__all__ = ["best_of", "calibrate", "environment", "load", "peak_memory_gib", "save"]

RESULTS = Path(__file__).parent / "results"


def best_of(
    call: Callable[[], Any], repeat: int = 3, clock: Callable[[], float] = time.perf_counter
) -> tuple[float, Any]:
    """Shortest time over several calls (on the wall, or by another clock), and the last answer."""
    times, answer = [], None
    for _ in range(repeat):
        start = clock()
        answer = call()
        times.append(clock() - start)
    return min(times), answer


def peak_memory_gib() -> float:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def command() -> str:
    """The command that is running."""
    return " ".join(["python -m", *([sys.orig_argv[2]] if len(sys.orig_argv) > 2 else []), *sys.argv[1:]])


def load(name: str) -> dict[str, Any]:
    """The committed result of that name."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def save(name: str, rows: list[dict[str, Any]], note: str = "") -> Path:
    """Write ``results/NAME.json`` and print the rows."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(
        json.dumps(
            {"name": name, "note": note, "environment": environment() | {"command": command()}, "rows": rows}, indent=1
        )
        + "\n"
    )
    for row in rows:
        print("  ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()))
    print(f"wrote {path}")
    return path
