"""Tables from frames of cells: with and without totals, mixed, decimals, every wrong input."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabprotect as tp
from tabprotect.errors import InputError
from tabprotect.table.build import Repaired

REGION = tp.Hierarchy.from_tree({"N": ["N1", "N2"], "S": {"S1": ["S11"], "S2": None}})
INNER = {"region": ["N1", "N2", "S11", "S2"], "x": [1.0, 2.0, 4.0, 8.0]}


def test_margins_of_a_hierarchy() -> None:
    table = tp.Table.from_frame(INNER, by={"region": REGION}, value="x")
    found = dict(zip(REGION.codes, table.values.tolist(), strict=True))
    assert found == {"Total": 15, "N": 3, "N1": 1, "N2": 2, "S": 12, "S1": 4, "S11": 4, "S2": 8}
    assert table.n_relations == 4
    assert not table.counts
    table.check_additive()


@settings(max_examples=40, deadline=None)
@given(
    st.dictionaries(
        st.tuples(st.sampled_from("abc"), st.sampled_from(["N1", "N2", "S11", "S2"])),
        st.integers(-99_999, 99_999),
        min_size=1,
    )
)
def test_cents_add_up_exactly(cells: dict[tuple[str, str], int]) -> None:
    frame = pd.DataFrame([(a, b, v / 100) for (a, b), v in cells.items()], columns=["k", "region", "x"])
    table = tp.Table.from_frame(frame, by={"k": ["a", "b", "c"], "region": REGION}, value="x")
    cents = np.rint(table.values * 100).astype(np.int64)
    assert (cents / 100 == table.values).all()
    assert (table.relations @ cents == 0).all()
    for (a, b), v in cells.items():
        assert cents[table.cell(k=a, region=b)] == v
    assert cents[0] == sum(cells.values())


def test_combinations_without_a_row_are_empty() -> None:
    frame = {"r": ["a", "a", "b"], "s": ["x", "y", "x"], "v": [1.0, 2.0, 3.0]}
    table = tp.Table.from_frame(frame, by=["r", "s"], value="v")
    empty = table.cell(r="b", s="y")
    assert (table.values[empty], table.status[empty]) == (0.0, "z")
    assert (table.status == "z").sum() == 1


def test_a_zero_with_contributors_is_not_empty() -> None:
    frame = {"r": ["a", "b", "c"], "v": [0.0, 0.0, 5.0], "n": [2, 0, 1]}
    table = tp.Table.from_frame(frame, by="r", value="v", freq="n")
    assert table.status.tolist() == ["s", "s", "z", "s"]


def test_a_total_that_cancels_is_not_empty() -> None:
    table = tp.Table.from_frame({"r": ["a", "b"], "v": [5.0, -5.0]}, by="r", value="v")
    assert table.values.tolist() == [0.0, 5.0, -5.0]
    assert table.status.tolist() == ["s", "s", "s"]
    assert np.isneginf(table.lb).all()


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "mapping", "records", "csv", "parquet", "lazy"])
def test_any_frame_with_totals(kind: str, tmp_path: Path) -> None:
    known = tp.examples.d272()
    data = known.cells[["size", "industry", "value"]].astype({"size": str, "industry": str})
    frame: Any = {
        "pandas": lambda: known.cells,
        "polars": lambda: pl.from_pandas(data),
        "lazy": lambda: pl.from_pandas(data).lazy(),
        "arrow": lambda: pa.Table.from_pandas(data),
        "mapping": lambda: data.to_dict("list"),
        "records": lambda: data.to_dict("records"),
        "csv": lambda: (data.to_csv(tmp_path / "t.csv", index=False), tmp_path / "t.csv")[1],
        "parquet": lambda: (data.to_parquet(tmp_path / "t.parquet"), str(tmp_path / "t.parquet"))[1],
    }[kind]()
    table = tp.Table.from_frame(frame, by=["size", "industry"], value="value", total={"industry": "D272"})
    assert table.dims == known.dims
    np.testing.assert_array_equal(table.values, known.values)
    np.testing.assert_array_equal(table.status, known.status)


def test_missing_totals_are_computed_and_parents_may_be_given() -> None:
    frame = {"region": ["N1", "N2", "N", "S11", "S2", "Total"], "x": [1, 2, 3, 4, 8, 15]}
    table = tp.Table.from_frame(frame, by={"region": REGION}, value="x")
    np.testing.assert_array_equal(table.values, tp.Table.from_frame(INNER, by={"region": REGION}, value="x").values)
    renamed = {**frame, "region": ["N1", "N2", "N", "S11", "S2", "KR"]}
    again = tp.Table.from_frame(renamed, by={"region": REGION}, value="x", total="KR")
    np.testing.assert_array_equal(again.values, table.values)
    digits = tp.Table.from_frame(
        {"c": ["11", "12", "1", "2", "Total"], "x": [1, 2, 3, 4, 7]},
        by={"c": tp.Hierarchy.from_digits([1, 1])},
        value="x",
    )
    assert digits.dims[0].hierarchy.to_tree() == {"1": {"11": {}, "12": {}}, "2": {}}


def test_a_table_that_does_not_add_up() -> None:
    frame = {"r": ["a", "b", "Total"], "x": [1.0, 2.0, 4.0]}
    with pytest.raises(
        InputError, match=r"does not add up in 1 of 1 relations; the worst:\n.*r=Total = sum of 2 parts: off by -1"
    ):
        tp.Table.from_frame(frame, by="r", value="x")
    with pytest.warns(Repaired, match="1 totals did not add up .* r=Total by -1") as caught:
        table = tp.Table.from_frame(frame, by="r", value="x", repair=True)
    assert table.values.tolist() == [3.0, 1.0, 2.0]
    warning = caught[0].message
    assert isinstance(warning, Repaired)
    assert (warning.cells.tolist(), warning.before.tolist(), warning.after.tolist()) == ([0], [4.0], [3.0])


def test_repair_does_not_invent() -> None:
    frame = {"region": ["N1", "N2", "S"], "x": [1.0, 2.0, 9.0]}
    with pytest.raises(InputError, match="region=S cannot be repaired: none of its inner cells"):
        tp.Table.from_frame(frame, by={"region": REGION}, value="x", repair=True)


def test_counts() -> None:
    frame = {"r": ["a", "b"], "n": [3, 4], "v": [3, 4], "w": [3, 5]}
    assert tp.Table.from_frame(frame, by="r", freq="n").counts
    assert tp.Table.from_frame(frame, by="r", value="v", freq="n").counts
    assert not tp.Table.from_frame(frame, by="r", value="w", freq="n").counts
    assert tp.Table.from_frame(frame, by="r", value="w", counts=True).counts


def test_mixed_table() -> None:
    frame = {"r": ["a", "b"], "establishments": [3, 4], "turnover": [1.5, 2.25]}
    table = tp.Table.from_frame(frame, by="r", value=["establishments", "turnover"], counts=["establishments"])
    assert [d.name for d in table.dims] == ["r", "variable"]
    assert table.values.tolist() == [7, 3.75, 3, 1.5, 4, 2.25]
    assert table.freq.tolist() == [7, 7, 3, 3, 4, 4]
    assert table.count_cells.tolist() == [True, False] * 3
    assert table.n_relations == 2
    assert not table.counts
    by_freq = tp.Table.from_frame(frame, by="r", value=["establishments", "turnover"], freq="establishments")
    np.testing.assert_array_equal(by_freq.count_cells, table.count_cells)
    with pytest.raises(InputError, match="already called 'r'"):
        tp.Table.from_frame(frame, by="r", value=["establishments", "turnover"], variable="r")


def test_a_table_survives_its_own_cells() -> None:
    table = tp.examples.d272().mark(tp.rules.Threshold(2)).with_cost([3], 7.0).with_bounds(ub=1000)
    again = tp.Table.from_frame(table.cells, by={d.name: d.hierarchy for d in table.dims})
    for name in ("values", "freq", "cost", "status", "lb", "ub", "lpl", "upl", "spl", "reason"):
        np.testing.assert_array_equal(getattr(again, name), getattr(table, name), err_msg=name)
    assert again.counts


def test_optional_columns_by_other_names_and_with_gaps() -> None:
    frame = {
        "r": ["a", "b"],
        "v": [5.0, 6.0],
        "price": [None, 2.0],
        "st": ["u", None],
        "low": [1.0, None],
        "need": [2.0, None],
    }
    table = tp.Table.from_frame(frame, by="r", value="v", cost="price", status="st", lb="low", upl="need")
    assert np.isnan(table.cost).tolist() == [True, True, False]
    assert table.status.tolist() == ["s", "u", "s"]
    assert table.lb.tolist() == [0.0, 1.0, 0.0]
    assert table.upl.tolist() == [0.0, 2.0, 0.0]


def test_top_contributions_of_cells() -> None:
    frame = {
        "region": ["N1", "N2", "S11", "S2"],
        "x": [10, 20, 30, 9],
        "n": [2, 5, 1, 3],
        "m1": [6, 15, 30, 5],
        "m2": [4, 3, None, 2],
    }
    table = tp.Table.from_frame(frame, by={"region": REGION}, value="x", freq="n", top=["m1", "m2"])
    top = {c: table.contributions.top[i].tolist() for i, c in enumerate(REGION.codes)}
    assert top["Total"] == [30, 15]
    assert top["N"] == [15, 6]
    assert top["S"] == [30, 5]
    assert top["S11"] == [30, 0]
    with pytest.raises(InputError, match="descending"):
        tp.Table.from_frame(frame, by={"region": REGION}, value="x", freq="n", top=["m2", "m1"])
    with pytest.raises(InputError, match="top needs freq"):
        tp.Table.from_frame(frame, by={"region": REGION}, value="x", top=["m1", "m2"])


def test_codes_and_decimals_of_other_types() -> None:
    frame = pd.DataFrame({"r": [1.0, 2.0], "s": [True, False], "d": [Decimal("0.10"), Decimal("0.20")]})
    table = tp.Table.from_frame(frame, by=["r", "s"], value="d")
    assert table.dims[0].codes == ("Total", "1", "2")
    assert table.dims[1].codes == ("Total", "True", "False")
    assert table.values[0] == 0.3
    mixed = tp.Table.from_frame(pd.DataFrame({"r": [1, "x"], "v": [1, 2]}), by="r", value="v")
    assert mixed.dims[0].codes == ("Total", "1", "x")


def test_text_codes_of_a_file_keep_their_zeros(tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("nace,v\n01,3\n02,4\n")
    assert tp.Table.from_frame(tmp_path / "c.csv", by="nace", value="v").dims[0].codes == ("Total", "01", "02")


def test_only_used_categories_are_codes() -> None:
    frame = pd.DataFrame({"r": pd.Categorical(["b", "a"], categories=["c", "b", "a"]), "v": [1, 2]})
    assert tp.Table.from_frame(frame, by="r", value="v").dims[0].codes == ("Total", "b", "a")


def test_a_dimension_without_total() -> None:
    frame = {"year": [2020, 2021], "v": [1, 2]}
    table = tp.Table.from_frame(frame, by="year", value="v", total={"year": None})
    assert (table.n_cells, table.n_relations) == (2, 0)


GOOD: dict[str, Any] = {"r": ["a", "b"], "v": [1, 2], "n": [1, 1]}


@pytest.mark.parametrize(
    ("change", "options", "words"),
    [
        ({"r": ["a", "a"]}, {}, r"rows 0 and 1 \(from 0\) are the same cell \(r=a\)"),
        ({"r": ["a", None]}, {}, r"row 1 \(from 0\): the code of 'r' is missing"),
        ({"v": [1, None]}, {}, r"row 1 \(from 0\): column 'v' is missing"),
        ({"v": [float("nan"), 1.0]}, {}, r"row 0 \(from 0\): column 'v' is missing or not a number"),
        ({"v": [1.0, float("inf")]}, {}, r"row 1 \(from 0\): column 'v' is infinite"),
        ({"v": ["1", "2"]}, {}, "column 'v' must be numeric, it holds string"),
        ({"v": [2**60, 1]}, {}, "beyond 2\\^53"),
        ({}, {"by": {"r": ["a"]}}, r"row 1 \(from 0\): code 'b' is not in the hierarchy of 'r'"),
        ({}, {"by": ["r", "q"]}, "no column 'q'; there are 'r', 'v', 'n'"),
        ({}, {"by": ["r", "r"]}, "named twice"),
        ({}, {"value": "q"}, "no column 'q'"),
        ({}, {"value": ["v", "v"]}, "different columns"),
        ({}, {"by": {"r": "nowhere.hrc"}}, "dimension 'r': nowhere.hrc: cannot be read"),
        ({"r": ["a", "TOTAL"]}, {}, "differs from the total label 'Total' only in case: pass total='TOTAL'"),
        ({"n": [1, -1]}, {"freq": "n"}, r"row 1 \(from 0\): column 'n' must be a whole number, not -1"),
        ({"n": [1, 1.5]}, {"freq": "n"}, "must be a whole number, not 1.5"),
        ({"status": ["s", "q"]}, {}, r"row 1 \(from 0\): status 'q' is none of s, u, z, m"),
        ({"lpl": [0.0, -2.0]}, {}, r"column 'lpl' must not be negative: row 1 \(from 0\)"),
        ({}, {"price": "v"}, "unknown option 'price'"),
        ({}, {"total": 3}, "total must be a label"),
    ],
)
def test_wrong_cells(change: dict[str, Any], options: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        tp.Table.from_frame({**GOOD, **change}, **{"by": "r", "value": "v", **options})


def test_no_value_column_at_all() -> None:
    with pytest.raises(InputError, match="name the value or freq column; there are 'r', 'w'"):
        tp.Table.from_frame({"r": ["a"], "w": [1]}, by="r")


def test_too_many_cells() -> None:
    codes = [f"c{i}" for i in range(1000)]
    with pytest.raises(InputError, match="the most is"):
        tp.Table.from_frame(
            {"a": ["c0"], "b": ["c0"], "c": ["c0"], "v": [1]}, by=dict.fromkeys("abc", codes), value="v"
        )


@pytest.mark.parametrize("name", ["none.csv", "none.parquet", "cells.docx"])
def test_files_that_cannot_be_read(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=name):
        tp.Table.from_frame(tmp_path / name, by="r", value="v")


def test_three_dimensions_against_pandas() -> None:
    rng = np.random.default_rng(1)
    cells = list(product("ab", ["N1", "N2", "S11", "S2"], ["x", "y", "z"]))
    frame = pd.DataFrame(cells, columns=["k", "region", "s"]).assign(v=rng.integers(0, 100, len(cells)))
    table = tp.Table.from_frame(frame, by={"k": None, "region": REGION, "s": None}, value="v")
    assert table.n_relations == 1 * 8 * 4 + 4 * 3 * 4 + 1 * 3 * 8
    assert (
        table.values[table.cell(k="a", region="N", s="Total")]
        == frame[(frame.k == "a") & frame.region.isin(["N1", "N2"])]["v"].sum()
    )
    assert (
        table.values[table.cell(k="Total", region="S", s="y")]
        == frame[(frame.s == "y") & frame.region.isin(["S11", "S2"])]["v"].sum()
    )
