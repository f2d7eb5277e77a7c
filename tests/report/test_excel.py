"""The workbook: the office's symbols, and no hidden value anywhere in the file."""

from __future__ import annotations

import zipfile
from pathlib import Path

import openpyxl
import pytest

import tabprotect as tp
from tabprotect.report.style import Symbols
from tests.report.report_cases import ALL, TRACES, flat, hierarchical


@pytest.mark.parametrize("name", ALL)
def test_no_hidden_value_in_any_part_of_the_file(name: str, tmp_path: Path) -> None:
    path = ALL[name]().to_excel(tmp_path / "t.xlsx")
    with zipfile.ZipFile(path) as archive:
        for part in archive.namelist():
            text = archive.read(part).decode("utf-8", errors="replace")
            assert not any(trace in text for trace in TRACES), part


def test_symbols_of_the_office(tmp_path: Path) -> None:
    res = flat()
    path = res.to_excel(tmp_path / "t.xlsx", symbols=Symbols(primary="c", secondary=":", empty="-"))
    book = openpyxl.load_workbook(path)
    assert book.sheetnames == ["published", "cells", "codes"]
    shown = [cell for row in book["published"].iter_rows(min_row=2, min_col=2, values_only=True) for cell in row]
    assert shown.count("c") == int(res.table.primary.sum())
    assert shown.count(":") == int(res.secondary.sum())
    numbers = [v for v in shown if isinstance(v, int | float)]
    assert len(numbers) == res.table.n_cells - int(res.suppressed.sum())
    assert sorted(numbers) == sorted(res.values[~res.suppressed].tolist())
    codes = list(book["codes"].iter_rows(values_only=True))
    assert ("row", "r2", 1) in codes
    assert {row[1] for row in codes if row[0] == "symbol"} == {"c", ":", "-"}


def test_more_dimensions_are_a_list(tmp_path: Path) -> None:
    res = hierarchical()
    rows = list(openpyxl.load_workbook(res.to_excel(tmp_path / "t.xlsx"))["published"].iter_rows(values_only=True))
    assert rows[0] == ("region", "activity", "size", "value")
    assert len(rows) == res.table.n_cells + 1
    assert sum(row[3] == "x" for row in rows[1:]) == int(res.suppressed.sum())


def test_folder_must_exist(tmp_path: Path) -> None:
    with pytest.raises(tp.errors.InputError):
        flat().to_excel(tmp_path / "nowhere" / "t.xlsx")
