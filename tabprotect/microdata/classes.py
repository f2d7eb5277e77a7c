"""Equivalence classes: everything the risk measures need, per class, from one sort and one scan."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from tabprotect.errors import InputError
from tabprotect.microdata.encode import Encoded, Keys
from tabprotect.types import FloatArray, IntArray


@dataclass(frozen=True)
class Sensitive:
    """A sensitive attribute, ready for the scan.

    Codes are ranks; a missing value is a value of its own, below all others and infinitely far from them.
    ``share`` is the distribution in the whole file, ``values`` the numbers behind the codes (None for nominal attributes).
    """

    name: str
    codes: npt.NDArray[np.int32]
    share: FloatArray
    values: FloatArray | None
    ordered: bool

    @classmethod
    def of(cls, column: Encoded, ordered: bool | None = None, counts: Mapping[Any, int] | None = None) -> Sensitive:
        """From an encoded column; ``counts`` gives the distribution of the whole file when the column is only a part of it."""
        codes, labels = column.codes, column.labels
        values = column.values if column.numeric else None
        gap = column.has_missing
        if counts is not None:
            known = [v for v in counts if not _missing(v)]
            known = sorted(known) if column.numeric else known
            gap = len(known) < len(counts)
            where = {v: i for i, v in enumerate(known)}
            codes = np.array([where[_item(v)] for v in labels] + [-1], np.int32)[codes]
            values = np.array(known, np.float64) if column.numeric else None
            frequency = np.array([counts[v] for v in known], np.float64)
            if gap:
                frequency = np.append([sum(c for v, c in counts.items() if _missing(v))], frequency)
        if gap:
            codes = codes + np.int32(1)
            values = None if values is None else np.append(-np.inf, values)
        if counts is None:
            frequency = np.bincount(codes, minlength=len(labels) + gap).astype(np.float64)
        total = frequency.sum()
        is_ordered = column.ordered if ordered is None else ordered
        if is_ordered and not column.ordered:
            raise InputError(
                f"{column.name!r} has no order, so the ordered distance of t-closeness does not apply; "
                "make it numeric or an ordered categorical"
            )
        return cls(column.name, codes, frequency / max(total, 1.0), values, is_ordered)

    @property
    def size(self) -> int:
        return len(self.share)


def _missing(v: Any) -> bool:
    return v is None or v != v


def _item(v: Any) -> Any:
    return v.item() if isinstance(v, np.generic) else v


@dataclass(frozen=True)
class ClassTable:
    """One row per class, ordered by key: a contingency table with what happens to the sensitive attribute in each cell.

    ``size`` f_j; ``own`` the records that the row stands for (f_j, except where missing values match anything);
    ``distinct`` sensitive values; ``entropy`` in nats; ``recursive`` the ratio r₁/(r_l+…+r_m) that c has to exceed;
    ``t`` distance to the distribution in the file; ``low``, ``low2``, ``high2``, ``high`` the codes of the smallest, second smallest, second
    largest and largest value.
    """

    key: Keys
    size: npt.NDArray[np.int32]
    own: npt.NDArray[np.int32]
    distinct: npt.NDArray[np.int32]
    entropy: FloatArray
    recursive: FloatArray
    t: FloatArray
    low: npt.NDArray[np.int32]
    low2: npt.NDArray[np.int32]
    high2: npt.NDArray[np.int32]
    high: npt.NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.size)


def class_table(key: Keys, span: int, sensitive: Sensitive | None = None, *, l: int = 2) -> ClassTable:
    """Group records by key and measure each class.

    The key and the sensitive code share one 64-bit number, so that a plain sort (vectorised in numpy) puts the classes together with their
    values in order; no permutation is needed.

    l: the l of recursive (c, l)-diversity.

    >>> import numpy as np
    >>> table = class_table(np.array([5, 3, 5], dtype=np.uint64), 10)
    >>> table.key.tolist(), table.size.tolist()
    ([3, 5], [1, 2])
    """
    values = 1 if sensitive is None else max(sensitive.size, 1)
    shift = (values - 1).bit_length()
    if span << shift > 1 << 64:
        raise InputError("the keys and the sensitive attribute have too many values for one 64-bit number")
    word = np.left_shift(key, np.uint64(shift))
    if sensitive is not None:
        word |= sensitive.codes.astype(np.uint64)
    word.sort()
    share = np.ones(1) if sensitive is None else sensitive.share
    cum = np.cumsum(share)
    area = np.append(0.0, np.cumsum(cum))
    ordered = sensitive is not None and sensitive.ordered
    rows = _count_classes(word, shift)
    out = _scan(word, shift, rows, share, cum, area, ordered, l)
    keys, size, distinct, entropy, recursive, t, codes = out
    return ClassTable(keys, size, size, distinct, entropy, recursive, t, codes[0], codes[1], codes[2], codes[3])


@nb.njit(cache=True, nogil=True)
def _count_classes(word, shift):  # type: ignore[no-untyped-def]
    total = 0
    s = np.uint64(shift)
    for i in range(len(word)):
        if i == 0 or (word[i] >> s) != (word[i - 1] >> s):
            total += 1
    return total


@nb.njit(cache=True, nogil=True)
def _distance_between(c, a, b, cum, area):  # type: ignore[no-untyped-def]
    """Σ |c − Q_i| over i in [a, b) for increasing Q: prefix sums and one binary search."""
    if b <= a:
        return 0.0
    lo, hi = a, b
    while lo < hi:
        mid = (lo + hi) // 2
        if cum[mid] >= c:
            hi = mid
        else:
            lo = mid + 1
    return c * (lo - a) - (area[lo] - area[a]) + (area[b] - area[lo]) - c * (b - lo)


@nb.njit(cache=True, nogil=True)
def _scan(word, shift, rows, share, cum, area, ordered, l):  # type: ignore[no-untyped-def]
    m = len(share)
    s, mask = np.uint64(shift), np.uint64((1 << shift) - 1)
    keys = np.empty(rows, np.uint64)
    size = np.empty(rows, np.int32)
    distinct = np.empty(rows, np.int32)
    entropy = np.zeros(rows)
    recursive = np.full(rows, np.inf)
    t = np.zeros(rows)
    codes = np.empty((4, rows), np.int32)
    alone = np.empty(m)  # distance of a class with the single value v: most classes of detailed keys are such
    for v in range(m):
        if ordered:
            inside = area[v] + (m - 1 - v) - (area[m - 1] - area[v])
            alone[v] = inside / max(m - 1, 1)
        else:
            alone[v] = 1.0 - share[v]
    top = np.zeros(max(l, 1), np.int64)
    start, j = 0, 0
    n = len(word)
    while start < n:
        code = word[start] >> s
        stop = start + 1
        while stop < n and (word[stop] >> s) == code:
            stop += 1
        f = stop - start
        first, last = word[start] & mask, word[stop - 1] & mask
        keys[j], size[j] = code, f
        codes[0, j], codes[3, j] = first, last
        codes[1, j] = word[min(start + 1, stop - 1)] & mask
        codes[2, j] = word[max(stop - 2, start)] & mask
        if first == last:
            distinct[j] = 1
            t[j] = alone[first]
            if l <= 1:
                recursive[j] = 1.0
            start, j = stop, j + 1
            continue
        top[:] = 0
        runs, logs, far, below, at = 0, 0.0, 0.0, 0, start
        done = np.int64(0)
        while at < stop:
            value = np.int64(word[at] & mask)
            end = at + 1
            while end < stop and np.int64(word[end] & mask) == value:
                end += 1
            c = end - at
            runs += 1
            if c > 1:
                logs += c * np.log(c)
            for i in range(len(top)):  # keep the l largest counts
                if c > top[i]:
                    for q in range(len(top) - 1, i, -1):
                        top[q] = top[q - 1]
                    top[i] = c
                    break
            if ordered:
                far += _distance_between(below / f, done, value, cum, area)
                done, below = value, below + c
            else:
                far += max(c / f - share[value], 0.0)
            at = end
        if ordered:
            far += _distance_between(1.0, done, m - 1, cum, area)
            far /= m - 1
        distinct[j], t[j] = runs, far
        entropy[j] = max(np.log(f) - logs / f, 0.0)
        rest = f
        for i in range(l - 1):
            rest -= top[i]
        if rest > 0:
            recursive[j] = top[0] / rest
        start, j = stop, j + 1
    return keys, size, distinct, entropy, recursive, t, codes


def sizes_of(ids: IntArray, count: int) -> IntArray:
    """Class size of every record."""
    return np.bincount(ids, minlength=count)[ids]
