"""The additive noise mechanisms, run by OpenDP: exact privacy maps, cryptographic randomness, no floating-point
leak.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tabprotect.dp.budget import check_delta, exact
from tabprotect.dp.noise import LAWS, Noise, check_choice, check_epsilon
from tabprotect.errors import InputError, SolverUnavailable
from tabprotect.types import FloatArray

_LARGEST = 2**53  # counts beyond this are no longer exact as floats


def opendp() -> Any:
    """The OpenDP library, or SolverUnavailable with the way to install it."""
    try:
        import opendp.prelude as dp
    except ImportError as error:
        raise SolverUnavailable(
            "releases need OpenDP for their noise: pip install 'tabprotect[dp]' (simulation only: Noise.simulate)"
        ) from error
    dp.enable_features("contrib")
    return dp


@dataclass(frozen=True)
class Mechanism:
    """Noise of one law on a vector of counts of bounded sensitivity, and what OpenDP proves of it.

    ``epsilon`` and ``delta`` are OpenDP's privacy map at the sensitivity, never more than what was asked for; ``rho``
    is the map of the Gaussian law in zero-concentrated differential privacy, before its conversion.

    >>> m = Mechanism.for_epsilon(0.5, l1=2)
    >>> m.noise.law, round(m.noise.scale, 6), m.epsilon <= 0.5
    ('discrete-laplace', 4.0, True)
    """

    noise: Noise
    epsilon: float
    delta: float
    rho: float | None
    l1: int
    l2: float
    measurement: Any = field(repr=False, compare=False)

    @classmethod
    def for_epsilon(
        cls, epsilon: float, *, l1: int, l2: float | None = None, law: str = "discrete-laplace", delta: float = 0.0
    ) -> Mechanism:
        """The smallest noise that gives (ε, δ) for a vector whose L1 (L2) distance between neighbours is ``l1``
        (``l2``).

        The discrete laws act on integers; ``laplace`` is the source's law, on floats. The Gaussian law needs δ > 0.
        """
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        check_choice(law, LAWS, "law")
        norm = float(np.sqrt(l1)) if l2 is None else float(l2)
        if law == "gaussian":
            if delta == 0.0:
                raise InputError("the Gaussian law needs delta > 0 (say 1e-6); for pure ε use law='discrete-laplace'")
            return _gaussian(epsilon, delta, l1, norm)
        if delta != 0.0:
            raise InputError("the Laplace laws are pure ε mechanisms: leave delta at 0")
        return _laplace(epsilon, l1, norm, law)

    def add(self, counts: FloatArray) -> FloatArray:
        """Counts plus noise, not clamped."""
        if self.noise.law == "laplace":
            return np.asarray(self.measurement(counts.tolist()), dtype=np.float64)
        return np.asarray(self.measurement(counts.astype(np.int64).tolist()), dtype=np.float64)

    def describe(self) -> str:
        """The mechanism in words."""
        kind = {"laplace": "Laplace", "discrete-laplace": "discrete Laplace", "gaussian": "discrete Gaussian"}
        return f"{kind[self.noise.law]} noise of scale {self.noise.scale:.6g} by OpenDP"


def _laplace(epsilon: float, l1: int, l2: float, law: str) -> Mechanism:
    dp = opendp()
    if law == "laplace":
        space = dp.vector_domain(dp.atom_domain(T="f64", nan=False)), dp.l1_distance(T="f64")
        distance: Any = float(l1)
    else:
        space, distance = (dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")), int(l1)
    scale = _search(lambda s: dp.m.make_laplace(*space, scale=s), l1 / epsilon, distance, epsilon)
    measurement = dp.m.make_laplace(*space, scale=scale)
    proved = float(measurement.map(distance))
    _assert_private(proved, epsilon)
    return Mechanism(Noise(law, float(scale)), proved, 0.0, None, l1, l2, measurement)  # type: ignore[arg-type]


def _gaussian(epsilon: float, delta: float, l1: int, l2: float) -> Mechanism:
    dp = opendp()
    distance = up(l2)
    scale = dp.binary_search_param(
        lambda s: dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(_zcdp(s)), delta=delta),
        d_in=distance,
        d_out=(epsilon, delta),
    )
    measurement = _zcdp(scale)
    proved = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(measurement), delta=delta).map(distance)
    _assert_private(float(proved[0]), epsilon)
    rho = float(measurement.map(distance))
    return Mechanism(Noise("gaussian", float(scale)), float(proved[0]), delta, rho, l1, l2, measurement)


def gaussian_of_rho(rho: float, *, l1: int, l2: float) -> Mechanism:
    """The smallest discrete Gaussian noise of ρ-zCDP: one part of a composition whose ρ's are added up."""
    distance = up(l2)
    scale = _search(_zcdp, l2 / float(np.sqrt(2.0 * rho)), distance, rho)
    measurement = _zcdp(scale)
    proved = float(measurement.map(distance))
    _assert_private(proved, rho)
    return Mechanism(Noise("gaussian", float(scale)), np.nan, np.nan, proved, l1, l2, measurement)


def _search(make: Any, start: float, d_in: Any, d_out: float) -> float:
    """The smallest scale that OpenDP proves: the textbook's, a last bit more where rounding asks for it, else a
    search.
    """
    for nudge in (0.0, 1e-15, 1e-14, 1e-13, 1e-12):
        scale = start * (1.0 + nudge)
        if make(scale).map(d_in) <= d_out:
            return scale
    return float(opendp().binary_search_param(make, d_in=d_in, d_out=d_out))


def _zcdp(scale: float) -> Any:
    dp = opendp()
    return dp.m.make_gaussian(dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64"), scale=scale)


def up(value: float) -> float:
    """The next float, so that a rounded root is never too small."""
    return float(np.nextafter(value, np.inf)) if value != int(value) else value


def _assert_private(proved: float, asked: float) -> None:
    if not exact(proved) <= exact(asked):
        raise InputError(f"the mechanism proves only {proved:g} where {asked:g} was asked for; nothing was released")


def check_counts(counts: Any, name: str = "counts") -> FloatArray:
    """Non-negative whole numbers as floats, or an InputError that says where they are not (without the value)."""
    try:
        array = np.asarray(counts, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers") from None
    if array.ndim == 0 or array.size == 0:
        raise InputError(f"{name} must be an array with at least one count")
    flat = array.reshape(-1)
    for wrong, why in (
        (~np.isfinite(flat), "is not a number"),
        (flat < 0, "is negative"),
        (flat != np.rint(flat), "is not a whole number"),
        (flat > _LARGEST, "is too large"),
    ):
        if wrong.any():
            raise InputError(f"{name}: entry {int(wrong.argmax())} {why}; counts are whole numbers from 0 on")
    return array
