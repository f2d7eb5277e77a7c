"""Columns of any frame or file as Arrow arrays, codes as text, and numbers as floats."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.types import FloatArray, IntArray

if TYPE_CHECKING:
    import pyarrow as pa

EXACT = 2**53
"""Whole numbers up to here are exact as floats."""


def code_text(value: Any) -> str | None:
    """A code as text: 1 and 1.0 are '1', None and NaN are missing.

    >>> code_text(1.0), code_text("01"), code_text(float("nan"))
    ('1', '01', None)
    """
    if value is None or value is False or value is True:
        return None if value is None else str(value)
    if isinstance(value, str):
        return value
    if isinstance(value, float | np.floating):
        if math.isnan(value):
            return None
        return str(int(value)) if value == int(value) else repr(float(value))
    if hasattr(value, "isoformat"):
        text = str(value.isoformat())
        return None if text == "NaT" else text
    text = str(value)
    return None if text == "<NA>" else text


def is_path(data: Any) -> bool:
    """Is this the name of a file rather than data?"""
    return isinstance(data, str | Path)


def arrow_columns(data: Any, names: Sequence[str] | None, text: Sequence[str] = ()) -> dict[str, pa.ChunkedArray]:
    """The named columns (None: all) of a frame, mapping, list of records or CSV/Parquet file as Arrow arrays.

    Columns in ``text`` are read from CSV as text, so that a code 01 stays 01.
    """
    table = _read_file(Path(data), text) if is_path(data) else _as_frame(data)
    available = [str(c) for c in table.columns]
    missing = [c for c in (names or []) if c not in available]
    if missing:
        where = f" of {data}" if is_path(data) else ""
        raise InputError(f"no column {missing[0]!r}{where}; there are {', '.join(map(repr, available))}")
    return {c: _arrow(table, c) for c in (available if names is None else dict.fromkeys(names))}


def _as_frame(data: Any) -> Any:
    import narwhals as nw
    import pyarrow as pa

    if isinstance(data, Mapping):
        data = pa.table({str(k): pa.array(v) for k, v in data.items()})
    elif isinstance(data, list) and data and isinstance(data[0], Mapping):
        data = pa.Table.from_pylist(data)
    try:
        frame = nw.from_native(data)
    except TypeError:
        raise InputError(
            f"cannot read cells from {type(data).__name__}: pass a pandas, polars or Arrow frame, or a path"
        ) from None
    return frame.collect("pyarrow") if isinstance(frame, nw.LazyFrame) else frame


def _read_file(path: Path, text: Sequence[str]) -> Any:
    import duckdb
    import narwhals as nw

    con = quiet_duckdb({})
    try:
        return nw.from_native(scan_file(con, path, text).to_arrow_table())
    except duckdb.Error as error:
        raise InputError(f"cannot be read: {_first_line(error)}", file=path) from None
    finally:
        con.close()


def quiet_duckdb(config: dict[str, Any]) -> Any:
    """A DuckDB of our own; its progress bar would be mixed with what the caller prints."""
    import duckdb

    con = duckdb.connect(config=config)
    con.execute("SET enable_progress_bar = false")
    return con


def scan_file(con: Any, path: Path, text: Sequence[str] = ()) -> Any:
    """A DuckDB relation over a CSV or Parquet file (or a glob of them)."""
    import duckdb

    suffix = "".join(path.suffixes).lower()
    try:
        if path.is_dir():  # as Spark and others write one
            return con.read_parquet(f"{path}/**/*.parquet")
        if ".parquet" in suffix or ".pq" in suffix:
            return con.read_parquet(str(path))
        if any(s in suffix for s in (".csv", ".tsv", ".txt")):
            head = con.read_csv(str(path)).columns
            return con.read_csv(str(path), dtype={c: "VARCHAR" for c in text if c in head})
    except duckdb.Error as error:
        raise InputError(f"cannot be read: {_first_line(error)}", file=path) from None
    raise InputError("unknown kind of file: .csv, .tsv, .txt or .parquet is expected", file=path)


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0]


def _arrow(frame: Any, name: str) -> pa.ChunkedArray:
    """One column as an Arrow array; columns of mixed Python objects become text."""
    import pyarrow as pa

    series = frame.get_column(name)
    try:
        array = series.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        array = pa.array([code_text(x) for x in series.to_list()])
    return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])


def encode(array: pa.ChunkedArray) -> tuple[IntArray, list[str]]:
    """Codes as numbers into the list of distinct texts, in order of appearance (of its categories if it is categorical, unused ones left out); missing is −1."""
    import pyarrow as pa

    if len(array) == 0:
        return np.zeros(0, np.int64), []
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    whole = array.unify_dictionaries().combine_chunks()
    whole = whole.chunk(0) if isinstance(whole, pa.ChunkedArray) else whole
    texts = [code_text(v) for v in whole.dictionary.to_pylist()]
    index = whole.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    used = np.zeros(len(texts) + 1, bool)
    used[index] = True
    names: dict[str, int] = {}
    number = [-1 if t is None or not used[i] else names.setdefault(t, len(names)) for i, t in enumerate(texts)]
    return np.array([*number, -1], np.int64)[index], list(names)


def numbers(array: pa.ChunkedArray, name: str, missing: float | None = None) -> FloatArray:
    """A column as floats. Missing values are an error naming the row, or become ``missing``; text and infinite values are errors."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = array.type
    if pa.types.is_integer(kind) and len(array):
        low, high = pc.min_max(array).values()
        if low.is_valid and max(abs(low.as_py()), abs(high.as_py())) > EXACT:
            raise InputError(f"column {name!r} has whole numbers beyond 2^53, which are not exact: use larger units")
    if pa.types.is_null(kind):
        array = array.cast(pa.float64())
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)) and len(array):
        if not (pa.types.is_boolean(kind) or pa.types.is_null(kind)):
            raise InputError(f"column {name!r} must be numeric, it holds {kind}")
        array = array.cast(pa.int8()) if pa.types.is_boolean(kind) else array
    values = np.array(pc.cast(array, pa.float64(), safe=False).to_numpy(), dtype=np.float64)
    gaps = np.isnan(values)
    if gaps.any():
        if missing is None:
            raise InputError(f"row {int(gaps.argmax())} (from 0): column {name!r} is missing or not a number")
        values[gaps] = missing
    if missing is None and np.isinf(values).any():
        raise InputError(f"row {int(np.isinf(values).argmax())} (from 0): column {name!r} is infinite")
    return values
