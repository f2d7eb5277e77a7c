"""The command ``tabprotect tabulate``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tabprotect as tp


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    n = 80
    frame = pd.DataFrame(
        {
            "region": rng.choice(["N1", "N2", "S1"], n),
            "nace": rng.choice(["011", "012", "110"], n),
            "firm": [f"f{i}" for i in rng.integers(0, 30, n)],
            "turnover": rng.integers(1, 1000, n),
        }
    )
    frame.to_parquet(tmp_path / "data.parquet")
    frame.to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "nuts.hrc").write_text("N\n@N1\n@N2\nS\n@S1\n")
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from tabprotect.cli.main import run; run()", "tabulate", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_the_file_holds_the_table(folder: Path, ending: str) -> None:
    options = ["--by", "region=nuts.hrc", "--by", "nace=1-2", "--value", "turnover", "--contributor", "firm"]
    done = run(folder, f"data.{ending}", *options, "--rule", "p%(10)|freq(3)", "--out", f"cells.{ending}", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    table = tp.read_cells(folder / f"cells.{ending}")
    same = tp.tabulate(
        folder / "data.parquet",
        by={"region": folder / "nuts.hrc", "nace": tp.Hierarchy.from_digits([1, 2])},
        value="turnover",
        contributor="firm",
    ).mark(tp.rules.PPercent(10) | tp.rules.Threshold(2))
    assert facts["cells"] == table.n_cells == 6 * 6
    assert facts["dimensions"] == {"region": 6, "nace": 6}
    assert facts["primary"] == int(same.primary.sum())
    np.testing.assert_array_equal(table.values, same.values)
    np.testing.assert_array_equal(table.status, same.status)
    np.testing.assert_array_equal(table.contributions.top, same.contributions.top)


def test_words_for_people(folder: Path) -> None:
    done = run(folder, "data.csv", "--by", "region,nace")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("region (4) × nace (4): 16 cells")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["none.csv", "--by", "region"], "no such file"),
        (["data.csv", "--by", "nowhere"], "no column 'nowhere'"),
        (["data.csv", "--by", "region=data.csv"], "codes of 'region' that are not in its hierarchy"),
        (["data.csv", "--by", "region", "--value", "firm"], "must be numeric"),
        (["data.csv", "--by", "region", "--out", "cells.docx"], "cells.docx"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(folder: Path, words: list[str], expected: str) -> None:
    done = run(folder, *words)
    assert done.returncode == 2
    assert expected in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
