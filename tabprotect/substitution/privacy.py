"""What a released value reveals: amplification, prior-to-posterior breaches, posterior tables and the local-DP statement.

Evfimievski, A., Gehrke, J. and Srikant, R. (2003), Limiting privacy breaches in privacy preserving data mining, PODS, 211-222.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log
from typing import TYPE_CHECKING, Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.types import FloatArray

if TYPE_CHECKING:
    from tabprotect.substitution.matrix import Matrix


@dataclass(frozen=True)
class LocalPrivacy:
    """The guarantee of one record: whatever is released, its probability differs by at most the factor γ between two true values.

    >>> print(LocalPrivacy(19.0).summary())
    each record: local differential privacy, epsilon = ln 19 = 2.944; a property of prior 5 % has posterior at most 50.0 %
    """

    gamma: float

    @property
    def epsilon(self) -> float:
        """ln γ, the ε of local differential privacy."""
        return log(self.gamma) if self.gamma < inf else inf

    def summary(self, rho1: float = 0.05) -> str:
        """One line for a report."""
        if self.gamma == inf:
            return "each record: no guarantee, some released values rule out some true values (epsilon is infinite)"
        posterior = float(posterior_bound(self.gamma, rho1))
        return (
            f"each record: local differential privacy, epsilon = ln {self.gamma:.6g} = {self.epsilon:.4g}; "
            f"a property of prior {100 * rho1:.3g} % has posterior at most {100 * posterior:.1f} %"
        )


def posterior_bound(gamma: float, rho1: Any) -> Any:
    """The largest posterior ρ2 = γρ1/(1 − ρ1 + γρ1) of a property with prior ρ1 under amplification γ; one number or an array.

    The source's table 2 calls it the lower bound of the ρ2 that can be promised.

    >>> posterior_bound(6, [0.05, 0.10, 0.15]).round(6).tolist()
    [0.24, 0.4, 0.514286]
    """
    gamma = _gamma(gamma)
    prior = np.asarray(rho1, dtype=np.float64)
    if not ((prior >= 0) & (prior <= 1)).all():
        raise InputError("rho1 is a probability, between 0 and 1")
    bound = np.where(prior > 0, 1.0, 0.0) if gamma == inf else gamma * prior / (1.0 - prior + gamma * prior)
    return float(bound) if bound.ndim == 0 else bound


def gamma_for(rho1: float, rho2: float) -> float:
    """The largest γ under which a property of prior ρ1 never reaches a posterior above ρ2 (and none falls from ρ2 to ρ1).

    >>> round(gamma_for(0.05, 0.5), 9)
    19.0
    """
    if not 0 < rho1 < rho2 < 1:
        raise InputError(f"rho1 = {rho1}, rho2 = {rho2}: 0 < rho1 < rho2 < 1 is needed")
    return rho2 * (1.0 - rho1) / (rho1 * (1.0 - rho2))


def no_breach(gamma: float, rho1: float, rho2: float) -> bool:
    """Whether amplification γ rules out every upward ρ1→ρ2 and every downward ρ2→ρ1 breach (theorem 2.1, strict).

    >>> no_breach(18, 0.05, 0.5), no_breach(19.01, 0.05, 0.5)
    (True, False)
    """
    return gamma_for(rho1, rho2) > _gamma(gamma)


def posterior_table(matrix: Matrix, prior: Any) -> FloatArray:
    """Pr[X = x | Y = y], row y and column x, by Bayes' theorem; rows of impossible releases are NaN.

    >>> from tabprotect.substitution import GammaDiagonal
    >>> posterior_table(GammaDiagonal(3, gamma=4), [0.5, 0.25, 0.25]).round(3).tolist()[1]
    [0.286, 0.571, 0.143]
    """
    chances = as_prior(matrix.n, prior)
    joint = matrix.dense() * chances
    seen = joint.sum(axis=1, keepdims=True)
    return np.divide(joint, seen, out=np.full_like(joint, np.nan), where=seen > 0)


def worst_posterior(matrix: Matrix, prior: Any, values: Any) -> tuple[float, float]:
    """Smallest and largest Pr[X in values | Y = y] over all possible releases y: the exact breach for a known prior.

    Never forms the matrix.

    >>> from tabprotect.substitution import GammaDiagonal
    >>> [round(p, 4) for p in worst_posterior(GammaDiagonal(3, gamma=4), [0.5, 0.25, 0.25], [1])]
    [0.1, 0.5714]
    """
    chances = as_prior(matrix.n, prior)
    chosen = np.zeros(matrix.n)
    codes = np.asarray(values)
    if codes.dtype.kind not in "iu" or codes.size == 0 or codes.min() < 0 or codes.max() >= matrix.n:
        raise InputError(f"values are codes 0 … {matrix.n - 1}, at least one")
    chosen[codes] = 1.0
    seen, inside = matrix.apply(chances), matrix.apply(chances * chosen)
    share = inside[seen > 0] / seen[seen > 0]
    return float(share.min()), float(share.max())


def as_prior(n: int, prior: Any) -> FloatArray:
    """A distribution over n values, scaled to sum to one."""
    chances = np.asarray(prior, dtype=np.float64).ravel()
    if chances.shape != (n,) or not np.isfinite(chances).all() or (chances < 0).any() or chances.sum() <= 0:
        raise InputError(f"the prior needs {n} non-negative numbers with a positive sum")
    return chances / chances.sum()


def _gamma(gamma: float) -> float:
    if not gamma >= 1:
        raise InputError(f"gamma is {gamma!r}: an amplification is at least 1")
    return float(gamma)
