"""The JSON form of tables and results, with a version, so that files outlive releases.

A table is ``{"format": "tabprotect/table", "version": 1, "name", "counts", "dims": [{"name", "codes", "sums"}], "relations", "rhs", "cells"}``.
``relations`` is ``"cube"`` (all sums of the dimensions) or ``{"indptr", "indices", "data"}`` (one row per relation); ``cells`` has one list per column.
Missing numbers are null, infinite ones ``"inf"`` and ``"-inf"``.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from tabprotect.errors import InputError
from tabprotect.table.contributions import Contributions
from tabprotect.table.cube import cube_codes, cube_relations
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, FloatArray

VERSION = 1
NUMBERS = ("value", "cost", "lb", "ub", "lpl", "upl", "spl")
TEXTS = ("status", "reason")
_FIELDS = tuple(f.name for f in fields(Contributions) if f.name != "holdings")


def kind_of(column: str) -> str:
    """What a column holds: text, whole (numbers), truth (values) or number."""
    name = column.rpartition(".")[2].rstrip("0123456789")
    if column in TEXTS:
        return "text"
    if name in ("freq", "count", "ids") or column.startswith("code:"):
        return "whole"
    return "truth" if name in ("is_count", "asked") else "number"


class Result(Protocol):
    """What a result must have to be written (`tabprotect.protected.Protected`)."""

    table: Table
    kind: str
    method: str
    values: FloatArray
    suppressed: BoolArray
    status: str
    objective: float
    bound: float
    runtime: float


def table_to_json(table: Table) -> str:
    """The whole table as JSON, true values included: it stays inside the office.

    >>> from tabprotect.table.examples import d272
    >>> again = table_from_json(table_to_json(d272()))
    >>> again
    <Table: size(9) industry(4), 36 cells, 13 relations, 0 primary>
    """
    document = structure(table)
    document["cells"] = {name: _plain(column) for name, column in columns(table).items()}
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


def table_from_json(text: str, *, file: object = None) -> Table:
    """The table of a JSON text made by `table_to_json`."""
    document = parse(text, "tabprotect/table", file)
    cells = document.get("cells")
    if not isinstance(cells, dict) or not all(isinstance(c, list) for c in cells.values()):
        raise InputError("'cells' must have one list per column", file=file)
    return assemble(document, {name: _column(name, c, file) for name, c in cells.items()}, file)


def result_to_json(result: Result, *, confidential: bool = False) -> str:
    """A protected table as JSON: what may be published, and how it was made; the true table only if ``confidential``."""
    table = result.table
    document: dict[str, Any] = {
        "format": "tabprotect/result",
        "version": VERSION,
        "confidential": confidential,
        "kind": result.kind,
        "method": result.method,
        "status": result.status,
        "objective": _number(result.objective),
        "bound": _number(result.bound),
        "runtime": _number(result.runtime),
        "dims": [_dimension(d) for d in table.dims],
        "cells": {
            **{f"code:{d.name}": table.codes[:, k].tolist() for k, d in enumerate(table.dims)},
            "value": _plain(np.where(result.suppressed, np.nan, result.values)),
            "suppressed": result.suppressed.tolist(),
        },
    }
    if confidential:
        document["table"] = json.loads(table_to_json(table))
    return json.dumps(document, ensure_ascii=False, allow_nan=False)


# -- the parts of a document, also used beside files of cells -----------------------------------------------------------------
def structure(table: Table) -> dict[str, Any]:
    """All of a table but its cells."""
    document: dict[str, Any] = {
        "format": "tabprotect/table",
        "version": VERSION,
        "name": table.name,
        "counts": table.counts,
        "n_cells": table.n_cells,
        "dims": [_dimension(d) for d in table.dims],
        "relations": "cube" if _is_cube(table) else _sparse(table.relations),
    }
    if table.rhs.any():
        document["rhs"] = _plain(table.rhs)
    return document


def columns(table: Table) -> dict[str, npt.NDArray[Any]]:
    """All columns of a table by name: codes (positions), numbers, texts, and what is known of the contributors."""
    found: dict[str, npt.NDArray[Any]] = {f"code:{d.name}": table.codes[:, k] for k, d in enumerate(table.dims)}
    found["value"] = table.values
    if table.freq is not None:
        found["freq"] = table.freq
    found |= {name: getattr(table, name) for name in (*NUMBERS[1:], *TEXTS)}
    if table.count_cells is not None:
        found["is_count"] = table.count_cells
    if table.contributions is not None:
        found |= _contribution_columns(table.contributions, "contributor")
    return found


def assemble(document: Mapping[str, Any], cells: Mapping[str, Any], file: object = None) -> Table:
    """A table from its structure and its columns."""
    try:
        return _assemble(document, cells)
    except InputError as error:
        raise InputError(str(error), file=file) from None
    except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise InputError(f"is not a complete table: {type(error).__name__} in its structure", file=file) from None


def _assemble(document: Mapping[str, Any], cells: Mapping[str, Any]) -> Table:
    dims = dimensions(document)
    if "value" not in cells:
        raise InputError("there is no column 'value'")
    n = len(cells["value"])
    if n != int(document["n_cells"]):
        raise InputError(f"{int(document['n_cells'])} cells are expected, {n} found")
    wrong = next((name for name, c in cells.items() if len(c) != n), None)
    if wrong is not None:
        raise InputError(f"column {wrong!r} has {len(cells[wrong])} entries for {n} cells")
    given = document["relations"]
    if given == "cube":
        if n != int(np.prod([len(d) for d in dims])):
            raise InputError("the cells are not all combinations of the codes")
        relations = cube_relations(dims)
    else:
        parts = (
            np.array(given["data"], float),
            np.array(given["indices"], np.int64),
            np.array(given["indptr"], np.int64),
        )
        relations = sp.csr_array(parts, shape=(len(parts[2]) - 1, n))
        relations.check_format(full_check=True)
    codes = _codes(dims, cells, n)
    optional: dict[str, Any] = {name: cells[name] for name in (*NUMBERS[1:], *TEXTS, "freq") if name in cells}
    if "status" in cells and not np.isin(cells["status"], list("suzm")).all():
        raise InputError("the status of a cell must be s, u, z or m")
    return Table(
        cells["value"],
        relations,
        rhs=np.array(_column("rhs", document["rhs"], None) if "rhs" in document else []),
        dims=dims,
        codes=codes,
        counts=bool(document["counts"]),
        count_cells=cells.get("is_count"),
        contributions=_contributions(cells, "contributor"),
        name=str(document["name"]),
        **optional,
    )


def dimensions(document: Mapping[str, Any], file: object = None) -> tuple[Dimension, ...]:
    """The dimensions of a document."""
    try:
        return tuple(_read_dimension(d) for d in document["dims"])
    except InputError as error:
        raise InputError(str(error), file=file) from None
    except (KeyError, TypeError, ValueError, IndexError, OverflowError):
        raise InputError("'dims' must be a list of dimensions with name, codes and sums", file=file) from None


def _read_dimension(given: Mapping[str, Any]) -> Dimension:
    codes = tuple(map(str, given["codes"]))
    sums = tuple((int(total), tuple(map(int, parts))) for total, parts in given["sums"])
    if any(not 0 <= i < len(codes) for total, parts in sums for i in (total, *parts)):
        raise InputError("a sum of a hierarchy names a code that is not there")
    return Dimension(str(given["name"]), Hierarchy(codes, sums))


def _codes(dims: tuple[Dimension, ...], cells: Mapping[str, Any], n: int) -> npt.NDArray[np.int32]:
    codes = np.zeros((n, len(dims)), np.int32)
    for k, d in enumerate(dims):
        column = np.asarray(cells[f"code:{d.name}"], np.int64)
        if ((column < 0) | (column >= len(d))).any():
            raise InputError(f"a cell has a code that dimension {d.name!r} does not have")
        codes[:, k] = column
    return codes


def parse(text: str, kind: str, file: object = None) -> dict[str, Any]:
    """A JSON document of the given kind in a version that this release reads."""
    try:
        document = json.loads(text)
    except RecursionError:
        raise InputError("is nested too deeply to be a table", file=file) from None
    except ValueError as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        raise InputError("is not JSON", file=file, line=line) from None
    if not isinstance(document, dict) or document.get("format") != kind:
        raise InputError(f"is not of the format {kind}", file=file)
    version = document.get("version")
    if not isinstance(version, int) or not 1 <= version <= VERSION:
        raise InputError(
            f"has version {version!r}; this release of tabprotect reads versions 1 to {VERSION}", file=file
        )
    return document


def _dimension(dim: Dimension) -> dict[str, Any]:
    sums = [[total, list(parts)] for total, parts in dim.hierarchy.sums]
    return {"name": dim.name, "codes": list(dim.codes), "sums": sums}


def _is_cube(table: Table) -> bool:
    """Are the cells all combinations of the codes in order, and the relations all their sums?"""
    if not table.dims or table.n_cells != int(np.prod([len(d) for d in table.dims])):
        return False
    if not np.array_equal(table.codes, cube_codes(table.dims)):
        return False
    ours, full = table.relations, cube_relations(table.dims)
    return ours.shape == full.shape and all(
        np.array_equal(getattr(ours, a), getattr(full, a)) for a in ("indptr", "indices", "data")
    )


def _sparse(relations: Any) -> dict[str, Any]:
    return {name: _plain(getattr(relations, name)) for name in ("indptr", "indices", "data")}


def _plain(column: npt.NDArray[Any]) -> list[Any]:
    """A column as JSON values."""
    if column.dtype.kind != "f":
        return column.tolist()
    return [_number(v) for v in column.tolist()]


def _number(value: float) -> float | int | str | None:
    if value != value:
        return None
    if value in (np.inf, -np.inf):
        return "inf" if value > 0 else "-inf"
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _column(name: str, given: list[Any], file: object) -> npt.NDArray[Any]:
    """A JSON list as a column."""
    kind = kind_of(name)
    try:
        if kind == "text":
            return np.array([str(v) for v in given], dtype=str)
        if kind == "truth":
            return np.array([bool(v) for v in given], bool)
        if kind == "whole":
            return np.array([int(v) for v in given], np.int64)
        return np.array([np.nan if v is None else float(v) for v in given], float)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"column {name!r} has entries of the wrong kind", file=file) from None


def _contribution_columns(known: Contributions, prefix: str) -> dict[str, npt.NDArray[Any]]:
    """Everything that is known of the contributors; blocks (cells × k) become numbered columns."""
    found: dict[str, npt.NDArray[Any]] = {}
    for name in _FIELDS:
        own = getattr(known, name)
        if own is not None:
            block = np.asarray(own)
            parts = (
                [(name, block)] if block.ndim == 1 else [(f"{name}{k + 1}", block[:, k]) for k in range(block.shape[1])]
            )
            found |= {f"{prefix}.{part}": column for part, column in parts}
    if known.holdings is not None:
        found |= _contribution_columns(known.holdings, "holding")
    return found


def _contributions(cells: Mapping[str, Any], prefix: str) -> Contributions | None:
    if f"{prefix}.count" not in cells:
        return None
    found: dict[str, Any] = {"top": np.zeros((len(cells[f"{prefix}.count"]), 0))}
    for name in _FIELDS:
        if f"{prefix}.{name}" in cells:
            found[name] = cells[f"{prefix}.{name}"]
        elif f"{prefix}.{name}1" in cells:
            numbered = (f"{prefix}.{name}{k}" for k in itertools.count(1))
            found[name] = np.column_stack(
                [cells[column] for column in itertools.takewhile(cells.__contains__, numbered)]
            )
    if prefix == "contributor":
        found["holdings"] = _contributions(cells, "holding")
    return Contributions(**found)
