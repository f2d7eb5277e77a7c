"""The pattern of a whole table as a small map in SVG text: where the sensitive and the complementary cells lie."""

from __future__ import annotations

from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from tabprotect.protected import Protected
from tabprotect.report.bars import text
from tabprotect.report.plots import KINDS, kinds, layout

FILL = {2: "#fafbfc", 1: "#e6eaee", 3: "#3b82c4", 4: "#b3261e"}
_SIDE, _WIDE = 400, 640
"""At most so many rows and columns are told apart, and so many units the map is wide."""


def heat_map(res: Protected) -> str:
    """Rows down, columns across; a block of several cells takes the colour of its most sensitive one."""
    where, rows, _ = layout(res)
    shown = np.where(where >= 0, kinds(res)[where], 0)
    blocks = _coarse(_coarse(shown, 0), 1)
    tall, wide = blocks.shape
    size = min(max(_WIDE / wide, 1.5), 18.0)
    named = rows if len(blocks) == len(where) else []
    parts = [
        _block(c * size, r * size, n * size, size, kind, named[r] if named else "")
        for r, line in enumerate(blocks)
        for c, n, kind in _runs(line)
    ]
    names = [d.name for d in res.table.dims]
    foot = f"{len(where):,} × {where.shape[1]:,} cells" + (f" ({' × '.join(names)})" if names else "")
    height = tall * size
    parts.append(text(0, height + 16, foot))
    box = f"{max(wide * size, 8.0 * len(foot)):.0f} {height + 24:.0f}"
    return (
        f'<svg class="scope" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {box}" width="{box.split()[0]}" '
        f'height="{box.split()[1]}" shape-rendering="crispEdges">{"".join(parts)}</svg>'
    )


def _coarse(grid: Any, axis: int) -> Any:
    """The same with at most `_SIDE` lines along the axis."""
    step = -(-grid.shape[axis] // _SIDE)
    return np.maximum.reduceat(grid, np.arange(0, grid.shape[axis], step), axis=axis) if step > 1 else grid


def _runs(line: Any) -> list[tuple[int, int, int]]:
    """(start, length, kind) of equal neighbours, without places where there is no cell."""
    starts = np.concatenate([[0], np.flatnonzero(np.diff(line)) + 1, [len(line)]])
    return [(int(a), int(b - a), int(line[a])) for a, b in pairwise(starts.tolist()) if b > a and line[a]]


def _block(x: float, y: float, wide: float, tall: float, kind: int, row: str) -> str:
    """A rectangle; the mouse tells the row of a hidden cell where a line of the map is one row of the table."""
    drawn = f'<rect x="{x:.2f}" y="{y:.2f}" width="{wide:.2f}" height="{tall:.2f}" fill="{FILL[kind]}"/>'
    return f"<g><title>{escape(row)}: {KINDS[kind]}</title>{drawn}</g>" if row and kind > 2 else drawn
