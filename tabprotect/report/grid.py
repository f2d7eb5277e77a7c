"""A table as people know it: rows, columns, totals; hidden cells marked, with the attacker's interval instead of a value."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np

from tabprotect.report.page import scroll
from tabprotect.report.style import Symbols
from tabprotect.types import BoolArray, FloatArray

MAX_ROWS = 300
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
    mark: bool = False
    """The producer's own view: sensitive cells are marked although they are shown."""

    def number(self, v: float) -> str:
        # adding zero turns a rounded -0.0 of a solver into 0
        return "∞" if v == np.inf else "−∞" if v == -np.inf else f"{round(v, self.decimals) + 0.0:,.{self.decimals}f}"

    def interval(self, i: int) -> str | None:
        """The attacker's interval of a hidden cell, or None where it was not computed."""
        if self.lower is None or self.upper is None or np.isnan(self.lower[i]):
            return None
        return f"{self.number(self.lower[i])} – {self.number(self.upper[i])}"

    def cell(self, i: int, rank: str) -> str:
        """One table cell as HTML; ``rank`` is "total", "sub" (a subtotal) or nothing."""
        mark = f' class="{rank}"' if rank else ""
        if not self.hidden[i]:
            if self.mark and self.primary[i]:
                mark = ' class="p" title="sensitive"'
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
    ranks = [""] if across is None else _ranks(across)
    lines = []
    for r, (code, rank) in enumerate(zip(down.codes[:MAX_ROWS], _ranks(down), strict=False)):
        indent = "&nbsp;" * 3 * int(down.level[r])
        cells = "".join(
            "<td></td>" if i < 0 else picture.cell(int(i), "total" if "total" in (rank, other) else rank or other)
            for other, i in zip(ranks, part[r], strict=True)
        )
        lines.append(f'<tr><th scope="row">{indent}{escape(code)}</th>{cells}</tr>')
    if len(down) > MAX_ROWS:
        lines.append(f'<tr><td colspan="{len(heads) + 1}">… and {len(down) - MAX_ROWS:,} more rows</td></tr>')
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    body = f'<thead><tr><th scope="col">{escape(corner)}</th>{head}</tr></thead><tbody>{"".join(lines)}</tbody>'
    return scroll(f"<table>{caption}{body}</table>", title or corner)


def _ranks(dim: Any) -> list[str]:
    """For every code: "total", "sub" for a subtotal, or nothing."""
    inner = {total for total, _ in dim.hierarchy.sums}
    return ["total" if dim.level[k] == 0 else "sub" if k in inner else "" for k in range(len(dim))]
