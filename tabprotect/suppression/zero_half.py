"""Cuts from three covers at once: half their sum, rounded up.

Covers say that one of some cells is hidden. Where "one of A and B", "one of A and C" and "one of B and C" hold, two of the three are
hidden, but half of each satisfies the relaxation: needs that share moves only one at a time look like this. These are the inequalities
with coefficients 0, 1, 2 and right-hand side 2 of E. Balas and S.M. Ng, "On the set covering polytope", Mathematical Programming 43
(1989), found as the {0, ½}-cuts of A. Caprara and M. Fischetti, Mathematical Programming 74 (1996).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import scipy.sparse as sp

from tabprotect.suppression.cuts import Cut, stack_rows
from tabprotect.suppression.problem import Requirement
from tabprotect.types import FloatArray, IntArray

TIGHT = 1.05
"""The first two covers have no more than this of the point."""
NEAR = 1.6
"""Nor the third one more than this."""
LEAST = 0.05
"""Violation worth a row, at a right-hand side of 2."""
MOST_TIGHT, MOST_NEAR, MOST_PAIRS, MOST_TRIPLES, MOST_CUTS = 150, 1000, 300, 12, 4

Better = Callable[[Requirement, FloatArray], Cut | None]
"""A cut for a requirement with little of a point, violated or not."""


class ZeroHalf:
    """Covers found so far, and the violated cuts that three of them give.

    >>> three = [Cut(np.array(cells), np.ones(2)) for cells in ([0, 1], [1, 2], [0, 2])]
    >>> found = ZeroHalf(3, three).violated(np.full(3, 0.5))
    >>> [(cut.cells.tolist(), cut.coefficients.tolist()) for cut in found]
    [([0, 1, 2], [0.5, 0.5, 0.5])]
    """

    def __init__(self, n: int, cuts: Iterable[Cut] = ()) -> None:
        self.n = n
        self._known: set[bytes] = set()
        self._covers: list[Cut] = []
        self._matrix = sp.csr_array((0, n))
        for cut in cuts:
            self.add(cut)

    def add(self, cut: Cut) -> None:
        """Keep it if it is a new cover."""
        key = cut.cells.tobytes()
        if cut.head < 0 and key not in self._known and (cut.coefficients == 1.0).all():
            self._known.add(key)
            self._covers.append(cut)

    def violated(self, x: FloatArray, better: Better | None = None) -> list[Cut]:
        """A few cuts that x violates, the farthest first.

        With two covers given, a third one adds the cells that are in both or in none of them: those in just one are rounded up already. So
        the third is the known one with least of them, or a ``better`` one of the same requirement, sought where those in just one are zero.
        """
        found: dict[bytes, tuple[float, Cut]] = {}
        for rows in self._triples(x):
            violation, cut = self._best([self._covers[i] for i in rows], x, better)
            if violation >= LEAST:
                found.setdefault(cut.cells.tobytes(), (violation, cut))
        return [cut for _, cut in sorted(found.values(), key=lambda pair: -pair[0])[:MOST_CUTS]]

    def _best(self, three: list[Cut], x: FloatArray, better: Better | None) -> tuple[float, Cut]:
        """The cut from three covers, or from two of them and a better third one."""
        total = np.zeros(self.n)
        for cover in three:
            total[cover.cells] += 1.0
        known, third = _rounded(total, x), three[2]
        if better is None or third.need is None:
            return known
        total[third.cells] -= 1.0
        other = better(third.need, np.where(total == 1.0, 0.0, x))
        if other is None or not (other.coefficients == 1.0).all():
            return known
        self.add(other)
        total[other.cells] += 1.0
        return max(known, _rounded(total, x), key=lambda pair: pair[0])

    def _triples(self, x: FloatArray) -> IntArray:
        """The three covers of the most promising cuts, best first: two that are tight, and the known one that goes best with them."""
        if len(self._covers) > self._matrix.shape[0]:
            fresh, _ = stack_rows(self._covers[self._matrix.shape[0] :], self.n)
            self._matrix = sp.csr_array(sp.vstack([self._matrix, fresh]))
        value = self._matrix @ x
        near = np.argsort(value, kind="stable")[:MOST_NEAR]
        near = near[value[near] < NEAR]
        value = value[near]
        tight = min(MOST_TIGHT, int(np.searchsorted(value, TIGHT)))
        if tight < 2:
            return np.zeros((0, 3), np.int64)
        support = np.flatnonzero(x > 1e-9)
        inside = self._matrix[near][:, support]
        weighted = sp.csr_array(inside * x[support])
        first, second = np.triu_indices(tight, 1)
        common = (weighted[:tight] @ inside[:tight].T).toarray()[first, second]
        room = 2.0 - (value[first] + value[second] - common)
        pairs = np.flatnonzero((room > 2 * LEAST) & (room < 1 - LEAST))  # more: the two are almost the same
        pairs = pairs[np.argsort(-room[pairs], kind="stable")[:MOST_PAIRS]]
        odd = abs(inside[first[pairs]] - inside[second[pairs]])
        violation = room[pairs, None] - (value - (odd @ weighted.T).toarray())
        each = np.arange(len(pairs))
        violation[each, first[pairs]] = violation[each, second[pairs]] = -np.inf
        third = violation.argmax(axis=1)
        order = np.argsort(-violation[each, third], kind="stable")[:MOST_TRIPLES]
        chosen = pairs[order]
        return near[np.column_stack([first[chosen], second[chosen], third[order]])]


def _rounded(total: FloatArray, x: FloatArray) -> tuple[float, Cut]:
    """Half the sum of three covers rounded up, and how much x misses 2 by."""
    half = np.ceil(total / 2.0)
    cells = np.flatnonzero(half)
    return 2.0 - float(half[cells] @ x[cells]), Cut(cells, half[cells] / 2.0)
