"""``tabprotect dp``: what it prints, writes and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner, Result

from tabprotect.cli.dp import app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("men.csv").write_text("age,n\nyoung,1200\nmid,3000\nold,800\n")
    Path("women.csv").write_text("age,n\nyoung,1210\nmid,2950\nold,850\n")
    Path("other.csv").write_text("age,n\nyoung,3000\nmid,900\nold,900\n")
    Path("cells.csv").write_text("region,sex,n\na,m,30\na,f,50\nb,m,80\nb,f,90\n")
    return tmp_path


def run(*args: str) -> Result:
    return CliRunner().invoke(app, list(args))


def test_release_and_test(folder: Path) -> None:
    for name in ("men", "women", "other"):
        done = run("release", f"{name}.csv", "--count", "n", "-e", "0.5", "--out", f"{name}.json")
        assert done.exit_code == 0, done.output
        assert "ε = 0.5" in done.output
    data = json.loads(Path("men.json").read_text())
    assert data["labels"] == ["young", "mid", "old"]
    assert data["proved_epsilon"] <= 0.5
    same = json.loads(run("test", "men.json", "women.json", "--seed", "1", "--json").output)
    assert same["p_value"] > 0.001
    different = json.loads(run("test", "men.json", "women.json", "other.json", "--seed", "1", "--json").output)
    assert different["p_value"] == 0
    assert "P-value" in run("test", "men.json", "other.json").output


def test_csv_with_epsilons_and_goodness_of_fit(folder: Path) -> None:
    run("release", "men.csv", "--count", "n", "-e", "1", "--law", "laplace", "--out", "x.csv")
    assert pd.read_csv("x.csv").columns.tolist() == ["class", "value"]
    found = json.loads(run("test", "x.csv", "x.csv", "-e", "1", "--json", "--seed", "0").output)
    assert found["p_value"] == 1.0
    assert [n["scale"] for n in found["noise"]] == [2.0, 2.0]
    unequal = json.loads(run("test", "x.csv", "x.csv", "-e", "1", "-e", "0.5", "--json", "--seed", "0").output)
    assert [n["scale"] for n in unequal["noise"]] == [2.0, 4.0]
    Path("p.csv").write_text("class,p\nyoung,0.24\nmid,0.6\nold,0.16\n")
    fit = json.loads(run("test", "x.csv", "-e", "1", "--against", "p.csv", "--json", "--seed", "0").output)
    assert fit["p_value"] > 0.001


def test_table(folder: Path) -> None:
    done = run("release", "cells.csv", "--by", "region,sex", "--value", "n", "-e", "2", "--out", "t.csv", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.output)["levels"][0]["level"] == "0.0"
    frame = pd.read_csv("t.csv")
    assert len(frame) == 9
    inner = frame[(frame["region"] != "Total") & (frame["sex"] != "Total")]
    assert inner["value"].sum() == frame["value"].iloc[0]
    run("release", "cells.csv", "--by", "region,sex", "--value", "n", "-e", "2", "--out", "t.json")
    assert len(json.loads(Path("t.json").read_text())["values"]) == 9


def test_budget_file_refuses(folder: Path) -> None:
    assert run("budget", "b.json", "-e", "1").exit_code == 0
    assert run("release", "men.csv", "--count", "n", "-e", "0.7", "--budget", "b.json").exit_code == 0
    refused = run("release", "men.csv", "--count", "n", "-e", "0.7", "--budget", "b.json", "--out", "no.json")
    assert refused.exit_code == 1
    assert not Path("no.json").exists()
    left = json.loads(run("budget", "b.json", "--json").output)
    assert left["left"][0] == pytest.approx(0.3)
    assert left["releases"] == 1
    assert "0.7" in run("budget", "b.json").output
    assert run("budget", "b.json", "-e", "5").exit_code == 2  # a new budget would forget
    Path("bad.json").write_text("{}")
    assert run("budget", "bad.json").exit_code == 2


@pytest.mark.parametrize(
    "args",
    [
        ("release", "men.csv", "-e", "1"),
        ("release", "men.csv", "-e", "1", "--count", "x"),
        ("release", "nothing.csv", "-e", "1", "--count", "n"),
        ("release", "men.csv", "-e", "0", "--count", "n"),
        ("release", "men.csv", "-e", "1", "--count", "n", "--budget", "none.json"),
        ("release", "men.csv", "-e", "1", "--count", "n", "--by", "age"),
        ("test", "men.csv", "women.csv", "--column", "n"),
        ("test", "nothing.json", "men.csv"),
        ("test", "men.csv", "women.csv", "--column", "n", "-e", "1", "--against", "p.csv"),
        ("study", "everything"),
    ],
)
def test_bad_input(folder: Path, args: tuple[str, ...]) -> None:
    assert run(*args).exit_code == 2


def test_study(folder: Path) -> None:
    done = run("study", "null", "--quick", "--repetitions", "20", "--out", "s", "--report", "s.html", "--json")
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.output)["studies"]["null"]["rows"]) == 12
    assert Path("s/null.csv").exists()
    assert "<img" in Path("s.html").read_text()
    text = run("study", "unequal", "--quick", "--repetitions", "2").output
    assert "unequal" in text


def test_workers_give_the_same_answer(folder: Path) -> None:
    """As a user calls it: one process, and two of them."""
    import subprocess
    import sys

    def rows(workers: int) -> object:
        words = ["dp", "study", "unequal", "--quick", "--repetitions", "2", "--workers", str(workers), "--json"]
        done = subprocess.run([sys.executable, "-m", "tabprotect", *words], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["studies"]["unequal"]["rows"]

    assert rows(1) == rows(2)


def test_reports(folder: Path) -> None:
    done = run("release", "men.csv", "--count", "n", "-e", "1", "--out", "m.json", "--report", "m.html")
    assert done.exit_code == 0, done.output
    assert "wrote m.html" in done.output
    assert "ε = 1" in Path("m.html").read_text()
    tested = run("test", "m.json", "m.json", "--report", "t.html", "--seed", "1")
    assert tested.exit_code == 0, tested.output
    assert "Test of noisy histograms" in Path("t.html").read_text()
