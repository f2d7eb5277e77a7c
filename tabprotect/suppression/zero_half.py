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
from tabprotect.types import FloatArray, IntArray

TIGHT = 1.05
"""The first two covers have no more than this of the point."""
NEAR = 1.6
"""Nor the third one more than this."""
LEAST = 0.05
"""Violation worth a row, at a right-hand side of 2."""
MOST_TIGHT, MOST_NEAR, MOST_PAIRS, MOST_TRIPLES, MOST_CUTS = 150, 1000, 300, 12, 4

Better = Callable[[int, FloatArray], Cut | None]
"""A cut for a requirement (by its number) with little of a point, violated or not."""


class ZeroHalf:
    """Covers found so far, and the violated cuts that three of them give.

    >>> three = [Cut(np.array(cells), np.ones(2)) for cells in ([0, 1], [1, 2], [0, 2])]
    >>> found = ZeroHalf(3, three).violated(np.full(3, 0.5))
    >>> [(cut.cells.tolist(), cut.coefficients.tolist()) for cut in found]
    [([0, 1, 2], [0.5, 0.5, 0.5])]
    """

    def __init__(self, n: int, cuts: Iterable[Cut] = ()) -> None:
        self._known: set[bytes] = set()
        self._waiting: list[Cut] = []
        self._matrix = sp.csr_array((0, n))
        self._needs: list[int] = []
        for cut in cuts:
            self.add(cut)

    def add(self, cut: Cut, need: int = -1) -> None:
        """Keep it if it is a new cover; ``need`` is the number of its requirement."""
        key = cut.cells.tobytes()
        if cut.head < 0 and key not in self._known and (cut.coefficients == 1.0).all():
            self._known.add(key)
            self._waiting.append(cut)
            self._needs.append(need)

    def violated(self, x: FloatArray, better: Better | None = None) -> list[Cut]:
        """A few cuts that x violates, the farthest first.

        With two covers given, a third one adds the cells that are in both or in none of them: those in just one are rounded up already. So
        the third is the known one with least of them, or a ``better`` one of the same requirement, sought where those in just one are zero.
        """
        triples = self._triples(x)
        found: dict[bytes, tuple[float, Cut]] = {}
        for rows in triples:
            total = self._matrix[rows].sum(axis=0)
            violation, cut = _rounded(total, x)
            need = self._needs[rows[2]]
            if better is not None and need >= 0:
                two = self._matrix[rows[:2]].sum(axis=0)
                third = better(need, np.where(two == 1.0, 0.0, x))
                if third is not None:
                    two[third.cells] += 1.0
                    violation, cut = max((violation, cut), _rounded(two, x), key=lambda pair: pair[0])
            if violation >= LEAST:
                found.setdefault(cut.cells.tobytes(), (violation, cut))
        return [cut for _, cut in sorted(found.values(), key=lambda pair: -pair[0])[:MOST_CUTS]]

    def _triples(self, x: FloatArray) -> IntArray:
        """The three covers of the most promising cuts, best first: two that are tight, and the known one that goes best with them."""
        if self._waiting:
            fresh, _ = stack_rows(self._waiting, self._matrix.shape[1])
            self._matrix = sp.csr_array(sp.vstack([self._matrix, fresh]))
            self._waiting = []
        value = self._matrix @ x
        near = np.argsort(value, kind="stable")[:MOST_NEAR]
        near = near[value[near] < NEAR]
        value = value[near]
        tight = min(MOST_TIGHT, int(np.searchsorted(value, TIGHT)))
        if tight < 2:
            return np.zeros((0, 3), np.int64)
        support = np.flatnonzero(x > 1e-9)
        inside = self._matrix[near][:, support].toarray() > 0
        weighted = inside * x[support]
        first, second = np.triu_indices(tight, 1)
        common = (weighted[:tight] @ inside[:tight].T.astype(float))[first, second]
        room = 2.0 - (value[first] + value[second] - common)
        pairs = np.flatnonzero((room > 2 * LEAST) & (room < 1 - LEAST))  # more: the two are almost the same
        pairs = pairs[np.argsort(-room[pairs], kind="stable")[:MOST_PAIRS]]
        odd = (inside[first[pairs]] != inside[second[pairs]]).astype(float)
        violation = room[pairs, None] - (value - odd @ weighted.T)
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
