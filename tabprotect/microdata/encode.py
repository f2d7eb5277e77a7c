"""Columns to integer codes, and several coded columns to one class number per record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numba as nb
import numpy as np
import numpy.typing as npt

from tabprotect.errors import InputError
from tabprotect.microdata.frames import Frame
from tabprotect.types import FloatArray, IntArray

Codes = npt.NDArray[np.int32]
Keys = npt.NDArray[np.uint64]

TABLE = 1 << 22  # integer columns spanning less are coded by table look-up, without any sorting


@dataclass(frozen=True)
class Encoded:
    """A column as codes 0..K−1 into its distinct values, −1 for missing.

    ``labels`` are ascending for numeric columns and ordered categories; else in order of appearance.
    """

    name: str
    codes: Codes
    labels: npt.NDArray[Any]
    numeric: bool
    ordered: bool

    @property
    def size(self) -> int:
        """Number of distinct values, without missing."""
        return len(self.labels)

    @property
    def has_missing(self) -> bool:
        return bool(len(self.codes)) and int(self.codes.min()) < 0

    @property
    def values(self) -> FloatArray:
        """Numeric values per code."""
        if not self.numeric:
            raise InputError(f"column {self.name!r} is not numeric")
        return self.labels.astype(np.float64)

    def decoded(self, codes: npt.NDArray[Any], missing: Any = None) -> npt.NDArray[Any]:
        """Values for codes; numeric columns stay numeric where nothing is missing."""
        if not len(codes) or not self.size:
            return np.full(len(codes), missing, dtype=object)
        found = self.labels[np.maximum(codes, 0)]
        if (codes < 0).any():
            found = found.astype(object)
            found[codes < 0] = missing
        return found


def encode(frame: Frame, name: str) -> Encoded:
    """Encode one column of a frame.

    >>> import pandas as pd, narwhals as nw
    >>> e = encode(nw.from_native(pd.DataFrame({"a": [30, 10, None, 30]}), eager_only=True), "a")
    >>> e.codes.tolist(), e.labels.tolist()
    ([1, 0, -1, 1], [10.0, 30.0])
    """
    series = frame.get_column(name)
    dtype = series.dtype
    if dtype == nw.Boolean:
        return (
            _from_arrow(series, name) if series.null_count() else _from_numbers(series.to_numpy(), name, numeric=False)
        )
    if dtype.is_numeric() and not isinstance(dtype, nw.Decimal):
        return _from_numbers(_numbers(series), name)
    if isinstance(dtype, nw.Categorical | nw.Enum) and frame.implementation.is_pandas():
        native = series.to_native().cat
        codes = native.codes.to_numpy().astype(np.int32)
        return _compact(name, codes, native.categories.to_numpy(), ordered=bool(native.ordered))
    return _from_arrow(series, name, ordered=isinstance(dtype, nw.Enum))


def _numbers(series: nw.Series[Any]) -> npt.NDArray[Any]:
    if series.null_count():
        return series.cast(nw.Float64).to_numpy().astype(np.float64)
    found = series.to_numpy()
    return found if found.dtype.kind in "iuf" else found.astype(np.float64)


def _from_numbers(x: npt.NDArray[Any], name: str, numeric: bool = True) -> Encoded:
    if x.dtype.kind == "b":
        x = x.view(np.uint8)
    if not len(x):
        return Encoded(name, np.zeros(0, np.int32), np.zeros(0), numeric, numeric)
    low, high, whole = _span(x)
    if whole and high - low < TABLE:
        width = int(high) - int(low) + 1
        codes, labels = _by_table(x, float(low), width)
        found = (labels + int(low)).astype(x.dtype)
    else:
        order = np.argsort(x)
        ranked = x[order]
        count = len(x) if x.dtype.kind != "f" else int(np.searchsorted(ranked, np.nan))
        ranked = ranked[:count]  # NaN sorts last
        step = np.ones(count, np.bool_)
        step[1:] = ranked[1:] != ranked[:-1]
        codes = np.full(len(x), -1, np.int32)
        codes[order[:count]] = np.cumsum(step, dtype=np.int32) - 1
        found = ranked[step]
    if not numeric:
        found = found.astype(np.bool_)
    return Encoded(name, codes, found, numeric, numeric)


@nb.njit(cache=True, nogil=True)
def _span(x):  # type: ignore[no-untyped-def]
    """Smallest and largest value, and whether all are whole numbers that a double holds exactly; NaN is passed over."""
    low, high = np.inf, -np.inf
    for v in x:
        f = float(v)
        if f != f:
            continue
        low, high = min(low, f), max(high, f)
        if f != np.floor(f):
            return low, high, False
    return low, high, low <= high and abs(low) < 2**53 and abs(high) < 2**53


@nb.njit(cache=True, nogil=True)
def _by_table(x, low, width):  # type: ignore[no-untyped-def]
    """Dense codes of whole numbers by a table of what occurs."""
    seen = np.zeros(width, np.int32)
    codes = np.empty(len(x), np.int32)
    for i in range(len(x)):
        v = float(x[i])
        if v != v:
            codes[i] = -1
        else:
            codes[i] = int(v - low)
            seen[codes[i]] = 1
    total = 0
    for j in range(width):
        if seen[j]:
            seen[j] = total
            total += 1
        else:
            seen[j] = -1
    labels = np.empty(total, np.int64)
    for j in range(width):
        if seen[j] >= 0:
            labels[seen[j]] = j
    if total < width:
        for i in range(len(x)):
            if codes[i] >= 0:
                codes[i] = seen[codes[i]]
    return codes, labels


def _from_arrow(series: nw.Series[Any], name: str, ordered: bool = False) -> Encoded:
    import pyarrow as pa
    import pyarrow.compute as pc

    column = series.to_arrow()
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not pa.types.is_dictionary(column.type):
        column = pc.dictionary_encode(column)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    index = column.indices
    codes = pc.fill_null(pc.cast(index, pa.int32()), -1).to_numpy(zero_copy_only=False)
    return _compact(name, codes, column.dictionary.to_numpy(zero_copy_only=False), ordered=ordered)


def _compact(name: str, codes: Codes, labels: npt.NDArray[Any], *, ordered: bool) -> Encoded:
    """Drop categories that do not occur."""
    seen = np.zeros(len(labels) + 1, np.bool_)
    seen[codes] = True
    if seen[:-1].all():
        return Encoded(name, codes, labels, False, ordered)
    place = np.cumsum(seen[:-1], dtype=np.int32) - 1
    return Encoded(name, np.append(place, np.int32(-1))[codes], labels[seen[:-1]], False, ordered)


def combine(columns: Sequence[Codes], sizes: Sequence[int], rows: int) -> tuple[Keys, int]:
    """One key per record from several code columns, and an upper bound of the keys.

    Mixed-radix numbers while they fit into 48 bits; beyond that the part so far is replaced by its dense number, which needs at
    most as many values as there are records. So any number of columns stays exact.
    """
    key = np.zeros(rows, np.uint64)
    span = 1
    for codes, size in zip(columns, sizes, strict=True):
        size = max(size, 1)
        if span * size > 1 << 48:
            dense, span = group(key, span)
            key = dense.astype(np.uint64)
        _fold(key, codes, size)
        span *= size
    return key, span


@nb.njit(cache=True, nogil=True)
def _fold(key, codes, size):  # type: ignore[no-untyped-def]
    for i in range(len(key)):
        key[i] = key[i] * np.uint64(size) + np.uint64(codes[i])


def group(key: Keys, span: int) -> tuple[IntArray, int]:
    """Dense class numbers 0..J−1 of the records, in order of appearance, and J.

    >>> ids, count = group(np.array([7, 9, 7, 2], dtype=np.uint64), 10)
    >>> ids.tolist(), count
    ([0, 1, 0, 2], 3)
    """
    if span <= max(1 << 20, 2 * len(key)):
        return _number_by_table(key, span)
    bits = max(int(np.ceil(np.log2(max(len(key), 1) * 1.6))), 4)
    return _number_by_hash(key, bits)


@nb.njit(cache=True, nogil=True)
def _number_by_table(key, span):  # type: ignore[no-untyped-def]
    table = np.full(span, -1, np.int64)
    ids = np.empty(len(key), np.int64)
    total = 0
    for i in range(len(key)):
        at = np.int64(key[i])
        if table[at] < 0:
            table[at] = total
            total += 1
        ids[i] = table[at]
    return ids, total


@nb.njit(cache=True, nogil=True)
def _number_by_hash(key, bits):  # type: ignore[no-untyped-def]
    """Open addressing with Fibonacci hashing; the whole key is compared, so there are no false matches."""
    mask = np.uint64((1 << bits) - 1)
    table = np.full(1 << bits, -1, np.int32)
    first = np.empty(len(key), np.uint64)
    ids = np.empty(len(key), np.int64)
    total = 0
    shift = np.uint64(64 - bits)
    for i in range(len(key)):
        k = key[i]
        at = (k * np.uint64(0x9E3779B97F4A7C15)) >> shift
        while table[at] >= 0 and first[table[at]] != k:
            at = (at + np.uint64(1)) & mask
        if table[at] < 0:
            table[at] = total
            first[total] = k
            total += 1
        ids[i] = table[at]
    return ids, total
