"""Files larger than memory and Spark frames: the same measures, part by part, split so that no class is torn apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import astuple, fields
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from tabprotect.errors import InputError
from tabprotect.microdata.frames import checked, is_path, is_spark, read, scan
from tabprotect.microdata.tally import Tally, total

if TYPE_CHECKING:
    from tabprotect.microdata.plan import Plan

PART = 8_000_000  # records per part

Counts = dict[str, dict[Any, int]]


def rows(path: Any) -> int:
    """Number of records of a file (read from the footer of a Parquet file)."""
    return int(scan(path).aggregate("count(*)").fetchall()[0][0])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def measure_in_parts(data: Any, plan: Plan, parts: int | None, executor: Executor | None) -> dict[str | None, Tally]:
    """The tallies of a file, from the tallies of its parts.

    Records go to a part by a hash of their keys, so each class lies in one part. The distribution of the sensitive attributes in the
    whole file is counted first.
    """
    if parts is not None and parts < 1:
        raise InputError(f"parts={parts}: at least one part")
    if is_spark(data):
        return _spark(data, plan, parts)
    relation = scan(data) if is_path(data) else _relation(data)
    checked(relation.columns, [*plan.keys, *plan.sensitive])
    keys = ", ".join(map(_quoted, plan.keys))
    known = " AND ".join(f"{_quoted(c)} IS NOT NULL" for c in plan.keys) if plan.missing == "drop" else "true"
    used = relation.filter(known)
    n = int(used.aggregate("count(*)").fetchall()[0][0])
    count = parts if parts is not None else max(1, -(-n // PART))
    shares: Counts = {}
    for name in plan.sensitive:
        column = _quoted(name)
        shares[name] = dict(used.aggregate(f"{column}, count(*)", column).fetchall())
    wanted = ", ".join(_quoted(c) for c in dict.fromkeys([*plan.keys, *plan.sensitive]))
    tables: Iterable[Any] = (
        used.filter(f"hash({keys}) % {count} = {part}").project(wanted).to_arrow_table() for part in range(count)
    )
    found = [_part(t, plan, shares) for t in tables] if executor is None else _run(executor, tables, plan, shares)
    return {name: total([f[name] for f in found]) for name in found[0]}


def _run(executor: Executor, tables: Iterable[Any], plan: Plan, shares: Counts) -> list[dict[str | None, Tally]]:
    """Hand out parts while keeping only a few of them in memory."""
    from concurrent.futures import FIRST_COMPLETED, Future, wait

    found: list[dict[str | None, Tally]] = []
    running: set[Future[dict[str | None, Tally]]] = set()
    for table in tables:
        running.add(executor.submit(_part, table, plan, shares))
        if len(running) >= 4:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            found += [f.result() for f in done]
    return found + [f.result() for f in running]


def _relation(data: Any) -> Any:
    import duckdb

    if isinstance(data, duckdb.DuckDBPyRelation):
        return data
    return duckdb.connect().from_arrow(read(data).to_arrow())


def _part(table: Any, plan: Plan, shares: Mapping[str, Mapping[Any, int]]) -> dict[str | None, Tally]:
    return plan.tallies(nw.from_native(table, eager_only=True), shares)


def _spark(data: Any, plan: Plan, parts: int | None) -> dict[str | None, Tally]:
    """One grouped pandas function per part; only sums travel back to the driver."""
    from pyspark.sql import functions as F

    used = data.select(*checked(data.columns, [*plan.keys, *plan.sensitive]))
    if plan.missing == "drop":
        used = used.dropna(subset=list(plan.keys))
    shares: Counts = {
        name: {r[0]: int(r[1]) for r in used.groupBy(F.col(f"`{name}`")).count().collect()} for name in plan.sensitive
    }
    count = parts or max(1, -(-used.count() // PART))
    names = [f.name for f in fields(Tally)]
    attributes: list[str | None] = [*plan.sensitive] or [None]

    def sums(frame: Any) -> Any:
        import pandas as pd

        frame = frame.drop(columns="__part")
        found = plan.tallies(nw.from_native(frame, eager_only=True), shares)
        rows = [
            [i, *(list(x) if isinstance(x, tuple) else x for x in astuple(found[a]))] for i, a in enumerate(attributes)
        ]
        return pd.DataFrame(rows, columns=["attribute", *names])

    part = F.pmod(F.xxhash64(*[F.col(f"`{c}`") for c in plan.keys]), F.lit(count)).alias("__part")
    schema = "attribute int, " + ", ".join(f"{n} array<long>" if n == "histogram" else f"{n} double" for n in names)
    back = used.select("*", part).groupBy("__part").applyInPandas(sums, schema).collect()
    found: dict[str | None, list[Tally]] = {a: [] for a in attributes}
    for row in back:
        values = {n: tuple(row[n]) if n == "histogram" else float(row[n]) for n in names}
        found[attributes[row["attribute"]]].append(Tally(**values))  # type: ignore[arg-type]
    if not back:
        found = {a: [Tally(k=np.inf)] for a in attributes}
    return {a: total(t) for a, t in found.items()}
