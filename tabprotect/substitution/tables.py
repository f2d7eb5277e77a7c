"""Tables from randomised records: estimates of all cells that add up and are not negative."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.linalg.projection import project
from tabprotect.substitution.accuracy import as_counts, nonempty
from tabprotect.substitution.families import Product
from tabprotect.substitution.matrix import GammaDiagonal, Matrix
from tabprotect.table.cube import fill_margins
from tabprotect.table.table import Table
from tabprotect.types import FloatArray


@dataclass(frozen=True)
class TableEstimate:
    """Estimated values of all cells of a table, in cell order.

    ``unbiased`` and ``std`` are the linear estimates with their exact standard errors; ``values`` are the nearest values (each cell
    weighted by its precision) that keep all relations, are not negative and, with ``keep_total``, leave the number of records.
    """

    values: FloatArray
    unbiased: FloatArray
    std: FloatArray
    table: Table = field(repr=False)

    def to_table(self) -> Table:
        """A table of the same shape with the estimated values."""
        return self.table.replace(values=self.values)

    def summary(self) -> str:
        """One line."""
        moved = int((self.unbiased < 0).sum())
        return f"{self.values.size} cells, {moved} negative estimates moved to the nearest consistent table"


def estimate_table(table: Table, counts: Any, matrix: Matrix, *, keep_total: bool = True) -> TableEstimate:
    """Estimate a table's cells from the counts of randomised records over the leaves of its dimensions.

    ``table`` gives the shape (its values are not used); ``matrix`` is on the product of the dimensions' leaves, in their order.

    >>> import tabprotect as tp
    >>> rows = {"sex": ["m", "m", "f", "f"], "job": ["a", "b", "a", "b"], "v": [40, 5, 30, 25]}
    >>> import pandas as pd
    >>> table = tp.Table.from_frame(pd.DataFrame(rows), by=["sex", "job"], value="v")
    >>> matrix = GammaDiagonal((2, 2), gamma=19)
    >>> found = estimate_table(table, matrix.apply([30, 25, 40, 5]), matrix)
    >>> bool(np.allclose(table.relations @ found.values, 0))
    True
    """
    dims = table.dims
    sizes = tuple(len(dim.hierarchy.leaves) for dim in dims)
    if not dims or sizes != matrix.sizes:
        raise InputError(f"the table's dimensions have {sizes} leaves, the matrix is for {matrix.sizes}")
    y = nonempty(as_counts(matrix.n, counts))
    inner = matrix.operator.solve(y)
    where = np.ravel_multi_index(tuple(table.codes.T.astype(np.int64)), [len(dim) for dim in dims])
    unbiased = fill_margins(inner.reshape(sizes), dims)[where]
    variance = np.maximum(_cell_variances(matrix, y, dims)[where] - unbiased, 0.0)
    # cells that are known exactly (the grand total) may not move; tiny variances only make the projection stiff
    total = unbiased >= y.sum() * (1 - 1e-12) if keep_total else np.zeros(unbiased.size, bool)
    exact = total & (variance <= 1e-9 * y.sum())
    weights = np.where(exact, np.inf, 1.0 / np.maximum(variance, 1e-6 * max(float(variance.max()), 1e-300)))
    start = np.where(exact, y.sum(), unbiased)
    values = project(table.relations, start, weights=weights, lower=0.0).x
    return TableEstimate(values, unbiased, np.sqrt(np.where(exact, 0.0, variance)), table)


def _cell_variances(matrix: Matrix, y: FloatArray, dims: Sequence[Any]) -> FloatArray:
    """Σ_h ((M⁻ᵀw)_h)² y_h for every cell of the cube, w the cell's leaves: the variance before the cell's own count is taken off."""
    sizes = matrix.sizes
    if isinstance(matrix, GammaDiagonal):
        size = fill_margins(np.ones(sizes), dims)
        inside = fill_margins(y.reshape(sizes), dims)
        all_in = (matrix.gamma + matrix.n - 1 - size) ** 2 * inside + size**2 * (y.sum() - inside)
        return np.asarray(all_in / (matrix.gamma - 1) ** 2)
    factors = matrix.factors if isinstance(matrix, Product) else (matrix,)
    if any(len(factor.sizes) > 1 for factor in factors):
        raise InputError("a table needs one matrix per dimension, or one gamma-diagonal matrix on all of them")
    cube = y.reshape(sizes)
    for axis, (factor, dim) in enumerate(zip(factors, dims, strict=True)):
        leaves = dim.hierarchy.membership.toarray().astype(np.float64)  # codes × leaves
        spread = factor.operator.adjoint().solve(leaves.T).T ** 2
        cube = np.moveaxis(np.tensordot(spread, cube, axes=([1], [axis])), 0, axis)
    return np.ascontiguousarray(cube).reshape(prod(len(dim) for dim in dims))
