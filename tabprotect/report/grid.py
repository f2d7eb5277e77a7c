"""A table as people know it: rows, columns, totals; hidden cells marked, with the attacker's interval instead of a value."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from tabprotect.report.style import Symbols
from tabprotect.types import BoolArray, FloatArray

MAX_CELLS = 4000
"""More cells than this are not drawn; the report then shows the top of the table and says so."""


@dataclass(frozen=True)
class Picture:
    """What may be drawn: codes, shown values (NaN where hidden), which hidden cells are primary, and intervals if known."""

    dims: Any
    codes: Any
    values: FloatArray
    hidden: BoolArray
    primary: BoolArray
    empty: BoolArray
    decimals: int
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    truth: FloatArray | None = None
    symbols: Symbols = field(default_factory=Symbols)

    def number(self, v: float) -> str:
        return "∞" if v == np.inf else "−∞" if v == -np.inf else f"{v:,.{self.decimals}f}"

    def interval(self, i: int) -> str | None:
        """The attacker's interval of a hidden cell, or None where it was not computed."""
        if self.lower is None or self.upper is None or np.isnan(self.lower[i]):
            return None
        return f"{self.number(self.lower[i])} – {self.number(self.upper[i])}"

    def cell(self, i: int, total: bool) -> str:
        """One table cell as HTML."""
        mark = ' class="total"' if total else ""
        if not self.hidden[i]:
            text = self.symbols.empty if self.empty[i] and self.values[i] == 0 else self.number(self.values[i])
            return f"<td{mark}>{escape(text)}</td>"
        kind, word = ("p", "sensitive") if self.primary[i] else ("s", "hidden to protect others")
        symbol = self.symbols.primary if self.primary[i] else self.symbols.secondary
        interval = self.interval(i)
        small = "" if interval is None else f"<small>{escape(interval)}</small>"
        inside = "" if self.truth is None else f" (true value {self.number(self.truth[i])})"
        hint = f"{word}; outsiders can only say {interval}" if interval else word
        return f'<td class="{kind}" tabindex="0" title="{escape(hint + inside, quote=True)}"><b>{escape(symbol)}</b>{escape(inside)}{small}</td>'


def grids(picture: Picture) -> str:
    """The table drawn in two dimensions, once for every combination of the other dimensions' codes."""
    dims = picture.dims
    if not dims:
        return ""
    sizes = [len(d) for d in dims]
    index = np.full(int(np.prod(sizes)), -1)
    index[np.ravel_multi_index(tuple(np.asarray(picture.codes).T), sizes)] = np.arange(len(picture.values))
    index = index.reshape(sizes)
    rows, columns = (0, None) if len(dims) == 1 else shape(dims)
    others = [k for k in range(len(dims)) if k not in (rows, columns)]
    parts, drawn = [], 0
    for combination in itertools.product(*[range(sizes[k]) for k in others]):
        size = sizes[rows] * (1 if columns is None else sizes[columns])
        if drawn + size > MAX_CELLS and drawn:
            parts.append('<p class="muted">The table is too large to be drawn whole: this is its beginning.</p>')
            break
        part = index
        for k, code in sorted(zip(others, combination, strict=True), reverse=True):
            part = np.take(part, code, axis=k)
        if columns is not None and rows > columns:
            part = part.T
        title = ", ".join(f"{dims[k].name}: {dims[k].codes[c]}" for k, c in zip(others, combination, strict=True))
        parts.append(_grid(picture, part.reshape(sizes[rows], -1), rows, columns, title))
        drawn += size
    return "\n".join(parts)


def shape(dims: Sequence[Any]) -> tuple[int, int]:
    """The longest dimension goes down, the last of the others across."""
    rows = max(range(len(dims)), key=lambda k: len(dims[k]))
    columns = max((k for k in range(len(dims)) if k != rows), key=lambda k: (len(dims[k]) <= 14, len(dims[k])))
    return rows, columns


def _grid(picture: Picture, part: Any, rows: int, columns: int | None, title: str) -> str:
    down = picture.dims[rows]
    across = None if columns is None else picture.dims[columns]
    heads = ["value"] if across is None else [f"{c}" for c in across.codes]
    corner = down.name if across is None else f"{down.name} \\ {across.name}"
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in heads)
    lines = []
    for r, code in enumerate(down.codes[:300]):
        indent = "&nbsp;" * 3 * int(down.level[r])
        total = bool(down.level[r] == 0)
        cells = "".join(
            "<td></td>" if i < 0 else picture.cell(int(i), total or (across is not None and across.level[k] == 0))
            for k, i in enumerate(part[r])
        )
        lines.append(f'<tr><th scope="row">{indent}{escape(code)}</th>{cells}</tr>')
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    return f'<div class="scroll"><table>{caption}<thead><tr><th scope="col">{escape(corner)}</th>{head}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'
