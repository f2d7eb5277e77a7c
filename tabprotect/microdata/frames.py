"""The door for microdata: any frame, warehouse relation or file becomes columns that the kernels can read.

pandas, polars and Arrow frames are used where they are; DuckDB relations, CSV and Parquet paths are read by DuckDB into Arrow,
only the columns that are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from tabprotect.errors import InputError
from tabprotect.types import BoolArray

Frame = nw.DataFrame[Any]


def is_path(data: Any) -> bool:
    """Whether the data are a file name."""
    return isinstance(data, str | Path)


def is_spark(data: Any) -> bool:
    """Whether the data are a PySpark frame (classic or Connect), told without importing PySpark."""
    return type(data).__module__.startswith("pyspark.sql")


def scan(path: str | Path) -> Any:
    """A DuckDB relation over a CSV or Parquet file; nothing is read yet."""
    import duckdb

    file = Path(path)
    globbed = any(c in str(path) for c in "*?[")
    if not globbed and not file.exists():
        raise InputError("no such file", file=file)
    suffix = file.suffix.lower()
    if suffix in {".parquet", ".pq"} or (file.is_dir() and not globbed):
        return duckdb.connect().read_parquet(str(file / "**/*.parquet" if file.is_dir() else file))
    if suffix in {".csv", ".tsv", ".txt", ".gz"}:
        return duckdb.connect().read_csv(str(file), sample_size=-1)
    raise InputError(f"cannot tell the format from the suffix {suffix!r}; use .parquet or .csv", file=file)


def read(data: Any, columns: Iterable[str] | None = None) -> Frame:
    """The data as an eager narwhals frame; ``columns`` limits what a file or relation has to deliver.

    >>> import pandas as pd
    >>> read(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), ["b"]).columns
    ['a', 'b']
    """
    if isinstance(data, Mapping):
        import pyarrow as pa

        data = pa.table({k: pa.array(v) for k, v in data.items()})
    if is_path(data):
        data = scan(data)
    if is_spark(data):
        chosen = data if columns is None else data.select(*checked(data.columns, columns))
        return nw.from_native(chosen.toPandas(), eager_only=True)
    try:
        frame = nw.from_native(data)
    except TypeError:
        raise InputError(
            f"cannot read microdata from {type(data).__name__}; pass a pandas, polars, Arrow or PySpark frame, "
            "a DuckDB relation, a mapping of columns, or a CSV or Parquet path"
        ) from None
    if isinstance(frame, nw.LazyFrame):
        names = frame.collect_schema().names()
        frame = (frame if columns is None else frame.select(*checked(names, columns))).collect()
    if columns is not None:
        checked(frame.columns, columns)
    return frame


def checked(available: Sequence[str], wanted: Iterable[str]) -> list[str]:
    """The wanted columns without repetition, in order, or an error that lists what exists."""
    names = list(dict.fromkeys(wanted))
    lost = [c for c in names if c not in available]
    if lost:
        raise InputError(f"no column {', '.join(map(repr, lost))}; the data have {', '.join(map(repr, available))}")
    return names


def with_columns(frame: Frame, columns: Mapping[str, Any]) -> Frame:
    """The frame with some columns replaced or added, in the backend of the frame."""
    if not columns:
        return frame
    return frame.with_columns(*(nw.new_series(c, _plain(v), backend=frame.implementation) for c, v in columns.items()))


def keep_rows(frame: Frame, mask: BoolArray) -> Frame:
    """The rows of the frame where the mask holds."""
    return frame if mask.all() else frame.filter(nw.new_series("keep", mask, backend=frame.implementation))


def make_frame(columns: Mapping[str, Any], like: Frame) -> Any:
    """A native frame in the backend of another one."""
    return nw.from_dict({k: _plain(v) for k, v in columns.items()}, backend=like.implementation).to_native()


def _plain(values: Any) -> Any:
    # polars and Arrow take no numpy object arrays of mixed origin, but plain lists of Python values
    if isinstance(values, np.ndarray) and values.dtype == object:
        return [v.item() if isinstance(v, np.generic) else v for v in values]
    return values


def write(data: Any, path: str | Path) -> None:
    """Write a frame as CSV or Parquet, to a temporary name first, so that no half file is ever left behind."""
    import os

    import pyarrow.csv
    import pyarrow.parquet

    target = Path(path)
    table = nw.from_native(data, eager_only=True).to_arrow()
    scratch = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        if target.suffix.lower() in {".parquet", ".pq"}:
            pyarrow.parquet.write_table(table, scratch)
        elif target.suffix.lower() == ".csv":
            pyarrow.csv.write_csv(table, scratch)
        else:
            raise InputError(
                f"cannot tell the format from the suffix {target.suffix!r}; use .parquet or .csv", file=target
            )
        scratch.replace(target)
    except OSError as error:
        raise InputError(f"cannot write: {error.strerror or error}", file=target) from None
    finally:
        scratch.unlink(missing_ok=True)
