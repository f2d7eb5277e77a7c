"""The levels of a table: which cells share a part of the budget, and how much one person can move them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.dp.noise import check_choice
from tabprotect.errors import InputError
from tabprotect.table.hierarchy import Hierarchy
from tabprotect.table.linked import LinkedTable
from tabprotect.table.table import Table
from tabprotect.types import FloatArray, IntArray

SPLITS = ("optimal", "uniform", "leaves")


@dataclass(frozen=True, eq=False)
class Levels:
    """Groups of cells: ``group[c]`` numbers the level of cell c, ``cells_per_person[g]`` bounds how many of its cells
    count one person.
    """

    names: tuple[str, ...]
    group: IntArray
    cells_per_person: IntArray

    @property
    def sizes(self) -> IntArray:
        """Number of cells of each level."""
        return np.bincount(self.group, minlength=len(self.names))

    def shares(self, split: Any, exponent: float, leaf: Any) -> FloatArray:
        """Share of the budget of each level, summing to one; a level with share 0 gets no noise and follows from the
        others.

        ``exponent`` is that of the best split for the law: noise variance falls with the square of ε (1/3) or with ρ
        (1/2).
        """
        if isinstance(split, Mapping):
            return self._given(split)
        check_choice(split, SPLITS, "split")
        if split == "uniform":
            weights = np.ones(len(self.names))
        elif split == "optimal":
            # least total variance Σ n·(m/ε_g)² under Σ ε_g = ε: ε_g ∝ (n·m²)^(1/3); with ρ: Σ n·m/ρ_g, ρ_g ∝
            # (n·m)^(1/2)
            person = self.cells_per_person.astype(float)
            weights = (self.sizes * person ** (2.0 if exponent < 0.4 else 1.0)) ** exponent
        else:
            with_leaves = np.bincount(self.group, weights=leaf, minlength=len(self.names)) > 0
            weights = np.where(with_leaves, 1.0, 0.0)
        return np.asarray(weights / weights.sum())

    def _given(self, split: Mapping[Any, float]) -> FloatArray:
        unknown = {str(k) for k in split} - set(self.names)
        if unknown:
            raise InputError(f"no level {', '.join(sorted(unknown))}; the table has {', '.join(self.names)}")
        shares = np.array([float(split.get(name, 0.0)) for name in self.names])
        if not np.isfinite(shares).all() or (shares < 0).any() or shares.sum() <= 0:
            raise InputError("shares of the budget must be finite, not negative and not all zero")
        return shares / shares.sum()


def table_levels(table: Table, levels: Any = None) -> Levels:
    """Levels of a table by the depth of its codes in every dimension, or as given (one label per cell).

    For given levels the caller promises that one person is counted in at most one cell of each level.

    >>> from tabprotect.table.examples import d272
    >>> found = table_levels(d272())
    >>> found.names, found.sizes.tolist()
    (('0.0', '0.1', '1.0', '1.1'), [1, 3, 8, 24])
    """
    if levels is not None:
        labels = np.asarray(levels).astype(str)
        if labels.shape != (table.n_cells,):
            raise InputError(f"levels has shape {labels.shape}: one label per cell is needed ({table.n_cells})")
        names, group = np.unique(labels, return_inverse=True)
        return Levels(tuple(map(str, names)), group.astype(np.int64), np.ones(len(names), dtype=np.int64))
    if isinstance(table, LinkedTable):
        return _linked_levels(table)
    if not table.dims:
        raise InputError(
            "a table without dimensions does not tell how many cells count one person: pass levels=, "
            "one label per cell, such that every person is counted at most once in each level"
        )
    depth = np.column_stack([np.asarray(d.level)[table.codes[:, k]] for k, d in enumerate(table.dims)])
    tuples, group = np.unique(depth, axis=0, return_inverse=True)
    per_dim = [cells_per_person(d.hierarchy) for d in table.dims]
    person = [int(np.prod([per_dim[k][level] for k, level in enumerate(row)])) for row in tuples]
    names = tuple(".".join(map(str, row)) for row in tuples)
    return Levels(names, group.reshape(-1).astype(np.int64), np.array(person, dtype=np.int64))


def _linked_levels(table: LinkedTable) -> Levels:
    """The levels of each table, under its name ("men:0.1"); a shared cell belongs to the first table that has it.

    Every table counts each person once, so that what holds for its levels holds for parts of them.
    """
    label = np.empty(table.n_cells, dtype=object)
    most: dict[str, int] = {}
    for name, own, place in reversed(list(zip(table.names, table.tables, table.places, strict=True))):
        found = table_levels(own)
        names = [f"{name}:{level}" for level in found.names]
        label[place] = np.array(names, dtype=object)[found.group]
        most |= dict(zip(names, found.cells_per_person, strict=True))
    kept, group = np.unique(label.astype(str), return_inverse=True)
    return Levels(tuple(map(str, kept)), group.astype(np.int64), np.array([most[n] for n in kept], dtype=np.int64))


def cells_per_person(hierarchy: Hierarchy) -> IntArray:
    """Most codes of each level that can count the same person.

    One per level in a tree. With several breakdowns of one total a person is in one part of each of them. Roots
    beside each other (the columns of a mixed table) may each count everybody.

    >>> cells_per_person(Hierarchy.from_tree({"A": ["A1", "A2"], "B": []})).tolist()
    [1, 1, 1]
    >>> ages = Hierarchy.from_tree({"young": ["0-9", "10-19"], "old": ["20-29", "30+"]})
    >>> school = Hierarchy.from_tree({"pupil": ["10-19"], "not": ["0-9", "20-29", "30+"]})
    >>> cells_per_person(ages.with_breakdown(school)).tolist()
    [1, 2, 1]
    """
    level = np.asarray(hierarchy.level)
    at_level = sp.csr_array((np.ones(level.size, dtype=np.int64), (level, np.arange(level.size))))
    cover = sp.csr_array(hierarchy.membership)
    counted = (at_level @ cover).toarray()  # levels × leaves: codes of the level that count whoever is in the leaf
    most = np.zeros(counted.shape[0], dtype=np.int64)
    for root in hierarchy.roots:
        most += counted[:, cover[[root], :].indices].max(axis=1).astype(np.int64)
    return most
