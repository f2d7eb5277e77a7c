"""Files of cells: a CSV or Parquet file with one row per cell, and the structure of the table beside or inside it."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Sequence
from csv import reader as csv_rows
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.files import read_bytes, read_text, write_bytes, write_text
from tabprotect.io import schema
from tabprotect.table.hierarchy import Dimension
from tabprotect.table.table import Table

if TYPE_CHECKING:
    import pyarrow as pa

_KEY = b"tabprotect"


def write_cells(table: Table | schema.Result, path: str | Path) -> Path:
    """Write all cells as CSV or Parquet (by the ending of the name), and the hierarchies and relations with them.

    The file is an ordinary table with the codes as text, for any program; hierarchies and relations go into the Parquet metadata, or for CSV into a
    second file ``<name>.json``. ``read_cells`` gives back exactly the same table. Of a result (what ``suppress`` and the other
    verbs return) only what may be published is written.
    """
    kind = _kind(path)
    if not isinstance(table, Table):
        return _write(kind, path, _published(table))
    frame = _frame(table)
    document = json.dumps(schema.structure(table), ensure_ascii=False, allow_nan=False)
    if kind == "parquet":
        return _write(kind, path, frame.replace_schema_metadata({_KEY: document.encode()}))
    write_text(sidecar(path), document + "\n")
    return _write(kind, path, frame)


def read_cells(path: str | Path, by: Any = None, value: Any = None, freq: str | None = None, **options: Any) -> Table:
    """Read a table that ``write_cells`` wrote; with ``by``, any CSV or Parquet file of cells (see ``Table.from_frame``).

    >>> import tempfile, tabprotect as tp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = tp.write_cells(tp.examples.d272(), f"{folder}/d272.csv")
    ...     tp.read_cells(path)
    <Table: size(9) industry(4), 36 cells, 13 relations, 0 primary>
    """
    kind = _kind(path)
    if by is not None:
        read_bytes(path)
        try:
            return Table.from_frame(path, by, value, freq, **options)
        except InputError as error:
            raise InputError(str(error).removeprefix(f"{path}: "), file=path) from None
    if value is not None or freq is not None or options:
        raise InputError("name the dimensions too: read_cells(path, by=[…], value=…)", file=path)
    if kind == "parquet":
        frame = _read_parquet(path)
        text = (frame.schema.metadata or {}).get(_KEY, b"").decode("utf-8", "replace")
        where: object = path
    else:
        read_bytes(path)
        where = sidecar(path)
        text = read_text(where) if Path(str(where)).is_file() else ""
    if not text:
        raise InputError("says nothing of its dimensions: name them, read_cells(path, by=[…], value=…)", file=path)
    document = schema.parse(text, "tabprotect/table", where)
    dims = schema.dimensions(document, where)
    if kind == "csv":
        frame = _read_csv(path, dims)
    return schema.assemble(document, _columns(frame, dims, path), path)


def sidecar(path: str | Path) -> Path:
    """Where the structure of a CSV file of cells is kept."""
    return Path(f"{path}.json")


def _kind(path: str | Path) -> str:
    suffix = Path(path).suffix.lower()
    if suffix in (".parquet", ".pq"):
        return "parquet"
    if suffix == ".csv":
        return "csv"
    raise InputError("files of cells are called .csv or .parquet", file=path)


def _write(kind: str, path: str | Path, frame: pa.Table) -> Path:
    from pyarrow import csv, parquet

    out = io.BytesIO()
    if kind == "parquet":
        parquet.write_table(frame, out, compression="zstd")
    else:
        csv.write_csv(frame, out)
    return write_bytes(path, [out.getvalue()])


def _frame(table: Table) -> pa.Table:
    """All cells, the codes as text, missing numbers as nulls."""
    import pyarrow as pa

    found = schema.columns(table)
    dims = {f"code:{d.name}": d for d in table.dims}
    clash = next((d.name for d in table.dims if d.name in found), None)
    if clash is not None:
        raise InputError(f"dimension {clash!r} is called like a column of cells: rename it")
    arrays: dict[str, Any] = {}
    for name, column in found.items():
        if name in dims:
            dictionary = pa.array(list(dims[name].codes), pa.string())
            arrays[dims[name].name] = pa.DictionaryArray.from_arrays(pa.array(column, pa.int32()), dictionary).cast(
                pa.string()
            )
        elif column.dtype.kind == "U":
            arrays[name] = pa.array(column.tolist(), pa.string())
        else:
            arrays[name] = pa.array(np.ascontiguousarray(column), from_pandas=True)
    return pa.table(arrays)


def _published(result: schema.Result) -> pa.Table:
    """Codes and released values only."""
    import pyarrow as pa

    table = result.table
    arrays: dict[str, Any] = {}
    for k, dim in enumerate(table.dims):
        dictionary = pa.array(list(dim.codes), pa.string())
        arrays[dim.name] = pa.DictionaryArray.from_arrays(pa.array(table.codes[:, k], pa.int32()), dictionary).cast(
            pa.string()
        )
    if not table.dims:
        arrays["cell"] = pa.array(np.arange(table.n_cells))
    arrays["value"] = pa.array(np.where(result.suppressed, np.nan, result.values), from_pandas=True)
    return pa.table(arrays)


def _read_parquet(path: str | Path) -> pa.Table:
    import pyarrow as pa
    from pyarrow import parquet

    data = read_bytes(path)
    try:
        frame = parquet.ParquetFile(pa.BufferReader(data)).read()
        frame.validate(full=True)  # reading does not look whether texts are texts
        return frame
    except (pa.ArrowException, OSError, ValueError, RuntimeError):
        raise InputError("is not a Parquet file, or a damaged one", file=path) from None


def _read_csv(path: str | Path, dims: Sequence[Dimension]) -> pa.Table:
    """The cells as columns of the types they must have."""
    import pyarrow as pa
    from pyarrow import csv

    text = read_text(path)
    names = next(csv_rows(io.StringIO(text, newline="")), [])
    words = {d.name for d in dims}
    types = {name: pa.string() if name in words else _type(name) for name in names}
    try:
        return csv.read_csv(
            pa.BufferReader(text.encode()),
            read_options=csv.ReadOptions(use_threads=False),  # only then errors name the row
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=False),
        )
    except (pa.ArrowException, OSError, ValueError) as error:
        row = re.search(r"[Rr]ow #(\d+)", str(error))
        # the message itself may quote confidential cells
        raise InputError("is not a CSV file of cells", file=path, line=int(row[1]) if row else None) from None


def _type(name: str) -> pa.DataType:
    import pyarrow as pa

    return {"text": pa.string(), "whole": pa.int64(), "truth": pa.bool_(), "number": pa.float64()}[schema.kind_of(name)]


def _columns(frame: pa.Table, dims: Sequence[Dimension], path: str | Path) -> dict[str, Any]:
    """The columns of a file as arrays, codes as positions."""
    import pyarrow as pa

    position = {d.name: d.hierarchy.position for d in dims}
    missing = next((name for name in position if name not in frame.column_names), None)
    if missing is not None:
        raise InputError(f"there is no column {missing!r}", file=path)
    found: dict[str, Any] = {}
    for name in frame.column_names:
        column = frame[name]
        if name in position:
            found[f"code:{name}"] = _positions(column, position[name], name, path)
        elif name in schema.TEXTS:
            found[name] = np.array(["" if v is None else str(v) for v in column.to_pylist()], dtype=str)
        elif column.type != _type(name) or (column.null_count and not pa.types.is_floating(column.type)):
            raise InputError(f"column {name!r} has entries of the wrong kind", file=path)
        else:
            found[name] = column.to_numpy()
    return found


def _positions(column: pa.ChunkedArray, position: dict[str, int], name: str, path: str | Path) -> Any:
    encoded = column.dictionary_encode().unify_dictionaries().combine_chunks()
    table = np.array([position.get(str(c), -1) for c in encoded.dictionary.to_pylist()] + [-1])
    index = encoded.indices.fill_null(len(table) - 1).to_numpy(zero_copy_only=False)
    wrong = table[index] < 0
    if wrong.any():
        raise InputError(
            f"a code of dimension {name!r} is not in its hierarchy", file=path, line=int(wrong.argmax()) + 2
        )
    return table[index]
