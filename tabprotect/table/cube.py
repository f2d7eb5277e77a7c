"""The full product of several dimensions: its cells and all its sums."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from tabprotect.errors import InputError
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


def fill_margins(inner: npt.NDArray[Any], dims: Sequence[Dimension]) -> npt.NDArray[Any]:
    """Values of all cells of the product from those of the inner cells (an array over the leaves of each dimension).

    Whole numbers stay whole numbers: sums of integer arrays are exact.
    """
    cube = inner
    for k, dim in enumerate(dims):
        front = np.moveaxis(cube, k, 0)
        summed = dim.hierarchy.membership @ front.reshape(front.shape[0], -1)
        cube = np.moveaxis(summed.reshape(len(dim), *front.shape[1:]), 0, k)
    return np.ascontiguousarray(cube).ravel()


def fill_top(inner: FloatArray, dims: Sequence[Dimension]) -> FloatArray:
    """The k largest contributions of all cells (cells × k) from those of the inner cells (leaves of each dimension × k).

    Right when no respondent contributes to two inner cells.
    """
    cube, k = inner, inner.shape[-1]
    for axis, dim in enumerate(dims):
        front = np.moveaxis(cube, axis, 0)
        member = dim.hierarchy.membership
        out = np.empty((len(dim), *front.shape[1:]))
        for code in range(len(dim)):
            leaves = member.indices[member.indptr[code] : member.indptr[code + 1]]
            pool = np.moveaxis(front[leaves], 0, -2)
            pool = pool.reshape(*pool.shape[:-2], -1)
            out[code] = -np.sort(-pool, axis=-1)[..., :k]
        cube = np.moveaxis(out, 0, axis)
    return np.ascontiguousarray(cube).reshape(-1, k)


def units(values: FloatArray, most: int = 6) -> int:
    """The power of ten that makes all values whole numbers with an exact sum, or 0 if there is none.

    >>> units(np.array([1.25, 3.0])), units(np.array([1 / 3]))
    (100, 0)
    """
    for d in range(most + 1):
        scale = 10**d
        scaled = values * float(scale)
        whole = np.rint(scaled)
        if np.abs(whole).sum() > 2.0**53:
            return 0
        # the float nearest to the decimal number is what was given
        if np.array_equal(whole / scale, values):
            return scale
    return 0


def check_size(dims: Sequence[Dimension], most: int = 50_000_000) -> None:
    """Refuse products of dimensions that are too large to be held."""
    n = math.prod(len(d) for d in dims)
    if n > most:
        sizes = " × ".join(f"{d.name}({len(d):,})" for d in dims)
        raise InputError(f"the table {sizes} has {n:,} cells; the most is {most:,}: use fewer or coarser dimensions")
