"""What a solver back end answers."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tabprotect.types import FloatArray

OPTIMAL, FEASIBLE, INFEASIBLE, UNBOUNDED, LIMIT, FAILED = (
    "optimal",
    "feasible",
    "infeasible",
    "unbounded",
    "limit",
    "failed",
)


def _none() -> FloatArray:
    return np.zeros(0)


@dataclass(frozen=True, eq=False)
class SolveResult:
    """Status, the best point, what it costs and the best proven bound.

    ``status`` is ``optimal``, ``feasible`` (a point, not proved best), ``infeasible``, ``unbounded``, ``limit`` (stopped without a point) or
    ``failed``. ``x`` is empty without a point. ``duals`` (one per row, d objective / d right-hand side) and ``reduced`` (one per column) are
    empty for integer programs and for back ends that do not give them.

    >>> SolveResult("feasible", np.array([1.0]), 10.0, 8.0).gap
    0.2
    """

    status: str
    x: FloatArray = field(default_factory=_none)
    objective: float = float("inf")
    bound: float = float("-inf")
    duals: FloatArray = field(default_factory=_none)
    reduced: FloatArray = field(default_factory=_none)
    seconds: float = 0.0
    backend: str = ""

    @property
    def found(self) -> bool:
        """Whether there is a point."""
        return self.status in (OPTIMAL, FEASIBLE)

    @property
    def gap(self) -> float:
        """(objective − bound) / |objective|; infinite without a point or a bound."""
        if not (np.isfinite(self.objective) and np.isfinite(self.bound)):
            return float("inf")
        return max(0.0, self.objective - self.bound) / max(abs(self.objective), 1e-300)

    def summary(self) -> str:
        """One line.

        >>> SolveResult("optimal", np.zeros(1), 3.0, 3.0, backend="highs").summary()
        'highs: optimal, objective 3, bound 3, gap 0.00%, 0.0 s'
        """
        return (
            f"{self.backend or 'solver'}: {self.status}, objective {self.objective:.10g}, bound {self.bound:.10g}, "
            f"gap {self.gap:.2%}, {self.seconds:.1f} s"
        )
