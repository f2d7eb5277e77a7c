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
from tabprotect.substitution.mining import frequent_itemsets, joint_estimate, split_statistics
from tabprotect.substitution.plan import Plan, plan
from tabprotect.substitution.privacy import (
    LocalPrivacy,
    gamma_for,
    no_breach,
    posterior_bound,
    posterior_table,
    worst_posterior,
)
from tabprotect.substitution.scheme import Randomized, Scheme, find_domains
from tabprotect.substitution.simulate import simulate_counts
from tabprotect.substitution.tables import TableEstimate, estimate_table

__all__ = [
    "Estimate",
    "GammaDiagonal",
    "LocalPrivacy",
    "Matrix",
    "Plan",
    "Product",
    "Randomized",
    "Retention",
    "Scheme",
    "Stream",
    "TableEstimate",
    "Transition",
    "estimate_table",
    "find_domains",
    "frequent_itemsets",
    "gamma_for",
    "joint_estimate",
    "no_breach",
    "plan",
    "posterior_bound",
    "posterior_table",
    "simulate_counts",
    "split_statistics",
    "worst_posterior",
]
