"""The studies' claims on a slice, the command line, and the report."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import tabprotect as tp
from tabprotect.cli.risk import app
from tabprotect.errors import InputError
from tabprotect.microdata.report import html_report
from tabprotect.microdata.synthetic import NOMINAL, NUMERIC, QUASI, accounts, households
from tabprotect.microdata.theta_study import _draw, _setting

md = tp.microdata
study = tp.microdata.study


def test_populations_have_the_sources_shape() -> None:
    df = households()
    assert len(df) == 10_667
    assert (df["age"].min(), df["age"].max()) == (16, 90)
    assert 17 not in set(df["age"])
    assert set(df["size"]) <= set(range(1, 10))
    assert set(df["education"]) == set(range(8))
    assert households().equals(df)
    assert accounts(50).columns.tolist() == [*QUASI, *NOMINAL, *NUMERIC]
    assert (len(QUASI), len(NOMINAL), len(NUMERIC)) == (6, 7, 11)


def test_theta_claims_on_a_slice() -> None:
    found = study.theta_study(samples=150, seed=1)
    assert len(found.table) == 36
    assert all(found.claims().values()), found.claims()
    histogram = found.histogram()
    assert (histogram.iloc[:-2].sum() == 150).all()
    assert len(found.figure().axes) == 2


def test_study_computes_what_risk_computes() -> None:
    people = households(900, seed=3)
    classes = md.risk(people, keys=["sex", "size"]).records["class"].to_numpy()
    values = {c: people[c].to_numpy().astype(float) for c in ("education", "income")}
    found = _setting(("raw", 0.1, classes, values, 3e5, 5, (0, 1)))
    chosen = _draw(np.random.default_rng((0, 1)).random((5, 900), dtype=np.float32), 90)
    assert (chosen.sum(axis=1) == 90).all()
    for i in range(5):
        part = people[chosen[i]]
        options = {"keys": ["sex", "size"], "population": people}
        one = md.risk(part, sensitive="education", **options)
        two = md.risk(part, sensitive="income", tolerance=3e5, **options)
        want = [one.theta1, one.theta1_hat, one.theta2, one.theta2_hat, two.theta3, two.theta3_hat]
        names = ["theta1", "theta1_hat", "theta2", "theta2_hat", "theta3", "theta3_hat"]
        assert [found[n][i] for n in names] == pytest.approx(want)


def test_anonymity_claims_on_a_slice() -> None:
    found = study.anonymity_study(quick=True)
    assert all(found.claims().values()), found.claims()
    assert set(found.table["convention"]) == {"printed", "normalised"}
    assert len(found.figure().axes) == 6


def test_studies_refuse_nonsense() -> None:
    with pytest.raises(InputError):
        study.theta_study(samples=1)
    with pytest.raises(InputError):
        study.anonymity_study(ks=[2])


# ---------------------------------------------------------------------------------------------------- command line


@pytest.fixture
def file(tmp_path: Path) -> Path:
    households(600, seed=2).to_parquet(tmp_path / "people.parquet")
    return tmp_path / "people.parquet"


def run(*args: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(a) for a in args])
    assert result.exit_code == code, (result.output, result.exception)
    return result.stdout


def test_measure_is_the_default(file: Path) -> None:
    options = ["--keys", "sex,age", "--sensitive", "income", "--fraction", 0.1, "--tolerance", 300000]
    short = run(file, *options, "--json")
    assert json.loads(short) == json.loads(run("measure", file, *options, "--json"))
    found = md.risk(file, keys=["sex", "age"], sensitive="income", fraction=0.1, tolerance=300000)
    assert json.loads(short)["theta3_hat"] == pytest.approx(found.theta3_hat)
    assert "uniques" in run(file, *options, "--key-sets", 2)


def test_requirements_set_the_exit_code(file: Path) -> None:
    run(file, "--keys", "sex", "--require-k", 5)
    run(file, "--keys", "sex,age", "--require-k", 5, code=1)
    run(file, "--keys", "sex,age", "--sensitive", "income", "--require-t", 0.01, code=1)
    run(file, "--keys", "sex,age", "--sensitive", "income", "--require-l", 10, code=1)


def test_protect_report_and_apply(file: Path, tmp_path: Path) -> None:
    out, recipe, page = tmp_path / "out.csv", tmp_path / "recipe.json", tmp_path / "report.html"
    levels = ["--levels", "age=5,10,20", "--levels", "size=2,4"]
    shown = run(
        "protect",
        file,
        out,
        "--keys",
        "sex,age,size",
        "--k",
        4,
        *levels,
        "--recipe",
        recipe,
        "--report",
        page,
        "--json",
    )
    assert json.loads(shown)["after"]["k"] >= 4
    assert md.risk(out, keys=["sex", "age", "size"]).k >= 4
    run("apply", file, tmp_path / "again.csv", "--recipe", recipe)
    assert (tmp_path / "again.csv").read_text() == out.read_text()
    text = page.read_text()
    assert "What was done" in text
    assert "Risk against loss" in text


def test_microaggregated_keys(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.parquet"
    run("protect", file, out, "--keys", "age,size", "--k", 5, "--microaggregate")
    assert md.risk(out, keys=["age", "size"]).k >= 5
    page = tmp_path / "report.html"
    shown = json.loads(run(file, "--keys", "age,size", "--released", out, "--require-k", 5, "--report", page, "--json"))
    assert shown["k"] < 5 <= shown["released"]["k"]
    assert 0 < shown["dissimilarity"]["RTab"] < 1
    assert "before and after" in page.read_text()


def test_levels_from_a_file(file: Path, tmp_path: Path) -> None:
    table = pd.DataFrame({"size": range(1, 10), "few": ["1-2"] * 2 + ["3+"] * 7})
    table.to_csv(tmp_path / "levels.csv", index=False)
    run(
        "protect", file, tmp_path / "o.csv", "--keys", "size", "--k", 100, "--levels", f"size={tmp_path / 'levels.csv'}"
    )
    assert set(pd.read_csv(tmp_path / "o.csv")["size"]) <= {"1-2", "3+"}


def test_bad_input_is_an_input_error(file: Path) -> None:
    result = CliRunner().invoke(app, ["none.csv", "--keys", "a"])
    assert isinstance(result.exception, InputError)
    result = CliRunner().invoke(app, ["protect", str(file), "o.csv", "--keys", "sex", "--levels", "zip=3"])
    assert isinstance(result.exception, InputError)
    result = CliRunner().invoke(app, ["study", "nothing"])
    assert isinstance(result.exception, InputError)


def test_study_command_writes_table_and_figure(tmp_path: Path) -> None:
    shown = run("study", "anonymity", "--quick", "--records", 2000, "--out", tmp_path, "--seed", 2017)
    assert "holds" in shown
    assert len(pd.read_csv(tmp_path / "anonymity.csv")) == 12
    assert (tmp_path / "anonymity.svg").read_text().startswith("<?xml")


# ---------------------------------------------------------------------------------------------------------- report


def test_report_is_one_accessible_page_without_values() -> None:
    df = households(300, seed=2).assign(name=lambda d: "Person" + d.index.astype(str))
    before = md.risk(df, keys=["name", "age"], sensitive="income")
    done = md.generalize(df, hierarchies={"name": [], "age": [10, 20]}, k=3)
    after = md.risk(done.data, keys=["name", "age"], sensitive="income")
    sets = md.key_sets(df, keys=["name", "age"], max_size=2)
    page = html_report(
        before, after, recipe=done.recipe, distance=md.dissimilarity(df, done), keys=sets, title="<Risk>"
    )
    assert "Person" not in page
    assert "&lt;Risk&gt;" in page
    assert not re.findall(r"(?:src|href)=\"(?!#)[^\"]", page)
    assert page.count('role="img"') == page.count("<svg")
    for picture in re.findall(r"<svg.*?</svg>", page, flags=re.S):
        ElementTree.fromstring(picture)


def test_trade_off_runs_from_no_protection_to_much() -> None:
    df = households(400, seed=2)
    table = md.trade_off(df, keys=["age", "size"], hierarchies={"age": [5, 10], "size": [2, 4]}, ks=[2, 10])
    assert table["method"].tolist()[0] == "as it is"
    for _, part in table.groupby("method"):
        assert part["match risk"].is_monotonic_decreasing
        assert (part["k reached"] >= part["k"]).all()
