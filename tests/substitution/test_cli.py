"""The command line: randomize, reconstruct, plan, study."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from tabprotect.cli.substitute import app

RUN = CliRunner()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"id": range(3000), "sex": rng.choice(["m", "f"], 3000), "region": rng.choice(["01", "02"], 3000)}
    )
    frame.to_csv(tmp_path / "data.csv", index=False)
    return tmp_path / "data.csv"


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_round_trip(data: Path, suffix: str) -> None:
    out, scheme = data.with_name(f"out.{suffix}"), data.with_name("scheme.json")
    args = [
        "randomize",
        str(data),
        "-o",
        str(out),
        "-c",
        "sex",
        "--domain",
        "region=01,02",
        "--rho1",
        "0.05",
        "--rho2",
        "0.5",
    ]
    done = RUN.invoke(app, [*args, "--save-scheme", str(scheme), "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told["secure"] is True
    assert told["gamma"] == pytest.approx(19)
    released = pd.read_csv(out, dtype=str) if suffix == "csv" else pd.read_parquet(out)
    original = pd.read_csv(data, dtype=str)
    assert (released["id"] == original["id"]).all()
    assert 0 < (released["region"] != original["region"]).mean() < 0.3
    found = RUN.invoke(app, ["reconstruct", str(out), "--scheme", str(scheme), "--method", "ml", "--json"])
    rows = json.loads(found.stdout)["rows"]
    assert sum(row["estimate"] for row in rows) == pytest.approx(3000)
    text = RUN.invoke(app, ["reconstruct", str(out), "--scheme", str(scheme), "--by", "region", "--interval", "exact"])
    assert text.exit_code == 0
    assert "02" in text.stdout
    file = data.with_name(f"estimates.{suffix}")
    assert RUN.invoke(app, ["reconstruct", str(out), "--scheme", str(scheme), "-o", str(file)]).exit_code == 0
    assert len(pd.read_csv(file) if suffix == "csv" else pd.read_parquet(file)) == 4
    again = RUN.invoke(app, ["randomize", str(data), "-o", str(out), "--scheme", str(scheme), "--seed", "1"])
    assert "for studies only" in again.stdout


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["-c", "sex"], "--gamma"),
        (["--gamma", "3"], "--column"),
        (["-c", "age", "--gamma", "3"], "no column 'age'"),
        (["-c", "sex", "--gamma", "1"], "gamma"),
        (["-c", "sex", "--rho1", "0.1"], "belong together"),
        (["-c", "sex", "--gamma", "3", "--epsilon", "1"], "one of gamma"),
        (["-c", "sex", "--domain", "region", "--gamma", "3"], "name=a,b,c"),
        (["--domain", "region=01", "-c", "sex", "--gamma", "3"], "not in the domain"),
        (["--scheme", "nowhere.json"], "cannot be read"),
        (["--scheme", "nowhere.json", "--gamma", "3"], "give it alone"),
    ],
)
def test_bad_input_exits_with_2_and_writes_nothing(data: Path, extra: list[str], message: str) -> None:
    out = data.with_name("out.csv")
    done = RUN.invoke(app, ["randomize", str(data), "-o", str(out), *extra])
    assert done.exit_code == 2
    assert message in " ".join(done.output.split())
    assert not out.exists()


def test_plan() -> None:
    found = json.loads(RUN.invoke(app, ["plan", "-n", "50", "--records", "100000", "--gamma", "2", "--json"]).stdout)
    assert found["error"] == pytest.approx(1.1287, abs=5e-5)
    text = RUN.invoke(app, ["plan", "-n", "5", "-n", "4", "--error", "0.1", "--epsilon", "2"])
    assert "5 x 4 values" in text.stdout
    assert RUN.invoke(app, ["plan", "-n", "50"]).exit_code == 2


def test_study(tmp_path: Path) -> None:
    done = RUN.invoke(app, ["study", "posteriors", "-o", str(tmp_path / "s")])
    assert done.exit_code == 0
    assert sorted(p.name for p in (tmp_path / "s").iterdir()) == ["posteriors.csv", "posteriors.png"]
    told = json.loads(RUN.invoke(app, ["study", "posteriors", "--json"]).stdout)
    assert round(told["posteriors"][4]["rho1=5%"], 6) == 0.5
    assert RUN.invoke(app, ["study", "nothing"]).exit_code == 2
