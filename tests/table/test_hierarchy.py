"""Hierarchies: all ways in and out, structure against a plain tree walk, and errors that name the code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tabprotect import Hierarchy
from tabprotect.errors import InputError

TREE = {"A": {"A1": {"A11": {}, "A12": {}}, "A2": {}}, "B": {"B1": {}}, "C": {}}
HRC = "A\n@A1\n@@A11\n@@A12\n@A2\nB\n@B1\nC\n"


@st.composite
def trees(draw: st.DrawFn) -> dict[str, Any]:
    """Any unbalanced tree: every code hangs below an earlier one."""
    n = draw(st.integers(1, 25))
    nodes: list[dict[str, Any]] = [{}]
    for i in range(n):
        below = nodes[draw(st.integers(0, len(nodes) - 1))]
        below[f"c{i}"] = {}
        nodes.append(below[f"c{i}"])
    return nodes[0]


def walk(tree: dict[str, Any], depth: int = 1) -> dict[str, tuple[int, set[str]]]:
    """Depth and leaves of every code, by recursion."""
    out: dict[str, tuple[int, set[str]]] = {}
    for code, below in tree.items():
        inner = walk(below, depth + 1)
        out[code] = (depth, set().union(*(inner[c][1] for c in below)) if below else {code})
        out.update(inner)
    return out


@given(trees())
def test_structure_of_any_tree(tree: dict[str, Any]) -> None:
    h = Hierarchy.from_tree(tree)
    expected = walk(tree)
    assert set(h.codes) == {"Total", *expected}
    member = h.membership.toarray()
    for i, code in enumerate(h.codes):
        leaves = {h.codes[h.leaves[k]] for k in np.flatnonzero(member[i])}
        depth, below = expected.get(code, (0, {h.codes[k] for k in h.leaves}))
        assert (h.level[i], leaves) == (depth, below)
        if i:
            assert i in dict(h.sums)[int(h.parent[i])]
    assert h.to_tree() == tree
    assert h.parent[0] == -1


@given(trees())
def test_round_trips(tree: dict[str, Any]) -> None:
    h = Hierarchy.from_tree(tree)
    assert Hierarchy.from_tree(h.to_tree()) == h
    assert Hierarchy.from_pairs(h.to_frame()) == h


def test_round_trip_of_hrc(tmp_path: Path) -> None:
    path = tmp_path / "x.hrc"
    path.write_text(HRC)
    h = Hierarchy.from_hrc(path)
    assert h == Hierarchy.from_tree(TREE)
    h.to_hrc(tmp_path / "y.hrc")
    assert (tmp_path / "y.hrc").read_text() == HRC
    assert sorted(p.name for p in tmp_path.iterdir()) == ["x.hrc", "y.hrc"]


@pytest.mark.parametrize(
    "content",
    [HRC.replace("\n", "\r\n"), "\ufeff" + HRC, HRC.replace("@", " @ "), HRC + "\n \n\x1a"],
    ids=["windows", "bom", "spaces", "end-of-file sign"],
)
def test_hrc_dialects(content: str, tmp_path: Path) -> None:
    path = tmp_path / "x.hrc"
    path.write_bytes(content.encode())
    assert Hierarchy.from_hrc(path).to_tree() == TREE


def test_hrc_other_lead_total_and_encoding(tmp_path: Path) -> None:
    path = tmp_path / "x.hrc"
    path.write_bytes("Zürich\n..Altstadt\n".encode("latin-1"))
    h = Hierarchy.from_hrc(path, lead="..", total="CH", encoding="latin-1")
    assert h.codes == ("CH", "Zürich", "Altstadt")
    with pytest.raises(InputError, match=r"x.hrc: is not utf-8 text .* encoding='latin-1'"):
        Hierarchy.from_hrc(path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("A\n@@A1\n", r"line 2: code 'A1' is at depth 2, but the line before is only at depth 0"),
        ("@A\n", r"line 1: code 'A' is at depth 1"),
        ("A\n@B\nA\n", r"line 3: code 'A' occurs twice, first in line 1"),
        ("A\n@\n", r"line 2: no code after 1 lead signs '@'"),
        ("A\nTotal\n", r"line 2: code 'Total' is also the name of the total"),
        ("\n\n", "no codes"),
    ],
)
def test_hrc_errors_name_code_and_line(content: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.hrc"
    path.write_text(content)
    with pytest.raises(InputError, match=words) as caught:
        Hierarchy.from_hrc(path)
    assert "bad.hrc" in str(caught.value)


def test_hrc_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.hrc: cannot be read"):
        Hierarchy.from_hrc(tmp_path / "none.hrc")


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "tuples", "mapping"])
def test_pairs_of_any_frame(kind: str) -> None:
    rows = [("A", "A1"), ("A", "A2"), ("A1", "A11"), (None, "A"), (None, "B")]
    up, down = [r[0] for r in rows], [r[1] for r in rows]
    data: Any = {
        "pandas": pd.DataFrame({"child": down, "parent": up}),
        "polars": pl.DataFrame({"parent": up, "child": down}),
        "arrow": pa.table({"up": up, "down": down}),
        "tuples": rows,
        "mapping": {"parent": up, "child": down},
    }[kind]
    assert Hierarchy.from_pairs(data).to_tree() == {"A": {"A1": {"A11": {}}, "A2": {}}, "B": {}}


def test_pairs_with_one_top_code_have_it_as_total() -> None:
    assert Hierarchy.from_pairs([("EU", "FR"), ("EU", "KR")]).codes == ("EU", "FR", "KR")
    assert Hierarchy.from_pairs([(1, 11), (1, 12)]).codes == ("1", "11", "12")


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([("A", "B"), ("B", "A")], "cycle through code 'A'"),
        ([("T", "A"), ("A", "B"), ("B", "C"), ("C", "B")], "cycle through code 'B'"),
        ([("T", "A"), ("A", "A")], r"row 1 \(from 0\): code 'A' is its own parent"),
        ([("T", "A"), ("T", "A")], r"row 1 \(from 0\): the pair 'T', 'A' was already given in row 0"),
        ([("T", "A"), ("T", None)], r"row 1 \(from 0\): the child code is missing"),
        ([("T", "A"), ("T", "B"), ("A", "x"), ("B", "x")], "code 'x' is counted more than once in 'T'"),
        ([("Total", "A"), ("Q", "B")], "code 'Q' has no parent, although 'Total' is the total"),
        ([("A", "B", "C", "D")], "pair is expected"),
        ([], "at least one code"),
    ],
)
def test_pairs_errors(pairs: list[Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Hierarchy.from_pairs(pairs)


def test_pairs_frame_without_the_columns() -> None:
    with pytest.raises(InputError, match="needs two columns"):
        Hierarchy.from_pairs(pd.DataFrame({"a": [1]}))
    with pytest.raises(InputError, match="no column 'up'"):
        Hierarchy.from_pairs(pd.DataFrame({"a": ["1"], "b": ["2"]}), parent="up")


def test_digits() -> None:
    h = Hierarchy.from_digits([1, 1, 2], ["0111", "0112", "12", 2])
    assert h.to_tree() == {"0": {"01": {"0111": {}, "0112": {}}}, "1": {"12": {}}, "2": {}}
    spec = Hierarchy.from_digits([1, 1, 2])
    assert spec.resolve(["0111", "0112", "12", "2"]) == h
    with pytest.raises(InputError, match=r"code '123' has 3 signs; digits \[1, 1, 2\] allow 1, 2, 4"):
        spec.resolve(["123"])
    with pytest.raises(InputError, match=r"code number 1 \(from 0\) is missing"):
        spec.resolve(["1", None])
    for wrong in ([], [0], [1, -1], [1.5]):
        with pytest.raises(InputError, match="digit widths"):
            Hierarchy.from_digits(wrong)


def test_one_child_is_legal() -> None:
    h = Hierarchy.from_tree({"A": {"A1": {"A11": None}}})
    assert h.membership.toarray().tolist() == [[1], [1], [1], [1]]
    assert h.level.tolist() == [0, 1, 2, 3]


def test_flat_with_and_without_total() -> None:
    assert Hierarchy.flat([1, 2]).sums == ((0, (1, 2)),)
    plain = Hierarchy.flat(["x", "y"], total=None)
    assert plain.sums == ()
    assert plain.leaves.tolist() == plain.roots.tolist() == [0, 1]
    with pytest.raises(InputError, match="code 'x' occurs twice"):
        Hierarchy.flat(["x", "y", "x"])
    with pytest.raises(InputError, match="at least one code"):
        Hierarchy.flat([], total=None)


def test_two_breakdowns_over_the_same_leaves() -> None:
    area = Hierarchy.from_tree({"North": ["a", "b"], "South": ["c", "d"]})
    kind = Hierarchy.from_tree({"Urban": ["a", "c"], "Rural": ["b", "d"]}, total="All")
    both = area.with_breakdown(kind)
    assert both == Hierarchy.combine(area, kind)
    assert set(both.codes) == {"Total", "North", "South", "Urban", "Rural", "a", "b", "c", "d"}
    assert [both.codes[t] for t, _ in both.sums].count("Total") == 2
    assert both.membership.sum(axis=1).tolist() == [4, 2, 1, 1, 2, 1, 1, 2, 2]
    # a breakdown that both have is kept once
    assert Hierarchy.combine(both, kind) == both
    again = Hierarchy.from_pairs(both.to_frame(), breakdown="breakdown")
    assert set(again.codes) == set(both.codes)
    assert len(again.sums) == len(both.sums)
    for write in (both.to_tree, lambda: both.to_hrc("never.hrc")):
        with pytest.raises(InputError, match="this hierarchy has several"):
            write()


def test_a_breakdown_may_stop_at_coarser_codes() -> None:
    fine = Hierarchy.from_tree({"N": {"N1": ["N11", "N12"], "N2": None}, "S": ["S1"]})
    coarse = Hierarchy.from_tree({"Coast": ["N1", "S"], "Inland": ["N2"]})
    both = Hierarchy.combine(fine, coarse)
    coast = both.membership.toarray()[both.position["Coast"]]
    assert {both.codes[both.leaves[k]] for k in np.flatnonzero(coast)} == {"N11", "N12", "S1"}


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"U": ["a"], "R": ["b"]}, "code 'c' is a leaf of one breakdown and missing in the other"),
        ({"U": ["a", "b"], "R": ["c", "z"]}, "code 'z' is a leaf of one breakdown and not in the other"),
        ({"N": ["a", "c"], "R": ["b"]}, "the breakdowns of 'N' differ"),
        ({"N": ["a", "b", "c"]}, "the breakdowns of 'N' differ"),
    ],
)
def test_breakdowns_that_do_not_fit(other: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Hierarchy.combine(Hierarchy.from_tree({"N": ["a", "b"], "S": ["c"]}), Hierarchy.from_tree(other))


@pytest.mark.parametrize(
    ("tree", "words"),
    [
        ({"A": ["x"], "B": ["x"]}, "code 'x' below 'B' occurs twice"),
        ({"A": "xyz"}, "below 'A' stands the text 'xyz'"),
        ({"Total": None}, "code 'Total' below 'Total' occurs twice"),
    ],
)
def test_tree_errors(tree: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Hierarchy.from_tree(tree)


def test_sums_are_checked() -> None:
    with pytest.raises(InputError, match="points outside"):
        Hierarchy(("T", "a"), ((0, (1, 2)),))
    with pytest.raises(InputError, match="'T' is the total of no parts"):
        Hierarchy(("T", "a"), ((0, ()),))
    with pytest.raises(InputError, match="'a' occurs twice below 'T'"):
        Hierarchy(("T", "a"), ((0, (1, 1)),))


def test_very_deep_and_very_wide() -> None:
    deep: dict[str, Any] = {}
    below = deep
    for i in range(3000):
        below[f"d{i}"] = {}
        below = below[f"d{i}"]
    h = Hierarchy.from_tree(deep)
    assert h.level.tolist() == list(range(3001))
    wide = Hierarchy.from_digits([2, 1, 2], [f"{i:05d}" for i in range(100_000)])
    assert len(wide) == 1 + 100 + 1000 + 100_000
    assert wide.membership.nnz == 4 * 100_000
    assert repr(wide) == "<Hierarchy: 101,101 codes, 100,000 leaves, 4 levels>"


def test_codes_that_a_file_cannot_hold(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="code '@x' cannot be written"):
        Hierarchy.flat(["@x"]).to_hrc(tmp_path / "x.hrc")
