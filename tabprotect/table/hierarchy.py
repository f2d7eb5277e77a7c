"""Hierarchies: the codes of one dimension and the sums among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, connected_components

from tabprotect.errors import InputError
from tabprotect.types import IntArray

if TYPE_CHECKING:
    import pandas as pd

    from tabprotect.table.hierarchy_io import Digits

Tree = Mapping[str, Any]


@dataclass(frozen=True, eq=True, repr=False)
class Hierarchy:
    """Codes and the sums among them: ``sums`` holds (total, parts) as positions in ``codes``.

    Any depth, balanced or not; a sum of one part is legal (the total equals its part). A code may be the total of several
    sums: then the hierarchy has several breakdowns over the same leaves. A hierarchy without sums is a plain list of codes that do not
    add up to anything (the columns of a mixed table).

    >>> h = Hierarchy.from_tree({"A": ["A1", "A2"], "B": []})
    >>> h.codes
    ('Total', 'A', 'A1', 'A2', 'B')
    >>> h.level.tolist()
    [0, 1, 2, 2, 1]
    """

    codes: tuple[str, ...]
    sums: tuple[tuple[int, tuple[int, ...]], ...]

    def __post_init__(self) -> None:
        if not self.codes:
            raise InputError("a hierarchy needs at least one code")
        if len(self.position) < len(self.codes):
            seen: set[str] = set()
            twice = next(c for c in self.codes if c in seen or seen.add(c))  # type: ignore[func-returns-value]
            raise InputError(f"code {twice!r} occurs twice in the hierarchy")
        self._check_sums()
        self._check_cycles()
        self._check_cover()

    # -- constructors -------------------------------------------------------------------------------------------------------
    @classmethod
    def flat(cls, codes: Iterable[object], total: str | None = "Total") -> Hierarchy:
        """A total and its parts, without further levels; ``total=None`` for codes that are not summed at all."""
        parts = [str(c) for c in codes]
        if total is None:
            return cls(tuple(parts), ())
        if not parts:
            return cls((total,), ())
        return cls((total, *parts), ((0, tuple(range(1, len(parts) + 1))),))

    @classmethod
    def from_tree(cls, tree: Tree | Sequence[Any], total: str = "Total") -> Hierarchy:
        """From nested dicts: ``{"A": {"A1": {}, "A2": {}}, "B": ["B1", "B2"], "C": None}``."""
        from tabprotect.table.hierarchy_io import read_tree

        return read_tree(tree, total)

    @classmethod
    def from_pairs(
        cls,
        pairs: Any,
        *,
        parent: str | None = None,
        child: str | None = None,
        breakdown: str | None = None,
        total: str = "Total",
    ) -> Hierarchy:
        """From (parent, child) rows: a frame (pandas, polars, Arrow, …) or a list of tuples.

        ``parent`` and ``child`` name the columns (default: columns of these names, else the first two). Several codes without
        a parent are put under ``total``; a single one is itself the total. ``breakdown`` names a column that tells several breakdowns of the same code apart.

        >>> Hierarchy.from_pairs([("EU", "FR"), ("EU", "KR?"), ("FR", "FR1")]).codes
        ('EU', 'FR', 'FR1', 'KR?')
        """
        from tabprotect.table.hierarchy_io import read_pairs

        return read_pairs(pairs, parent, child, breakdown, total)

    @classmethod
    def from_hrc(cls, path: str | Path, lead: str = "@", total: str = "Total", encoding: str = "utf-8") -> Hierarchy:
        """From a τ-ARGUS hierarchy file: one code per line, its depth shown by the number of ``lead`` signs before it."""
        from tabprotect.table.hierarchy_io import read_hrc

        return read_hrc(path, lead, total, encoding)

    @overload
    @classmethod
    def from_digits(cls, widths: Sequence[int], codes: None = None, total: str = "Total") -> Digits: ...
    @overload
    @classmethod
    def from_digits(cls, widths: Sequence[int], codes: Iterable[object], total: str = "Total") -> Hierarchy: ...
    @classmethod
    def from_digits(
        cls, widths: Sequence[int], codes: Iterable[object] | None = None, total: str = "Total"
    ) -> Hierarchy | Digits:
        """From the digits of the codes: ``[1, 1, 2]`` puts 1234 below 12 below 1.

        Without ``codes`` the result is a description that a table builder completes with the codes of the data.

        >>> Hierarchy.from_digits([1, 2], ["111", "112", "2"]).codes
        ('Total', '1', '111', '112', '2')
        """
        from tabprotect.table.hierarchy_io import Digits

        spec = Digits(tuple(widths), total)
        return spec if codes is None else spec.resolve(codes)

    @classmethod
    def combine(cls, first: Hierarchy, *others: Hierarchy) -> Hierarchy:
        """Several breakdowns of the same leaves as one hierarchy: one dimension with more sums.

        Equal codes are the same code; the top codes of all of them are one, under the name of the first.

        >>> area = Hierarchy.from_tree({"North": ["a", "b"], "South": ["c"]})
        >>> kind = Hierarchy.from_tree({"Urban": ["a", "c"], "Rural": ["b"]})
        >>> both = Hierarchy.combine(area, kind)
        >>> len(both.sums), both.leaves.size
        (6, 3)
        """
        from tabprotect.table.hierarchy_io import combine

        return combine(first, *others)

    def with_breakdown(self, other: Hierarchy) -> Hierarchy:
        """This hierarchy with a second breakdown over the same leaves."""
        return Hierarchy.combine(self, other)

    # -- structure ----------------------------------------------------------------------------------------------------------
    @cached_property
    def position(self) -> dict[str, int]:
        """Position of each code."""
        return {c: i for i, c in enumerate(self.codes)}

    @cached_property
    def _incidence(self) -> Any:
        """Sparse 0/1 matrix (sums × codes): the parts of each sum."""
        lengths = [len(parts) for _, parts in self.sums]
        flat = np.fromiter((i for _, parts in self.sums for i in parts), np.int64, sum(lengths))
        indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        return sp.csr_array((np.ones(len(flat), np.int64), flat, indptr), shape=(len(self.sums), len(self.codes)))

    @cached_property
    def _totals(self) -> IntArray:
        """Position of the total of each sum."""
        return np.fromiter((t for t, _ in self.sums), np.int64, len(self.sums))

    @cached_property
    def _down(self) -> Any:
        """Sparse 0/1 matrix (codes × codes): an entry for each total and part."""
        n = len(self.codes)
        pick = sp.csr_array(
            (np.ones(len(self.sums), np.int64), (self._totals, np.arange(len(self.sums)))), shape=(n, len(self.sums))
        )
        return sp.csr_array(pick @ self._incidence)

    @cached_property
    def leaves(self) -> IntArray:
        """Positions of the codes that are not the total of any sum."""
        leaf = np.ones(len(self.codes), bool)
        leaf[self._totals] = False
        return np.flatnonzero(leaf)

    @cached_property
    def roots(self) -> IntArray:
        """Positions of the codes that are part of no sum."""
        root = np.ones(len(self.codes), bool)
        root[self._incidence.indices] = False
        return np.flatnonzero(root)

    @cached_property
    def parent(self) -> IntArray:
        """Position of the total of the first sum each code is a part of, −1 for roots."""
        up = np.full(len(self.codes), -1, np.int64)
        matrix = self._incidence
        # written backwards so that the first sum stays
        up[matrix.indices[::-1]] = np.repeat(self._totals, np.diff(matrix.indptr))[::-1]
        return up

    @cached_property
    def level(self) -> IntArray:
        """Depth of each code: 0 for codes that are part of nothing, else one more than the shallowest total it is a part of."""
        n = len(self.codes)
        # a breadth-first tree from one extra node above all roots
        top = sp.csr_array((np.ones(len(self.roots)), (np.zeros(len(self.roots), int), self.roots)), shape=(1, n + 1))
        below = sp.csr_array(sp.hstack([self._down, sp.csr_array((n, 1))]))
        order, before = breadth_first_order(sp.csr_array(sp.vstack([below, top])), n, directed=True)
        depth = np.full(n + 1, -1, np.int64)
        for i in order[1:]:
            depth[i] = depth[before[i]] + 1
        return depth[:n]

    @cached_property
    def membership(self) -> Any:
        """Sparse 0/1 matrix (codes × leaves): which leaves each code stands for."""
        n, k = len(self.codes), len(self.leaves)
        own = sp.csr_array((np.ones(k, np.int64), (self.leaves, np.arange(k))), shape=(n, k))
        # the first sum of every total is enough: all breakdowns cover the same leaves
        totals, first = np.unique(self._totals, return_index=True)
        lift = sp.csr_array((np.ones(len(totals), np.int64), (totals, first)), shape=(n, len(self.sums)))
        step = sp.csr_array(lift @ self._incidence)
        found, wave = own, own
        while wave.nnz:
            wave = sp.csr_array(step @ wave)
            found = found + wave
        found.sort_indices()
        return sp.csr_array(found)

    def ancestors(self) -> Any:
        """Sparse 0/1 matrix (leaves × codes): all codes that contain each leaf, itself among them."""
        return sp.csr_array(self.membership.T)

    def __len__(self) -> int:
        return len(self.codes)

    def __repr__(self) -> str:
        return f"<Hierarchy: {len(self):,} codes, {len(self.leaves):,} leaves, {int(self.level.max()) + 1} levels>"

    # -- export -------------------------------------------------------------------------------------------------------------
    def to_tree(self) -> dict[str, Any]:
        """Nested dicts below the top code, as `from_tree` takes them."""
        from tabprotect.table.hierarchy_io import write_tree

        return write_tree(self)

    def to_hrc(self, path: str | Path, lead: str = "@", encoding: str = "utf-8") -> None:
        """Write a τ-ARGUS hierarchy file; the top code is implied there and not written."""
        from tabprotect.table.hierarchy_io import write_hrc

        write_hrc(self, path, lead, encoding)

    def to_frame(self) -> pd.DataFrame:
        """A frame with one row per total and part: ``parent``, ``child``, ``breakdown`` (0, 1, … of that parent), ``level`` of the child."""
        from tabprotect.table.hierarchy_io import write_frame

        return write_frame(self)

    # -- checks -------------------------------------------------------------------------------------------------------------
    def _check_sums(self) -> None:
        n = len(self.codes)
        for total, parts in self.sums:
            if not 0 <= total < n or any(not 0 <= i < n for i in parts):
                raise InputError(f"a sum of the hierarchy points outside its {n} codes: {(total, parts)}")
            name = self.codes[total]
            if not parts:
                raise InputError(f"code {name!r} is the total of no parts")
            if len(set(parts)) < len(parts):
                twice = next(i for i in parts if parts.count(i) > 1)
                raise InputError(f"code {self.codes[twice]!r} occurs twice below {name!r}")

    def _check_cycles(self) -> None:
        down = self._down
        inside = np.flatnonzero(down.diagonal() > 0)
        if len(inside) == 0:
            count, label = connected_components(down, directed=True, connection="strong")
            if count == len(self.codes):
                return
            inside = np.flatnonzero(np.bincount(label)[label] > 1)
        raise InputError(f"the hierarchy has a cycle through code {self.codes[inside[0]]!r}")

    def _check_cover(self) -> None:
        """Every sum counts each of its leaves once, and all breakdowns of a code have the same leaves."""
        cover = self.membership
        if (cover.data > 1).any():
            entry = int((cover.data > 1).argmax())
            row = int(np.searchsorted(cover.indptr, entry, side="right")) - 1
            leaf = self.codes[self.leaves[cover.indices[entry]]]
            raise InputError(f"code {leaf!r} is counted more than once in {self.codes[row]!r}: a code has one parent")
        if len(np.unique(self._totals)) == len(self._totals):
            return
        difference = sp.csr_array(self._incidence @ cover - cover[self._totals])
        difference.eliminate_zeros()
        if difference.nnz:
            wrong = np.flatnonzero(np.diff(difference.indptr))
            row = int(wrong[np.argmax(self.level[self._totals[wrong]])])  # the finest code says most
            leaf = self.codes[self.leaves[difference.indices[difference.indptr[row]]]]
            total = self.codes[self._totals[row]]
            what = "is missing in" if difference.data[difference.indptr[row]] < 0 else "is only or doubly in"
            raise InputError(
                f"the breakdowns of {total!r} differ: code {leaf!r} {what} one of them; they must have the same leaves"
            )


@dataclass(frozen=True)
class Dimension:
    """A named hierarchy: one dimension of a table."""

    name: str
    hierarchy: Hierarchy

    @property
    def codes(self) -> tuple[str, ...]:
        return self.hierarchy.codes

    @property
    def level(self) -> npt.NDArray[np.int64]:
        return self.hierarchy.level

    def __len__(self) -> int:
        return len(self.hierarchy)
