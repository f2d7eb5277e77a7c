"""Records of any kind as one lazy narwhals frame: DuckDB for data in memory and in files, Spark for Spark."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabprotect.errors import InputError
from tabprotect.table.columns import arrow_columns, is_path, quiet_duckdb, scan_file

if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa

BATCH = 1_000_000


@dataclass(frozen=True)
class Source:
    """A lazy frame and the ways to put a small list beside it and to read its rows in batches."""

    frame: nw.LazyFrame[Any]
    scratch: str

    def lookup(self, codes: Sequence[str], positions: Sequence[int]) -> nw.LazyFrame[Any]:
        """Two columns ``code`` and ``pos`` in the engine of the frame."""
        import narwhals as nw

        native = self.frame.to_native()
        if self.frame.implementation.is_duckdb():
            import pyarrow as pa
            import pyarrow.parquet as pq

            path = f"{self.scratch}/{uuid.uuid4().hex}.parquet"
            pq.write_table(
                pa.table({"code": pa.array(codes, pa.string()), "pos": pa.array(positions, pa.int64())}), path
            )
            # a query on the relation runs in its own connection, which may be the caller's; literals would be parsed again and again
            return nw.from_native(native.query("source", f"SELECT code, pos FROM read_parquet('{path}')"))
        rows = list(zip(codes, map(int, positions), strict=True))
        return nw.from_native(native.sparkSession.createDataFrame(rows, "code string, pos long"))


@contextmanager
def engine_errors(data: Any) -> Iterator[None]:
    """What goes wrong while the engine reads (a bad line in a file, not enough memory) is told as an InputError."""
    import duckdb
    from narwhals.exceptions import NarwhalsError

    try:
        yield
    except (duckdb.Error, NarwhalsError) as error:
        text = " ".join(str(error).split())[:500]
        raise InputError(f"the records could not be read: {text}", file=data if is_path(data) else None) from None


def batches(frame: nw.LazyFrame[Any]) -> Iterator[pa.Table]:
    """The rows of a lazy frame as Arrow tables, streamed where the engine can."""
    import pyarrow as pa

    if frame.implementation.is_duckdb():
        for batch in frame.to_native().to_arrow_reader(BATCH):
            yield pa.Table.from_batches([batch])
        return
    table = frame.collect("pyarrow").to_native()
    for start in range(0, table.num_rows, BATCH):
        yield table.slice(start, BATCH)


def scan(data: Any, columns: Sequence[str], text: Sequence[str], memory: str, scratch: str) -> Source:
    """The named columns of ``data`` as a lazy frame.

    DuckDB relations and Spark frames stay where they are. CSV and Parquet files are scanned by an embedded DuckDB that uses at
    most ``memory`` and then the folder ``scratch``; frames in memory are handed to it without copying where possible.
    """
    import narwhals as nw

    if is_path(data):
        return Source(
            _select(nw.from_native(scan_file(_connect(memory, scratch), Path(data), text)), columns, data), scratch
        )
    try:
        frame = nw.from_native(data)
    except TypeError:
        frame = None
    if isinstance(frame, nw.LazyFrame):
        engine = frame.implementation
        if engine.is_duckdb() or engine.is_pyspark() or engine.is_pyspark_connect():
            return Source(_select(frame, columns, None), scratch)
        data = _select(frame, columns, None).to_native()
    import pyarrow as pa

    table = pa.table(arrow_columns(data, list(columns)))
    return Source(nw.from_native(_connect(memory, scratch).from_arrow(table)), scratch)


def _select(frame: Any, columns: Sequence[str], path: Any) -> Any:
    names = frame.collect_schema().names()
    for column in columns:
        if column not in names:
            raise InputError(f"no column {column!r}; there are {', '.join(map(repr, names))}", file=path)
    return frame.select(*dict.fromkeys(columns))


def _connect(memory: str, scratch: str) -> Any:
    import duckdb

    try:
        return quiet_duckdb({"memory_limit": memory, "temp_directory": scratch})
    except duckdb.Error as error:
        raise InputError(f"memory={memory!r} is not a size such as '2GB': {str(error).splitlines()[0]}") from None
