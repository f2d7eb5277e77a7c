"""Random substitution: release every record with a randomly replaced value, estimate the table of the true values from them.

>>> from tabprotect.substitution import GammaDiagonal
>>> matrix = GammaDiagonal(10, gamma=19)
>>> matrix.statement.gamma, round(matrix.posterior(0.05), 6)
(19.0, 0.5)
"""

from tabprotect.substitution.accuracy import Estimate
from tabprotect.substitution.chacha import Stream
from tabprotect.substitution.families import Product, Retention, Transition
from tabprotect.substitution.matrix import GammaDiagonal, Matrix
from tabprotect.substitution.privacy import (
    LocalPrivacy,
    gamma_for,
    no_breach,
    posterior_bound,
    posterior_table,
    worst_posterior,
)

__all__ = [
    "Estimate",
    "GammaDiagonal",
    "LocalPrivacy",
    "Matrix",
    "Product",
    "Retention",
    "Stream",
    "Transition",
    "gamma_for",
    "no_breach",
    "posterior_bound",
    "posterior_table",
    "worst_posterior",
]
