"""Cells named by people: masks, numbers, or codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.table.table import Table
from tabprotect.types import IntArray


def locate(table: Table, cells: Any, *, missing: str = "error") -> IntArray:
    """Indices of cells given as a mask, as indices, or as codes: tuples (one code per dimension) or dicts (code by dimension).

    A dict may leave dimensions out and then means all cells with its codes. ``missing="ignore"`` leaves out codes that the table does not have.

    >>> from tabprotect.table.examples import d272
    >>> locate(d272(), [("5-9", "D2721"), {"size": "500+", "industry": "D2722"}]).tolist()
    [5, 34]
    """
    if isinstance(cells, int | np.integer | str | Mapping) or _is_codes(cells):
        cells = [cells]
    if not isinstance(cells, np.ndarray):
        if not isinstance(cells, Iterable):
            raise InputError(f"cells must be a mask, indices or codes, not {cells!r}")
        items = list(cells)
        if any(isinstance(c, str | tuple | list | Mapping) for c in items):
            return _by_codes(table, items, missing)
        cells = np.array(items, dtype=bool if items and all(isinstance(c, bool | np.bool_) for c in items) else None)
    if cells.dtype == bool:
        if cells.shape != (table.n_cells,):
            raise InputError(f"the mask has {cells.size} entries for {table.n_cells} cells")
        return np.flatnonzero(cells)
    if cells.size == 0:
        return np.zeros(0, np.int64)
    if cells.ndim != 1 or not np.issubdtype(cells.dtype, np.integer):
        raise InputError("cells must be a mask, whole numbers, or codes")
    wrong = (cells < 0) | (cells >= table.n_cells)
    if wrong.any():
        raise InputError(f"there is no cell {cells[wrong.argmax()]}: the table has cells 0 to {table.n_cells - 1}")
    return cells.astype(np.int64)


def _is_codes(cells: Any) -> bool:
    """A tuple of text is one cell, not several."""
    return isinstance(cells, tuple) and len(cells) > 0 and all(isinstance(c, str) for c in cells)


def _by_codes(table: Table, items: list[Any], missing: str) -> IntArray:
    found: list[IntArray] = []
    plain = [item for item in items if not isinstance(item, Mapping)]
    if plain:
        each = locate_each(table, plain, missing=missing)
        found.append(each[each >= 0])
    for item in items:
        if isinstance(item, Mapping):
            try:
                found.append(table.find(**item))
            except InputError:
                if missing != "ignore":
                    raise
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def locate_each(table: Table, cells: Sequence[Any], *, missing: str = "error") -> IntArray:
    """Index of each cell given by its number or by one code per dimension; −1 where ``missing="ignore"`` and there is none."""
    if all(isinstance(c, int | np.integer) for c in cells):
        return locate(table, np.array(cells, np.int64))
    if not table.dims:
        raise InputError("this table has no dimensions: name its cells by number")
    rows = [(c,) if isinstance(c, str | int) else tuple(c) for c in cells]
    wrong = next((r for r in rows if len(r) != len(table.dims)), None)
    if wrong is not None:
        raise InputError(f"cell {wrong} needs one code for each of {', '.join(d.name for d in table.dims)}")
    wanted, known = np.zeros(len(rows), np.int64), np.zeros(table.n_cells, np.int64)
    absent = np.zeros(len(rows), bool)
    for k, dim in enumerate(table.dims):
        position = np.array([dim.hierarchy.position.get(str(r[k]), -1) for r in rows], np.int64)
        absent |= position < 0
        wanted, known = wanted * len(dim) + position, known * len(dim) + table.codes[:, k]
    order = np.argsort(known, kind="stable")
    place = np.minimum(np.searchsorted(known[order], wanted), table.n_cells - 1)
    index = np.where(~absent & (known[order][place] == wanted), order[place], -1)
    if missing != "ignore" and (index < 0).any():
        first = rows[int((index < 0).argmax())]
        raise InputError(
            "there is no cell " + ", ".join(f"{d.name}={c}" for d, c in zip(table.dims, first, strict=True))
        )
    return index
