"""What every benchmark shares: timing, and a result file that says on which machine, when and with what it was made."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

RESULTS = Path(__file__).parent / "results"
PACKAGES = [
    "tabprotect",
    "numpy",
    "scipy",
    "numba",
    "highspy",
    "ortools",
    "pyscipopt",
    "duckdb",
    "pandas",
    "polars",
    "opendp",
]


def calibrate() -> float:
    """Seconds for a fixed single-threaded workload (a sort and an LP), best of three: how fast this machine is now."""
    keys = np.random.default_rng(0).integers(0, 1 << 40, 4_000_000)
    n = 80
    cost = np.random.default_rng(1).random(n * n)
    rows = sp.vstack([sp.kron(sp.identity(n), np.ones((1, n))), sp.kron(np.ones((1, n)), sp.identity(n))]).tocsr()

    def once() -> float:
        start = time.perf_counter()
        np.sort(keys)
        linprog(cost, A_eq=rows, b_eq=np.ones(2 * n), method="highs-ds")
        return time.perf_counter() - start

    return min(once() for _ in range(3))


def environment() -> dict[str, Any]:
    """Machine, date and versions."""
    versions = {}
    for name in PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "calibration_seconds": round(calibrate(), 3),
        "versions": versions,
        "command": " ".join(["python -m", *([sys.orig_argv[2]] if len(sys.orig_argv) > 2 else []), *sys.argv[1:]]),
    }


def best_of(call: Callable[[], Any], repeat: int = 3) -> tuple[float, Any]:
    """Shortest wall time over several calls, and the last answer."""
    times, answer = [], None
    for _ in range(repeat):
        start = time.perf_counter()
        answer = call()
        times.append(time.perf_counter() - start)
    return min(times), answer


def peak_memory_gib() -> float:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def save(name: str, rows: list[dict[str, Any]], note: str = "") -> Path:
    """Write ``results/NAME.json`` and print the rows."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(
        json.dumps({"name": name, "note": note, "environment": environment(), "rows": rows}, indent=1) + "\n"
    )
    for row in rows:
        print("  ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in row.items()))
    print(f"wrote {path}")
    return path
