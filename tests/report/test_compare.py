"""Risk and utility side by side."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tabprotect as tp
from tabprotect.errors import InputError


@pytest.fixture(scope="module")
def results() -> tuple[tp.Table, dict[str, tp.Protected]]:
    table = tp.examples.d272().mark(tp.rules.Threshold(2))
    return table, {
        "ccs": tp.suppress(table),
        "round": tp.round(table, base=5),
        "none": tp.round(table, base=1, audit="report"),
        "cta": tp.adjust(table),
    }


def test_measures(results: tuple[tp.Table, dict[str, tp.Protected]]) -> None:
    table, made = results
    found = tp.compare(table, made).table
    assert list(found.index) == ["ccs", "round", "none", "cta"]
    ccs, rounded, none, cta = (found.loc[name] for name in found.index)
    assert ccs["hidden"] == made["ccs"].suppressed.sum()
    hidden = np.abs(table.values)[made["ccs"].suppressed].sum()
    assert ccs["kept"] == pytest.approx(1 - hidden / table.values.sum())
    assert ccs["changed"] == 0
    assert ccs["exposed"] == 0
    assert rounded["largest_change"] < 5
    assert rounded["changed"] == (made["round"].values != table.values).sum()
    assert (none["kept"], none["recovered"], none["width"]) == (1.0, 4, 0.0)
    assert cta["largest_change"] == made["cta"].info["largest_change"]
    assert (found["kept"] <= 1).all()


def test_plot_is_written_in_one_piece(results: tuple[tp.Table, dict[str, tp.Protected]], tmp_path: Path) -> None:
    table, made = results
    tp.compare(table, made, path=tmp_path / "risk.svg")
    assert "<svg" in (tmp_path / "risk.svg").read_text()
    tp.compare(table, {"round": made["round"]}, path=tmp_path / "risk.png")
    assert (tmp_path / "risk.png").read_bytes()[:4] == b"\x89PNG"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["risk.png", "risk.svg"]


def test_results_of_another_table_are_refused(results: tuple[tp.Table, dict[str, tp.Protected]]) -> None:
    table, made = results
    with pytest.raises(InputError, match="another table"):
        tp.compare(tp.Table.from_relations([3.0, 1, 2], [[-1, 1, 1]]), made)
    with pytest.raises(InputError, match="nothing to compare"):
        tp.compare(table, {})


def test_text_shows_no_true_value_of_hidden_cells(results: tuple[tp.Table, dict[str, tp.Protected]]) -> None:
    table, made = results
    text = repr(tp.compare(table, made))
    assert "ccs" in text
    assert not re.search(r"(?<![\d.])748(?!\d)", text)  # digits of a time may be the same


def test_page_with_plot_and_table(results: tuple[tp.Table, dict[str, tp.Protected]], tmp_path: Path) -> None:
    table, made = results
    page = tp.compare(table, made).to_html(tmp_path / "compare.html").read_text()
    assert page.count("<svg") == 1
    assert 'aria-label="Information lost' in page
    for name in made:
        assert f"<td>{name}</td>" in page
