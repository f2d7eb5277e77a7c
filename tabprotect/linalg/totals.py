"""Which cells of a system of relations are totals of others, and adding them up from the cells that are not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Totals:
    """One defining relation for every total: ``value = parts @ values`` for totals, all other cells are leaves.

    ``rows[c]`` is the relation that defines cell c (−1 for leaves) and ``depth`` how many times sums are taken of sums.

    >>> totals = Totals.of([[1, 1, -1, 0, 0], [0, 0, 1, 1, -1]])
    >>> totals.leaf.tolist(), totals.depth
    ([True, True, False, True, False], 2)
    >>> totals.add_up(np.array([1.0, 2, 0, 4, 0])).tolist()
    [1.0, 2.0, 3.0, 4.0, 7.0]
    """

    parts: Any
    leaf: BoolArray
    rows: IntArray
    depth: int

    @classmethod
    def of(cls, relations: Any) -> Totals | None:
        """Read the totals off the relations; None when totals are defined in a circle.

        The total of a relation is the one cell whose coefficient has the sign opposite to all others (either cell,
        the later one, in a relation of two). Relations without such a cell define nothing.
        """
        a = sp.csr_array(relations, dtype=np.float64)
        m, n = a.shape
        rows, columns = np.repeat(np.arange(m), np.diff(a.indptr)), a.indices
        negative = np.bincount(rows[a.data < 0], minlength=m)
        positive = np.bincount(rows[a.data > 0], minlength=m)
        sign = np.where(negative == 1, -1.0, np.where(positive == 1, 1.0, 0.0))[rows]
        is_total = (np.sign(a.data) == sign) & (a.data != 0)
        defined_by = np.full(n, -1, dtype=np.int64)
        # of several relations with the same total the first one counts
        defined_by[columns[is_total][::-1]] = rows[is_total][::-1]
        own = np.zeros(n)
        own[columns[is_total][::-1]] = a.data[is_total][::-1]
        defined = np.flatnonzero(defined_by >= 0)
        body = a[defined_by[defined]]
        lines = np.repeat(defined, np.diff(body.indptr))
        keep = body.indices != lines
        data = -body.data[keep] / own[lines[keep]]
        parts = sp.csr_array((data, (lines[keep], body.indices[keep])), shape=(n, n))
        depth = _depth(parts, defined_by >= 0)
        return None if depth is None else cls(parts, defined_by < 0, defined_by, depth)

    def add_up(self, values: FloatArray) -> FloatArray:
        """The same leaves with all totals recomputed."""
        now = np.where(self.leaf, values, 0.0)
        for _ in range(self.depth):
            now = np.where(self.leaf, values, self.parts @ now)
        return now


def _depth(parts: Any, is_total: BoolArray) -> int | None:
    """Longest chain of totals of totals, or None for a circle."""
    pattern = parts.copy()
    pattern.data = np.ones_like(pattern.data)
    unknown, depth = is_total.copy(), 0
    while unknown.any():
        still = is_total & (pattern @ unknown.astype(np.float64) > 0)
        if still.sum() == unknown.sum():
            return None
        unknown, depth = still, depth + 1
    return depth
