"""tabulate against brute force, the engines against each other, and every policy."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabprotect as tp
from tabprotect.errors import InputError
from tabprotect.table.contributions import Contributions

REGION = tp.Hierarchy.from_tree({"N": {"N1": ["N11", "N12"], "N2": None}, "S": ["S1"], "W": None})
KIND = tp.Hierarchy.combine(
    tp.Hierarchy.from_tree({"Goods": ["a", "b"], "Services": ["c"]}),
    tp.Hierarchy.from_tree({"Old": ["a", "c"], "New": ["b"]}),
)


def records(n: int = 300, seed: int = 0, decimals: int = 2, negative: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    amount = rng.lognormal(3, 1, n).round(decimals) - (15 if negative else 0)
    group = rng.integers(0, 6, n)
    return pd.DataFrame(
        {
            "region": rng.choice(["N11", "N12", "N2", "S1", "W"], n),
            "kind": rng.choice(["a", "b", "c"], n),
            "size": rng.integers(1, 12, n),
            "firm": [f"f{i:02d}" for i in rng.integers(0, 40, n)],
            "group": pd.array(np.where(group < 3, group, -1), dtype="Int64"),
            "turnover": amount.round(decimals),
            "w": rng.integers(10, 40, n) / 10,
            "asks": rng.random(n) < 0.05,
        }
    ).assign(group=lambda d: d["group"].mask(d["group"] < 0))


def leaves_of(hierarchy: tp.Hierarchy, code: str) -> set[str]:
    row = hierarchy.membership[[hierarchy.position[code]]]
    return {hierarchy.codes[hierarchy.leaves[j]] for j in row.indices}


def brute(
    df: pd.DataFrame, hierarchies: dict[str, tp.Hierarchy], key: str | None, k: int
) -> dict[tuple[str, ...], Any]:
    """Count, sum and top k of every cell, by filtering the records."""
    out = {}
    for codes in product(*[h.codes for h in hierarchies.values()]):
        part = df
        for column, code in zip(hierarchies, codes, strict=True):
            part = part[part[column].astype(str).isin(leaves_of(hierarchies[column], code))]
        amounts = part["turnover"] if key is None else part.groupby(key)["turnover"].sum()
        top = sorted(amounts, reverse=True)[:k]
        out[codes] = (len(amounts), part["turnover"].sum(), top + [0.0] * (k - len(top)))
    return out


def same(a: tp.Table, b: tp.Table) -> None:
    assert a.dims == b.dims
    np.testing.assert_array_equal(a.values, b.values)
    np.testing.assert_array_equal(a.status, b.status)
    same_contributions(a.contributions, b.contributions)


def same_contributions(a: Contributions | None, b: Contributions | None) -> None:
    assert a is not None
    assert b is not None
    for name in ("count", "top", "total", "weights", "ids", "asked", "unweighted"):
        left, right = getattr(a, name), getattr(b, name)
        assert (left is None) == (right is None)
        if left is not None:
            np.testing.assert_array_equal(left, right, err_msg=name)
    if a.holdings is not None:
        same_contributions(a.holdings, b.holdings)


@pytest.mark.parametrize("key", ["firm", None])
def test_every_cell_is_that_of_brute_force(key: str | None) -> None:
    df = records()
    table = tp.tabulate(df, by={"region": REGION, "kind": KIND}, value="turnover", contributor=key, top=4)
    table.check_additive()
    expected = brute(df, {"region": REGION, "kind": KIND}, key, 4)
    assert table.n_cells == len(expected) == len(REGION) * len(KIND)
    known = table.contributions
    assert known is not None
    for i in range(table.n_cells):
        codes = tuple(d.codes[c] for d, c in zip(table.dims, table.codes[i], strict=True))
        count, total, top = expected[codes]
        assert known.count[i] == table.freq[i] == count
        assert table.values[i] == pytest.approx(total, rel=1e-12)
        np.testing.assert_allclose(known.top[i], top, rtol=1e-12)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "b", "c"]), st.integers(0, 3), st.integers(0, 4), st.integers(0, 50)),
        min_size=1,
        max_size=30,
    ),
    st.integers(0, 5),
)
def test_top_contributions_of_any_records(rows: list[tuple[str, int, int, int]], k: int) -> None:
    df = pd.DataFrame(rows, columns=["kind", "size", "firm", "turnover"])
    size = tp.Hierarchy.from_tree({"small": ["0", "1"], "large": {"2": None, "x": ["3"]}})
    table = tp.tabulate(df, by={"kind": KIND, "size": size}, value="turnover", contributor="firm", top=k)
    expected = brute(df, {"kind": KIND, "size": size}, "firm", k)
    for i, codes in enumerate(product(KIND.codes, size.codes)):
        count, total, top = expected[codes]
        assert (table.contributions.count[i], table.values[i], table.contributions.top[i].tolist()) == (
            count,
            total,
            top,
        )


def test_one_firm_with_several_records_counts_once() -> None:
    df = {"firm": ["a", "a", "a", "b"], "region": ["N", "N", "S", "S"], "x": [1, 2, 4, 5]}
    table = tp.tabulate(df, by=["region"], value="x", contributor="firm")
    assert table.freq.tolist() == [2, 1, 2]
    assert table.contributions.top.tolist() == [[7, 5, 0], [3, 0, 0], [5, 4, 0]]
    assert (table.contributions.ids >= 0).tolist() == [False, True, False]


def test_holdings_are_one_respondent_and_lone_firms_their_own() -> None:
    df = {
        "firm": ["a", "b", "c", "d"],
        "group": ["g", "g", None, None],
        "region": ["N", "N", "N", "S"],
        "x": [10.0, 20.0, 25.0, 1.0],
    }
    known = tp.tabulate(df, by="region", value="x", contributor="firm", holding="group").contributions
    assert known.count.tolist() == [4, 3, 1]
    assert known.holdings.count.tolist() == [3, 2, 1]
    assert known.holdings.top[1].tolist() == [30.0, 25.0, 0.0]
    assert known.top[1].tolist() == [25.0, 20.0, 10.0]


def test_a_firm_named_like_a_holding_is_not_that_holding() -> None:
    df = {"firm": ["g", "b"], "group": [None, "g"], "region": ["N", "N"], "x": [1.0, 2.0]}
    known = tp.tabulate(df, by="region", value="x", contributor="firm", holding="group").contributions
    assert known.holdings.count.tolist() == [2, 2]


def test_a_lone_respondent_has_the_same_number_in_all_tables() -> None:
    df = {"firm": [3, 3, 5, 4], "region": ["N", "N", "S", "W"], "nace": ["a", "b", "c", "c"], "x": [1, 2, 4, 8]}
    regions = tp.tabulate(df, by="region", value="x", contributor="firm")
    trades = tp.tabulate({**df, "firm": ["3", "3", "5", "4"]}, by="nace", value="x", contributor="firm")
    of = dict(zip(regions.dims[0].codes, regions.contributions.ids.tolist(), strict=True))
    assert len({of["N"], of["S"], of["W"], of["Total"]}) == 4
    assert of["Total"] == -1
    assert trades.contributions.ids.tolist() == [-1, of["N"], of["N"], -1]


def test_progress_is_told() -> None:
    news: list[Any] = []
    tp.tabulate(records(), by="kind", value="turnover", contributor="firm", progress=news.append)
    assert [n.phase for n in news] == ["checking records", "adding up", "adding up"]
    assert news[-1].done == 40


def test_weights_and_requests() -> None:
    df = records()
    table = tp.tabulate(
        df, by={"region": REGION}, value="turnover", contributor="firm", weight="w", request="asks", top=2
    )
    known = table.contributions
    for i, code in enumerate(REGION.codes):
        part = df[df["region"].isin(leaves_of(REGION, code))]
        assert table.values[i] == pytest.approx((part["w"] * part["turnover"]).sum(), rel=1e-12)
        assert known.unweighted[i] == pytest.approx(part["turnover"].sum(), rel=1e-12)
        assert known.total[i] == table.values[i]
        firms = part.assign(wx=part["w"] * part["turnover"]).groupby("firm")[["turnover", "wx"]].sum()
        firms = firms.sort_values("turnover", ascending=False).head(2)
        np.testing.assert_allclose(known.weights[i], firms["wx"] / firms["turnover"], rtol=1e-12)
        # a firm that asked in one record asked for all of them; only records of the cell's own data count
        asked = set(df.loc[df["asks"] & (df["turnover"] > 0), "firm"])
        assert known.asked[i].tolist() == [f in asked for f in firms.index]


def test_counts_of_records_with_and_without_weights() -> None:
    df = records()
    table = tp.tabulate(df, by=["kind", "size"])
    assert table.counts
    assert table.values[0] == len(df)
    assert table.dims[1].codes[:4] == ("Total", "1", "2", "3")  # numbers in numerical order
    weighted = tp.tabulate(df, by=["kind"], weight="w", contributor="firm")
    assert weighted.values[0] == pytest.approx(df["w"].sum(), rel=1e-12)
    assert weighted.freq[0] == df["firm"].nunique()


def test_mixed_table_of_a_count_and_two_magnitudes() -> None:
    df = records().assign(staff=lambda d: d["size"] * 2)
    table = tp.tabulate(df, by={"region": REGION, "kind": None}, value=[None, "turnover", "staff"], contributor="firm")
    table.check_additive()
    assert [d.name for d in table.dims] == ["region", "kind", "variable"]
    assert table.dims[2].codes == ("count", "turnover", "staff")
    assert table.count_cells.tolist() == [True, False, False] * (len(REGION) * 4)
    alone = tp.tabulate(df, by={"region": REGION, "kind": None}, value="staff", contributor="firm")
    staff = table.find(variable="staff")
    np.testing.assert_array_equal(table.values[staff], alone.values)
    np.testing.assert_array_equal(table.contributions.take(staff).top, alone.contributions.top)


def test_negative_amounts() -> None:
    df = {"firm": ["a", "b", "c"], "region": ["N", "N", "S"], "x": [-10.0, 4.0, 3.0]}
    with pytest.raises(InputError, match=r"1 records have a negative 'x' \(for example region=N\)"):
        tp.tabulate(df, by="region", value="x", contributor="firm")
    sized = tp.tabulate(df, by="region", value="x", contributor="firm", negative="absolute", top=2)
    assert sized.values.tolist() == [-3.0, -6.0, 3.0]
    assert sized.contributions.top.tolist() == [[10, 4], [10, 4], [3, 0]]
    assert sized.contributions.total.tolist() == [17, 14, 3]
    plain = tp.tabulate(df, by="region", value="x", contributor="firm", negative="allow", top=2)
    assert plain.contributions.top.tolist() == [[4, 3], [4, -10], [3, 0]]
    assert np.isneginf(plain.lb).all()


def test_missing_codes() -> None:
    df = {"region": ["N", None, "S"], "x": [1, 2, 4]}
    with pytest.raises(InputError, match="1 records have no code of 'region'"):
        tp.tabulate(df, by="region", value="x")
    assert tp.tabulate(df, by="region", value="x", missing="drop").values.tolist() == [5, 1, 4]
    table = tp.tabulate(df, by="region", value="x", missing={"region": "?"})
    assert table.dims[0].codes == ("Total", "?", "N", "S")
    assert table.values.tolist() == [7, 2, 1, 4]


def test_unknown_codes() -> None:
    df = {"region": ["N11", "Q", "N", "Q"], "x": [1, 2, 4, 8]}
    with pytest.raises(InputError, match=r"'N' \(1 records\), 'Q' \(2 records\)"):
        tp.tabulate(df, by={"region": REGION}, value="x")
    assert tp.tabulate(df, by={"region": REGION}, value="x", unknown="drop").values[0] == 1
    moved = tp.tabulate(df, by={"region": REGION}, value="x", unknown="W")
    assert moved.values[moved.cell(region="W")] == 14
    with pytest.raises(InputError, match="unknown='S' is no code without parts"):
        tp.tabulate(df, by={"region": REGION}, value="x", unknown="S")
    with pytest.raises(InputError, match="are totals of finer codes"):
        tp.tabulate({"region": ["N"], "x": [1]}, by={"region": REGION}, value="x")


def test_missing_infinite_and_wrong_amounts() -> None:
    df = pd.DataFrame({"region": ["N", "S", "S"], "x": [1.0, np.nan, 4.0], "t": ["1", "2", "3"], "inf": [1, np.inf, 1]})
    with pytest.raises(InputError, match=r"1 records have no 'x' \(for example region=S\)"):
        tp.tabulate(df, by="region", value="x")
    assert tp.tabulate(df, by="region", value="x", nan="drop").freq.tolist() == [2, 1, 1]
    assert tp.tabulate(df, by="region", value="x", nan="zero").freq.tolist() == [3, 1, 2]
    with pytest.raises(InputError, match="column 't' must be numeric"):
        tp.tabulate(df, by="region", value="t")
    with pytest.raises(InputError, match="infinite 'inf'"):
        tp.tabulate(df, by="region", value="inf")
    with pytest.raises(InputError, match="no proper weight 'w'"):
        tp.tabulate(df.assign(w=[1, -1, 1]), by="region", weight="w")
    with pytest.raises(InputError, match="1 records have no 'firm'"):
        tp.tabulate(df.assign(firm=["a", None, "b"]), by="region", contributor="firm")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"by": "nowhere"}, "no column 'nowhere'; there are"),
        ({"by": []}, "by names no columns"),
        ({"by": 3}, "by must be a list"),
        ({"by": "kind", "top": -1}, "top must be a whole number"),
        ({"by": "kind", "holding": "group"}, "holding needs contributor"),
        ({"by": "kind", "negative": "perhaps"}, "negative='perhaps' is none of"),
        ({"by": "kind", "nan": "perhaps"}, "nan='perhaps' is none of"),
        ({"by": "kind", "request": "firm_name"}, "no column 'firm_name'"),
        ({"by": "kind", "memory": "a lot"}, "memory='a lot' is not a size"),
        ({"by": {"kind": ["a"]}}, "codes of 'kind' that are not in its hierarchy"),
        ({"by": {"kind": 7}}, "dimension 'kind': a Hierarchy"),
        ({"by": "kind", "total": {"size": "T"}}, "total names column 'size'"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        tp.tabulate(records(20), **options)


def test_no_records() -> None:
    empty = records(5).iloc[:0]
    with pytest.raises(InputError, match="there are no records"):
        tp.tabulate(empty, by="kind")


def test_other_data_are_refused() -> None:
    with pytest.raises(InputError, match="cannot read"):
        tp.tabulate(42, by="kind")


def test_digits_are_completed_with_the_codes_of_the_data() -> None:
    df = {"nace": ["011", "012", "110", "2"], "x": [1, 2, 4, 8]}
    table = tp.tabulate(df, by={"nace": tp.Hierarchy.from_digits([1, 2])}, value="x")
    assert dict(zip(table.dims[0].codes, table.values.tolist(), strict=True)) == {
        "Total": 15,
        "0": 3,
        "011": 1,
        "012": 2,
        "1": 4,
        "110": 4,
        "2": 8,
    }


@pytest.mark.parametrize("kind", ["int", "float", "bool", "category", "date"])
def test_codes_of_any_type(kind: str) -> None:
    codes: dict[str, Any] = {
        "int": [1, 2, 10],
        "float": [1.0, 2.0, 10.0],
        "bool": [True, False, True],
        "category": pd.Categorical(["b", "a", "b"], categories=["c", "b", "a"]),
        "date": pd.to_datetime(["2020-01-01", "2021-01-01", "2020-01-01"]).date,
    }
    expected = {
        "int": ["1", "2", "10"],
        "float": ["1", "2", "10"],
        "bool": ["False", "True"],
        "category": ["a", "b"],
        "date": ["2020-01-01", "2021-01-01"],
    }
    table = tp.tabulate(pd.DataFrame({"c": codes[kind]}), by="c")
    assert list(table.dims[0].codes[1:]) == expected[kind]
    assert table.values[0] == 3


def test_awkward_codes_and_column_names() -> None:
    df = pd.DataFrame(
        {"a \"b' code0": ["it's", "x;--", "ü €", "it's"], "x": [1, 2, 3, 4], "cell": ["p", "q", "q", "q"]}
    )
    table = tp.tabulate(df, by=["a \"b' code0", "cell"], value="x", contributor="cell")
    assert table.values[0] == 10
    assert set(table.dims[0].codes) == {"Total", "it's", "x;--", "ü €"}


def test_amounts_without_few_decimals_still_add_up() -> None:
    df = records().assign(turnover=lambda d: d["turnover"] / 7)
    table = tp.tabulate(df, by={"region": REGION, "kind": KIND}, value="turnover", contributor="firm")
    table.check_additive()
    assert table.values[0] == pytest.approx(df["turnover"].sum(), rel=1e-12)


def test_many_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A respondent whose rows are cut by the end of a batch is still one respondent."""
    from tabprotect.table import scan

    by = {"region": REGION, "kind": KIND, "size": None}
    whole = tp.tabulate(records(), by=by, value="turnover", contributor="firm", holding="group", weight="w")
    monkeypatch.setattr(scan, "BATCH", 7)
    same(whole, tp.tabulate(records(), by=by, value="turnover", contributor="firm", holding="group", weight="w"))


OPTIONS: dict[str, Any] = {
    "by": {"region": REGION, "kind": KIND, "size": None},
    "value": "turnover",
    "contributor": "firm",
    "holding": "group",
    "weight": "w",
    "request": "asks",
}


def test_a_folder_of_parquet_files(tmp_path: Path) -> None:
    df = records()
    folder = tmp_path / "many"
    (folder / "part=1").mkdir(parents=True)
    df.iloc[:100].to_parquet(folder / "part=1" / "a.parquet")
    df.iloc[100:].to_parquet(folder / "b.parquet")
    same(tp.tabulate(df, **OPTIONS), tp.tabulate(folder, **OPTIONS))


@pytest.mark.parametrize("damage", ["late text", "ragged", "truncated", "not a file", "binary"])
def test_damaged_files(damage: str, tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    lines = ["k,x", *["a,1"] * 60_000]
    if damage == "late text":
        path.write_text("\n".join([*lines, "b,two"]))
    elif damage == "ragged":
        path.write_text("\n".join([*lines, "b,2,3,4", "c"]))
    elif damage == "truncated":
        path = tmp_path / "r.parquet"
        records(2000).to_parquet(path)
        path.write_bytes(path.read_bytes()[:-200])
    elif damage == "binary":
        path.write_bytes(bytes(range(256)) * 100)
    with pytest.raises(InputError, match=r"r\.(csv|parquet)"):
        tp.tabulate(path, by="k", value="x")


def test_too_little_memory() -> None:
    rng = np.random.default_rng(0)
    big = pa.table({"k": rng.integers(0, 50, 400_000), "f": rng.integers(0, 10**9, 400_000), "x": rng.random(400_000)})
    with pytest.raises(InputError, match=r"could not be read: .*[Mm]emory"):
        tp.tabulate(big, by="k", value="x", contributor="f", memory="1MB")


def test_the_default_connection_of_duckdb() -> None:
    table = tp.tabulate(
        duckdb.sql("SELECT * FROM (VALUES ('a', 1.25::DECIMAL(9, 2)), ('b', 2.5)) t(k, x)"), by="k", value="x"
    )
    assert table.values.tolist() == [3.75, 1.25, 2.5]


def test_a_hundred_thousand_codes() -> None:
    codes = [f"{i:06d}" for i in range(100_000)]
    table = tp.tabulate(
        pa.table({"c": codes, "x": range(100_000)}), by={"c": tp.Hierarchy.from_digits([2, 2, 2])}, value="x"
    )
    assert table.values[0] == sum(range(100_000))
    assert table.values[table.cell(c="0102")] == sum(range(10_200, 10_300))


@pytest.mark.parametrize("engine", ["polars", "polars-lazy", "arrow", "duckdb", "parquet", "csv", "mapping"])
def test_all_kinds_of_data_give_the_same_table(engine: str, tmp_path: Path) -> None:
    df = records()
    same(tp.tabulate(df, **OPTIONS), tp.tabulate(_as(engine, df, tmp_path), **OPTIONS))


def _as(engine: str, df: pd.DataFrame, folder: Path) -> Any:
    if engine.startswith("polars"):
        frame = pl.from_pandas(df)
        return frame.lazy() if engine.endswith("lazy") else frame
    if engine == "arrow":
        return pa.Table.from_pandas(df)
    if engine == "duckdb":
        return duckdb.connect().from_arrow(pa.Table.from_pandas(df))
    if engine == "mapping":
        return {c: df[c].astype(object).where(df[c].notna(), None).tolist() for c in df}
    path = folder / f"records.{engine}"
    if engine == "csv":
        df.to_csv(path, index=False)
    else:
        df.to_parquet(path)
    return str(path)


@pytest.fixture(scope="module")
def spark() -> Any:
    from pyspark.sql import SparkSession

    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.sql.shuffle.partitions", "1")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "512m")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


@pytest.mark.spark
def test_spark_gives_the_same_table(spark: Any) -> None:
    df = records()
    frame = spark.createDataFrame(pa.Table.from_pandas(df))
    same(tp.tabulate(df, **OPTIONS), tp.tabulate(frame, **OPTIONS))


@pytest.mark.spark
def test_spark_policies(spark: Any) -> None:
    rows = [("N11", 1.5, "a"), ("Q", 2.0, "b"), (None, 4.0, "b"), ("S1", None, "c"), ("S1", -3.0, "c")]
    frame = spark.createDataFrame(rows, "region string, x double, firm string")
    with pytest.raises(InputError, match="1 records have no 'x'"):
        tp.tabulate(frame, by={"region": REGION}, value="x")
    options: dict[str, Any] = {
        "nan": "drop",
        "missing": "W",
        "unknown": "N2",
        "negative": "absolute",
        "contributor": "firm",
    }
    table = tp.tabulate(frame, by={"region": REGION}, value="x", **options)
    same(
        table,
        tp.tabulate(pd.DataFrame(rows, columns=["region", "x", "firm"]), by={"region": REGION}, value="x", **options),
    )
    assert table.values[0] == 4.5
