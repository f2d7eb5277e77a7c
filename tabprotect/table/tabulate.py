"""Tables from microdata: every cell of the hierarchical cube with its contributors."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.solve.stop import Listener, Stop
from tabprotect.table.contributions import Contributions
from tabprotect.table.cube import cube_codes, cube_relations, fill_margins
from tabprotect.table.dimension import read_by, total_labels
from tabprotect.table.mixed import side_by_side
from tabprotect.table.records import Policy, Records, Roles, prepare
from tabprotect.table.scan import batches, engine_errors, scan
from tabprotect.table.table import PROTECTED, SAFE, Table
from tabprotect.types import BoolArray, FloatArray, IntArray


def tabulate(
    df: Any,
    by: Any,
    value: str | Sequence[str | None] | None = None,
    *,
    contributor: str | None = None,
    holding: str | None = None,
    weight: str | None = None,
    request: str | None = None,
    top: int = 3,
    total: str | Mapping[str, str | None] | None = None,
    missing: str | Mapping[str, str] = "error",
    unknown: str | Mapping[str, str] = "error",
    negative: str = "error",
    nan: str = "error",
    variable: str = "variable",
    name: str = "",
    memory: str = "2GB",
    progress: Listener | None = None,
) -> Table:
    """Make a table from records, with the number of contributors and the largest contributions of every cell and total.

    Parameters
    ----------
    df
        pandas, polars, Arrow or other frame that narwhals reads, a DuckDB relation, a PySpark frame, or the path of a CSV or Parquet file.
    by
        A list of columns (flat dimensions), or a mapping from column to a ``Hierarchy``, a list of codes, nested dicts, the path of
        a ``.hrc`` file, or None (the codes found). Records carry the finest codes.
    value
        The column to add up; left out, records are counted. A list of columns (None among them for the count) makes a mixed table.
    contributor
        The column that names the respondent: one with several records in a cell counts once. Without it every record is a respondent.
    holding
        The column that names the group a respondent belongs to; missing for those who belong to none.
    weight
        The sampling weight: values are then Σ w·x, while the number of contributors and the top contributions stay those of the sample.
    request
        A true/false column: who asked for protection.
    top
        How many of the largest contributions to keep per cell; dominance needs n, the p% rule 2.
    total
        The label of the totals, for all dimensions or by dimension; None for a dimension that is not to be summed.
    missing, unknown
        Records without a code, or with one that is no leaf of the hierarchy: ``"error"``, ``"drop"``, or the code to use (also by column).
    negative
        Negative amounts: ``"error"``, ``"absolute"`` (contributions are ranked by size and compared with the sum of sizes), ``"allow"``.
    nan
        Records without an amount: ``"error"``, ``"drop"`` or ``"zero"``.
    memory
        How much memory the embedded DuckDB may use before it goes to disk.
    progress
        Called with a ``Progress`` (of ``tabprotect.solve.stop``) now and then.

    Data in memory and in files are aggregated by DuckDB, Spark frames by Spark, with the same expressions and the same result. Amounts with up to
    six decimals are added up exactly.

    >>> firms = {"firm": ["a", "a", "b", "c"], "region": ["N", "S", "S", "S"], "turnover": [5.0, 20.0, 30.0, 1.0]}
    >>> t = tabulate(firms, by=["region"], value="turnover", contributor="firm", top=2)
    >>> t.values.tolist(), t.freq.tolist(), t.contributions.top.tolist()
    ([56.0, 5.0, 51.0], [3, 1, 3], [[30.0, 25.0], [5.0, 0.0], [30.0, 20.0]])
    """
    if isinstance(top, bool) or not isinstance(top, int) or top < 0:
        raise InputError(f"top must be a whole number of zero or more, not {top!r}")
    if holding is not None and contributor is None:
        raise InputError("holding needs contributor: a holding is a group of contributors")
    specs = read_by(by)
    policy = Policy(missing, unknown, negative, nan)
    values = [value] if value is None or isinstance(value, str) else list(value)
    roles = [Roles(v, contributor, holding, weight, request) for v in values]
    columns = [*specs, *(c for r in roles for c in r.columns)]
    labels, text = total_labels(total, specs), [*specs, *(c for c in (contributor, holding) if c)]
    stop, tables = Stop(listener=progress), []
    with tempfile.TemporaryDirectory(prefix="tabprotect-") as scratch, engine_errors(df):
        source = scan(df, columns, text, memory, scratch)
        for role in roles:
            stop.tell("checking records")
            tables.append(_one_variable(prepare(source, specs, labels, role, policy), role, top, policy, stop))
    if value is None or isinstance(value, str):
        return tables[0].replace(name=name)
    names = ["count" if v is None else v for v in values]
    return side_by_side(tables, names, [v is None for v in values], variable, name)


def _one_variable(records: Records, roles: Roles, top: int, policy: Policy, stop: Stop) -> Table:
    keys = [f"key_{roles.contributor}"] if roles.contributor else []
    own, values = _respondents(records, records.frame, keys, roles, top, policy, stop)
    if roles.holding is not None:
        frame, group = _holding_keys(records.frame, keys[0], f"key_{roles.holding}")
        own = replace(own, holdings=_respondents(records, frame, group, roles, top, policy, stop)[0])
    return Table(
        values,
        cube_relations(records.dims),
        freq=own.count,
        status=np.where(own.count == 0, PROTECTED, SAFE),
        dims=records.dims,
        codes=cube_codes(records.dims),
        counts=roles.value is None,
        contributions=own,
    )


def _holding_keys(frame: Any, contributor: str, holding: str) -> tuple[Any, list[str]]:
    """Key columns of the holding of a record, or of its contributor where it belongs to none."""
    import narwhals as nw

    schema = frame.collect_schema()
    own, group = nw.col(contributor), nw.col(holding)
    if schema[contributor] != schema[holding]:
        own, group = own.cast(nw.String), group.cast(nw.String)
    alone = nw.col(holding).is_null()
    return frame.with_columns(alone.alias("alone"), nw.when(alone).then(own).otherwise(group).alias("holding")), [
        "alone",
        "holding",
    ]


def _respondents(
    records: Records, frame: Any, keys: list[str], roles: Roles, top: int, policy: Policy, stop: Stop
) -> tuple[Contributions, FloatArray]:
    """Contributions per cell of the respondents that ``keys`` tell apart (none: every record is one), and the values of the cells."""
    import narwhals as nw

    from tabprotect.table.topk import TopK

    weight, request = roles.weight, roles.request
    amounts = [nw.col("x"), *([(nw.col("x") * nw.col("w")).alias("wx")] if weight else [])]
    if request:
        kind = frame.collect_schema()[f"key_{request}"]
        if not (kind == nw.Boolean or kind.is_integer()):
            raise InputError(f"column {request!r} must be true or false, it holds {kind}")
        amounts.append(nw.col(f"key_{request}").cast(nw.Int64).fill_null(0).alias("asked"))
    frame = frame.select(*keys, "cell", *amounts)
    if keys:
        sums = [
            nw.col("x").sum(),
            *([nw.col("wx").sum()] if weight else []),
            *([nw.col("asked").max()] if request else []),
        ]
        # the smallest possible answer of the engine: one row per respondent and inner cell
        frame = frame.group_by(*keys, "cell").agg(*sums).sort(*keys, "cell")
    absolute = policy.negative == "absolute"
    state = TopK(records.dims, top, weighted=bool(weight), asked=bool(request), absolute=absolute)
    for starts, rows, names in _runs(batches(frame), keys):
        state.add(starts, *rows, names)
        stop.tell("adding up", done=state.respondents)
    shape = state.leaf_sizes.tolist()
    xs, ws = max(records.x_scale, 1), max(records.w_scale, 1)
    plain = fill_margins(state.value.reshape(shape), records.dims) / xs
    values = fill_margins(state.weight_value.reshape(shape), records.dims) / (xs * ws) if weight else plain
    own = Contributions(
        state.count,
        state.top / xs,
        state.size / (xs * ws) if absolute else values,
        # a contribution of nothing has no weight of its own
        weights=None if state.weights is None else np.where(state.top == 0, 1.0, state.weights / ws),
        ids=state.ids if keys else None,
        asked=state.asked,
        unweighted=plain if weight else None,
    )
    return own, values


Rows = tuple[IntArray, FloatArray, FloatArray, BoolArray]


def _runs(tables: Iterator[Any], keys: Sequence[str]) -> Iterator[tuple[IntArray, Rows, IntArray]]:
    """Batches that hold whole respondents: where each one starts (and the end), the columns cell, x, wx, asked, and their numbers."""
    import pyarrow as pa

    rest = None
    for table in tables:
        if rest is not None and rest.num_rows:
            table = pa.concat_tables([rest, table])
        if table.num_rows == 0:
            continue
        starts = _starts(table, keys)
        # the last respondent may go on in the next batch
        end = int(starts[-1]) if keys else table.num_rows
        rest = table.slice(end)
        if end:
            bounds = starts if keys else np.append(starts, end)
            yield bounds, _arrays(table.slice(0, end)), _numbers(table, keys, bounds[:-1])
    if rest is not None and rest.num_rows:
        yield np.array([0, rest.num_rows]), _arrays(rest), _numbers(rest, keys, np.array([0]))


def _starts(table: Any, keys: Sequence[str]) -> IntArray:
    """Rows at which another respondent begins."""
    import pyarrow.compute as pc

    if not keys:
        return np.arange(table.num_rows)
    new = np.zeros(table.num_rows, bool)
    new[0] = True
    for key in keys:
        column = table.column(key)
        new[1:] |= pc.not_equal(column.slice(1), column.slice(0, table.num_rows - 1)).to_numpy()
    return np.flatnonzero(new)


def _numbers(table: Any, keys: Sequence[str], starts: IntArray) -> IntArray:
    """A number for every respondent that depends on the name alone: the same in every table made of the same respondents."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    if not keys or len(starts) == 0:
        return np.zeros(0, np.int64)
    texts = [pc.cast(table.column(key).take(pa.array(starts)), pa.string()) for key in keys]
    names = texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "\0")
    hashed = pd.util.hash_array(names.to_numpy(zero_copy_only=False), categorize=False)
    return (hashed >> np.uint64(1)).astype(np.int64)


def _arrays(table: Any) -> Rows:
    names = table.column_names

    def column(name: str, kind: Any) -> Any:
        return table.column(name).to_numpy().astype(kind) if name in names else np.zeros(0, kind)

    return column("cell", np.int64), column("x", np.float64), column("wx", np.float64), column("asked", np.bool_)
