"""Cells named by people: masks, numbers, or codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    if isinstance(cells, Mapping) or (isinstance(cells, tuple) and cells and all(isinstance(c, str) for c in cells)):
        cells = [cells]
    if isinstance(cells, int | np.integer | str):
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


def _by_codes(table: Table, items: list[Any], missing: str) -> IntArray:
    if not table.dims:
        raise InputError("this table has no dimensions: name its cells by number")
    found: list[int] = []
    for item in items:
        if isinstance(item, Mapping):
            try:
                found.extend(table.find(**item).tolist())
            except InputError:
                if missing != "ignore":
                    raise
        else:
            i = _lookup(table, (item,) if isinstance(item, str) else tuple(item))
            if i is not None:
                found.append(i)
            elif missing != "ignore":
                names = ", ".join(f"{d.name}={c}" for d, c in zip(table.dims, item, strict=False))
                raise InputError(f"there is no cell {names}")
    return np.array(found, dtype=np.int64)


def _lookup(table: Table, codes: tuple[str, ...]) -> int | None:
    """Index of the cell with one code per dimension, None if the table has no such cell."""
    if len(codes) != len(table.dims):
        raise InputError(f"cell {codes} needs one code for each of {', '.join(d.name for d in table.dims)}")
    key = 0
    for dim, code in zip(table.dims, codes, strict=True):
        position = dim.hierarchy.position.get(str(code))
        if position is None:
            return None
        key = key * len(dim) + position
    return cell_index(table).get(key)


_INDEX: dict[int, tuple[Any, dict[int, int]]] = {}


def cell_index(table: Table) -> dict[int, int]:
    """Cell number by the mixed-radix number of its codes; kept for the last table asked about."""
    kept = _INDEX.get(0)
    if kept is None or kept[0] is not table.codes:
        keys = np.zeros(table.n_cells, np.int64)
        for k, dim in enumerate(table.dims):
            keys = keys * len(dim) + table.codes[:, k]
        kept = (table.codes, {int(key): i for i, key in enumerate(keys.tolist())})
        _INDEX[0] = kept
    return kept[1]
