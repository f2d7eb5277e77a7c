"""CSV, Parquet and JSON: exactly the same table comes back, and nothing secret goes out with a result."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tabprotect as tp
from tabprotect.io.schema import VERSION, result_to_json, table_from_json, table_to_json
from tests.io.io_damage import damaged

ARRAYS = ("values", "rhs", "cost", "lb", "ub", "lpl", "upl", "spl", "codes", "status", "reason", "freq", "count_cells")


def same(a: tp.Table, b: tp.Table) -> None:
    for name in ARRAYS:
        one, other = getattr(a, name), getattr(b, name)
        assert (one is None) == (other is None), name
        if one is not None:
            np.testing.assert_array_equal(one, other, err_msg=name)
    assert a.dims == b.dims
    assert (a.counts, a.name) == (b.counts, b.name)
    assert a.relations.shape == b.relations.shape
    assert (a.relations != b.relations).nnz == 0
    same_contributions(a.contributions, b.contributions)


def same_contributions(a: object, b: object) -> None:
    assert (a is None) == (b is None)
    if a is None:
        return
    for name in {f.name for f in dataclasses.fields(a)} - {"holdings"}:
        one, other = getattr(a, name), getattr(b, name)
        assert (one is None) == (other is None), name
        if one is not None:
            np.testing.assert_array_equal(one, other, err_msg=name)
    same_contributions(a.holdings, b.holdings)


def business() -> tp.Table:
    """A table with everything in it: hierarchy, holdings, weights, requests, marks."""
    records = {
        "nace": ["A1", "A1", "A2", "B", "B", "B"],
        "place": ['N, "x"', "S", "S", "S", 'N, "x"', "S"],
        "firm": [1, 2, 3, 4, 5, 1],
        "group": ["g", "g", None, "h", "h", "g"],
        "turnover": [10.5, 3.1, 7.0, 1.0, 0.1, 100.0],
        "w": [1.0, 2.0, 1.0, 1.5, 1.0, 1.0],
        "asked": [False, True, False, False, True, False],
    }
    nace = tp.Hierarchy.from_tree({"A": ["A1", "A2"], "B": []})
    return tp.tabulate(
        records,
        by={"nace": nace, "place": None},
        value="turnover",
        contributor="firm",
        holding="group",
        weight="w",
        request="asked",
        name="business",
    ).mark(tp.rules.PPercent(10) | tp.rules.Threshold(1))


def examples(tmp_path: Path) -> list[tp.Table]:
    d272 = tp.examples.d272()
    mixed = tp.Table.from_frame({"r": ["a", "b"], "n": [1, 2], "v": [1.5, 2.5]}, by=["r"], value=["n", "v"], freq="n")
    bare = tp.Table.from_relations(
        [3.0, 1.0, 2.0, 5.0], [[-1, 1, 1, 0], [0, 2, 0, 0.5]], rhs=[0, 4.5], ub=[9, 9, np.inf, 9], lb=[-np.inf, 0, 0, 0]
    )
    order = np.arange(d272.n_cells)[::-1]
    shuffled = tp.Table(
        d272.values[order],
        d272.relations[:, order],
        freq=d272.freq[order],
        dims=d272.dims,
        codes=d272.codes[order],
        counts=True,
    )
    return [d272.mark(tp.rules.Threshold(2)).with_cost([3], 0.1), mixed, bare, shuffled, business()]


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_round_trip(tmp_path: Path, ending: str) -> None:
    for table in examples(tmp_path):
        if ending == "json":
            again = table_from_json(table_to_json(table))
        else:
            again = tp.read_cells(tp.write_cells(table, tmp_path / f"t.{ending}"))
        same(table, again)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30)
@given(
    values=st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=6),
    codes=st.lists(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8), min_size=6, max_size=6, unique=True
    ),
)
def test_any_numbers_and_any_codes_survive(tmp_path: Path, values: list[float], codes: list[str]) -> None:
    n = len(values)
    dim = tp.Hierarchy.flat(codes[:n], total=None)
    from tabprotect.table.hierarchy import Dimension

    table = tp.Table(values, np.zeros((0, n)), dims=(Dimension("d", dim),), codes=np.arange(n)[:, None])
    same(table, table_from_json(table_to_json(table)))
    for ending in ("parquet", "csv"):
        same(table, tp.read_cells(tp.write_cells(table, tmp_path / f"t.{ending}")))


def test_the_files_are_ordinary_tables(tmp_path: Path) -> None:

    table = tp.examples.d272()
    for path, read in ((tmp_path / "t.csv", pd.read_csv), (tmp_path / "t.parquet", pd.read_parquet)):
        frame = read(tp.write_cells(table, path))
        assert frame.loc[(frame["size"] == "5-9") & (frame.industry == "D2721"), "value"].tolist() == [72]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["t.csv", "t.csv.json", "t.parquet"]


def test_foreign_files_need_their_dimensions_named(tmp_path: Path) -> None:
    path = tmp_path / "cells.csv"
    path.write_text("region,sex,n\nN,f,3\nN,m,4\nS,m,5\n")
    with pytest.raises(tp.errors.InputError, match="by="):
        tp.read_cells(path)
    with pytest.raises(tp.errors.InputError, match="by="):
        tp.read_cells(path, value="n")
    assert tp.read_cells(path, by=["region", "sex"], freq="n").values.tolist() == [12, 3, 9, 7, 3, 4, 5, 0, 5]
    with pytest.raises(tp.errors.InputError, match=r"cells\.csv"):
        tp.read_cells(path, by=["region", "age"], freq="n")


# -- results -----------------------------------------------------------------------------------------------------------------
def secret_result() -> SimpleNamespace:
    table = tp.examples.d272().mark(tp.rules.Threshold(2))
    table = table.replace(values=np.where(table.primary, 987654.0, table.values))
    hidden = table.primary.copy()
    return SimpleNamespace(
        table=table,
        kind="suppress",
        method="test",
        values=table.values,
        suppressed=hidden,
        status="optimal",
        objective=40.0,
        bound=-np.inf,
        runtime=0.5,
    )


def test_results_are_written_without_hidden_values(tmp_path: Path) -> None:
    result = secret_result()
    text = result_to_json(result)
    assert "987654" not in text
    document = json.loads(text)
    assert (document["format"], document["version"], document["bound"]) == ("tabprotect/result", VERSION, "-inf")
    assert [v is None for v in document["cells"]["value"]] == result.suppressed.tolist()
    assert document["cells"]["value"][0] == 748
    inside = json.loads(result_to_json(result, confidential=True))
    same(result.table, table_from_json(json.dumps(inside["table"])))
    for ending in ("csv", "parquet"):
        path = tp.write_cells(result, tmp_path / f"r.{ending}")
        assert b"987654" not in path.read_bytes()
        assert not Path(f"{path}.json").exists()
    lines = (tmp_path / "r.csv").read_text().splitlines()
    assert lines[0] == '"size","industry","value"'
    assert '"100-199","D2729",' in lines


def test_errors_quote_no_cells(tmp_path: Path) -> None:
    path = tp.write_cells(secret_result().table, tmp_path / "t.csv")
    text = path.read_text()
    path.write_text(text.replace(",987654,", ",987654,,", 1))
    with pytest.raises(tp.errors.InputError, match=r"t\.csv, line 25") as caught:
        tp.read_cells(path)
    assert "987654" not in str(caught.value)


# -- damage ------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["t.csv", "t.csv.json", "t.parquet", "t.json"])
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_damaged_files_parse_or_raise_input_error(tmp_path: Path, name: str, data: st.DataObject) -> None:
    table = tp.examples.d272().mark(tp.rules.Threshold(2))
    main = tp.write_cells(table, tmp_path / name.removesuffix(".json")) if name != "t.json" else tmp_path / name
    original = table_to_json(table).encode() if name == "t.json" else (tmp_path / name).read_bytes()
    broken = data.draw(damaged(original))
    (tmp_path / name).write_bytes(broken)
    try:
        again = table_from_json(broken.decode("utf-8", "replace")) if name == "t.json" else tp.read_cells(main)
    except tp.errors.InputError:
        return
    assert again.n_cells == table.n_cells


def test_a_parquet_file_with_bytes_that_are_no_text_is_refused(tmp_path: Path) -> None:
    path = tp.write_cells(tp.examples.d272().mark(tp.rules.Threshold(2)), tmp_path / "t.parquet")
    content = path.read_bytes()
    at = content.index(b"Total")  # the first code, in the page of the dictionary
    path.write_bytes(content[:at] + b"\x80" + content[at + 1 :])
    with pytest.raises(tp.errors.InputError, match="damaged"):
        tp.read_cells(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "version 99"),
        ({"version": "1"}, "version '1'"),
        ({"format": "other"}, "format"),
        ({"n_cells": 35}, "35 cells are expected"),
        ({"dims": []}, "not all combinations"),
        ({"dims": [{"name": "size"}]}, "name, codes and sums"),
        ({"relations": {"indptr": [0, 1], "indices": [99], "data": [1]}}, "not a complete table"),
        ({"cells": []}, "one list per column"),
        ({"cells": {"value": ["x"]}}, "'value' has entries of the wrong kind"),
        ({"cells": {"freq": [1]}}, "no column 'value'"),
    ],
)
def test_wrong_documents(change: dict[str, object], message: str) -> None:
    document = json.loads(table_to_json(tp.examples.d272())) | change
    with pytest.raises(tp.errors.InputError, match=message):
        table_from_json(json.dumps(document))


def test_wrong_files(tmp_path: Path) -> None:
    for name, content in (("a.csv", b""), ("a.parquet", b"PAR1xxxx"), ("b.csv", b"\xff\xfe\x00")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(tp.errors.InputError, match=name):
            tp.read_cells(tmp_path / name)
    with pytest.raises(tp.errors.InputError, match="no such file"):
        tp.read_cells(tmp_path / "none.csv")
    with pytest.raises(tp.errors.InputError, match=r"\.csv or \.parquet"):
        tp.write_cells(tp.examples.d272(), tmp_path / "t.xlsx")
    with pytest.raises(tp.errors.InputError, match="nested"):
        table_from_json("[" * 100_000)
    with pytest.raises(tp.errors.InputError, match="line 2"):
        table_from_json("{\n,")
    clash = tp.Table.from_frame({"value": ["a"], "n": [1]}, by=["value"], freq="n")
    with pytest.raises(tp.errors.InputError, match="rename"):
        tp.write_cells(clash, tmp_path / "t.csv")


FOREIGN = b"region,sex,n\nN,f,3\nN,m,4\nS,m,5\nTotal,Total,12\n"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_damaged_foreign_files_parse_or_raise_input_error(tmp_path: Path, ending: str, data: st.DataObject) -> None:
    path = tmp_path / f"foreign.{ending}"
    if ending == "parquet":
        pd.DataFrame({"region": ["N", "S"], "sex": ["f", "m"], "n": [3, 4]}).to_parquet(path)
    content = data.draw(damaged(FOREIGN if ending == "csv" else path.read_bytes()))
    path.write_bytes(content)
    try:
        table = tp.read_cells(path, by=["region", "sex"], freq="n")
    except tp.errors.InputError:
        return
    table.check_additive()
