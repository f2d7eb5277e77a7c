"""On which machine, when and with what a measurement was made."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from datetime import UTC, datetime
from typing import Any

import numpy as np
import scipy.sparse as sp

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
    from scipy.optimize import linprog

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
        "load": round(os.getloadavg()[0], 2),
        "calibration_seconds": round(calibrate(), 3),
        "versions": versions,
    }
