"""Counts of randomised records without the records: the same distribution, at a cost that does not depend on their number."""

from __future__ import annotations

from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.substitution.accuracy import as_counts
from tabprotect.substitution.matrix import GammaDiagonal, Matrix
from tabprotect.types import FloatArray


def simulate_counts(matrix: Matrix, x: Any, *, size: int = 1, seed: Any = None) -> FloatArray:
    """``size`` independent counts Y (one per row) of records with original counts ``x``.

    >>> simulate_counts(GammaDiagonal(3, gamma=5), [50, 30, 20], size=4, seed=0).sum(axis=1).tolist()
    [100.0, 100.0, 100.0, 100.0]
    """
    counts = as_counts(matrix.n, x)
    if (counts != np.rint(counts)).any():
        raise InputError("simulation needs whole counts")
    whole = counts.astype(np.int64)
    rng = np.random.default_rng(seed)
    if isinstance(matrix, GammaDiagonal):
        # a record is left alone with probability 1 - n·off, or gets a uniform value
        kept = rng.binomial(whole, 1.0 - matrix.n * matrix.off_diagonal, size=(size, matrix.n))
        spread = rng.multinomial(whole.sum() - kept.sum(axis=1), np.full(matrix.n, 1.0 / matrix.n))
        return (kept + spread).astype(np.float64)
    columns = matrix.dense().T
    total = np.zeros((size, matrix.n))
    for k in np.flatnonzero(whole):
        total += rng.multinomial(whole[k], columns[k] / columns[k].sum(), size=size)
    return total
