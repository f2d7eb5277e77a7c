"""τ-ARGUS files: tables, microdata, metadata, a-priori information."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tabprotect as tp
from tests.io.io_damage import damaged

RDA = """   <SEPARATOR> ";"
   <SAFE> "S"
   <UNSAFE> "X"
   <PROTECT> "P"
Size
   <RECODEABLE>
   <TOTCODE> "Total"
Region
   <RECODEABLE>
   <TOTCODE> "Land"
   <HIERARCHICAL>
   <HIERCODELIST> "C:\\data\\region.hrc"
   <HIERLEADSTRING> "@"
Turnover
   <NUMERIC>
   <DECIMALS> 1
Firms
   <FREQUENCY>
Top1
   <MAXSCORE>
Top2
   <MAXSCORE>
Price
   <NUMERIC> <COSTVAR>
Lo
   <NUMERIC> <LOWERPL>
Up
   <NUMERIC> <UPPERPL>
Flag
   <STATUS>
"""
HRC = "North\n@N1\n@N2\nSouth\n"
TAB = """"Total";"Land";100,5;12;40,0;20;5;0;0;S
"Total";"North";60,5;9;40;20;3;0;0;S
"Total";" N1";50;8;40;5;1;0;0;S
"Total";"N2";10,5;1;10,5;0;1;1,05;1,05;X
"Total";"South";40;3;20;19;2;0;0;P
"a";"Land";90,5;11;40;20;1;0;0;S
"a";"North";60,5;9;40;20;1;0;0;S
"a";"N1";50;8;40;5;1;0;0;S
"a";"N2";10,5;1;10,5;0;1;1,05;1,05;X
"a";"South";30;2;20;10;1;0;0;S
"b";"Land";10;1;10;0;1;0;0;S
"b";"North";0;0;0;0;;0;0;E
"b";"N1";0;0;0;0;;0;0;E
"b";"N2";0;0;0;0;;0;0;E
"b";"South";10;1;10;0;1;0;0;S
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in (("t.rda", RDA), ("region.hrc", HRC), ("t.tab", TAB)):
        (tmp_path / name).write_text(text)
    return tmp_path


def test_read_a_table(folder: Path) -> None:
    table = tp.read_argus(folder / "t.tab")
    assert table.name == "t"
    assert [d.name for d in table.dims] == ["Size", "Region"]
    assert table.dims[1].codes == ("Land", "North", "N1", "N2", "South")
    assert table.dims[1].level.tolist() == [0, 1, 2, 2, 1]
    cells = table.cells.set_index(["Size", "Region"])
    assert cells.loc[("Total", "Land"), "value"] == 100.5
    assert cells.loc[("Total", "N2")][["status", "lpl", "upl", "freq", "cost"]].tolist() == ["u", 1.05, 1.05, 1, 1]
    assert cells.loc[("Total", "South"), "status"] == "z"
    assert cells.loc[("b", "N1"), "status"] == "z"
    assert np.isnan(cells.loc[("b", "N1"), "cost"])
    assert table.contributions.top[0].tolist() == [40, 20]
    with pytest.raises(tp.errors.InputError, match="Size=Total, Region=South"):
        table.mark(tp.rules.PPercent(10))  # sensitive, but the file says that it must be published
    rule = tp.rules.PPercent(10) | tp.rules.Manual(safe=[("Total", "South")])
    cells = table.mark(rule, keep=False).cells.set_index(["Size", "Region"])
    names = ["Total North", "Total N2", "a North", "a N2", "a South", "b Land", "b South"]
    assert [" ".join(codes) for codes in cells.index[cells.status == "u"]] == names
    assert cells.loc[("Total", "South"), "status"] == "z"


def test_write_and_read_again(folder: Path) -> None:
    table = tp.read_argus(folder / "t.tab")
    first = tp.write_argus(table, folder / "copy.tab")
    again = tp.read_argus(first)
    for name in ("values", "freq", "status", "lpl", "upl", "codes"):
        np.testing.assert_array_equal(getattr(table, name), getattr(again, name), err_msg=name)
    assert again.dims == table.dims
    np.testing.assert_array_equal(again.contributions.top, table.contributions.top)
    np.testing.assert_array_equal(again.weights("value"), table.weights("value"))
    second = tp.write_argus(again, folder / "second.tab")
    assert first.read_bytes() == second.read_bytes()
    assert (folder / "copy_Region.hrc").read_text() == HRC
    comma = tp.write_argus(table, folder / "comma.tab", separator=",")
    np.testing.assert_array_equal(tp.read_argus(comma).values, table.values)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
@given(values=st.lists(st.integers(0, 10**9), min_size=4, max_size=4), scale=st.sampled_from([1, 10, 1000]))
def test_random_tables_round_trip(tmp_path: Path, values: list[int], scale: int) -> None:
    cells = {
        "a b": ["x", "x", "y", "y"],
        "c": ["1", "2", "1", "2"],
        "v": [v / scale for v in values],
        "n": [1, 2, 3, 4],
    }
    table = tp.Table.from_frame(cells, by=["a b", "c"], value="v", freq="n").mark(tp.rules.Threshold(2, range=15))
    again = tp.read_argus(tp.write_argus(table, tmp_path / "t.tab"))
    for name in ("values", "freq", "lpl", "upl", "codes", "status"):
        np.testing.assert_array_equal(getattr(table, name), getattr(again, name), err_msg=name)
    assert again.dims == table.dims


def test_a_shadow_variable_is_what_contributions_are_compared_with(tmp_path: Path) -> None:
    (tmp_path / "s.rda").write_text(
        '<SEPARATOR> ","\nR\n<RECODEABLE>\n<TOTCODE> T\nV\n<NUMERIC>\nF\n<FREQUENCY>\nX\n<MAXSCORE>\nS\n<NUMERIC> <SHADOW>\n'
    )
    (tmp_path / "s.tab").write_text("T,3,9,50,110\na,1,4,50,60\nb,2,5,45,50\n")
    table = tp.read_argus(tmp_path / "s.tab")
    assert table.contributions.total.tolist() == [110, 60, 50]
    assert table.mark(tp.rules.Dominance(1, 85)).primary.tolist() == [False, False, True]
    again = tp.read_argus(tp.write_argus(table, tmp_path / "again.tab"))
    assert again.contributions.total.tolist() == [110, 60, 50]


def test_counts_without_a_response_and_dimensions_without_a_total(tmp_path: Path) -> None:
    (tmp_path / "c.rda").write_text(
        '<SEPARATOR> ","\nR\n <RECODEABLE>\n <TOTCODE> "All"\nKind\n RECODEABLE\nN\n <FREQUENCY>\n'
    )
    (tmp_path / "c.tab").write_text("a,x,1\nb,x,2\na,y,3\nb,y,4\n")
    table = tp.read_argus(tmp_path / "c.tab")
    assert table.counts
    assert table.values.tolist() == [3, 7, 1, 3, 2, 4]
    assert tp.read_argus(tp.write_argus(table, tmp_path / "d.tab")).dims == table.dims


def test_hierarchies_by_digits(tmp_path: Path) -> None:
    (tmp_path / "h.rda").write_text(
        '<SEPARATOR> ","\nR\n <RECODEABLE>\n <TOTCODE> "T"\n <HIERARCHICAL>\n <HIERLEVELS> 1 1 0\nV\n <NUMERIC>\n'
    )
    (tmp_path / "h.tab").write_text("11,1\n12,2\n21,4\n")
    table = tp.read_argus(tmp_path / "h.tab")
    assert dict(zip(table.dims[0].codes, table.values.tolist(), strict=True)) == {
        "T": 7,
        "1": 3,
        "11": 1,
        "12": 2,
        "2": 4,
        "21": 4,
    }


@pytest.mark.parametrize(
    ("name", "old", "new", "line", "message"),
    [
        ("t.tab", '"Total";"N2";10,5', '"Total";"N2";ten', 4, "'Turnover' must be a finite number"),
        ("t.tab", '"Total";"N2";10,5', '"Total";"N2";1e400', 4, "finite"),
        ("t.tab", '"Total";"N2";10,5;1;', '"Total";"N2";10,5;', 4, "10 fields are expected, 9 found"),
        ("t.tab", '"Total";"N2"', '"Total";"N9"', 4, "N9"),
        ("t.tab", "1,05;1,05;X", "1,05;1,05;Q", 4, "unknown status 'Q'"),
        ("t.tab", '"Total";"N2";10,5', '"Total";"N2";11,5', None, "does not add up"),
        ("t.tab", '"Total";"N2"', '"Total";"N1"', None, "same cell"),
        ("t.rda", "<FREQUENCY>", "<FREQUENT>", 18, "unknown tag"),
        ("t.rda", "<DECIMALS> 1", "<DECIMALS> one", 16, "whole numbers"),
        ("t.rda", "Turnover", "Region", 14, "described twice"),
        ("t.rda", "region.hrc", "nowhere.hrc", 8, "not there"),
        ("t.rda", "<FREQUENCY>", "<NUMERIC>", 17, "2 variables for the value"),
        ("t.rda", '<SEPARATOR> ";"', '<SEPARATOR> ";;"', None, "one sign"),
        ("t.rda", '<SEPARATOR> ";"', "<RECODEABLE>", 1, "before the first variable"),
        ("region.hrc", "@N1", "@@N1", 2, "depth"),
    ],
)
def test_errors_name_file_and_line(folder: Path, name: str, old: str, new: str, line: int | None, message: str) -> None:
    path = folder / name
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(tp.errors.InputError, match=message) as caught:
        tp.read_argus(folder / "t.tab")
    assert name in str(caught.value)
    if line is not None:
        assert f"line {line}" in str(caught.value)


def test_repair(folder: Path) -> None:
    path = folder / "t.tab"
    path.write_text(path.read_text().replace('"Total";"Land";100,5', '"Total";"Land";101,5', 1))
    with pytest.warns(UserWarning, match="recomputed"):
        assert tp.read_argus(path, repair=True).values[0] == 100.5


def test_tables_that_the_format_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(tp.errors.InputError, match="write_jj"):
        tp.write_argus(tp.Table([1.0], np.zeros((0, 1))), tmp_path / "t.tab")
    quoted = tp.Table.from_frame({"r": ['a"b'], "n": [1]}, by=["r"], freq="n")
    with pytest.raises(tp.errors.InputError, match="cannot be written"):
        tp.write_argus(quoted, tmp_path / "t.tab")
    with pytest.raises(tp.errors.InputError, match="separator"):
        tp.write_argus(tp.examples.d272(), tmp_path / "t.tab", separator="ab")


@pytest.mark.parametrize("name", ["t.tab", "t.rda", "region.hrc"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_damaged_tables_parse_or_raise_input_error(tmp_path: Path, name: str, data: st.DataObject) -> None:
    files = {"t.tab": TAB.encode(), "t.rda": RDA.encode(), "region.hrc": HRC.encode()}
    files[name] = data.draw(damaged(files[name]))
    for file, content in files.items():
        (tmp_path / file).write_bytes(content)
    try:
        table = tp.read_argus(tmp_path / "t.tab")
    except tp.errors.InputError:
        return
    table.check_additive()


# -- microdata ----------------------------------------------------------------------------------------------------------------
MICRO_RDA = """Region 1 2 99
   <RECODEABLE>
   <HIERARCHICAL>
   <HIERLEVELS> 1 1
Group 4 3
   <HOLDING>
Turnover 8 6 999999
   <NUMERIC>
   <DECIMALS> 1
Weight 15 3
   <NUMERIC>
   <WEIGHT>
Ask 19 1
   <REQUEST> "1" "2"
"""
MICRO = """11 abc   12.5 1.5 0
12 abc     -3 2   1
21       1e3  1   2
99 d   999999 1.0 0
"""


def test_fixed_microdata(tmp_path: Path) -> None:
    (tmp_path / "m.rda").write_text(MICRO_RDA)
    (tmp_path / "m.asc").write_text(MICRO)
    frame = tp.read_microdata(tmp_path / "m.asc")
    assert frame["Region"].tolist() == ["11", "12", "21", None]
    assert frame["Group"].tolist() == ["abc", "abc", None, "d"]
    assert frame["Turnover"].tolist()[:3] == [12.5, -3, 1000]
    assert np.isnan(frame["Turnover"][3])
    assert frame["Weight"].tolist() == [1.5, 2, 1, 1]
    assert frame["Ask"].tolist() == [False, True, True, False]
    assert frame.attrs["roles"]["Group"] == "holding"
    table = tp.tabulate(
        frame.dropna(subset=["Region"]),
        by=frame.attrs["by"],
        value="Turnover",
        weight="Weight",
        request="Ask",
        negative="absolute",
    )
    assert table.dims[0].codes == ("Total", "1", "11", "12", "2", "21")
    assert table.values.tolist() == [1012.75, 12.75, 18.75, -6, 1000, 1000]


def test_free_microdata(tmp_path: Path) -> None:
    (tmp_path / "m.rda").write_text('<SEPARATOR> ";"\nRegion 2 "99"\n <RECODEABLE>\nV 6 999\n <NUMERIC>\n')
    (tmp_path / "m.asc").write_text('"N";1,5\n\nS;999\n99;2\n')
    frame = tp.read_microdata(tmp_path / "m.asc")
    pd.testing.assert_frame_equal(
        frame, pd.DataFrame({"Region": ["N", "S", None], "V": [1.5, np.nan, 2.0]}), check_dtype=False
    )


@pytest.mark.parametrize(
    ("rda", "asc", "message"),
    [
        ("R 1 2\n <RECODEABLE>\nV 4 3\n <NUMERIC>\n", "11 1.0\n11\n", r"m\.asc, line 2: the record ends"),
        ("R 1 2\n <RECODEABLE>\nV 4 3\n <NUMERIC>\n", "11 1.0\n11 x.0\n", r"m\.asc, line 2: variable 'V'"),
        ("R 1\n <RECODEABLE>\n", "11\n", r"m\.rda, line 1: variable 'R' needs its first position"),
        ("R 0 2\n <RECODEABLE>\n", "11\n", r"m\.rda, line 1"),
        ('<SEPARATOR> ","\nR\n <RECODEABLE>\n', "11\n", r"m\.rda, line 2: variable 'R' needs its width"),
        ('<SEPARATOR> ","\nR 2\n <RECODEABLE>\n', "11,12\n", r"m\.asc, line 1: 1 fields are expected, 2 found"),
        (" <RECODEABLE>\n", "11\n", "before the first variable"),
        ("R 1 2\n <HIERLEVELS> 0\n <RECODEABLE>\n", "11\n", "digit widths"),
    ],
)
def test_microdata_errors(tmp_path: Path, rda: str, asc: str, message: str) -> None:
    (tmp_path / "m.rda").write_text(rda)
    (tmp_path / "m.asc").write_text(asc)
    with pytest.raises(tp.errors.InputError, match=message):
        tp.read_microdata(tmp_path / "m.asc")


def test_encodings(tmp_path: Path) -> None:
    (tmp_path / "m.rda").write_text("R 1 3\n <RECODEABLE>\n")
    (tmp_path / "m.asc").write_bytes("abc\nKöl\n".encode("cp1252"))
    with pytest.raises(tp.errors.InputError, match=r"m\.asc, line 2: is not utf-8 text"):
        tp.read_microdata(tmp_path / "m.asc")
    assert tp.read_microdata(tmp_path / "m.asc", encoding="cp1252")["R"].tolist() == ["abc", "Köl"]
    with pytest.raises(tp.errors.InputError, match="unknown encoding"):
        tp.read_microdata(tmp_path / "m.asc", encoding="klingon")


@pytest.mark.parametrize("name", ["m.asc", "m.rda"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_damaged_microdata_parse_or_raise_input_error(tmp_path: Path, name: str, data: st.DataObject) -> None:
    files = {"m.asc": MICRO.encode(), "m.rda": MICRO_RDA.encode()}
    files[name] = data.draw(damaged(files[name]))
    for file, content in files.items():
        (tmp_path / file).write_bytes(content)
    try:
        frame = tp.read_microdata(tmp_path / "m.asc")
    except tp.errors.InputError:
        return
    assert len(frame) <= 9


# -- a-priori information -------------------------------------------------------------------------------------------------------
HST = """"5-9";"D2721";P
"100-199";"D2729";s
"50-99";"D2729";U
"50-99";"D2729";PL;1;2,5
"10-19";"D2722";C;7.5
"""


def test_apriori(tmp_path: Path) -> None:
    (tmp_path / "x.hst").write_text(HST)
    table = tp.examples.d272().mark(tp.rules.Threshold(2) | tp.read_apriori(tmp_path / "x.hst"))
    cells = table.cells.set_index(["size", "industry"])
    assert cells.loc[("5-9", "D2721"), "status"] == "z"
    assert cells.loc[("100-199", "D2729"), "status"] == "s"
    assert cells.loc[("50-99", "D2729")][["status", "lpl", "upl"]].tolist() == ["u", 1, 2.5]
    assert cells.loc[("10-19", "D2722"), "cost"] == 7.5
    assert table.primary.sum() == 4


def test_codes_that_look_like_orders(tmp_path: Path) -> None:
    cells = {"country": ["PL", "S"], "kind": ["U", "C"], "n": [5, 6]}
    table = tp.Table.from_frame(cells, by=["country", "kind"], freq="n")
    (tmp_path / "x.hst").write_text("PL,U,U\nPL,U,PL,1,2\nS,C,C,3\n")
    for rule in (tp.read_apriori(tmp_path / "x.hst"), tp.read_apriori(tmp_path / "x.hst", dims=2, separator=",")):
        marked = table.mark(rule)
        i, j = table.cell(country="PL", kind="U"), table.cell(country="S", kind="C")
        assert (marked.status[i], marked.lpl[i], marked.upl[i], marked.cost[j]) == ("u", 1, 2, 3)


def test_unknown_cells_are_errors_or_ignored(tmp_path: Path) -> None:
    (tmp_path / "x.hst").write_text("5-9;nowhere;U\n")
    with pytest.raises(tp.errors.InputError, match="nowhere"):
        tp.examples.d272().mark(tp.read_apriori(tmp_path / "x.hst"))
    assert not tp.examples.d272().mark(tp.read_apriori(tmp_path / "x.hst", missing="ignore")).primary.any()


@pytest.mark.parametrize("line", ["a;b", "a;b;Q", "a;b;C", "a;b;C;-1", "a;b;C;x", "a;b;PL;1;2;3", "a;b;PL;1e400", "U"])
def test_apriori_errors_name_the_line(tmp_path: Path, line: str) -> None:
    (tmp_path / "x.hst").write_text(f"a;b;U\n\n{line}\n")
    with pytest.raises(tp.errors.InputError, match=r"x\.hst, line 3"):
        tp.read_apriori(tmp_path / "x.hst")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=damaged(HST.encode()))
def test_damaged_apriori_files_parse_or_raise_input_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.hst").write_bytes(content)
    table = tp.examples.d272()
    try:
        marked = table.mark(tp.read_apriori(tmp_path / "x.hst", missing="ignore"))
    except tp.errors.InputError:
        return
    assert marked.n_cells == table.n_cells
