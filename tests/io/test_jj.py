"""JJ files: exact round trips, clear errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tabprotect as tp
from tabprotect.io.jj import _all_numbers, numerals
from tabprotect.table.cube import cube_codes, cube_relations, fill_margins
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tests.io.io_damage import damaged

EXAMPLE = """0
9
0 120 120 s 0 240 0 0 0
1 50 50 s 0 240 0 0 0
2 70 70 s 0 240 0 0 0
3 45 45 s 0 240 0 0 0
4 5 5 u 0 240 1 1 0
5 40 40 s 0 240 0 0 0
6 75 75 s 0 240 0 0 0
7 45 45 s 0 240 0 0 0
8 30 30 s 0 240 0 0 0
6
0 3 : 0 (-1) 1 (1) 2 (1)
0 3 : 3 (-1) 4 (1) 5 (1)
0 3 : 6 (-1) 7 (1) 8 (1)
0 3 : 0 (-1) 3 (1) 6 (1)
0 3 : 1 (-1) 4 (1) 7 (1)
0 3 : 2 (-1) 5 (1) 8 (1)
"""
COLUMNS = ("values", "cost", "lb", "ub", "lpl", "upl", "spl", "rhs")


def same(a: tp.Table, b: tp.Table) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    assert a.status.tolist() == b.status.tolist()
    assert a.relations.shape == b.relations.shape
    assert (a.relations != b.relations).nnz == 0


def test_the_example_reads_and_writes_the_same_bytes(tmp_path: Path) -> None:
    path = tmp_path / "example.jj"
    path.write_text(EXAMPLE)
    table = tp.read_jj(path)
    assert (table.n_cells, table.n_relations, table.name) == (9, 6, "example")
    assert np.flatnonzero(table.primary).tolist() == [4]
    assert (table.lpl[4], table.upl[4], table.ub[4]) == (1, 1, 240)
    assert tp.write_jj(table, tmp_path / "again.jj").read_text() == EXAMPLE
    assert sorted(p.name for p in tmp_path.iterdir()) == ["again.jj", "example.jj"]


def test_any_layout_of_blanks_reads_the_same(tmp_path: Path) -> None:
    plain, odd = tmp_path / "a.jj", tmp_path / "b.jj"
    plain.write_text(EXAMPLE)
    odd.write_bytes(("\ufeff" + EXAMPLE.replace("\n", " \r\n").replace(" ", "\t ").replace("(1)", "( +1.0 )")).encode())
    same(tp.read_jj(plain), tp.read_jj(odd))


def test_every_shared_instance_reads_and_is_rewritten_equal_in_every_field(shared: Path, tmp_path: Path) -> None:
    for path in sorted((shared / "instances").glob("*.jj")):
        table = tp.read_jj(path)
        first = tp.write_jj(table, tmp_path / "first.jj").read_bytes()
        assert tp.write_jj(tp.read_jj(tmp_path / "first.jj"), tmp_path / "second.jj").read_bytes() == first
        old, new = path.read_bytes().split(b"\n"), first.split(b"\n")
        assert len(old) == len(new)
        for a, b in zip(old, new, strict=True):
            if a != b:  # -0 and numbers with an exponent are spelled in another way
                assert [_field(x) for x in a.split()] == [_field(x) for x in b.split()]


def _field(word: bytes) -> object:
    try:
        return float(word)
    except ValueError:
        return word


numbers = st.one_of(
    st.integers(0, 10**6).map(float), st.floats(0, 1e18), st.sampled_from([0.1, 1e-9, 2**53 + 2.0, 5e-324, 1e300])
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_tables_round_trip_exactly(tmp_path: Path, data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 8))

    def column() -> list[float]:
        return data.draw(st.lists(numbers, min_size=n, max_size=n))

    values = np.array(column())
    m = data.draw(st.integers(0, 4))
    matrix = data.draw(
        st.lists(st.lists(st.sampled_from([0.0, 1, -1, 0.5]), min_size=n, max_size=n), min_size=m, max_size=m)
    )
    relations = sp.csr_array(np.array(matrix).reshape(m, n))
    table = tp.Table(
        values,
        relations,
        rhs=relations @ values,
        cost=column(),
        status=data.draw(st.lists(st.sampled_from("suzm"), min_size=n, max_size=n)),
        lb=values - np.array(column()),
        ub=data.draw(st.sampled_from([np.inf, 1e301])) * np.ones(n),
        lpl=column(),
        upl=column(),
        spl=column(),
    )
    first = tp.write_jj(table, tmp_path / "a.jj").read_bytes()
    again = tp.read_jj(tmp_path / "a.jj", check=False)
    same(table, again)
    assert tp.write_jj(again, tmp_path / "b.jj").read_bytes() == first


def test_missing_costs_become_values_and_totals_come_first(tmp_path: Path) -> None:
    table = tp.Table.from_relations([1.0, 2.0, 3.0, 0.0], [[1, 1, -1, 0]], cost=[np.nan, 7, np.nan, np.nan])
    lines = tp.write_jj(table, tmp_path / "t.jj").read_text().splitlines()
    assert [line.split()[2] for line in lines[2:6]] == ["1", "7", "3", "1"]
    assert lines[-1] == "0 3 : 2 (-1) 0 (1) 1 (1)"
    assert lines[2].split()[5] == "inf"
    finite = tp.write_jj(table, tmp_path / "t.jj", infinity=1000).read_text().splitlines()
    assert finite[2].split()[5] == "1000"
    with pytest.raises(tp.errors.InputError, match="infinity"):
        tp.write_jj(table, tmp_path / "t.jj", infinity=2)


def test_frequencies_beside_the_file(tmp_path: Path) -> None:
    table = tp.examples.d272()
    path = tp.write_jj(table, tmp_path / "d.jj", frq=True)
    assert (tmp_path / "d.frq").read_text().splitlines()[0] == "748 748"
    assert tp.read_jj(path).freq.tolist() == table.freq.tolist()
    (tmp_path / "d.frq").write_text("1 1\n")
    with pytest.raises(tp.errors.InputError, match=r"d\.frq: 36 lines"):
        tp.read_jj(path)
    (tmp_path / "d.frq").write_text("1 1\n" * 35 + "1 -1\n")
    with pytest.raises(tp.errors.InputError, match=r"d\.frq, line 36"):
        tp.read_jj(path)
    with pytest.raises(tp.errors.InputError, match="no frequencies"):
        tp.write_jj(table.replace(freq=None), tmp_path / "e.jj", frq=True)


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("4 5 5 u 0 240 1 1 0", "4 5 5 q 0 240 1 1 0", 7, "'q' is not a number"),
        ("4 5 5 u 0 240 1 1 0", "4 5 5u 0 240 1 1 0", 7, "cell 4"),
        ("4 5 5 u 0 240 1 1 0", "4 5 5 us 0 240 1 1 0", 7, "cell 4"),
        ("4 5 5 u 0 240 1 1 0", "4 5 5 u 0 240 1 1", 8, "cell 5"),
        ("4 5 5 u 0 240 1 1 0", "4 5 5 u 0 240 1 1 0 0", 7, "cell 5"),
        ("4 5 5 u 0 240 1 1 0", "3 5 5 u 0 240 1 1 0", 7, "numbered"),
        ("4 5 5 u 0 240 1 1 0", "4 1e400 5 u 0 240 1 1 0", 7, "finite"),
        ("4 5 5 u 0 240 1 1 0", "4 nan 5 u 0 240 1 1 0", 7, "finite"),
        ("4 5 5 u 0 240 1 1 0", "4 5 -5 u 0 240 1 1 0", 7, "cost"),
        ("4 5 5 u 0 240 1 1 0", "4 5 5 u 0 240 1 -1 0", 7, "levels"),
        ("4 5 5 u 0 240 1 1 0", "4 5 5 u 6 240 1 1 0", 7, "between its bounds"),
        ("4 5 5 u 0 240 1 1 0", "4 5 5 u nan 240 1 1 0", 7, "bounds"),
        ("4 5 5 u 0 240 1 1 0", "4 6 5 u 0 240 1 1 0", None, "does not add up"),
        ("0\n9\n", "0\n9.5\n", 2, "whole number"),
        ("0\n9\n", "0\n1e99\n", 2, "larger than the file"),
        ("0\n9\n", "0\n10\n", 12, "cell 9"),
        ("0\n9\n", "0\n8\n", 10, "status"),
        ("\n6\n", "\n7\n", 13, "7 relations"),
        ("0 3 : 3 (-1)", "0 4 : 3 (-1)", 14, "does not fit"),
        ("0 3 : 3 (-1)", "0 3 : 9 (-1)", 14, "cells are 0 to 8"),
        ("0 3 : 3 (-1)", "0 3 : 2.5 (-1)", 14, "cells are 0 to 8"),
        ("0 3 : 3 (-1)", "0 3 : 4 (-1)", 14, "twice"),
        ("0 3 : 3 (-1)", "inf 3 : 3 (-1)", 14, "finite"),
        ("0 3 : 3 (-1)", "0 3 : 3 -1", 13, "brackets"),
        ("0 3 : 3 (-1)", "0 3 3 (-1)", 13, "6 relations"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, old: str, new: str, line: int | None, message: str) -> None:
    path = tmp_path / "bad.jj"
    path.write_text(EXAMPLE.replace(old, new, 1))
    with pytest.raises(tp.errors.InputError, match=message) as caught:
        tp.read_jj(path)
    assert caught.value.line == line
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"\n\n", b"\x89PNG\r\n\x1a\n\x00\x00", b"0", b"0\n3", b"a,b\n1,2\n", "0\n1\n".encode("utf-16")]
)
def test_files_that_are_no_tables(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "junk.jj"
    path.write_bytes(content)
    with pytest.raises(tp.errors.InputError, match=r"junk\.jj"):
        tp.read_jj(path)


def test_missing_files_and_directories(tmp_path: Path) -> None:
    with pytest.raises(tp.errors.InputError, match="no such file"):
        tp.read_jj(tmp_path / "none.jj")
    with pytest.raises(tp.errors.InputError, match="directory"):
        tp.read_jj(tmp_path)
    with pytest.raises(tp.errors.InputError):
        tp.read_jj("a\0b")
    with pytest.raises(tp.errors.InputError, match="cannot be written"):
        tp.write_jj(tp.examples.d272(), tmp_path / "no" / "such" / "folder.jj")
    with pytest.raises(tp.errors.InputError, match="cannot be written"):
        tp.write_jj(tp.examples.d272(), tmp_path)
    assert list(tmp_path.iterdir()) == []


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(content=damaged(EXAMPLE.encode()))
def test_damaged_files_parse_or_raise_input_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "damaged.jj"
    path.write_bytes(content)
    try:
        table = tp.read_jj(path)
    except tp.errors.InputError:
        return
    assert np.isfinite(table.values).all()
    same(table, tp.read_jj(tp.write_jj(table, tmp_path / "again.jj")))


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tp.write_jj(tp.examples.d272(), tmp_path / "d.jj")
    before = path.read_bytes()

    def broken(*_: object) -> object:
        raise RuntimeError("power cut")

    monkeypatch.setattr("tabprotect.io.jj._totals_first", broken)
    with pytest.raises(RuntimeError):
        tp.write_jj(tp.examples.d272().mark(tp.rules.Threshold(2)), path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["d.jj"]


def test_large_files_take_the_fast_way_with_the_same_result(tmp_path: Path) -> None:
    dims = tuple(Dimension(c, Hierarchy.flat(range(29))) for c in "abc")
    inner = np.random.default_rng(1).integers(0, 10**9, (29, 29, 29)) / 8
    table = tp.Table(
        fill_margins(inner, dims), cube_relations(dims), dims=dims, codes=cube_codes(dims), cost=np.ones(27000)
    )
    path = tp.write_jj(table, tmp_path / "big.jj")
    assert path.stat().st_size > 1_000_000
    same(table, tp.read_jj(path))
    text = path.read_bytes()
    path.write_bytes(text.replace(b" inf ", b" +inf ", 1))
    same(table, tp.read_jj(path))
    path.write_bytes(text.replace(b" inf ", b" 1e400 ", 1))
    same(table, tp.read_jj(path))
    path.write_bytes(text.replace(b" inf ", b" unknown ", 1))
    with pytest.raises(tp.errors.InputError, match="line 3"):
        tp.read_jj(path)


@given(st.lists(st.floats(allow_nan=False), min_size=1))
def test_numerals_are_exact_and_shortest(values: list[float]) -> None:
    texts = numerals(np.array(values))
    assert [float(t) for t in texts] == values
    assert all(len(t) <= len(repr(v)) for t, v in zip(texts, values, strict=True))
    assert _all_numbers(" ".join(texts).encode()).tolist() == values
