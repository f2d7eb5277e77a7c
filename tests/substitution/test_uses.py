"""What is built on the matrices: schemes for frames, planner, mining, tables, studies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from matplotlib.figure import Figure

import tabprotect as tp
from tabprotect.errors import InputError
from tabprotect.substitution import (
    GammaDiagonal,
    Product,
    Retention,
    Scheme,
    Transition,
    estimate_table,
    find_domains,
    frequent_itemsets,
    joint_estimate,
    plan,
    simulate_counts,
    split_statistics,
    study,
)

DOMAINS = {"sex": ["m", "f"], "region": ["01", "02", "03"]}


def people(records: int = 4000, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    region = rng.choice(DOMAINS["region"], records, p=[0.6, 0.3, 0.1])
    return pd.DataFrame({"id": range(records), "sex": rng.choice(["m", "f"], records), "region": region})


# -- schemes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_in_and_out(kind: str, joint: bool) -> None:
    frame = people()
    scheme = Scheme.gamma_diagonal(DOMAINS, gamma=19, joint=joint)
    given = {"pandas": frame, "polars": pl.from_pandas(frame), "arrow": pa.Table.from_pandas(frame)}[kind]
    done = scheme.randomize(given, seed=5)
    assert type(done.data) is type(given)
    back = done.data if kind == "pandas" else done.data.to_pandas()
    assert list(back.columns) == ["id", "sex", "region"]
    assert (back["id"] == frame["id"]).all()
    expected = scheme.randomize(frame, seed=5).data
    assert back["region"].tolist() == expected["region"].tolist()
    assert 0.05 < float((back["sex"] != frame["sex"]).mean()) < 0.5
    assert done.privacy.gamma == pytest.approx(19)
    assert "for studies only" in done.summary()
    assert "secure" in scheme.randomize(given).summary()


def test_scheme_reconstructs_within_its_intervals() -> None:
    frame = people(50_000)
    for joint in (True, False):
        scheme = Scheme.gamma_diagonal(DOMAINS, gamma=19, joint=joint)
        found = scheme.reconstruct(scheme.randomize(frame, seed=1).data, level=0.9999)
        true = frame.groupby(["sex", "region"]).size()
        for row in found.itertuples():
            assert row.lower <= true[row.sex, row.region] <= row.upper
        margin = scheme.marginal(["region"]).reconstruct(scheme.randomize(frame, seed=1).data)
        summed = found.groupby("region")["estimate"].sum()
        np.testing.assert_allclose(margin["estimate"], summed[margin["region"]], rtol=1e-9)
    assert Scheme.gamma_diagonal(DOMAINS, 19, joint=False).marginal(["region", "sex"]).columns == ("region", "sex")


def test_scheme_file(tmp_path: Path) -> None:
    matrices = [
        GammaDiagonal((2, 3), 7.5),
        Product([Transition([[0.8, 0.1], [0.2, 0.9]]), Retention([0.5, 0.6, 0.7], [0.2, 0.3, 0.5])]),
        Product([GammaDiagonal(2, 3), Retention(0.5, [0.2, 0.3, 0.5])]),
    ]
    for i, matrix in enumerate(matrices):
        scheme = Scheme(DOMAINS, matrix)
        scheme.save(tmp_path / f"{i}.json")
        again = Scheme.load(tmp_path / f"{i}.json")
        assert dict(again.domains) == dict(scheme.domains)
        np.testing.assert_array_equal(again.matrix.dense(), matrix.dense())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["0.json", "1.json", "2.json"]
    with pytest.raises(InputError, match="not a scheme"):
        Scheme.from_json("{")
    with pytest.raises(InputError, match="not a scheme"):
        Scheme.from_json('{"domains": {}}')
    with pytest.raises(InputError, match="unknown kind"):
        Scheme.from_json('{"domains": {"a": [1]}, "matrix": {"kind": "magic"}}')
    with pytest.raises(InputError, match="cannot be read"):
        Scheme.load(tmp_path / "none.json")


def test_scheme_errors() -> None:
    scheme = Scheme.gamma_diagonal(DOMAINS, gamma=19)
    with pytest.raises(InputError, match="no column 'region'"):
        scheme.randomize(people()[["sex"]])
    with pytest.raises(InputError, match="no records"):
        scheme.randomize(people().iloc[:0])
    odd = people()
    odd.loc[7, "region"] = "99"
    with pytest.raises(InputError, match=r"column 'region', record 7.*not in the domain") as error:
        scheme.randomize(odd)
    assert "99" not in str(error.value)  # the value itself is confidential
    with pytest.raises(InputError, match="twice"):
        Scheme.gamma_diagonal({"a": ["x", "x"]}, 3)
    with pytest.raises(InputError, match="matrix is for"):
        Scheme(DOMAINS, GammaDiagonal(6, 3))
    with pytest.raises(InputError, match="gamma"):
        Scheme.gamma_diagonal(DOMAINS, 1, joint=False)
    with pytest.raises(InputError, match="no column 'age'"):
        scheme.marginal(["age"])


def test_domains_are_found() -> None:
    frame = people().assign(size=pd.Categorical(["s"] * 4000, categories=["s", "m", "l"]))
    assert find_domains(frame, ["region", "size"]) == {"region": ["01", "02", "03"], "size": ["s", "m", "l"]}
    with pytest.raises(InputError, match="no column"):
        find_domains(frame, ["x"])
    with pytest.raises(InputError, match="missing values"):
        find_domains(pl.DataFrame({"a": ["x", None]}), ["a"])


# -- planner -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("measure", ["relative", "cell", "l1"])
@pytest.mark.parametrize("n", [2, 50, (3, 4)])
def test_planner_is_consistent_whichever_is_unknown(n: int, measure: str) -> None:
    first = plan(n, records=50_000, gamma=7.0, measure=measure)
    assert plan(n, records=50_000, error=first.error, measure=measure).gamma == pytest.approx(7.0, rel=1e-6)
    assert plan(n, gamma=7.0, error=first.error, measure=measure).records in (50_000, 50_001)
    assert plan(n, epsilon=np.log(7.0), records=50_000, measure=measure).error == pytest.approx(first.error)


def test_planned_errors_are_the_errors_observed() -> None:
    shape = np.arange(1.0, 11.0)
    x = shape * 1000
    for measure in ("relative", "l1", "cell"):
        found = plan(10, records=55_000, gamma=6, x=shape, measure=measure)
        error = simulate_counts(found.matrix, x, size=3000, seed=0) @ found.matrix.operator.inverse().dense().T - x
        seen = {
            "relative": np.sqrt((error**2).sum(axis=1).mean()) / np.linalg.norm(x),
            "l1": np.abs(error).sum(axis=1).mean() / x.sum(),
            "cell": error.std(axis=0).max() / x.sum(),
        }[measure]
        assert found.error == pytest.approx(seen, rel=0.04)


def test_plan_report_and_errors() -> None:
    found = plan(20, rho=(0.05, 0.5), records=10_000)
    assert found.gamma == pytest.approx(19)
    assert found.posteriors()[0.05] == pytest.approx(0.5)
    assert "5 % -> 50.0 %" in found.summary()
    assert found.to_dict()["condition_number"] == pytest.approx(1 + 20 / 18)
    for options in ({}, {"records": 5}, {"records": 5, "gamma": 3, "error": 0.1}):
        with pytest.raises(InputError, match="exactly two"):
            plan(5, **options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="one of gamma"):
        plan(5, records=10, gamma=3, epsilon=1)
    with pytest.raises(InputError, match="epsilon"):
        plan(5, records=10, epsilon=-1)
    with pytest.raises(InputError, match="records"):
        plan(5, records=0, gamma=2)
    with pytest.raises(InputError, match="positive"):
        plan(5, records=10, error=-0.1)
    with pytest.raises(InputError, match="unknown measure"):
        plan(5, records=10, gamma=2, measure="x")


# -- mining ------------------------------------------------------------------------------------------------------------


def baskets(records: int = 40_000) -> np.ndarray:
    rng = np.random.default_rng(3)
    bread = rng.random(records) < 0.6
    butter = np.where(bread, rng.random(records) < 0.7, rng.random(records) < 0.1)
    caviar = rng.random(records) < 0.03
    return np.stack([bread, butter, caviar], axis=1).astype(int)


@pytest.mark.parametrize(
    "matrix", [GammaDiagonal((2, 2, 2), 19), Product([GammaDiagonal(2, 6)] * 3)], ids=["joint", "separate"]
)
def test_itemset_supports(matrix: tp.substitution.Matrix) -> None:
    true = baskets()
    found = frequent_itemsets(
        matrix.randomize(true, seed=1), matrix, min_support=0.1, names=["bread", "butter", "caviar"], items_only=True
    ).set_index("itemset")
    assert list(found.index) == ["bread=1", "butter=1", "bread=1, butter=1"]
    exact = {
        "bread=1": true[:, 0].mean(),
        "butter=1": true[:, 1].mean(),
        "bread=1, butter=1": (true[:, 0] & true[:, 1]).mean(),
    }
    for name, row in found.iterrows():
        assert abs(row["support"] - exact[name]) < 4.5 * row["std"]
        assert row["std"] < 0.02


def test_itemsets_equal_brute_force_on_data_that_was_hardly_changed() -> None:
    """With a huge γ nothing changes, and Apriori must find exactly what counting all subsets finds."""
    rng = np.random.default_rng(0)
    rows = np.stack([rng.choice(k, 500, p=np.arange(1, k + 1) / (k * (k + 1) / 2)) for k in (2, 3, 4)], axis=1)
    matrix = GammaDiagonal((2, 3, 4), 1e12)
    found = frequent_itemsets(rows, matrix, min_support=0.15)
    expected = {}
    for axes in ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)):
        for cell in np.ndindex(*[matrix.sizes[a] for a in axes]):
            share = float((rows[:, axes] == cell).all(axis=1).mean())
            if share >= 0.15:
                expected[", ".join(f"{a}={v}" for a, v in zip(axes, cell, strict=True))] = share
    assert dict(zip(found["itemset"], found["support"].round(6), strict=True)) == {
        k: round(v, 6) for k, v in expected.items()
    }


def test_split_statistics_against_the_true_table() -> None:
    rng = np.random.default_rng(1)
    weather, wind = rng.integers(0, 3, 60_000), rng.integers(0, 2, 60_000)
    play = (weather == 0) & (rng.random(60_000) < 0.9) | (wind == 1) & (rng.random(60_000) < 0.2)
    rows = np.stack([weather, wind, play], axis=1).astype(int)
    exact = split_statistics(rows, GammaDiagonal((3, 2, 2), 1e12), target=2, names=["weather", "wind", "play"])
    assert exact["attribute"].tolist() == ["weather", "wind"]
    assert exact["gain"][0] == pytest.approx(_gain(weather, play), abs=1e-6)
    for matrix in (
        GammaDiagonal((3, 2, 2), 19),
        Product([GammaDiagonal(3, 5), GammaDiagonal(2, 5), GammaDiagonal(2, 5)]),
    ):
        found = split_statistics(matrix.randomize(rows, seed=2), matrix, target=2, names=["weather", "wind", "play"])
        assert found["attribute"].tolist() == ["weather", "wind"]
        for mine, true in zip(found.itertuples(), exact.itertuples(), strict=True):
            assert abs(mine.gain - true.gain) < 4.5 * mine.gain_std
            assert abs(mine.gini - true.gini) < 4.5 * mine.gini_std
        node = split_statistics(matrix.randomize(rows, seed=2), matrix, target=2, given={0: 0})
        assert node["records"][0] == pytest.approx(float((weather == 0).sum()), rel=0.05)


def test_split_standard_errors_against_simulation() -> None:
    table = np.array([[400, 100], [150, 350]])
    matrix = GammaDiagonal((2, 2), 9)
    rows = np.repeat(np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), table.ravel(), axis=0)
    found = pd.concat([split_statistics(matrix.randomize(rows, seed=s), matrix, target=1) for s in range(300)])
    assert found["gain_std"].mean() == pytest.approx(found["gain"].std(), rel=0.15)
    assert found["gini_std"].mean() == pytest.approx(found["gini"].std(), rel=0.15)


def _gain(a: np.ndarray, c: np.ndarray) -> float:
    def entropy(v: np.ndarray) -> float:
        p = np.bincount(v.astype(int)) / v.size
        return float(-(p[p > 0] * np.log2(p[p > 0])).sum())

    return entropy(c) - sum((a == k).mean() * entropy(c[a == k]) for k in np.unique(a))


def test_mining_errors() -> None:
    matrix = GammaDiagonal((2, 2, 2), 19)
    with pytest.raises(InputError, match="min_support"):
        frequent_itemsets(baskets(), matrix, min_support=0)
    with pytest.raises(InputError, match="one row per record"):
        frequent_itemsets(np.empty((0, 3), dtype=int), matrix, min_support=0.1)
    with pytest.raises(InputError, match="3 names"):
        frequent_itemsets(baskets(), matrix, min_support=0.1, names=["a"])
    for options in (
        {"target": 5},
        {"target": 0, "attributes": [0]},
        {"target": 0, "given": {0: 1}},
        {"target": 0, "attributes": []},
    ):
        with pytest.raises(InputError, match="different attributes"):
            split_statistics(baskets(), matrix, **options)
    assert joint_estimate(baskets(), matrix, [0, 2]).x.shape == (2, 2)


# -- tables ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("joint", [True, False])
def test_table_estimates_add_up_and_have_exact_errors(joint: bool) -> None:
    rng = np.random.default_rng(0)
    region = tp.Hierarchy.from_tree({"N": ["n1", "n2", "n3"], "S": ["s1", "s2"]})
    leaves = [region.codes[i] for i in region.leaves]
    cells = pd.DataFrame(
        [(r, k, float(rng.integers(0, 60))) for r in leaves for k in "abcd"], columns=["region", "kind", "v"]
    )
    table = tp.Table.from_frame(cells, by={"region": region, "kind": list("abcd")}, value="v")
    matrix = GammaDiagonal((5, 4), 30) if joint else Product([GammaDiagonal(5, 8), GammaDiagonal(4, 8)])
    x = cells["v"].to_numpy()
    found = estimate_table(table, simulate_counts(matrix, x, seed=1)[0], matrix)
    assert found.values.min() >= 0
    np.testing.assert_allclose(table.relations @ found.values, 0, atol=1e-6)
    total = table.values.argmax()
    assert found.values[total] == pytest.approx(x.sum())
    assert found.std[total] == pytest.approx(0, abs=1e-6)
    assert found.to_table().n_cells == table.n_cells
    assert "cells" in found.summary()
    exact = estimate_table(table, matrix.apply(x), matrix)
    np.testing.assert_allclose(exact.values, table.values, atol=1e-6)
    raw = np.stack([estimate_table(table, y, matrix).unbiased for y in simulate_counts(matrix, x, size=300, seed=2)])
    np.testing.assert_allclose(raw.std(axis=0), exact.std, rtol=0.25, atol=1e-6)
    np.testing.assert_allclose(raw.mean(axis=0), table.values, atol=5 * exact.std.max() / np.sqrt(300))
    with pytest.raises(InputError, match="leaves"):
        estimate_table(table, np.ones(4), GammaDiagonal((2, 2), 3))


# -- studies -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", study.STUDIES)
def test_studies_run_and_draw(name: str) -> None:
    done = study.run(name, quick=True, seed=1)
    assert len(done.frame) > 0
    assert not done.frame.isna().any().any()
    figure = done.figure()
    assert isinstance(figure, Figure)
    assert all(axes.lines for axes in figure.axes)
    assert done.title in done.summary()


def test_findings_of_the_source() -> None:
    spread = (
        study.distributions(quick=True).frame.groupby("distribution")[["original", "perturbed", "reconstructed"]].std()
    )
    assert spread.loc["normal", "perturbed"] < 0.4 * spread.loc["normal", "original"]
    assert spread.loc["uniform", "reconstructed"] > spread.loc["uniform", "perturbed"]
    errors = study.estimation_errors(quick=True).frame
    for estimator in errors["estimator"].unique():
        part = errors[(errors["distribution"] == "normal") & (errors["estimator"] == estimator)]
        assert part[part["varied"] == "gamma"]["error1"].is_monotonic_decreasing
        assert part[part["varied"] == "n"]["error1"].is_monotonic_increasing
    share = study.changed(quick=True).frame
    assert all(part["observed"].is_monotonic_decreasing for _, part in share.groupby("n"))
    with pytest.raises(InputError, match="unknown study"):
        study.run("nothing")
    with pytest.raises(InputError, match="unknown distribution"):
        study.population("odd", 5, 10)
