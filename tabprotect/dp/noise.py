"""Noise laws: what the noise of a release does to a count on average, how to undo it, and how to simulate it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import lambertw, ndtr

from tabprotect.errors import InputError
from tabprotect.types import FloatArray, IntArray

Law: TypeAlias = Literal["laplace", "discrete-laplace", "gaussian"]
Neighbours: TypeAlias = Literal["replace", "add-remove"]
LAWS: tuple[Law, ...] = ("laplace", "discrete-laplace", "gaussian")
NEIGHBOURS: tuple[Neighbours, ...] = ("replace", "add-remove")
_WIDE = 10_000.0  # beyond this scale the discrete and the rounded normal law cannot be told apart by any simulation


def check_epsilon(epsilon: Any, name: str = "epsilon") -> float:
    """A positive finite number, or an InputError."""
    try:
        value = float(epsilon)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, got {epsilon!r}") from None
    if not (np.isfinite(value) and value > 0):
        raise InputError(f"{name} must be positive and finite, got {value:g}")
    return value


def check_choice(value: str, choices: tuple[str, ...], name: str) -> str:
    if value not in choices:
        raise InputError(f"unknown {name} {value!r}: use {', '.join(map(repr, choices))}")
    return value


def sensitivity(neighbours: str) -> int:
    """How much the counts of one histogram move in all (L1) when one person changes: 2 for a replaced, 1 for an added
    or removed one.

    >>> sensitivity("replace"), sensitivity("add-remove")
    (2, 1)
    """
    return 2 if check_choice(neighbours, NEIGHBOURS, "neighbours") == "replace" else 1


@dataclass(frozen=True)
class Noise:
    """A law of noise and its scale: b of the Laplace laws, σ of the (discrete) Gaussian law.

    >>> noise = Noise.of_epsilon(0.5)              # Laplace(2/ε), the source's mechanism
    >>> noise.scale, noise.variance
    (4.0, 32.0)
    >>> float(noise.mean(0.0))                     # E max(0, Z) = 1/ε
    2.0
    >>> float(noise.inverse_mean(noise.mean(3.0)).round(12))
    3.0
    """

    law: Law
    scale: float

    def __post_init__(self) -> None:
        check_choice(self.law, LAWS, "law")
        check_epsilon(self.scale, "scale")

    @classmethod
    def of_epsilon(cls, epsilon: float, law: str = "laplace", neighbours: str = "replace") -> Noise:
        """The Laplace noise that a histogram needs for ε under the given neighbours."""
        if check_choice(law, LAWS, "law") == "gaussian":
            raise InputError(
                "ε alone does not give the scale of Gaussian noise: pass the release itself or Noise('gaussian', σ)"
            )
        return cls(law, sensitivity(neighbours) / check_epsilon(epsilon))  # type: ignore[arg-type]

    @property
    def variance(self) -> float:
        """Variance of one draw."""
        if self.law == "laplace":
            return 2.0 * self.scale**2
        if self.law == "gaussian":
            return self.scale**2
        rho = np.exp(-1.0 / self.scale)
        return float(2.0 * rho / (1.0 - rho) ** 2)

    @property
    def lift(self) -> float:
        """E max(0, Z): how much a zero gains when negative values are cut off."""
        if self.law == "laplace":
            return self.scale / 2.0
        if self.law == "gaussian":
            return float(self.mean(0.0))
        return float(1.0 / (2.0 * np.sinh(1.0 / self.scale)))

    def mean(self, counts: Any) -> FloatArray:
        """g(C) = E max(0, C + Z): C plus an exponentially vanishing gain (C + (1/ε)·exp(−εC/2) in the source)."""
        c = np.asarray(counts, dtype=np.float64)
        if self.law == "gaussian":
            z = c / self.scale
            density = np.exp(-(z**2) / 2.0) / np.sqrt(2.0 * np.pi)
            # the last term is Euler and Maclaurin's, for a sum over whole numbers instead of an integral
            return np.maximum(c, c * ndtr(z) + self.scale * density - density / (12.0 * self.scale))
        return np.asarray(c + self.lift * np.exp(-c / self.scale))

    def inverse_mean(self, x: Any) -> FloatArray:
        """g⁻¹ for x ≥ g(0), and 0 below: in closed form with Lambert's W₀ for the Laplace laws, by Newton steps for
        the Gaussian.
        """
        values = np.maximum(np.asarray(x, dtype=np.float64), self.lift)
        if self.law == "gaussian":
            c = values.copy()  # g is convex with slope ½ to 1, and g(c) ≥ x at c = x: Newton falls monotonically
            for _ in range(60):
                c = np.maximum(0.0, c - (self.mean(c) - values) / ndtr(c / self.scale))
            return c
        inner = -(self.lift / self.scale) * np.exp(-values / self.scale)
        return np.maximum(0.0, values + self.scale * lambertw(inner).real)

    def counts(self, x: Any, threshold: float = 5.0) -> FloatArray:
        """C̃: the count behind a noisy value. 0 below g(0), the value itself from where it gains less than
        ``threshold``, g⁻¹ between.

        >>> Noise.of_epsilon(0.1).counts([5.0, 12.0, 500.0]).round(3).tolist()
        [0.0, 3.681, 500.0]
        """
        values = np.asarray(x, dtype=np.float64)
        if self.law == "gaussian":
            plain = self.mean(values) - values < threshold
        else:
            plain = values >= self.scale * np.log(max(self.lift / threshold, 1.0))
        return np.where(values <= self.lift, 0.0, np.where(plain, values, self.inverse_mean(values)))

    def simulate(self, size: Any, seed: Any = None) -> FloatArray:
        """Draws for simulation studies. Never release data with them: the generator is not cryptographic and its
        floats leak.

        >>> Noise("discrete-laplace", 4.0).simulate(5, seed=1).shape
        (5,)
        """
        from tabprotect.dp import kernels

        out = np.zeros(size)
        accept, alias = self.tables()
        kernels.add_noise(random_state(seed), self.kind, self.scale, accept, alias, out.reshape(-1))
        return out

    @property
    def kind(self) -> int:
        """Number of the law in the compiled code."""
        return LAWS.index(self.law)

    def tables(self) -> tuple[FloatArray, IntArray]:
        """Alias tables of the law for the compiled code; empty where none is needed."""
        if self.law != "gaussian" or self.scale > _WIDE:
            return np.zeros(0), np.zeros(0, dtype=np.int64)
        return _gaussian_tables(self.scale)


@lru_cache(maxsize=16)
def _gaussian_tables(scale: float) -> tuple[FloatArray, IntArray]:
    from tabprotect.dp import kernels

    reach = int(np.ceil(9.0 * scale)) + 2
    z = np.arange(-reach, reach + 1)
    weights = np.exp(-(z**2) / (2.0 * scale**2))
    accept, alias = np.empty(z.size), np.empty(z.size, dtype=np.int64)
    kernels.alias_table(weights, accept, alias)
    return accept, alias


def random_state(seed: Any = None) -> npt.NDArray[np.uint64]:
    """State of the compiled generator from anything numpy takes as a seed (an int, a SeedSequence, a Generator,
    None).
    """
    return np.random.default_rng(seed).integers(1, 2**64 - 1, 4, dtype=np.uint64)
