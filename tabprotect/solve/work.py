"""Work done, counted in steps of linear programs and not by the clock, for what is decided by effort.

How large a neighbourhood may be, or what share of the work goes to unions of patterns, is so decided alike in every run. The unit is roughly
a second on the machine of the benchmarks; each thread has its own count.
"""

from __future__ import annotations

import threading
from typing import Any

PROGRAM = 5e-4
"""What calling the solver costs in any case."""
STEP, NONZERO = 4e-6, 4e-9
"""What a simplex iteration costs, and how much more for every nonzero of the matrix."""
INTERIOR = 50
"""So many simplex iterations cost as much as one of the interior point method."""
INTEGER = 15
"""An integer program costs as much as so many linear ones before it begins to branch."""

_count = threading.local()


def worked() -> float:
    """Work this thread has had done so far.

    >>> before = worked()
    >>> add(100, nonzeros=5000)
    >>> round(worked() - before, 4)
    0.0029
    """
    return float(getattr(_count, "total", 0.0))


def add(iterations: int, nonzeros: int, programs: int = 1) -> None:
    """Count so many simplex iterations on a matrix with so many nonzeros."""
    _count.total = worked() + programs * PROGRAM + iterations * (STEP + NONZERO * nonzeros)


def run(h: Any, programs: int = 1) -> None:
    """Run a HiGHS model and count what it did."""
    h.run()
    info = h.getInfo()
    steps = max(0, info.simplex_iteration_count) + INTERIOR * max(0, info.ipm_iteration_count)
    add(steps, h.getNumNz(), programs)
