"""The largest contributions to every cell of a hierarchical cube, each respondent counted once per cell.

A respondent who contributes to several inner cells is one respondent of every total above them, so the largest contributions of a total
cannot be merged from those of its parts. Rows (respondent, inner cell, amount) come in order of respondent; for each respondent the
amounts are added in all cells above, found through the ancestors of each leaf, and every cell touched takes the sum once. The work is
rows × ancestors, with one insertion into a short sorted list each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np

from tabprotect.table.hierarchy import Dimension
from tabprotect.types import BoolArray, FloatArray, IntArray

# columns of the state of a cell, kept side by side so that a visit costs one line of the processor's cache
WHO, COUNT, SUM, WEIGHTED, SIZE, TOP = 0, 1, 2, 3, 4, 5  # then the largest contributions


class TopK:
    """Number, sum and largest contributions per cell, filled by `add` and read at the end."""

    def __init__(self, dims: Sequence[Dimension], k: int, *, weighted: bool, asked: bool, absolute: bool) -> None:
        sizes = [len(d) for d in dims]
        n = int(np.prod(sizes))
        self.leaf_sizes = np.array([len(d.hierarchy.leaves) for d in dims], np.int64)
        self.starts, self.above, self.longest = _ancestors(dims, sizes)
        self.k, self.absolute = k, absolute
        inner = int(np.prod(self.leaf_sizes))
        self.value, self.weight_value = np.zeros(inner), np.zeros(inner if weighted else 0)
        self.state = _aligned(n, TOP + k)
        self.state[:, WHO] = -1.0
        self.state[:, TOP:] = -np.inf
        room = self.state.shape[1] - TOP
        self._weight = np.ones((n if weighted else 0, room))
        self._asked = np.zeros((n if asked else 0, room), np.bool_)
        self._touched = np.zeros(n, np.int64)
        self.respondents = 0
        self._names: list[IntArray] = []

    def add(
        self, starts: IntArray, leaf: IntArray, x: FloatArray, wx: FloatArray, asked: BoolArray, names: IntArray
    ) -> None:
        """Rows of whole respondents: respondent i has rows starts[i] to starts[i+1] and the number names[i] (or none at all)."""
        _add(
            (starts, leaf, x, wx, asked, self.respondents, self.absolute),
            (self.leaf_sizes, self.starts, self.above, np.empty(self.longest, np.int64)),
            (self.value, self.weight_value),
            (self.state, self._weight, self._asked),
            self._touched,
        )
        self.respondents += len(starts) - 1
        self._names.append(names)

    @property
    def count(self) -> IntArray:
        """Number of respondents of each cell."""
        return self.state[:, COUNT].astype(np.int64)

    @property
    def ids(self) -> IntArray:
        """The number of the only respondent of each cell, −1 for cells with none or several."""
        ids = np.full(len(self.state), -1, np.int64)
        alone = self.state[:, COUNT] == 1
        if alone.any():
            ids[alone] = np.concatenate(self._names)[self.state[alone, WHO].astype(np.int64)]
        return ids

    @property
    def top(self) -> FloatArray:
        """The k largest contributions of each cell, zero where there are fewer."""
        top = self.state[:, TOP : TOP + self.k]
        return np.where(np.isneginf(top), 0.0, top)

    @property
    def weights(self) -> FloatArray | None:
        """The sampling weights of the largest contributions: weighted over unweighted amount."""
        return self._weight[:, : self.k].copy() if len(self._weight) else None

    @property
    def asked(self) -> BoolArray | None:
        """Which of the largest contributors asked for protection."""
        return self._asked[:, : self.k].copy() if len(self._asked) else None

    @property
    def size(self) -> FloatArray:
        """The (weighted) sum of the absolute contributions of each cell, if these were asked for."""
        return self.state[:, SIZE].copy()


def _aligned(rows: int, columns: int) -> FloatArray:
    """Zeros whose rows start at a line of the processor's cache: rows of up to eight numbers are then one line each."""
    width = columns if columns > 8 else 8
    raw = np.zeros(rows * width + 8)
    skip = (-raw.ctypes.data % 64) // 8
    return raw[skip : skip + rows * width].reshape(rows, width)


def _ancestors(dims: Sequence[Dimension], sizes: Sequence[int]) -> tuple[IntArray, IntArray, int]:
    """Where the ancestors of each leaf start, their positions times the stride of the dimension (all dimensions in a row), and the
    largest number of cells above an inner cell."""
    starts, above, longest, offset = [], [], 1, 0
    for k, dim in enumerate(dims):
        up = dim.hierarchy.ancestors()
        starts.append(up.indptr.astype(np.int64) + offset)
        above.append(up.indices.astype(np.int64) * int(np.prod(sizes[k + 1 :])))
        offset += up.nnz
        longest *= int(np.diff(up.indptr).max())
    return np.concatenate(starts), np.concatenate(above), longest


@numba.njit(cache=True)
def _cells_above(leaf: int, leaf_sizes: Any, starts: Any, above: Any, out: Any) -> int:
    """Write all cells that contain the inner cell to ``out``; returns how many."""
    n, end_of_dimension = 1, len(starts)
    out[0] = 0
    for k in range(len(leaf_sizes) - 1, -1, -1):
        size = leaf_sizes[k]
        own = end_of_dimension - size - 1 + leaf % size
        leaf //= size
        end_of_dimension -= size + 1
        first, end = starts[own], starts[own + 1]
        for j in range(end - 1, first - 1, -1):  # the first ancestor last, because it overwrites the list it reads
            base = (j - first) * n
            for i in range(n):
                out[base + i] = out[i] + above[j]
        n *= end - first
    return n


@numba.njit(cache=True)
def _insert(cell: int, v: float, w: float, asks: bool, state: Any, weight: Any, asked: Any) -> None:
    """Put a contribution into the cell's list; of equal ones the heavier, then the one who asked, comes first."""
    end = state.shape[1]
    weighted, asking = len(weight) > 0, len(asked) > 0
    j = end
    while j > TOP:
        before = state[cell, j - 1]
        ahead = v > before
        if v == before:
            if weighted and w != weight[cell, j - 1 - TOP]:
                ahead = w > weight[cell, j - 1 - TOP]
            elif asking:
                ahead = asks and not asked[cell, j - 1 - TOP]
        if not ahead:
            break
        j -= 1
    if j == end:
        return
    for i in range(end - 1, j, -1):
        state[cell, i] = state[cell, i - 1]
        if weighted:
            weight[cell, i - TOP] = weight[cell, i - 1 - TOP]
        if asking:
            asked[cell, i - TOP] = asked[cell, i - 1 - TOP]
    state[cell, j] = v
    if weighted:
        weight[cell, j - TOP] = w
    if asking:
        asked[cell, j - TOP] = asks


@numba.njit(cache=True)
def _add(rows: Any, shape: Any, inner: Any, cells: Any, touched: Any) -> None:
    run, leaf, x, wx, asked, number, absolute = rows
    leaf_sizes, starts, above, here = shape
    value, weight_value = inner
    state, top_weight, top_asked = cells
    weighted, asking, end = len(weight_value) > 0, len(top_asked) > 0, state.shape[1]
    for r in range(len(run) - 1):
        who, met, asks = float(number + r), 0, False
        for i in range(run[r], run[r + 1]):
            value[leaf[i]] += x[i]
            if weighted:
                weight_value[leaf[i]] += wx[i]
            if asking and asked[i]:
                asks = True
            n = _cells_above(leaf[i], leaf_sizes, starts, above, here)
            for h in range(n):
                c = here[h]
                if state[c, WHO] != who:
                    state[c, WHO] = who
                    state[c, COUNT] += 1.0
                    state[c, SUM] = x[i]
                    if weighted:
                        state[c, WEIGHTED] = wx[i]
                    touched[met] = c
                    met += 1
                else:
                    state[c, SUM] += x[i]
                    if weighted:
                        state[c, WEIGHTED] += wx[i]
        for h in range(met):
            c = touched[h]
            v, w = state[c, SUM], 1.0
            if weighted and v != 0.0:
                w = state[c, WEIGHTED] / v
            if absolute:
                v = abs(v)
                state[c, SIZE] += v * w
            # most contributions are too small for the list; ties only matter for what is kept beside the amounts
            if v > state[c, end - 1] or (v == state[c, end - 1] and (weighted or asking)):
                _insert(c, v, w, asks, state, top_weight, top_asked)
