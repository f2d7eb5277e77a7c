"""The command line as a user calls it: files in, files out, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tabprotect as tp


def call(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tabprotect", *map(str, words)], capture_output=True, text=True, cwd=cwd, check=False
    )


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    table = tp.examples.d272()
    inner = table.cells[(table.codes > 0).all(axis=1)][["size", "industry", "value"]].rename(columns={"value": "n"})
    inner.assign(n=inner.n.astype(int)).to_csv(tmp_path / "cells.csv", index=False)
    return tmp_path / "cells.csv"


def test_help_lists_all_commands_without_loading_them() -> None:
    code = "import sys; sys.argv = ['tabprotect', '--help']\nfrom tabprotect.cli.main import app\ntry:\n    app()\nexcept SystemExit: pass\nprint([m for m in ('numba', 'highspy', 'pandas', 'ortools') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for command in (
        "protect",
        "attack",
        "verify",
        "round",
        "adjust",
        "risk",
        "dp",
        "substitute",
        "solve",
        "bench",
        "reproduce",
    ):
        assert command in done.stdout
    assert done.stdout.strip().endswith("[]")


def test_demo_writes_publication_report_and_certificate(tmp_path: Path) -> None:
    done = call("demo", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 recovered exactly" in done.stdout
    assert "SAFE" in done.stdout
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"published.csv", "report.html", "certificate.json"}


def test_protect_attack_verify(cells: Path, tmp_path: Path) -> None:
    done = call(
        "protect", cells, "--by", "size", "--by", "industry", "--freq", "n", "--rule", "threshold(2)", "--out", tmp_path / "p.csv",
        "--report", tmp_path / "r.html", "--certificate", tmp_path / "c.json", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert outcome["objective"] == 40
    assert outcome["status"] == "optimal"
    published = pd.read_csv(tmp_path / "p.csv", dtype=str)
    assert (published["value"] == "x").sum() == 10
    checked = call("verify", tmp_path / "c.json", "--json")
    assert checked.returncode == 0
    assert json.loads(checked.stdout)["ok"]
    attacked = call("attack", tmp_path / "p.csv", "--by", "size", "--by", "industry", "--json")
    assert attacked.returncode == 0, attacked.stderr
    assert json.loads(attacked.stdout)["hidden"] == 10
    leaky = published.copy()
    leaky.loc[leaky.index[leaky["value"] == "x"][1:], "value"] = "1"
    again = call(
        "protect",
        cells,
        "--by",
        "size,industry",
        "--freq",
        "n",
        "--rule",
        "threshold(2)",
        "--previous",
        tmp_path / "p.csv",
        "--json",
    )
    assert json.loads(again.stdout)["suppressed"] == outcome["suppressed"]


def test_exit_codes(cells: Path, tmp_path: Path) -> None:
    missing = call("protect", tmp_path / "nothing.csv", "--by", "a")
    assert missing.returncode == 2
    assert "no such file" in missing.stderr
    assert "Traceback" not in missing.stderr
    no_rule = call("protect", cells, "--by", "size", "--by", "industry", "--freq", "n")
    assert no_rule.returncode == 2
    assert "--rule" in no_rule.stderr
    baseline = call(
        "protect",
        cells,
        "--by",
        "size",
        "--by",
        "industry",
        "--freq",
        "n",
        "--rule",
        "threshold(2)",
        "--method",
        "none",
    )
    assert baseline.returncode == 1
    pd.DataFrame({"a": ["Total", "x", "y"], "value": ["5", "", "3"]}).to_csv(tmp_path / "leak.csv", index=False)
    assert call("attack", tmp_path / "leak.csv", "--by", "a").returncode == 1
    text = (tmp_path / "leak.csv").read_text()
    (tmp_path / "c.json").write_text(text)
    assert call("verify", tmp_path / "c.json").returncode == 2
    assert call("--version").stdout.strip() == f"tabprotect {tp.__version__}"


@pytest.mark.parametrize("command", ["protect", "round", "adjust"])
def test_files_with_true_values_are_not_written_as_published(command: str, cells: Path, tmp_path: Path) -> None:
    more = ["--base", "3"] if command == "round" else []
    words = ["--by", "size", "--by", "industry", "--value", "n", "--freq", "n", "--rule", "threshold(2)", *more]
    done = call(command, cells, *words, "--out", tmp_path / "published.jj")
    assert done.returncode == 2
    assert "true values" in done.stderr
    assert not (tmp_path / "published.jj").exists()


def test_solve_is_a_back_end_for_jj_files(tmp_path: Path) -> None:
    table = tp.examples.d272().mark(tp.rules.Threshold(2))
    tp.write_jj(table, tmp_path / "in.jj")
    done = call("solve", tmp_path / "in.jj", tmp_path / "out.jj", "--json")
    assert done.returncode == 0, done.stderr
    back = tp.read_jj(tmp_path / "out.jj")
    assert (back.status == "m").sum() == 6
    assert np.array_equal(back.primary, table.primary)
    assert call("attack", tmp_path / "out.jj").returncode == 0
    assert call("attack", tmp_path / "in.jj", "--verdict").returncode == 1


def test_bench_lists_runs_and_compares(tmp_path: Path) -> None:
    assert "cube3d" in call("bench", "list").stdout
    out = tmp_path / "r.json"
    done = call("bench", "cube3d", "--sizes", "3,3,3", "--time-limit", 5, "--out", out, "--plots", tmp_path / "plots")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "plots" / "profile.svg").exists()
    compared = call("bench", "--compare", out, "--compare", out)
    assert compared.returncode == 0, compared.stderr
    assert "time ratio" in compared.stdout
    assert call("bench").returncode == 2


def test_reports_of_all_table_commands(cells: Path, tmp_path: Path) -> None:
    table = [cells, "--by", "size,industry", "--freq", "n", "--rule", "threshold(2)"]
    for name, words in {
        "plain": ["protect", *table],
        "inside": ["protect", *table, "--confidential"],
        "round": ["round", *table],
        "adjust": ["adjust", *table],
        "compare": ["compare", *table],
    }.items():
        done = call(*words, "--report", tmp_path / f"{name}.html")
        assert done.returncode == 0, done.stderr
        assert f"{name}.html" in done.stdout.replace("\n", "")
    pages = {p.stem: p.read_text() for p in tmp_path.glob("*.html")}
    assert "CONFIDENTIAL" in pages["inside"]
    assert "true value 2" in pages["inside"]
    assert "true value" not in pages["plain"]
    assert "protected by rounding" in pages["round"]
    assert "controlled tabular adjustment" in pages["adjust"]
    assert "<svg" in pages["compare"]


def test_explanations_are_part_of_the_json(cells: Path) -> None:
    words = ["protect", cells, "--by", "size,industry", "--freq", "n", "--rule", "threshold(2)", "--explain"]
    outcome = json.loads(call(*words, "--json").stdout)
    assert len(outcome["explain"]) == outcome["secondary"] == 6
    assert "proved safe" in call(*words).stdout
