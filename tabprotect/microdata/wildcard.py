"""Missing key values that match anything: match sets in place of classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from tabprotect.errors import InputError
from tabprotect.microdata.classes import ClassTable, Sensitive, class_table
from tabprotect.microdata.encode import Encoded, combine, group
from tabprotect.types import IntArray

LIMIT = 300_000_000


@dataclass(frozen=True)
class Matches:
    """For each distinct key combination (class): which other combinations agree with it wherever both are known."""

    ids: IntArray  # class of each record
    count: int
    left: IntArray
    right: IntArray  # pairs (class, compatible class), each class with itself included

    def sizes(self) -> IntArray:
        """Number of records that match each class."""
        own = np.bincount(self.ids, minlength=self.count)
        return np.bincount(self.left, weights=own[self.right], minlength=self.count).astype(np.int64)


def matches(columns: Sequence[Encoded]) -> Matches:
    """Join the classes on what both know, pattern by pattern of missingness.

    Two records match if they agree in every key that neither of them misses; so for each pair of patterns one join over the keys known
    to both suffices.
    """
    n = len(columns[0].codes)
    sizes = [c.size + 1 for c in columns]
    key, span = combine([c.codes + np.int32(1) for c in columns], sizes, n)
    ids, count = group(key, span)
    first = np.full(count, -1, np.int64)
    first[ids[::-1]] = np.arange(n - 1, -1, -1)
    codes = np.stack([c.codes[first] for c in columns], axis=1) if count else np.zeros((0, len(columns)), np.int32)
    pattern = (codes < 0) @ (1 << np.arange(len(columns), dtype=np.int64))
    members = {int(p): np.flatnonzero(pattern == p) for p in np.unique(pattern)}
    left, right, pairs = [], [], 0
    for p, mine in members.items():
        for q, theirs in members.items():
            known = [j for j in range(len(columns)) if not (p | q) >> j & 1]
            a, b = _join(codes[mine][:, known], codes[theirs][:, known], [sizes[j] for j in known])
            pairs += len(a)
            if pairs > LIMIT:
                raise InputError("too many records match through missing values; use missing='class' or fewer keys")
            left.append(mine[a])
            right.append(theirs[b])
    none = [np.zeros(0, np.int64)]
    return Matches(ids, count, np.concatenate(left or none), np.concatenate(right or none))


def _join(a: npt.NDArray[np.int32], b: npt.NDArray[np.int32], sizes: list[int]) -> tuple[IntArray, IntArray]:
    """All pairs of rows of two code tables that are equal."""
    both, span = combine(list(np.concatenate([a, b]).T), sizes, len(a) + len(b))
    ids, count = group(both, span)
    mine, theirs = ids[: len(a)], ids[len(a) :]
    order = np.argsort(theirs, kind="stable")
    have = np.bincount(theirs, minlength=count)
    start = np.concatenate([[0], np.cumsum(have)[:-1]])
    repeat = have[mine]
    left = np.repeat(np.arange(len(a)), repeat)
    offset = np.arange(repeat.sum()) - np.repeat(np.cumsum(repeat) - repeat, repeat)
    return left, order[np.repeat(start[mine], repeat) + offset]


def match_table(columns: Sequence[Encoded], sensitive: Sensitive | None, *, l: int = 2) -> tuple[ClassTable, Matches]:
    """The class table in which every class has all the records that match it."""
    found = matches(columns)
    order = np.argsort(found.ids, kind="stable")
    own = np.bincount(found.ids, minlength=found.count)
    start = np.concatenate([[0], np.cumsum(own)[:-1]])
    repeat = own[found.right]
    if repeat.sum() > LIMIT:
        raise InputError("too many records match through missing values; use missing='class' or fewer keys")
    record = order[
        np.repeat(start[found.right], repeat) + np.arange(repeat.sum()) - np.repeat(np.cumsum(repeat) - repeat, repeat)
    ]
    key = np.repeat(found.left, repeat).astype(np.uint64)
    expanded = None if sensitive is None else replace(sensitive, codes=sensitive.codes[record])
    table = class_table(key, max(found.count, 1), expanded, l=l)
    return replace(table, own=own.astype(np.int32)), found
