"""Risk measures: the source's worked examples to the printed digit, and brute force from the definitions."""

from __future__ import annotations

import itertools
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabprotect as tp
from tabprotect.errors import InputError

risk = tp.microdata.risk

SAMPLE = pd.DataFrame(
    [("m", "A", "C"), ("m", "A", "C"), ("m", "C", "F"), ("m", "D", "A"), ("m", "D", "A"), ("m", "D", "C"), ("m", "G", "C"),
     ("f", "B", "B"), ("f", "B", "A"), ("f", "H", "C")],
    columns=["sex", "school", "grade"],
)  # fmt: skip
POPULATION = pd.DataFrame(
    [
        ("m", "A", 9),
        ("m", "C", 19),
        ("m", "D", 20),
        ("m", "F", 10),
        ("m", "G", 3),
        ("f", "B", 21),
        ("f", "G", 3),
        ("f", "H", 15),
    ],
    columns=["sex", "school", "people"],
)


def one_class(values: list[float], tolerance: float | None = None) -> tp.microdata.Risk:
    frame = pd.DataFrame({"key": ["a"] * len(values), "pay": values})
    return risk(frame, keys=["key"], sensitive="pay", fraction=0.5, tolerance=tolerance)


def test_worked_example() -> None:
    found = risk(SAMPLE, keys=["sex", "school"], sensitive="grade", population=POPULATION, population_count="people")
    assert f"{found.theta1:.3f}" == "0.081"
    assert f"{found.theta2:.3f}" == "0.109"
    assert found.fraction == 0.1
    assert f"{found.theta1_hat:.4f}" == "0.0769"
    assert found.theta2_hat == pytest.approx(0.1)
    assert found.P1 == 0
    assert found.P2 is None  # the grades of the population are unknown


def test_worked_example_with_expanded_population_and_fraction() -> None:
    people = POPULATION.loc[POPULATION.index.repeat(POPULATION.people), ["sex", "school"]]
    found = risk(SAMPLE, keys=["sex", "school"], sensitive="grade", population=people, fraction=0.1)
    assert (found.theta1, found.theta2) == pytest.approx((3 / 37, 5 / 46))


@pytest.mark.parametrize(
    ("values", "count"),
    [((100, 100, 150), 1), ((100, 150, 150), 1), ((100, 100, 100, 150), 1), ((100, 150, 150, 150), 1), ((100, 100, 150, 150), 0),
     ((100, 150), 2), ((100, 120, 150), 0)],
)  # fmt: skip
def test_n2(values: tuple[float, ...], count: int) -> None:
    assert one_class(list(values)).tallies["pay"].n_2 == count


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ((100, 120, 150), 1),
        ((100, 120, 140), 2),
        ((100, 125, 150), 0),
        ((100, 121), 2),
        ((100, 120), 0),
        ((100, 100, 121), 1),
    ],
)
def test_n3(values: tuple[float, ...], count: int) -> None:
    assert one_class(list(values), tolerance=20).tallies["pay"].n_3 == count


def test_table_of_grades_is_3_anonymous_and_not_diverse() -> None:
    rows = [("stat", "m", 2, "B")] * 3
    rows += [("admin", s, 3, g) for s in "mf" for g in "CBA"] + [("social", "m", 2, g) for g in ("A", "C", "B+")]
    found = risk(
        pd.DataFrame(rows, columns=["dept", "sex", "year", "grade"]), keys=["dept", "sex", "year"], sensitive="grade"
    )
    assert (found.k, found.l, found.classes_count) == (3, 1, 4)
    assert found.theta1_hat is None


# ---------------------------------------------------------------------------------------------- against the definitions


def brute(frame: pd.DataFrame, keys: list[str], c: float, p: float) -> dict[str, float]:
    """All measures straight from the definitions in the literature."""
    groups = [g["s"].tolist() for _, g in frame.groupby(keys, dropna=False)]
    values = sorted(set(frame["s"]))
    q = {v: (frame["s"] == v).mean() for v in values}

    def spread(x: list[float]) -> float:
        return max(x) - min(x) if x else 0.0

    def hat(fits: object) -> float:
        good = [g for g in groups if fits(g)]  # type: ignore[operator]
        a = sum(map(len, good))
        b = sum(len(g) for g in good if len(g) > 1)
        # records whose removal makes a class fit although it does not now: exactly what n(2) and n(3) count
        lone = sum(
            fits(g[:i] + g[i + 1 :])  # type: ignore[operator]
            for g in map(sorted, groups)
            if not fits(g)  # type: ignore[operator]
            for i in ((0, len(g) - 1))
        )
        whole = a * p + (b + lone) * (1 - p)
        return a * p / whole if whole else 0.0

    def emd(g: list[float]) -> float:
        gap = [g.count(v) / len(g) - q[v] for v in values]
        return sum(abs(x) for x in itertools.accumulate(gap)) / max(len(values) - 1, 1)

    n1 = sum(len(g) == 1 for g in groups)
    n2 = sum(len(g) == 2 for g in groups)
    shares = [[g.count(v) / len(g) for v in set(g)] for g in groups]
    ratio = []
    for g in groups:
        counts = sorted((g.count(v) for v in set(g)), reverse=True)
        ratio.append(counts[0] / sum(counts[1:]) if len(counts) > 1 else np.inf)
    return {
        "k": min(map(len, groups)),
        "l": min(len(set(g)) for g in groups),
        "entropy_l": np.exp(min(-sum(x * np.log(x) for x in s) for s in shares)),
        "recursive_c": max(ratio),
        "t": max(map(emd, groups)),
        "t_equal": max(sum(abs(g.count(v) / len(g) - q[v]) for v in values) / 2 for g in groups),
        "theta1_hat": n1 * p / (n1 * p + 2 * n2 * (1 - p)) if n1 * p + n2 * (1 - p) else 0.0,
        "theta2_hat": hat(lambda g: len(set(g)) <= 1),
        "theta3_hat": hat(lambda g: spread(g) <= c),
        "P1": n1 / len(frame),
        "P2": sum(len(g) for g in groups if len(set(g)) == 1) / len(frame),
        "P3": sum(len(g) for g in groups if spread(g) <= c) / len(frame),
    }


records = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from(["x", "y", None]), st.integers(0, 6)), min_size=1, max_size=40
)


@given(records, st.integers(0, 4), st.sampled_from([0.05, 0.5, 1.0]))
@settings(max_examples=150, deadline=None)
def test_measures_are_their_definitions(rows: list[tuple[int, str | None, int]], c: int, p: float) -> None:
    frame = pd.DataFrame(rows, columns=["a", "b", "s"])
    want = brute(frame, ["a", "b"], c, p)
    found = risk(frame, keys=["a", "b"], sensitive="s", tolerance=c, fraction=p)
    for name, value in want.items():
        if name != "t_equal":
            assert getattr(found, name) == pytest.approx(value), name
    equal = risk(frame, keys=["a", "b"], sensitive="s", distance="equal")
    assert equal.t == pytest.approx(want["t_equal"])


@given(records, st.integers(1, 4))
@settings(max_examples=25, deadline=None)
def test_parts_add_up(rows: list[tuple[int, str | None, int]], parts: int) -> None:
    frame = pd.DataFrame(rows, columns=["a", "b", "s"])
    whole = asdict(risk(frame, keys=["a", "b"], sensitive="s", tolerance=2).tallies["s"])
    split = asdict(risk(frame, keys=["a", "b"], sensitive="s", tolerance=2, parts=parts).tallies["s"])
    assert split.pop("histogram") == whole.pop("histogram")
    assert split == pytest.approx(whole)


@given(records)
@settings(max_examples=60, deadline=None)
def test_wildcards_match_whatever_is_known(rows: list[tuple[int, str | None, int]]) -> None:
    frame = pd.DataFrame(rows, columns=["a", "b", "s"])

    def match(x: tuple, y: tuple) -> bool:
        return x[0] == y[0] and (x[1] == y[1] or x[1] is None or y[1] is None)

    sets = [[y for y in rows if match(x, y)] for x in rows]
    found = risk(frame, keys=["a", "b"], sensitive="s", missing="wildcard")
    assert found.k == min(map(len, sets))
    assert found.l == min(len({y[2] for y in s}) for s in sets)
    assert found.uniques == sum(len(s) == 1 for s in sets)
    assert found.records["size"].tolist() == [len(s) for s in sets]


def test_missing_policies() -> None:
    frame = pd.DataFrame({"a": [1.0, 1.0, None, 2.0], "s": [1, 2, 3, 4]})
    assert risk(frame, keys=["a"]).uniques == 2
    assert risk(frame, keys=["a"], missing="drop").dropped == 1
    assert risk(frame, keys=["a"], missing="wildcard").k == 2
    with pytest.raises(InputError, match="wildcard"):
        risk(frame, keys=["a"], missing="ignore")


def test_missing_sensitive_value_is_a_value_far_from_all_others() -> None:
    frame = pd.DataFrame({"a": [1, 1, 2, 2], "s": [5.0, None, None, None]})
    found = risk(frame, keys=["a"], sensitive="s", tolerance=1e9)
    assert found.l == 1
    assert found.classes["exposed"].tolist() == [False, True]


def test_many_columns_stay_exact() -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.integers(0, 50, (3000, 24)), columns=[f"k{i}" for i in range(24)])
    frame.loc[10:13] = frame.loc[9].to_numpy()
    found = risk(frame, keys=list(frame.columns))
    assert found.classes_count == len(frame.drop_duplicates())
    assert found.histogram[4] == 1


def test_several_sensitive_attributes_report_the_worst() -> None:
    frame = pd.DataFrame({"a": [1, 1, 2, 2], "s": [1, 2, 3, 4], "u": list("xxyz")})
    found = risk(frame, keys=["a"], sensitive=["s", "u"])
    assert found.l == 1
    assert found.of("s").l == 2
    assert found.t == max(found.of("s").t, found.of("u").t)
    with pytest.raises(InputError):
        found.of("a")


def test_views_agree_with_the_measures() -> None:
    found = risk(SAMPLE, keys=["sex", "school"], sensitive="grade")
    classes, people = found.classes, found.records
    assert classes["size"].sum() == len(SAMPLE) == len(people)
    assert people["size"].tolist() == SAMPLE.groupby(["sex", "school"])["grade"].transform("size").tolist()
    assert found.riskiest(3)["record"].tolist() == [2, 6, 9]
    assert set(zip(classes["sex"], classes["school"], strict=True)) == set(zip(SAMPLE.sex, SAMPLE.school, strict=True))


@pytest.mark.parametrize(
    ("bad", "words"),
    [({"keys": []}, "at least one key"), ({"keys": ["zip"]}, "no column 'zip'"), ({"keys": ["sex"], "fraction": 0}, "fraction"),
     ({"keys": ["sex"], "sensitive": "sex"}, "both key and sensitive"), ({"keys": ["sex"], "tolerance": -1}, "negative"),
     ({"keys": ["sex"], "sensitive": "grade", "tolerance": 3}, "numeric"),
     ({"keys": ["sex"], "sensitive": "grade", "distance": "ordered"}, "no order"),
     ({"keys": ["sex"], "distance": "l2"}, "distance"), ({"keys": ["sex"], "l": 0}, "l=0"),
     ({"keys": ["sex"], "parts": 0}, "parts")],
)  # fmt: skip
def test_bad_input_is_explained(bad: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        risk(SAMPLE, **bad)


def test_sample_outside_the_population_is_refused() -> None:
    with pytest.raises(InputError, match="more records in the sample"):
        risk(SAMPLE, keys=["sex", "school"], population=POPULATION.head(3), population_count="people")


def test_empty_file() -> None:
    found = risk(SAMPLE.head(0), keys=["sex"], sensitive="grade", fraction=0.1)
    assert (found.n, found.k, found.l, found.theta1_hat) == (0, 0, None, 0.0)
    assert "0 records" in found.summary()


def test_repr_and_summary_hold_no_values() -> None:
    found = risk(SAMPLE, keys=["sex", "school"], sensitive="grade", fraction=0.1)
    assert "'F'" not in repr(found)
    assert "view" not in repr(found)


def test_pycanon_agrees() -> None:
    from pycanon import anonymity

    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"a": rng.integers(0, 4, 300), "b": rng.integers(0, 3, 300), "s": rng.integers(0, 6, 300)})
    frame["w"] = frame["s"].map("abcdef".__getitem__)
    keys = ["a", "b"]
    for name in ("s", "w"):
        found = risk(frame, keys=keys, sensitive=name)
        assert found.k == anonymity.k_anonymity(frame, keys)
        assert found.l == anonymity.l_diversity(frame, keys, [name])
        assert int(found.entropy_l) == anonymity.entropy_l_diversity(frame, keys, [name])
        assert found.t == pytest.approx(anonymity.t_closeness(frame, keys, [name]))
