"""The full product of several dimensions: its cells and all its sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from tabprotect.table.hierarchy import Dimension
from tabprotect.types import FloatArray


def cube_codes(dims: Sequence[Dimension]) -> npt.NDArray[np.int32]:
    """Code positions (cells × dimensions) of all cells of the product, the last dimension fastest."""
    grid = np.indices([len(d) for d in dims], dtype=np.int32)
    return np.ascontiguousarray(grid.reshape(len(dims), -1).T)


def cube_relations(dims: Sequence[Dimension]) -> Any:
    """All relations of the product as a sparse matrix: one row per sum and combination of the other dimensions' codes, total −1, parts +1."""
    sizes = [len(d) for d in dims]
    n = int(np.prod(sizes))
    strides = [int(np.prod(sizes[k + 1 :])) for k in range(len(sizes))]
    indices, lengths = [], []
    for k, dim in enumerate(dims):
        others = np.arange(n, dtype=np.int64).reshape(sizes).take(0, axis=k).ravel()
        for total, parts in dim.hierarchy.sums:
            members = np.array([total, *parts], dtype=np.int64) * strides[k]
            indices.append((others[:, None] + members[None, :]).ravel())
            lengths.append(np.full(len(others), len(members), dtype=np.int64))
    if not indices:
        return sp.csr_array((0, n))
    flat = np.concatenate(indices)
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    data = np.ones(len(flat))
    data[indptr[:-1]] = -1.0
    small = np.int32 if len(flat) < 2**31 else np.int64
    return sp.csr_array((data, flat.astype(small), indptr.astype(small)), shape=(len(indptr) - 1, n))


def fill_margins(inner: FloatArray, dims: Sequence[Dimension]) -> FloatArray:
    """Values of all cells of the product from those of the inner cells (an array over the leaves of each dimension)."""
    cube = inner
    for k, dim in enumerate(dims):
        front = np.moveaxis(cube, k, 0)
        summed = dim.hierarchy.membership @ front.reshape(front.shape[0], -1)
        cube = np.moveaxis(summed.reshape(len(dim), *front.shape[1:]), 0, k)
    return np.ascontiguousarray(cube).ravel()
