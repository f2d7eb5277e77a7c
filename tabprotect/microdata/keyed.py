"""Records with their key: encoded key columns, the policy for missing values, and the population beside the sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast, get_args

import numpy as np

from tabprotect.errors import InputError
from tabprotect.microdata.encode import Codes, Encoded, Keys, combine, encode
from tabprotect.microdata.frames import Frame, checked
from tabprotect.types import BoolArray, IntArray

Missing = Literal["class", "wildcard", "drop"]


def check_missing(missing: str) -> Missing:
    if missing not in get_args(Missing):
        raise InputError(
            f"missing={missing!r}: choose 'class' (a value of its own), 'wildcard' (matches anything) or 'drop'"
        )
    return cast(Missing, missing)


@dataclass(frozen=True)
class Keyed:
    """Encoded key columns of the records that count, and their place in the file."""

    columns: tuple[Encoded, ...]
    rows: IntArray | None  # positions in the file; None: all of them
    key: Keys
    span: int

    @property
    def n(self) -> int:
        return len(self.key)


def keyed(frame: Frame, keys: Sequence[str], missing: Missing) -> Keyed:
    """Encode the keys of a frame.

    A missing value gets the code after the last value, so it is a value of its own; with ``drop`` the records that have one are left out.
    """
    columns = [encode(frame, c) for c in check_keys(frame.columns, keys)]
    n = len(frame)
    rows: IntArray | None = None
    if missing == "drop" and any(c.has_missing for c in columns):
        ok: BoolArray = np.logical_and.reduce([c.codes >= 0 for c in columns])
        rows = np.flatnonzero(ok)
        columns = [Encoded(c.name, c.codes[rows], c.labels, c.numeric, c.ordered) for c in columns]
        n = len(rows)
    codes = [own_code(c) for c in columns]
    key, span = combine(codes, [c.size + 1 for c in columns], n)
    return Keyed(tuple(columns), rows, key, span)


def own_code(column: Encoded) -> Codes:
    """Codes with missing as the value after the last one."""
    if not column.has_missing:
        return column.codes
    return np.where(column.codes < 0, np.int32(column.size), column.codes)


def check_keys(available: Sequence[str] | None, keys: Sequence[str]) -> list[str]:
    keys = [keys] if isinstance(keys, str) else list(keys)
    if not keys:
        raise InputError("give at least one key column, for example keys=['sex', 'age']")
    return checked(keys if available is None else available, keys)


def population_frequencies(
    sample: Keyed, population: Keyed, weight: IntArray | None = None
) -> tuple[Keys, Keys, int, IntArray]:
    """Keys of sample and population in one numbering, its span, and the count of each population record.

    Both were encoded apart; the population's labels are translated into the sample's codes.
    """
    mine, theirs, sizes = [], [], []
    for a, b in zip(sample.columns, population.columns, strict=True):
        where: dict[Any, int] = {v: i for i, v in enumerate(a.labels.tolist())}
        extra = len(where)
        for v in b.labels.tolist():
            if where.setdefault(v, extra) == extra:
                extra += 1
        place = np.array([where[v] for v in b.labels.tolist()] + [extra], np.int32)  # the last one is for −1
        mine.append(np.where(a.codes < 0, np.int32(extra), a.codes))
        theirs.append(place[b.codes])
        sizes.append(extra + 1)
    joint = [np.concatenate(pair) for pair in zip(mine, theirs, strict=True)]
    key, span = combine(joint, sizes, sample.n + population.n)
    count = np.ones(population.n, np.int64) if weight is None else weight
    return key[: sample.n], key[sample.n :], span, count


def class_frequencies(classes: Keys, key: Keys, count: IntArray) -> IntArray:
    """Population frequency F_j of each of the given (ascending) class keys."""
    at = np.searchsorted(classes, key)
    at[at == len(classes)] = 0
    hit = classes[at] == key if len(classes) else np.zeros(len(key), np.bool_)
    return np.bincount(at[hit], weights=count[hit], minlength=len(classes)).astype(np.int64)
