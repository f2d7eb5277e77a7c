"""Hierarchies: the codes of one dimension and the sums among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from tabprotect.errors import InputError

Tree = Mapping[str, Any]


@dataclass(frozen=True, eq=True)
class Hierarchy:
    """Codes and the sums among them: ``sums`` holds (total, parts) as positions in ``codes``.

    Any depth, balanced or not. A code may be the total of several sums: then the hierarchy has several breakdowns over the
    same leaves. A hierarchy without sums is a plain list of codes that do not add up to anything (the columns of a mixed table).

    >>> h = Hierarchy.from_tree({"A": ["A1", "A2"], "B": []})
    >>> h.codes
    ('Total', 'A', 'A1', 'A2', 'B')
    >>> h.level.tolist()
    [0, 1, 2, 2, 1]
    """

    codes: tuple[str, ...]
    sums: tuple[tuple[int, tuple[int, ...]], ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for code in self.codes:
            if code in seen:
                raise InputError(f"code {code!r} occurs twice in the hierarchy")
            seen.add(code)
        if not self.codes:
            raise InputError("a hierarchy needs at least one code")
        _ = self.level  # finds cycles

    # -- constructors -------------------------------------------------------------------------------------------------------
    @classmethod
    def flat(cls, codes: Iterable[object], total: str | None = "Total") -> Hierarchy:
        """A total and its parts, without further levels; ``total=None`` for codes that are not summed at all."""
        parts = [str(c) for c in codes]
        if total is None:
            return cls(tuple(parts), ())
        return cls((total, *parts), ((0, tuple(range(1, len(parts) + 1))),))

    @classmethod
    def from_tree(cls, tree: Tree | Sequence[Any], total: str = "Total") -> Hierarchy:
        """From nested dicts: ``{"A": {"A1": {}, "A2": {}}, "B": ["B1", "B2"], "C": None}``."""
        codes: list[str] = [total]
        sums: list[tuple[int, tuple[int, ...]]] = []

        def grow(parent: int, below: Any) -> None:
            if not below:
                return
            items = below.items() if isinstance(below, Mapping) else [(c, None) for c in below]
            parts = []
            for code, deeper in items:
                codes.append(str(code))
                parts.append(len(codes) - 1)
                grow(parts[-1], deeper)
            sums.append((parent, tuple(parts)))

        grow(0, tree)
        return cls(tuple(codes), tuple(sorted(sums)))

    # -- structure ----------------------------------------------------------------------------------------------------------
    @cached_property
    def position(self) -> dict[str, int]:
        """Position of each code."""
        return {c: i for i, c in enumerate(self.codes)}

    @cached_property
    def leaves(self) -> npt.NDArray[np.int64]:
        """Positions of the codes that are not the total of any sum."""
        parents = {p for p, _ in self.sums}
        return np.array([i for i in range(len(self.codes)) if i not in parents], dtype=np.int64)

    @cached_property
    def level(self) -> npt.NDArray[np.int64]:
        """Depth of each code: 0 for codes that are part of nothing, else one more than the shallowest total it is a part of."""
        parents: dict[int, list[int]] = {}
        for total, parts in self.sums:
            for i in parts:
                parents.setdefault(i, []).append(total)
        depth: dict[int, int] = {}
        for start in range(len(self.codes)):
            stack, path = [start], set()
            while stack:
                i = stack[-1]
                if i in depth:
                    stack.pop()
                    continue
                path.add(i)
                waiting = [p for p in parents.get(i, []) if p not in depth]
                if any(p in path for p in waiting):
                    raise InputError(f"the hierarchy has a cycle through code {self.codes[i]!r}")
                if waiting:
                    stack.extend(waiting)
                else:
                    depth[i] = 1 + min((depth[p] for p in parents.get(i, [])), default=-1)
                    path.discard(i)
                    stack.pop()
        return np.array([depth[i] for i in range(len(self.codes))], dtype=np.int64)

    @cached_property
    def membership(self) -> Any:
        """Sparse 0/1 matrix (codes × leaves): which leaves each code stands for, through its first breakdown."""
        column = {int(i): k for k, i in enumerate(self.leaves)}
        first: dict[int, tuple[int, ...]] = {}
        for total, parts in self.sums:
            first.setdefault(total, parts)
        below: dict[int, list[int]] = {}
        for i in sorted(range(len(self.codes)), key=lambda j: self._height[j]):
            below[i] = [column[i]] if i in column else [k for part in first[i] for k in below[part]]
        rows = np.repeat(np.arange(len(self.codes)), [len(below[i]) for i in range(len(self.codes))])
        cols = np.array([k for i in range(len(self.codes)) for k in below[i]], dtype=np.int64)
        return sp.csr_array((np.ones(len(cols)), (rows, cols)), shape=(len(self.codes), len(self.leaves)))

    @cached_property
    def _height(self) -> dict[int, int]:
        """Longest way down from each code to a leaf; parts always have a smaller height than their total."""
        height = dict.fromkeys(range(len(self.codes)), 0)
        changed = True
        while changed:
            changed = False
            for total, parts in self.sums:
                h = 1 + max(height[i] for i in parts)
                if h > height[total]:
                    height[total], changed = h, True
        return height

    def __len__(self) -> int:
        return len(self.codes)


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
