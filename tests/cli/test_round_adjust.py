"""The commands round, adjust and compare: outputs, JSON, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import tabprotect as tp
from tabprotect.cli.main import run


@pytest.fixture
def cells(tmp_path: Path) -> Path:
    table = tp.examples.d272()
    frame = table.cells[["size", "industry", "value"]]
    inner = frame[(frame["size"] != "Total") & (frame["industry"] != "D272")]
    path = tmp_path / "cells.csv"
    inner.to_csv(path, index=False)
    return path


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr("sys.argv", ["tabprotect", *map(str, arguments)])
    with pytest.raises(SystemExit) as left:
        run()
    return int(left.value.code or 0)


def test_round_writes_an_additive_table(cells: Path, tmp_path: Path, monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    out = tmp_path / "rounded.csv"
    code = call(
        monkeypatch, "round", cells, "--by", "size,industry", "--value", "value", "--base", 5, "--out", out, "--json"
    )
    assert code == 0
    told = json.loads(capsys.readouterr().out)
    assert told["objective"] == 50
    assert told["additivity"]["broken"] == 0
    frame = pd.read_csv(out)
    assert (frame["value"] % 5 == 0).all()
    inner = frame[(frame["size"] != "Total") & (frame["industry"] != "Total")]
    assert inner["value"].sum() == frame["value"].max()


def test_round_text_and_wrong_base(cells: Path, monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    assert call(monkeypatch, "round", cells, "--by", "size,industry", "--value", "value", "--method", "nearest") == 0
    assert "sums no longer hold" in capsys.readouterr().out
    assert call(monkeypatch, "round", cells, "--by", "size,industry", "--value", "value", "--base", -1) == 2


def test_adjust_and_its_exit_codes(cells: Path, tmp_path: Path, monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    out = tmp_path / "adjusted.csv"
    table = [cells, "--by", "size,industry", "--value", "value"]
    assert call(monkeypatch, "adjust", *table) == 2  # no rule
    capsys.readouterr()
    jj = tmp_path / "t.jj"
    marked = tp.Table.from_relations([30.0, 10, 20], [[-1, 1, 1]]).with_status([1], "u").with_levels([1], 5, 5)
    tp.write_jj(marked.with_bounds(ub=100.0), jj)
    assert call(monkeypatch, "adjust", jj, "--json", "--out", out) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["up"] + told["down"] == 1
    assert abs(pd.read_csv(out)["value"][1] - 10) >= 5
    tp.write_jj(marked.with_bounds(lb=[30, 9, 0], ub=[30, 11, 100]), jj)
    assert call(monkeypatch, "adjust", jj) == 1
    assert call(monkeypatch, "adjust", jj, "--totals", "some") == 2


def test_compare_prints_one_line_per_method(tmp_path: Path, monkeypatch, capsys) -> None:  # type: ignore[no-untyped-def]
    jj = tmp_path / "t.jj"
    table = tp.Table.from_relations([60.0, 10, 20, 30], [[-1, 1, 1, 1]], ub=[200.0] * 4)
    tp.write_jj(table.with_status([1], "u").with_levels([1], 2, 2), jj)
    plot = tmp_path / "risk.svg"
    code = call(
        monkeypatch, "compare", jj, "--base", 10, "--methods", "suppress,round,adjust", "--plot", plot, "--json"
    )
    assert code == 0
    rows = json.loads(capsys.readouterr().out)["results"]
    assert [r["result"] for r in rows] == ["suppress", "round", "adjust"]
    assert plot.exists()
    assert call(monkeypatch, "compare", jj, "--methods", "magic") == 2
