"""Linked tables: several tables that share cells, protected as one system of relations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from tabprotect.errors import InputError
from tabprotect.table.contributions import Contributions
from tabprotect.table.table import PROTECTED, SAFE, SECONDARY, UNSAFE, Table
from tabprotect.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

TOTAL = "\0total"
"""Stands for the top code of a dimension, whatever its name."""

COLUMNS = ("cost", "status", "lb", "ub", "lpl", "upl", "spl", "reason")


@dataclass(frozen=True, eq=False, repr=False)
class LinkedTable(Table):
    """Several tables as one system: a shared cell is one cell, all relations hold at once.

    ``tables`` are the tables as they were given, ``names`` their names, and ``places[k]`` the cell of the system for every cell of table k.
    """

    tables: tuple[Table, ...] = ()
    names: tuple[str, ...] = ()
    places: tuple[IntArray, ...] = ()

    def split(self, cells: Any) -> dict[str, npt.NDArray[Any]]:
        """One value per cell of the system (a mask, released values) as one array per table, in that table's cell order."""
        whole = np.asarray(cells)
        if whole.shape[:1] != (self.n_cells,):
            raise InputError(f"one entry per cell is needed: got {whole.shape} for {self.n_cells} cells")
        return {name: whole[place] for name, place in zip(self.names, self.places, strict=True)}

    def part(self, name: str | int) -> Table:
        """One of the tables, with the status, levels, bounds and costs that its cells have in the system."""
        k = _number(name, self.names)
        place = self.places[k]
        return self.tables[k].replace(values=self.values[place], **{c: getattr(self, c)[place] for c in COLUMNS})

    @cached_property
    def shared(self) -> BoolArray:
        """Which cells of the system are in more than one table."""
        return np.bincount(np.concatenate(self.places), minlength=self.n_cells) > 1

    @cached_property
    def _first(self) -> tuple[IntArray, IntArray]:
        """For every cell of the system the first table that has it, and its number there."""
        return _first_occurrence(self.places, self.n_cells)

    def label(self, i: int) -> str:
        table, cell = self._first
        return f"{self.names[table[i]]}: {self.tables[table[i]].label(int(cell[i]))}"

    @cached_property
    def cells(self) -> pd.DataFrame:
        """All cells as a frame: the first table that has the cell, its codes (totals where that table has no such dimension), and all columns."""
        frame = super().cells
        table, cell = self._first
        dims = {d.name: None for t in self.tables for d in t.dims}
        for name in reversed(list(dims)):
            column = np.full(self.n_cells, "Total", object)
            for k, own in enumerate(self.tables):
                axis = next((a for a, d in enumerate(own.dims) if d.name == name), None)
                if axis is not None:
                    mine = table == k
                    column[mine] = np.array(own.dims[axis].codes, object)[own.codes[cell[mine], axis]]
            frame.insert(0, name, column)
        frame.insert(0, "table", np.array(self.names, object)[table])
        return frame


def link(
    tables: Sequence[Table] | Mapping[str, Table],
    *,
    shared: Iterable[tuple[tuple[str | int, Any], tuple[str | int, Any]]] | None = None,
    name: str = "",
) -> LinkedTable:
    """Make one system of several tables that share cells.

    Cells are the same when they have equal codes in the dimensions that both tables have, and are totals in the dimensions that only one of
    them has. ``shared`` gives the pairs instead: ((table, cell), (table, cell)), a table by name or number, a cell by its number or a mapping
    from dimension to code. Shared cells must agree in value and frequency; a cell that is primary in one table is primary in the system, with
    the largest of its levels and the tightest of its bounds.

    Protecting linked tables one at a time is not safe: see de Wolf and Giessing, "Adjusting the τ-ARGUS modular approach to deal with linked
    tables", Data & Knowledge Engineering 68 (2009).

    >>> a = Table.from_frame({"region": ["N", "S"], "n": [3, 4]}, by="region", freq="n")
    >>> b = Table.from_frame({"sex": ["f", "m"], "n": [2, 5]}, by="sex", freq="n")
    >>> both = link({"a": a, "b": b})
    >>> both
    <Table: 5 cells, 2 relations, 0 primary>
    >>> both.split(both.values)["b"].tolist()
    [7.0, 2.0, 5.0]
    """
    names = tuple(map(str, tables)) if isinstance(tables, Mapping) else tuple(str(k) for k in range(len(tables)))
    parts = tuple(tables.values()) if isinstance(tables, Mapping) else tuple(tables)
    if not parts:
        raise InputError("no tables to link")
    same = cells_by_codes(parts, names) if shared is None else _by_pairs(parts, names, shared)
    _, first, inverse = np.unique(same, return_index=True, return_inverse=True)
    # cells keep the order in which the tables bring them
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    place = rank[inverse]
    ends = np.cumsum([0, *(t.n_cells for t in parts)])
    places = tuple(place[a:b] for a, b in pairwise(ends))
    for k, own in enumerate(places):
        if len(parts) > 1 and not np.isin(own, np.concatenate([p for j, p in enumerate(places) if j != k])).any():
            raise InputError(f"table {names[k]!r} shares no cell with the others: name the shared cells with shared=…")
    return _assemble(parts, names, places, len(first), name)


# -- which cells are the same ---------------------------------------------------------------------------------------------------


def cells_by_codes(tables: Sequence[Any], names: Sequence[str]) -> IntArray:
    """A number for every cell of every table, equal for cells with equal codes."""
    dims = list({d.name: None for t in tables for d in t.dims})
    keys = []
    for name in dims:
        code: dict[str, int] = {TOTAL: 0}
        column = []
        for table in tables:
            axis = next((a for a, d in enumerate(table.dims) if d.name == name), None)
            if axis is None:
                column.append(np.zeros(table.n_cells, np.int64))
                continue
            hierarchy = table.dims[axis].hierarchy
            root = int(hierarchy.roots[0]) if len(hierarchy.roots) == 1 else -1
            number = np.array(
                [0 if i == root else code.setdefault(c, len(code)) for i, c in enumerate(hierarchy.codes)], np.int64
            )
            column.append(number[table.codes[:, axis]])
        keys.append(np.concatenate(column))
    for table, own in zip(tables, names, strict=True):
        if not table.dims:
            raise InputError(f"table {own!r} has no dimensions: name the shared cells with shared=…")
    same = np.zeros(len(keys[0]), np.int64)
    for key in keys:  # renumbered after every dimension, so that the products stay small
        same = np.unique(same * (int(key.max()) + 1) + key, return_inverse=True)[1].reshape(-1)
    return same


def _by_pairs(tables: Sequence[Table], names: Sequence[str], pairs: Iterable[Any]) -> IntArray:
    starts = np.cumsum([0, *(t.n_cells for t in tables)])
    edges = []
    for pair in pairs:
        ends = []
        for which, cell in pair:
            k = _number(which, names)
            i = tables[k].cell(**cell) if isinstance(cell, Mapping) else int(cell)
            if not 0 <= i < tables[k].n_cells:
                raise InputError(f"table {names[k]!r} has no cell {i}: it has {tables[k].n_cells}")
            ends.append(int(starts[k]) + i)
        if len(ends) != 2:
            raise InputError(f"a pair of cells ((table, cell), (table, cell)) is expected, got {pair!r}")
        edges.append(ends)
    n = int(starts[-1])
    if not edges:
        return np.arange(n)
    a, b = np.array(edges).T
    graph = sp.coo_array((np.ones(len(a)), (a, b)), shape=(n, n))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def _number(which: str | int, names: Sequence[str]) -> int:
    if isinstance(which, int) and 0 <= which < len(names):
        return which
    if str(which) in names:
        return list(names).index(str(which))
    raise InputError(f"no table {which!r}; there are {', '.join(map(repr, names))}")


# -- one system -----------------------------------------------------------------------------------------------------------------


def _assemble(
    tables: tuple[Table, ...], names: tuple[str, ...], places: tuple[IntArray, ...], n: int, name: str
) -> LinkedTable:
    place = np.concatenate(places)
    first, cell = _first_occurrence(places, n)
    starts = np.cumsum([0, *(t.n_cells for t in tables)])
    source = starts[first] + cell
    columns = {c: np.concatenate([getattr(t, c) for t in tables]) for c in ("values", *COLUMNS)}
    _agree(columns["values"], place, source, tables, names, "values")
    freq = None
    if all(t.freq is not None for t in tables):
        every = np.concatenate([np.asarray(t.freq) for t in tables])
        _agree(every.astype(float), place, source, tables, names, "frequencies")
        freq = every[source]
    kinds = np.concatenate([np.full(t.n_cells, t.counts) if t.count_cells is None else t.count_cells for t in tables])
    known = [t.contributions for t in tables if t.contributions is not None]
    relations, rhs = stack_relations(tables, places, n)
    reason = columns["reason"].astype(object)
    kept = reason[source]
    for i in np.flatnonzero(reason != ""):
        kept[place[i]] = kept[place[i]] or reason[i]
    return LinkedTable(
        columns["values"][source],
        relations,
        rhs=rhs,
        freq=freq,
        cost=_extreme(np.fmax, columns["cost"], place, n, np.nan),
        status=_status(columns["status"], place, n),
        lb=_extreme(np.fmax, columns["lb"], place, n, -np.inf),
        ub=_extreme(np.fmin, columns["ub"], place, n, np.inf),
        lpl=_extreme(np.fmax, columns["lpl"], place, n, 0.0),
        upl=_extreme(np.fmax, columns["upl"], place, n, 0.0),
        spl=_extreme(np.fmax, columns["spl"], place, n, 0.0),
        reason=kept.astype(str),
        counts=all(t.counts for t in tables),
        count_cells=None if kinds.all() or not kinds.any() else kinds[source],
        contributions=Contributions.stack(known).take(source) if len(known) == len(tables) else None,
        name=name,
        tables=tables,
        names=names,
        places=places,
    )


def _first_occurrence(places: Sequence[IntArray], n: int) -> tuple[IntArray, IntArray]:
    table, cell = np.full(n, -1, np.int64), np.full(n, -1, np.int64)
    for k in range(len(places) - 1, -1, -1):
        table[places[k]] = k
        cell[places[k]] = np.arange(len(places[k]))
    return table, cell


def _extreme(function: Any, column: FloatArray, place: IntArray, n: int, start: float) -> FloatArray:
    out = np.full(n, start)
    function.at(out, place, column)
    return out


def _status(status: npt.NDArray[np.str_], place: IntArray, n: int) -> npt.NDArray[np.str_]:
    """Primary before protected before secondary before safe."""
    order = np.array([SAFE, SECONDARY, PROTECTED, UNSAFE])
    rank = np.zeros(n, np.int64)
    np.maximum.at(rank, place, np.argmax(status[:, None] == order, axis=1))
    return order[rank].astype("U1")


def _agree(
    column: FloatArray, place: IntArray, source: IntArray, tables: Sequence[Table], names: Sequence[str], what: str
) -> None:
    """A shared cell has the same value in all its tables."""
    kept = column[source][place]
    difference = np.abs(column - kept)
    wrong = np.flatnonzero(difference > 1e-9 * np.maximum(1.0, np.abs(kept)))
    if len(wrong) == 0:
        return
    starts = np.cumsum([0, *(t.n_cells for t in tables)])

    def say(i: int) -> str:
        k = int(np.searchsorted(starts, i, side="right")) - 1
        return f"{names[k]}: {tables[k].label(int(i - starts[k]))}"

    worst = wrong[np.argsort(-difference[wrong], kind="stable")][:5]
    lines = [f"{say(int(source[place[i]]))} and {say(int(i))} differ by {column[i] - kept[i]:g}" for i in worst]
    raise InputError(
        f"the {what} of {len(wrong)} shared cells differ between the tables; the worst:\n  " + "\n  ".join(lines)
    )


def stack_relations(tables: Sequence[Any], places: Sequence[IntArray], n: int) -> tuple[Any, FloatArray]:
    """The relations of all tables in the cells of the system; a relation that two tables have is kept once."""
    blocks = []
    for table, place in zip(tables, places, strict=True):
        own = sp.coo_array(table.relations)
        blocks.append(sp.coo_array((own.data, (own.coords[0], place[own.coords[1]])), shape=(own.shape[0], n)))
    whole = sp.csr_array(sp.vstack(blocks, format="csr"))
    whole.sum_duplicates()
    rhs = np.concatenate([t.rhs for t in tables])
    seen: dict[bytes, None] = {}
    keep = np.zeros(whole.shape[0], bool)
    for r in range(whole.shape[0]):
        a, b = whole.indptr[r], whole.indptr[r + 1]
        key = whole.indices[a:b].tobytes() + whole.data[a:b].tobytes() + rhs[r].tobytes()
        keep[r] = key not in seen
        seen[key] = None
    return whole[np.flatnonzero(keep)], rhs[keep]
