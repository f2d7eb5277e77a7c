"""Microaggregation: small groups of similar records take the values of their centre."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tabprotect.errors import InputError
from tabprotect.microdata.encode import Encoded, combine, encode, group
from tabprotect.microdata.frames import Frame, checked
from tabprotect.microdata.keyed import own_code
from tabprotect.microdata.loss import sum_of_squares
from tabprotect.microdata.mdav import mdav, optimal_univariate, vmdav
from tabprotect.microdata.recipe import Deidentified
from tabprotect.solve.stop import Listener, Stop
from tabprotect.types import FloatArray, IntArray

METHODS = ("mdav", "vmdav", "optimal")
FEW, WHOLE, BLOCK = (
    6,
    2_000_000,
    200_000,
)  # up to so many coordinates so many records are grouped in one piece; else in blocks


def microaggregate(
    data: Any,
    *,
    columns: Sequence[str],
    k: int = 5,
    method: str = "mdav",
    within: Sequence[str] = (),
    blocks: int | None = None,
    aggregate: str = "mean",
    standardise: bool = True,
    ordinal: Sequence[str] = (),
    gamma: float = 0.2,
    leftover: str = "join",
    executor: Executor | None = None,
    progress: Listener | None = None,
) -> Deidentified:
    """Replace the values of groups of at least k similar records by their centre.

    columns: numeric, ordinal and nominal columns, grouped together; nominal ones count 0 or 1 and get the most frequent value of their group,
    ordinal ones (ordered categories, or named in ``ordinal``) count by rank and get the median.
    method: ``"mdav"`` groups of k; ``"vmdav"`` groups of k to 2k−1 (``gamma``: how readily they grow); ``"optimal"`` each numeric column by itself,
    with the least possible loss.
    within: columns whose values are never mixed in a group.
    blocks: cut the file into this many blocks of neighbours first (1: never; default: only beyond 2,000,000 records,
    or 400,000 where there are more than six coordinates).
    aggregate: ``"mean"`` or ``"median"`` for numeric columns.
    leftover: where a stratum has no full group, its records ``"join"`` (stay as one group if at least k, else are dropped); with ``"drop"`` every
    group has exactly k records and the rest is dropped.

    >>> import pandas as pd, tabprotect as tp
    >>> df = pd.DataFrame({"a": [1.0, 2, 3, 11, 12, 13], "b": [1.0, 1, 1, 5, 5, 5]})
    >>> done = tp.microdata.microaggregate(df, columns=["a", "b"], k=3)
    >>> done.data["a"].tolist(), round(done.details["information loss %"], 3)
    ([2.0, 2.0, 2.0, 12.0, 12.0, 12.0], 1.299)

    References: Domingo-Ferrer and Mateo-Sanz (2002), Domingo-Ferrer and Torra (2005), Solanas and Martínez-Ballesté (2006),
    Hansen and Mukherjee (2003).
    """
    _check(k, method, aggregate, leftover, gamma)
    done = Deidentified.start(data)
    frame = done.frame
    names = _names(frame, columns, within, k)
    space = Space.of(frame, names, frozenset(ordinal), standardise)
    job = Grouping(k, method, gamma, blocks, leftover == "drop", executor, Stop(listener=progress))
    strata = _strata(frame, within)
    if method == "optimal":
        labels = [job.run(column[:, None], strata) for column in space.numeric_columns()]
    else:
        labels = [job.run(space.points(), strata)] * len(names)
    keep = np.logical_and.reduce([g >= 0 for g in labels])
    released = {c.name: c.aggregated(g, aggregate) for c, g in zip(space.columns, labels, strict=True)}
    options = {
        "columns": names, "k": k, "method": method, "aggregate": aggregate, "standardise": standardise, "within": list(within),
        "ordinal": list(ordinal), "gamma": gamma, "leftover": leftover, "blocks": blocks,
    }  # fmt: skip
    return done.step("microaggregate", options, columns=released, keep=keep, details=space.details(labels, keep))


def _names(frame: Frame, columns: Sequence[str], within: Sequence[str], k: int) -> list[str]:
    names = checked(frame.columns, [columns] if isinstance(columns, str) else columns)
    if not names:
        raise InputError("give at least one column to microaggregate")
    both = sorted(set(names) & set(within))
    if both:
        raise InputError(f"{both}: a column cannot be aggregated and kept within its values")
    if 0 < len(frame) < k:
        raise InputError(f"{len(frame)} records cannot form a group of k={k}")
    return names


def _check(k: int, method: str, aggregate: str, leftover: str, gamma: float) -> None:
    if k < 1:
        raise InputError(f"k={k}: a group has at least one record")
    for name, value, allowed in (
        ("method", method, METHODS),
        ("aggregate", aggregate, ("mean", "median")),
        ("leftover", leftover, ("join", "drop")),
    ):
        if value not in allowed:
            raise InputError(f"{name}={value!r}: choose one of {', '.join(map(repr, allowed))}")
    if not gamma >= 0:
        raise InputError(f"gamma={gamma} must not be negative")


def _strata(frame: Frame, within: Sequence[str]) -> IntArray | None:
    if not within:
        return None
    columns = [encode(frame, c) for c in checked(frame.columns, within)]
    key, span = combine([own_code(c) for c in columns], [c.size + 1 for c in columns], len(frame))
    return group(key, span)[0]


@dataclass(frozen=True)
class Aggregated:
    """A column in the space in which records are compared, and how its values are put together again."""

    name: str
    kind: str  # numeric, ordinal, nominal
    column: Encoded
    points: FloatArray  # records × coordinates

    def aggregated(self, labels: IntArray, aggregate: str) -> npt.NDArray[Any]:
        """Every record's group value; records without a group keep a placeholder and are dropped by the caller."""
        codes = self.column.codes
        safe = np.maximum(labels, 0)
        size = np.maximum(np.bincount(safe, minlength=1), 1)
        if self.kind == "numeric" and aggregate == "mean":
            x = self.column.values[codes]
            return (np.bincount(safe, x) / size)[safe]
        if self.kind == "nominal":
            return self.column.labels[_most_frequent(safe, codes, self.column.size)][safe]
        order = np.lexsort([codes, safe])
        start = np.concatenate([[0], np.cumsum(np.bincount(safe))[:-1]])
        lower, upper = codes[order[start + (size - 1) // 2]], codes[order[start + size // 2]]
        if self.kind == "ordinal":
            return self.column.labels[lower][safe]
        return ((self.column.values[lower] + self.column.values[upper]) / 2)[safe]


def _most_frequent(labels: IntArray, codes: npt.NDArray[np.int32], size: int) -> IntArray:
    """The most frequent code of each group, the smallest one among equals."""
    pair, times = np.unique(labels * size + codes, return_counts=True)
    which, code = pair // size, pair % size
    order = np.lexsort([code, -times, which])
    _, first = np.unique(which[order], return_index=True)
    found = np.zeros(int(labels.max(initial=0)) + 1, np.int64)
    found[which[order][first]] = code[order][first]
    return found


@dataclass(frozen=True)
class Space:
    """The columns of a file as coordinates: numbers standardised, ranks scaled to [0, 1], categories as corners at distance 1."""

    columns: tuple[Aggregated, ...]

    @classmethod
    def of(cls, frame: Frame, names: Sequence[str], ordinal: frozenset[str], standardise: bool) -> Space:
        checked(names, ordinal)
        return cls(tuple(_coordinates(encode(frame, c), c in ordinal, standardise) for c in names))

    def points(self) -> FloatArray:
        return np.hstack([c.points for c in self.columns])

    def numeric_columns(self) -> list[FloatArray]:
        for c in self.columns:
            if c.kind != "numeric":
                raise InputError(f"method='optimal' groups numbers, and column {c.name!r} is {c.kind}")
        return [c.points[:, 0] for c in self.columns]

    def details(self, labels: list[IntArray], keep: npt.NDArray[np.bool_]) -> dict[str, Any]:
        """Group sizes, and the loss: sum of squares within groups over that in total, over the coordinates."""
        found = [sum_of_squares(c.points[keep], g[keep]) for c, g in zip(self.columns, labels, strict=True)]
        sse, sst = sum(f[0] for f in found), sum(f[1] for f in found)
        sizes = np.unique(labels[0][keep], return_counts=True)[1]
        return {
            "groups": len(sizes),
            "smallest group": int(sizes.min(initial=len(keep))),
            "largest group": int(sizes.max(initial=0)),
            "information loss %": 100 * sse / sst if sst > 0 else 0.0,
            "dropped": int((~keep).sum()),
            "labels": labels[0][keep],
        }


def _coordinates(column: Encoded, as_rank: bool, standardise: bool) -> Aggregated:
    if column.has_missing:
        raise InputError(
            f"column {column.name!r} has missing values; fill them or leave those records out before microaggregation"
        )
    n = len(column.codes)
    if column.numeric and not as_rank:
        x = column.values[column.codes] if column.size else np.zeros(n)
        spread = x.std(ddof=1) if standardise and n > 1 else 0.0
        scaled = (x - x.mean()) / spread if spread > 0 else x - x.mean() if n else x
        return Aggregated(column.name, "numeric", column, scaled[:, None])
    if as_rank or column.ordered:
        if as_rank and not column.ordered:
            order = np.argsort(column.labels)
            rank = np.empty(len(order), np.int32)
            rank[order] = np.arange(len(order), dtype=np.int32)
            column = Encoded(column.name, rank[column.codes], column.labels[order], False, True)
        rank_points = column.codes / max(column.size - 1, 1)
        return Aggregated(column.name, "ordinal", column, rank_points[:, None].astype(np.float64))
    corners = np.zeros((n, column.size))
    corners[np.arange(n), column.codes] = np.sqrt(0.5)
    return Aggregated(column.name, "nominal", column, corners)


@dataclass(frozen=True)
class Grouping:
    """How points are grouped: stratum by stratum, block by block."""

    k: int
    method: str
    gamma: float
    blocks: int | None
    exact: bool
    executor: Executor | None
    stop: Stop

    def run(self, points: FloatArray, strata: IntArray | None) -> IntArray:
        """Group number of each record, −1 for those that are dropped."""
        parts = [np.arange(len(points))] if strata is None else _members(strata)
        pieces = [piece for part in parts for piece in self._blocks(points, part)]
        run: Callable[..., Any] = map if self.executor is None else self.executor.map
        labels = np.full(len(points), -1, np.int64)
        base = 0
        found = run(self._group, [points[p] for p in pieces])
        for done, (piece, local) in enumerate(zip(pieces, found, strict=True), 1):
            labels[piece] = np.where(local < 0, -1, local + base)
            base += int(local.max(initial=-1)) + 1
            self.stop.tell("grouping", done=done, total=len(pieces))
        return labels

    def _group(self, points: FloatArray) -> IntArray:
        if len(points) < self.k:
            return np.full(len(points), -1, np.int64)
        if self.method == "vmdav":
            local = vmdav(points, self.k, self.gamma)
        elif self.method == "optimal":
            local = optimal_univariate(points[:, 0], self.k)
        else:
            local = mdav(points, self.k)
        if self.exact:
            local[np.bincount(local)[local] != self.k] = _exactly(points, local, self.k)
        return local

    def _blocks(self, points: FloatArray, members: IntArray) -> list[IntArray]:
        """Halve at the median of the widest coordinate until there are enough blocks; sizes are multiples of k but for one."""
        count = self.blocks
        if count is None:
            # the search tree does not care about n much, but about the number of coordinates
            whole = WHOLE if points.shape[1] <= FEW else 2 * BLOCK
            count = 1 if len(members) <= whole else -(-len(members) // BLOCK)
        if count < 1:
            raise InputError(f"blocks={count}: at least one block")
        pieces = [(members, count)]
        found = []
        while pieces:
            piece, want = pieces.pop()
            if want == 1 or len(piece) < 4 * self.k:
                found.append(piece)
                continue
            x = points[piece]
            wide = int(np.argmax(x.max(axis=0) - x.min(axis=0)))
            left = want // 2
            cut = max(len(piece) * left // want // self.k, 1) * self.k
            order = np.argsort(x[:, wide], kind="stable")
            pieces += [(piece[order[:cut]], left), (piece[order[cut:]], want - left)]
        return found


def _members(strata: IntArray) -> list[IntArray]:
    order = np.argsort(strata, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(strata[order])) + 1) if len(order) else []


def _exactly(points: FloatArray, labels: IntArray, k: int) -> IntArray:
    """New labels of the records in groups of more than k: the k nearest to the centre stay, the others are dropped (−1)."""
    size = np.bincount(labels)
    big = np.flatnonzero(size[labels] != k)
    found = np.full(len(labels), -1, np.int64)
    for g in np.unique(labels[big]):
        members = np.flatnonzero(labels == g)
        gap = ((points[members] - points[members].mean(axis=0)) ** 2).sum(axis=1)
        found[members[np.argsort(gap, kind="stable")[:k]]] = g
    return found[big]
