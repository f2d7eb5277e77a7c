"""The published table as a workbook: the table, the list of cells, and the codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tabprotect.errors import InputError, SolverUnavailable
from tabprotect.files import replacing
from tabprotect.protected import Protected
from tabprotect.report.style import Symbols, empty

MOST_ROWS = 1_000_000


def write_excel(res: Protected, path: str | Path, *, symbols: Symbols | None = None) -> Path:
    """Write ``published`` (a grid for two dimensions, else a list), ``cells`` and ``codes``; hidden cells show the office's symbols and nothing else."""
    try:
        from openpyxl import Workbook
    except ImportError:
        raise SolverUnavailable("Excel files need openpyxl: pip install 'tabprotect[excel]'") from None
    symbols = symbols or Symbols()
    table = res.table
    if table.n_cells > MOST_ROWS:
        raise InputError(f"a worksheet holds at most {MOST_ROWS:,} rows; write .csv or .parquet instead")
    book = Workbook()
    shown = _shown(res, symbols)
    first = book.active
    first.title = "published"
    if len(table.dims) == 2:
        _grid(first, res, shown)
    else:
        _list(first, res, shown)
    if len(table.dims) == 2:
        _list(book.create_sheet("cells"), res, shown)
    codes = book.create_sheet("codes")
    codes.append(["dimension", "code", "level"])
    for dim in table.dims:
        for code, level in zip(dim.codes, dim.level, strict=True):
            codes.append([dim.name, code, int(level)])
    for symbol, meaning in {
        symbols.primary: "confidential",
        symbols.secondary: "confidential",
        symbols.empty: "empty",
    }.items():
        codes.append(["symbol", symbol, meaning])
    with replacing(path) as temporary:
        book.save(temporary)
    return Path(path)


def _shown(res: Protected, symbols: Symbols) -> list[Any]:
    table, whole = res.table, res.table.decimals == 0
    out: list[Any] = []
    none = empty(res)
    for i in range(table.n_cells):
        if res.suppressed[i]:
            out.append(symbols.primary if table.primary[i] else symbols.secondary)
        elif none[i] and res.values[i] == 0:
            out.append(symbols.empty)
        else:
            out.append(round(res.values[i]) if whole and float(res.values[i]).is_integer() else float(res.values[i]))
    return out


def _grid(sheet: Any, res: Protected, shown: list[Any]) -> None:
    rows, columns = res.table.dims
    sheet.append([f"{rows.name} \\ {columns.name}", *columns.codes])
    at = np.full((len(rows), len(columns)), -1)
    at[tuple(res.table.codes.T)] = np.arange(res.table.n_cells)
    for r, code in enumerate(rows.codes):
        sheet.append([code, *("" if i < 0 else shown[i] for i in at[r])])
    sheet.freeze_panes = "B2"


def _list(sheet: Any, res: Protected, shown: list[Any]) -> None:
    dims = res.table.dims
    sheet.append([*(d.name for d in dims), "value"] if dims else ["cell", "value"])
    for i, value in enumerate(shown):
        codes = [d.codes[res.table.codes[i, k]] for k, d in enumerate(dims)] if dims else [i]
        sheet.append([*codes, value])
    sheet.freeze_panes = "A2"
