"""Dissimilarity and information loss."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabprotect as tp
from tabprotect.errors import InputError

md = tp.microdata
far = md.dissimilarity


def test_formulas_of_the_source() -> None:
    a = pd.DataFrame({"pay": [0.0, 10, 50, 100], "town": list("abcd")})
    b = pd.DataFrame({"pay": [5.0, 5, 75, 75], "town": ["ab", "ab", "*", "d"]})
    found = far(a, b, convention="printed")
    assert found.RCol["pay"].tolist() == [0.05, 0.05, 0.25, 0.25]
    assert found.RCol["town"].tolist() == [0.25, 0.25, 0.75, 0]
    assert found.RRec.tolist() == pytest.approx([0.15, 0.15, 0.5, 0.125])
    assert found.RTab == pytest.approx(found.RRec.mean())
    assert found.survival == 1
    normal = far(a, b)
    assert normal.RCol["town"].tolist() == pytest.approx([1 / 3, 1 / 3, 1, 0])


def test_wrong_nominal_value_is_free_as_printed_and_costs_one_normalised() -> None:
    a, b = pd.DataFrame({"t": list("aabb")}), pd.DataFrame({"t": list("aaaa")})
    assert far(a, b, convention="printed").RTab == 0
    assert far(a, b).RTab == 0.5


def test_given_meaning_wins() -> None:
    a, b = pd.DataFrame({"t": list("abcd")}), pd.DataFrame({"t": ["X", "X", "Y", "Y"]})
    assert far(a, b).RTab == pytest.approx(1 / 3)
    wide = far(a, b, meaning={"t": {"X": "abc", "Y": {"c", "d"}}})
    assert wide.RCol["t"].tolist()[:2] == [1.0, 1.0]  # a text is one value, "abc", and that is not the original
    sets = far(a, b, meaning={"t": {"X": ["a", "b", "c"], "Y": ["c", "d"]}})
    assert sets.RCol["t"].tolist() == pytest.approx([2 / 3, 2 / 3, 1 / 3, 1 / 3])


def test_constant_and_empty_columns() -> None:
    a = pd.DataFrame({"x": [5.0, 5, 5], "n": [None, None, None], "c": ["k"] * 3})
    assert far(a, a).RTab == 0
    assert far(a[["x"]], pd.DataFrame({"x": [5.0, 6, 5]})).RTab == pytest.approx(1 / 3)


def test_trimmed_range_is_robust() -> None:
    x = np.append(np.arange(100.0), 1e9)
    a, b = pd.DataFrame({"x": x}), pd.DataFrame({"x": x + 10})
    assert far(a, b).RTab < 1e-6
    assert far(a, b, trim=0.05).RTab == pytest.approx(0.11, abs=0.01)
    with pytest.raises(InputError):
        far(a, b, trim=0.5)


def test_blanks() -> None:
    a = pd.DataFrame({"x": [1.0, 2, None], "t": ["a", None, "b"]})
    b = pd.DataFrame({"x": [None, 2, None], "t": [None, None, "b"]})
    found = far(a, b)
    assert found.RCol["x"].tolist() == [1, 0, 0]
    assert found.RCol["t"].tolist() == [1, 0, 0]


def test_survivors_are_aligned() -> None:
    a = pd.DataFrame({"id": [1, 2, 3, 4], "x": [0.0, 1, 2, 10]})
    b = a.iloc[[3, 1]]
    assert far(a, b, id="id").RTab == 0
    assert far(a, b[["x"]], kept=[3, 1]).survival == 0.5
    for bad in ({}, {"kept": [0]}, {"kept": [0, 9]}, {"id": "nr"}):
        with pytest.raises(InputError):
            far(a, b[["x"]], **bad)
    with pytest.raises(InputError, match="not in the original"):
        far(a, b.assign(id=[7, 8]), id="id")
    with pytest.raises(InputError, match="repeated"):
        far(a.assign(id=1), b, id="id")


def test_results_of_verbs_know_their_records_and_sets() -> None:
    df = pd.DataFrame({"age": [20, 21, 22, 23, 50], "pay": [1.0, 2, 3, 4, 5]})
    done = md.suppress_records(md.recode(df, {"age": 10}), keys=["age"], k=2)
    found = far(df, done, groups={"keys": ["age"], "rest": ["pay"]})
    assert found.survival == 0.8
    assert found.groups == pytest.approx({"keys": 3 / 4, "rest": 0})
    twice = md.recode(md.recode(df, {"age": 2}), {"age": {"20-21": "young", "22-23": "young", "50-51": "old"}})
    assert far(df, twice, columns=["age"]).RCol["age"].tolist() == pytest.approx([3 / 4] * 4 + [0])


def test_lossless_release_is_at_distance_zero_and_total_loss_at_one() -> None:
    df = pd.DataFrame({"a": list("xyzxyz"), "b": [1, 2, 3, 4, 5, 6]})
    assert far(df, df).RTab == 0
    assert far(df, md.recode(df, {"a": "*", "b": "*"})).RTab == 1


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=30))
@settings(max_examples=60, deadline=None)
def test_everything_lies_between_zero_and_one(rows: list[tuple[int, int, int]]) -> None:
    a = pd.DataFrame({"t": [f"v{r[0]}" for r in rows], "x": [float(r[1]) for r in rows]})
    b = pd.DataFrame({"t": [f"g{r[0] // 2}" for r in rows], "x": [float(r[2]) for r in rows]})
    for convention in ("printed", "normalised"):
        found = far(a, b, convention=convention)
        for values in (*found.RCol.values(), found.RRec):
            assert ((values >= 0) & (values <= 1)).all()
        sets = a["t"].groupby(b["t"]).nunique()
        m = a["t"].nunique()
        want = (b["t"].map(sets) - 1) / (m if convention == "printed" else max(m - 1, 1))
        assert found.RCol["t"] == pytest.approx(want.to_numpy())


def test_bad_input() -> None:
    a = pd.DataFrame({"x": [1.0]})
    with pytest.raises(InputError, match="convention"):
        far(a, a, convention="mine")
    with pytest.raises(InputError, match="in common"):
        far(a, pd.DataFrame({"y": [1.0]}))
    with pytest.raises(InputError, match="no column"):
        far(a, a, groups={"g": ["y"]})


def test_information_loss() -> None:
    rng = np.random.default_rng(0)
    a = pd.DataFrame(rng.random((50, 2)), columns=["x", "y"]) * [1, 1000]
    assert md.information_loss(a, a).percent == 0
    assert md.information_loss(a, a * 0 + a.mean()).percent == pytest.approx(100)
    shift = md.information_loss(a, a + a.std(), columns=["x"])
    assert shift.il1s == pytest.approx(1 / np.sqrt(2))
    with pytest.raises(InputError):
        md.information_loss(a, a.head(3))
