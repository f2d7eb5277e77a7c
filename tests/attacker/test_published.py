"""Tables found in reports: gaps marked by any symbol, no true values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tabprotect as tp
from tests.attacker.test_attack import d272

BY = ["size", "industry"]
TOTAL = {"size": "Total", "industry": "D272"}


def gap_frame(symbol: str = "x") -> tuple[pd.DataFrame, list[int]]:
    table, cells = d272()
    frame = table.cells[[*BY, "value"]].astype(str)
    frame["value"] = [f"{v:.0f}" for v in table.values]
    frame.loc[cells, "value"] = symbol
    return frame, sorted(cells)


@pytest.mark.parametrize("symbol", ["x", "c", ":", "*", "", " X ", "(D)"])
def test_symbols_of_hidden_cells(symbol: str) -> None:
    frame, cells = gap_frame(symbol)
    table, _ = d272()
    found = tp.attack(frame, by=BY, total=TOTAL)
    assert found.cells.tolist() == cells
    truth = tp.attack(table, cells)
    assert np.allclose(found.lower, truth.lower)
    assert np.allclose(found.upper, truth.upper)
    assert found.safe


def test_from_csv_with_thousands_and_recovered_cells(tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    path.write_text('area;value\nTotal;"1.234,5"\nN;"1.000,0"\nS;x\n', encoding="utf-8-sig")
    from tabprotect.attacker import read_published

    found = tp.attack(read_published(path, ["area"], decimal=",", thousands="."))
    assert found.recovered == (2,)
    assert found.lower.tolist() == pytest.approx([234.5])
    assert not found.safe


def test_a_table_that_cannot_be_completed_names_the_relations() -> None:
    frame, _ = gap_frame()
    frame.loc[(frame["size"] == "Total") & (frame["industry"] == "D2722"), "value"] = "466"
    with pytest.raises(tp.errors.InputError, match=r"cannot be completed.*size=Total, industry="):
        tp.attack(frame, by=BY, total=TOTAL)
    small = pd.DataFrame({"area": ["Total", "N", "S"], "value": ["10", "x", "25"]})
    with pytest.raises(tp.errors.InputError, match="no values of the hidden cells fit"):
        tp.attack(small, by=["area"])


def test_bad_input_is_named() -> None:
    frame, _ = gap_frame()
    with pytest.raises(tp.errors.InputError, match="which columns"):
        tp.attack(frame)
    with pytest.raises(tp.errors.InputError, match="no column 'sizes'"):
        tp.attack(frame, by=["sizes"])
    with pytest.raises(tp.errors.InputError, match="has no total"):
        tp.attack(frame, by=BY)
    with pytest.raises(tp.errors.InputError, match="occurs twice"):
        tp.attack(pd.concat([frame, frame.iloc[[3]]]), by=BY, total=TOTAL)
    frame.loc[5, "value"] = "12 apples"
    with pytest.raises(tp.errors.InputError, match=r"line 7.*12 apples"):
        tp.attack(frame, by=BY, total=TOTAL)


def test_two_releases_together() -> None:
    from tabprotect.attacker import read_published

    frame, cells = gap_frame()
    table, _ = d272()
    later = frame.copy()
    later.loc[cells[0], "value"] = f"{table.values[cells[0]]:.0f}"
    both = tp.attack(read_published(frame, BY, total=TOTAL), also=[read_published(later, BY, total=TOTAL)])
    assert len(both.cells) == len(cells) - 1
