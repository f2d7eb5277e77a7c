"""The planner: privacy, number of records and accuracy of a γ-diagonal matrix; give two, get the third."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, exp, inf, log, pi, sqrt
from typing import Any

import numpy as np
from scipy.optimize import brentq

from tabprotect.errors import InputError
from tabprotect.substitution.accuracy import as_counts, nonempty
from tabprotect.substitution.matrix import GammaDiagonal, domain_sizes
from tabprotect.substitution.privacy import gamma_for, posterior_bound
from tabprotect.types import FloatArray

# Error measures of one record in every record: all of them fall with the root of the number of records. Arguments: standard
# errors and shares of the values.
MEASURES: dict[str, Callable[[FloatArray, FloatArray], float]] = {
    "relative": lambda std, shares: float(np.linalg.norm(std) / np.linalg.norm(shares)),
    "cell": lambda std, shares: float(std.max()),
    "l1": lambda std, shares: sqrt(2.0 / pi) * float(std.sum()),
}


@dataclass(frozen=True)
class Plan:
    """A choice of γ and of the number of records, with the error and the privacy it means; see ``plan``."""

    sizes: tuple[int, ...]
    gamma: float
    records: int
    error: float
    measure: str
    shares: FloatArray = field(repr=False)

    @property
    def matrix(self) -> GammaDiagonal:
        return GammaDiagonal(self.sizes, self.gamma)

    @property
    def epsilon(self) -> float:
        """Local differential privacy per record, ln γ."""
        return log(self.gamma)

    @property
    def changed_share(self) -> float:
        """Expected share of records whose value changes."""
        return self.matrix.changed_share()

    def posteriors(self, rho1: Sequence[float] = (0.05, 0.10, 0.15)) -> dict[float, float]:
        """The largest posterior for each prior."""
        return {prior: float(posterior_bound(self.gamma, prior)) for prior in rho1}

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return {
            "sizes": list(self.sizes),
            "gamma": self.gamma,
            "epsilon": self.epsilon,
            "records": self.records,
            "error": self.error,
            "measure": self.measure,
            "changed_share": self.changed_share,
            "condition_number": self.matrix.condition_number("2"),
            "posteriors": self.posteriors(),
        }

    def summary(self) -> str:
        """The plan in four lines."""
        worst = ", ".join(f"{100 * prior:g} % -> {100 * post:.1f} %" for prior, post in self.posteriors().items())
        return (
            f"domain     {' x '.join(map(str, self.sizes))} values, {self.records:,} records\n"
            f"privacy    gamma = {self.gamma:.4g}, epsilon = {self.epsilon:.4g} per record, {self.changed_share:.1%} of them change\n"
            f"posterior  at most {worst}\n"
            f"error      {self.error:.4g} ({self.measure})"
        )


def plan(
    n: int | Sequence[int],
    *,
    records: int | None = None,
    error: float | None = None,
    gamma: float | None = None,
    epsilon: float | None = None,
    rho: tuple[float, float] | None = None,
    x: Any = None,
    measure: str = "relative",
) -> Plan:
    """Given two of privacy, records and error, compute the third.

    Privacy is ``gamma``, ``epsilon`` (= ln γ) or ``rho`` = (ρ1, ρ2). ``error`` is a ``measure``: "relative" (the source's sd(X̂)/‖X‖),
    "cell" (largest standard error of a share) or "l1" (expected error1). ``x`` is the expected shape of the distribution; the default,
    uniform, is the worst case of "relative".

    >>> round(plan(50, records=100_000, gamma=2).error, 4)
    1.1287
    >>> found = plan(50, records=100_000, error=0.05)
    >>> round(found.gamma, 2), round(GammaDiagonal(50, found.gamma).standard_error([2000] * 50), 4)
    (35.01, 0.05)
    >>> plan(20, error=0.05, rho=(0.05, 0.5)).records
    26272
    """
    sizes = domain_sizes(n)
    if measure not in MEASURES:
        raise InputError(f"unknown measure {measure!r}: use one of {', '.join(MEASURES)}")
    count = int(np.prod(sizes))
    shape = nonempty(as_counts(count, np.ones(count) if x is None else x))
    shares = shape / shape.sum()
    wanted = as_gamma(gamma, epsilon, rho)
    if (wanted is None) + (records is None) + (error is None) != 1:
        raise InputError("give exactly two of privacy (gamma, epsilon or rho), records and error")
    if records is not None and records < 1:
        raise InputError("records is at least 1")
    if error is not None and not 0 < error < inf:
        raise InputError("error is a positive number")

    def one_record(g: float) -> float:
        return MEASURES[measure](GammaDiagonal(sizes, g).standard_errors(shares), shares)

    if wanted is None:
        wanted = _solve(one_record, error * sqrt(records))  # type: ignore[operator, arg-type]
    if records is None:
        records = ceil((one_record(wanted) / error) ** 2 - 1e-9)  # type: ignore[operator]
    return Plan(sizes, wanted, int(records), one_record(wanted) / sqrt(records), measure, shares)


def as_gamma(gamma: float | None, epsilon: float | None, rho: tuple[float, float] | None) -> float | None:
    """γ from whichever way of saying it was used, or None."""
    given = [value for value in (gamma, epsilon, rho) if value is not None]
    if len(given) > 1:
        raise InputError("give one of gamma, epsilon and rho")
    if epsilon is not None:
        if not 0 < epsilon < 700:
            raise InputError(f"epsilon is {epsilon}: it has to be positive (and below 700)")
        return exp(epsilon)
    return gamma if rho is None else gamma_for(*rho)


def _solve(one_record: Callable[[float], float], target: float) -> float:
    """The γ whose error is the target; the error falls from infinity to zero as γ grows."""
    low, high = -20.0, 40.0

    def excess(t: float) -> float:
        return log(max(one_record(1.0 + exp(t)), 1e-300)) - log(target)

    if excess(low) < 0 or excess(high) > 0:
        raise InputError("no gamma gives this error with so many records: change one of them")
    return 1.0 + exp(float(brentq(excess, low, high, xtol=1e-12)))
