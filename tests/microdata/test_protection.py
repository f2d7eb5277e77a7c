"""Recoding, lattice search, suppression, noise and recipes."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabprotect as tp
from tabprotect.errors import Infeasible, InputError
from tabprotect.microdata.encode import encode
from tabprotect.microdata.frames import read
from tabprotect.microdata.levels import Levels
from tabprotect.microdata.synthetic import households

md = tp.microdata


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return households(1500, seed=1)


LEVELS = {"sex": [], "age": [5, 10, 20], "size": [[2, 4, 6], [4]]}


# ------------------------------------------------------------------------------------------------------- recoding


def test_recodings_of_every_kind() -> None:
    df = pd.DataFrame({"age": [16, 19, 23, 79, 80], "town": list("abcab"), "x": [0.5, 1.0, 2.5, 3.0, 9.0]})
    rec = md.Recoding("bands", width=5, low=20, high=80)
    done = md.recode(df, {"age": rec, "town": {"a": "A", "b": "A"}, "x": [1, 3]}).data
    assert done["age"].tolist() == ["<20", "<20", "20-24", "75-79", "≥80"]
    assert done["town"].tolist() == ["A", "A", "*", "A", "A"]
    assert done["x"].tolist() == ["<1", "[1, 3)", "[1, 3)", "≥3", "≥3"]
    assert md.recode(df, {"town": str.upper, "age": "*"}).data.iloc[0].tolist()[:2] == ["*", "A"]


def test_whole_numbers_in_a_column_of_fractions_share_their_band() -> None:
    done = md.recode(pd.DataFrame({"x": [0.0, 0.5, 5.0, 7.5]}), {"x": 5}).data
    assert done["x"].tolist() == ["[0, 5)", "[0, 5)", "[5, 10)", "[5, 10)"]


def test_missing_stays_missing() -> None:
    done = md.recode(pd.DataFrame({"x": [1.0, None]}), {"x": 10}).data
    assert done["x"].tolist()[0] == "0-9"
    assert done["x"].isna().tolist() == [False, True]


@pytest.mark.parametrize("spec", [0, -1, [3, 2], [], None, True, object()])
def test_bad_recodings(spec: object) -> None:
    with pytest.raises(InputError):
        md.recode(pd.DataFrame({"x": [1, 2]}), {"x": spec})


def test_bands_need_numbers() -> None:
    with pytest.raises(InputError, match="not numeric"):
        md.recode(pd.DataFrame({"x": ["a"]}), {"x": 5})


def test_top_and_bottom_coding() -> None:
    df = pd.DataFrame({"pay": np.arange(1.0, 101.0)})
    capped = md.top_code(df, ["pay"], share=0.05)
    assert capped.data["pay"].max() == 95
    assert capped.recipe.steps[0][1]["columns"] == {"pay": 95.0}  # the limit that was found is what next year gets
    assert md.top_code(df, {"pay": 90}, replace="mean").data["pay"].mean() == pytest.approx(df["pay"].mean())
    assert md.bottom_code(df, "pay", share=0.1).data["pay"].min() == 11
    with pytest.raises(InputError, match="share"):
        md.top_code(df, "pay")
    with pytest.raises(InputError, match="replace"):
        md.top_code(df, {"pay": 1}, replace="x")
    with pytest.raises(InputError, match="not numeric"):
        md.top_code(pd.DataFrame({"a": ["x"]}), {"a": 1})


# -------------------------------------------------------------------------------------------------- generalisation


def brute_lattice(df: pd.DataFrame, hierarchies: dict, k: int, limit: float, l: int | None = None) -> float:
    """The least loss over all nodes, straight from the definition."""
    names = list(hierarchies)
    tables = {}
    for c in names:
        domain = sorted(df[c].unique())
        steps = [{v: v for v in domain}]
        for spec in hierarchies[c]:
            rec = md.Recoding.of(spec)
            steps.append({v: rec.label(v) for v in domain})
        steps.append(dict.fromkeys(domain, "*"))
        tables[c] = steps
    best = np.inf
    for node in itertools.product(*(range(len(tables[c])) for c in names)):
        coarse = pd.DataFrame({c: df[c].map(tables[c][v]) for c, v in zip(names, node, strict=True)})
        size = coarse.groupby(names)[names[0]].transform("size")
        bad = size < k
        if l is not None:
            bad |= coarse.assign(s=df["s"]).groupby(names)["s"].transform("nunique") < l
        if bad.sum() > limit * len(df) or bad.all():
            continue
        loss = np.zeros(len(df))
        for c, v in zip(names, node, strict=True):
            table = tables[c][v]
            members = {x: sum(y == table[x] for y in table.values()) for x in table}
            loss += df[c].map(lambda x, m=members, t=table: (m[x] - 1) / max(len(t) - 1, 1)).to_numpy() / len(names)
        best = min(best, np.where(bad, 1.0, loss).mean())
    return best


@given(
    st.lists(st.tuples(st.integers(0, 15), st.integers(0, 5), st.integers(0, 2)), min_size=4, max_size=40),
    st.integers(2, 4),
    st.sampled_from([0.0, 0.1, 0.3]),
    st.sampled_from([None, 2]),
)
@settings(max_examples=60, deadline=None)
def test_search_finds_the_optimum(rows: list[tuple[int, int, int]], k: int, limit: float, l: int | None) -> None:
    df = pd.DataFrame(rows, columns=["a", "b", "s"])
    hierarchies = {"a": [2, 4, 8], "b": [3]}
    want = brute_lattice(df, hierarchies, k, int(limit * len(df)) / len(df), l)
    options = {"hierarchies": hierarchies, "k": k, "suppression": limit, "l": l, "sensitive": "s" if l else None}
    if not np.isfinite(want):
        with pytest.raises(Infeasible):
            md.generalize(df, **options)
        return
    done = md.generalize(df, **options)
    assert done.details["optimal"]
    assert done.details["loss"] == pytest.approx(want)
    found = md.risk(done.data, keys=["a", "b"], sensitive="s")
    assert found.k >= k
    assert l is None or found.l >= l
    assert 1 - done.survival <= limit + 1e-12


def test_conditions_hold_on_what_is_released(people: pd.DataFrame) -> None:
    done = md.generalize(people, hierarchies=LEVELS, k=4, l=3, t=0.35, sensitive="education", suppression=0.05)
    found = md.risk(done.data, keys=list(LEVELS), sensitive="education")
    assert found.k >= 4
    assert found.l >= 3
    assert found.t <= 0.35 + 1e-9


def test_entropy_condition(people: pd.DataFrame) -> None:
    done = md.generalize(people, hierarchies=LEVELS, k=2, entropy_l=2.5, sensitive="education", suppression=0.1)
    assert md.risk(done.data, keys=list(LEVELS), sensitive="education").entropy_l >= 2.5 - 1e-9


def test_local_suppression_keeps_more_records(people: pd.DataFrame) -> None:
    whole = md.generalize(people, hierarchies=LEVELS, k=5, suppression=0.05)
    local = md.generalize(people, hierarchies=LEVELS, k=5, suppression=0.05, local=True)
    assert local.survival >= whole.survival
    assert md.risk(local.data, keys=list(LEVELS)).k >= 5


def test_hierarchies_from_everything() -> None:
    df = pd.DataFrame({"nace": ["A1", "A2", "B1", "B2"] * 3})
    tree = tp.Hierarchy.from_tree({"A": ["A1", "A2"], "B": ["B1", "B2"]})
    table = pd.DataFrame({"nace": ["A1", "A2", "B1", "B2"], "one": list("AABB")})
    for spec in (tree, table, [{"A1": "A", "A2": "A", "B1": "B", "B2": "B"}], [lambda v: v[0]]):
        done = md.generalize(df, hierarchies={"nace": spec}, k=6)
        assert sorted(done.data["nace"].unique()) == ["A", "B"]


def test_levels_must_nest() -> None:
    column = encode(read(pd.DataFrame({"x": range(12)})), "x")
    with pytest.raises(InputError, match="splits values"):
        Levels.of(column, [4, 6])
    assert len(Levels.of(column, [4, 8])) == 4


def test_time_limit_still_gives_a_safe_file(people: pd.DataFrame) -> None:
    done = md.generalize(people, hierarchies=LEVELS, k=10, time_limit=0.0)
    assert md.risk(done.data, keys=list(LEVELS)).k >= 10
    assert done.details["bound"] <= done.details["loss"]


@pytest.mark.parametrize(
    "bad", [{"hierarchies": {}}, {"k": 0}, {"suppression": 1}, {"l": 2}, {"t": 2, "sensitive": "education"}, {"weights": {"zz": 1}},
            {"hierarchies": {"education": []}, "l": 2, "sensitive": "education"}, {"hierarchies": {"age": 3.5j}}],
)  # fmt: skip
def test_generalize_explains_bad_input(people: pd.DataFrame, bad: dict) -> None:
    with pytest.raises(InputError):
        md.generalize(people, **({"hierarchies": LEVELS, "k": 3} | bad))


def test_impossible_conditions() -> None:
    with pytest.raises(Infeasible):
        md.generalize(pd.DataFrame({"a": [1, 2]}), hierarchies={"a": []}, k=3)
    with pytest.raises(Infeasible):
        md.suppress_records(pd.DataFrame({"a": [1, 2]}), keys=["a"], k=2)
    with pytest.raises(Infeasible):
        md.suppress_cells(pd.DataFrame({"a": [1, 2]}), keys=["a"], k=3, missing="wildcard")


# ------------------------------------------------------------------------------------------------------ suppression

rows = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([0.0, 1.0, None]), st.sampled_from(["x", "y"]), st.integers(0, 2)),
    min_size=4,
    max_size=40,
)


@given(rows, st.integers(2, 4), st.sampled_from([None, 2]), st.sampled_from([None, 0.6]))
@settings(max_examples=60, deadline=None)
def test_suppression_reaches_its_conditions(data: list[tuple], k: int, l: int | None, t: float | None) -> None:
    df = pd.DataFrame(data, columns=["a", "b", "c", "s"])
    keys = ["a", "b", "c"]
    for verb in (md.suppress_records, md.suppress_cells):
        try:
            done = verb(df, keys=keys, k=k, l=l, t=t, sensitive="s")
        except Infeasible:
            continue
        found = md.risk(done.data, keys=keys, sensitive="s")
        assert found.k >= k
        assert l is None or found.l >= l
        assert t is None or found.t <= t + 1e-9
        assert md.risk(done.data, keys=keys, missing="wildcard").k >= k
        assert done.data["s"].tolist() == df["s"].iloc[done.kept].tolist()


@given(rows, st.integers(2, 4))
@settings(max_examples=40, deadline=None)
def test_wildcard_suppression_keeps_every_record(data: list[tuple], k: int) -> None:
    df = pd.DataFrame(data, columns=["a", "b", "c", "s"])
    done = md.suppress_cells(df, keys=["a", "b", "c"], k=k, missing="wildcard")
    assert len(done.data) == len(df)
    assert md.risk(done.data, keys=["a", "b", "c"], missing="wildcard").k >= k


def test_t_refers_to_the_values_that_are_released() -> None:
    rows = [(0, "x", 0)] * 4 + [(0, "y", 1)] * 2 + [(1, "x", 2)]
    df = pd.DataFrame(rows, columns=["b", "c", "s"])  # without the last record there are two values, not three
    done = md.suppress_records(df, keys=["b", "c"], k=2, t=0.7, sensitive="s")
    assert md.risk(done.data, keys=["b", "c"], sensitive="s").t == pytest.approx(2 / 3)
    with pytest.raises(Infeasible):
        md.suppress_records(df.iloc[:6].assign(c=list("uvwxyz")), keys=["b", "c"], k=2, t=0.6, sensitive="s")


def test_important_keys_are_spared(people: pd.DataFrame) -> None:
    keys = ["sex", "age", "size"]
    spared = md.suppress_cells(people, keys=keys, k=3, importance={"age": 10}).details["blanked"]["age"]
    plain = md.suppress_cells(people, keys=keys, k=3, importance={"sex": 10, "size": 10}).details["blanked"]["age"]
    assert spared < plain
    with pytest.raises(InputError):
        md.suppress_cells(people, keys=keys, importance={"zip": 1})
    with pytest.raises(InputError, match="knows only k"):
        md.suppress_cells(people, keys=keys, missing="wildcard", l=2, sensitive="education")


# ------------------------------------------------------------------------------------------------------------ noise


def test_noise_keeps_what_it_promises() -> None:
    rng = np.random.default_rng(0)
    x = rng.multivariate_normal([10, 20], [[4, 3], [3, 9]], 20_000)
    df = pd.DataFrame(x, columns=["a", "b"])
    add = md.add_noise(df, columns=["a", "b"], scale=0.5, seed=1).data
    assert (add["a"] - df["a"]).std() == pytest.approx(0.5 * df["a"].std(), rel=0.03)
    both = md.add_noise(df, columns=["a", "b"], scale=0.5, kind="correlated", seed=1).data
    assert both.corr().iloc[0, 1] == pytest.approx(df.corr().iloc[0, 1], abs=0.02)
    assert add.corr().iloc[0, 1] < df.corr().iloc[0, 1] - 0.05
    kept = md.add_noise(df, columns=["a"], scale=0.5, moments=True, seed=1).data["a"]
    assert (kept.mean(), kept.std()) == pytest.approx((df["a"].mean(), df["a"].std()))
    times = md.add_noise(df, columns=["a"], scale=0.2, kind="multiplicative", seed=1).data["a"] / df["a"]
    assert (times > 0).all()
    assert (times.mean(), times.std()) == pytest.approx((1, 0.2), rel=0.03)


def test_noise_is_seeded_and_its_seed_is_secret() -> None:
    df = pd.DataFrame({"a": [1.0, 2.0, 3.0]})
    one, two = (md.add_noise(df, columns=["a"], seed=7) for _ in range(2))
    assert one.data.equals(two.data)
    assert "7" not in one.recipe.to_json().replace("version", "")
    with pytest.raises(InputError):
        md.add_noise(df, columns=["a"], kind="pink")
    with pytest.raises(InputError):
        md.add_noise(df, columns=["a"], scale=-1)


# ---------------------------------------------------------------------------------------------------------- recipes


def test_recipe_is_replayed_on_another_file(people: pd.DataFrame, tmp_path: Path) -> None:
    done = md.drop_columns(people.assign(name="x"), "name")
    done = md.top_code(done, ["income"], share=0.02)
    done = md.generalize(done, hierarchies=LEVELS, k=5, suppression=0.02)
    done = md.microaggregate(done, columns=["income"], k=3)
    done.recipe.save(tmp_path / "recipe.json")
    again = md.Recipe.load(tmp_path / "recipe.json")
    assert again.apply(people.assign(name="x")).data.equals(done.data)
    other = households(1500, seed=9)
    next_year = again.apply(other.assign(name="y"))
    assert md.risk(next_year.data, keys=list(LEVELS)).k >= 5
    assert next_year.data["income"].max() <= done.recipe.steps[1][1]["columns"]["income"]
    assert len(done.summary().splitlines()) > 5


def test_values_new_to_a_recipe_tell_nothing() -> None:
    done = md.recode(pd.DataFrame({"t": ["a", "b"]}), {"t": str.upper})
    assert done.recipe.apply(pd.DataFrame({"t": ["a", "z"]})).data["t"].tolist() == ["A", "*"]


@pytest.mark.parametrize("text", ["{", "{}", '{"steps": [{"verb": "eval"}]}', '{"steps": [1]}'])
def test_bad_recipes_are_refused(text: str) -> None:
    with pytest.raises(InputError):
        md.Recipe.from_json(text)


def test_missing_recipe_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot read"):
        md.Recipe.load(tmp_path / "none.json")


def test_a_missing_key_is_hidden_by_the_last_level() -> None:
    df = pd.DataFrame({"age": [20.0, 21, 22, None], "pay": [1, 2, 3, 4]})
    done = md.generalize(df, hierarchies={"age": [10]}, k=2)
    assert done.data["age"].tolist() == ["*"] * 4
    assert len(md.generalize(df, hierarchies={"age": [10]}, k=2, suppression=0.3).data) == 3


def test_t_close_search_keeps_to_the_limit_of_suppressed_records() -> None:
    people = households(500, seed=8)
    for t in (0.2, 0.3):
        done = md.generalize(people, hierarchies=LEVELS, k=2, t=t, sensitive="education", suppression=0.03)
        assert len(people) - len(done.data) <= 15
        assert md.risk(done.data, keys=list(LEVELS), sensitive="education").t <= t + 1e-9
