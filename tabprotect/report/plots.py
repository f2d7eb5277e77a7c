"""Pictures: the pattern of a protected table, the attacker's intervals, growth of time with size.

Each function returns a matplotlib ``Figure`` and needs no display. True values of hidden cells are in none of them unless ``confidential=True``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.protected import Protected
from tabprotect.report.bars import MOST
from tabprotect.report.grid import shape
from tabprotect.report.style import empty

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

KINDS = ("no cell", "published", "empty", "complement", "sensitive")
COLOURS = ("#ffffff", "#eef1f4", "#fafbfc", "#3b82c4", "#b3261e")
TEXT_CELLS = 400
"""Up to so many cells the published numbers are written into the map."""
TICKS = 60


def pattern(res: Protected) -> Figure:
    """Map of a protected table: published, sensitive and complementary cells; no value of a hidden cell.

    The longest dimension goes down, all others go across; a table without dimensions is wrapped into lines.

    >>> import tabprotect as tp
    >>> figure = pattern(tp.suppress(tp.examples.d272().mark(tp.rules.Threshold(2))))
    >>> figure.axes[0].get_ylabel()
    'size'
    """
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    where, rows, columns = layout(res)
    kind = kinds(res)
    shown = np.where(where >= 0, kind[where], 0)
    wide, tall = (float(np.clip(0.7 * n + 1.8, 4.8, 14)) for n in where.shape[::-1])
    if where.size > TEXT_CELLS:
        wide, tall = (float(np.clip(0.12 * n + 2, 5, 14)) for n in where.shape[::-1])
    figure = Figure(figsize=(wide, min(tall, 0.45 * where.shape[0] + 1.6)), layout="constrained")
    axes = figure.add_subplot()
    axes.imshow(
        shown, cmap=ListedColormap(COLOURS), vmin=0, vmax=len(KINDS) - 1, aspect="auto", interpolation="nearest"
    )
    _ticks(axes, rows, columns)
    if where.size <= TEXT_CELLS:
        axes.set_xticks(np.arange(-0.5, where.shape[1]), minor=True)
        axes.set_yticks(np.arange(-0.5, where.shape[0]), minor=True)
        axes.grid(which="minor", color="white", linewidth=1)
        axes.tick_params(which="minor", length=0)
        _numbers(axes, res, where)
    names = [d.name for d in res.table.dims]
    if names:
        down, _ = (0, None) if len(names) == 1 else shape(res.table.dims)
        axes.set_ylabel(names[down])
        axes.set_xlabel(" × ".join(n for k, n in enumerate(names) if k != down))
    used = [k for k in (4, 3, 1) if (shown == k).any()]
    legend = [
        Patch(facecolor=COLOURS[k], edgecolor="#9aa4ae", label=f"{KINDS[k]} ({int((shown == k).sum()):,})")
        for k in used
    ]
    figure.legend(handles=legend, loc="outside upper center", ncols=3, frameon=False, fontsize=9)
    return figure


def intervals(found: Any, *, confidential: bool = False, most: int = MOST) -> Figure:
    """The attacker's interval of each hidden cell, sensitive cells first and narrowest first.

    ``confidential=True`` adds the true value and the interval that protection needs, for attacks on a table whose truth is known.

    >>> import tabprotect as tp
    >>> found = tp.attack(tp.suppress(tp.examples.d272().mark(tp.rules.Threshold(2))))
    >>> len(intervals(found).axes[0].get_yticks())
    10
    """
    from matplotlib.figure import Figure

    if confidential and found.source is None:
        raise InputError("the true values are not known in this attack; leave out confidential=True")
    cells, low, high = found.cells, np.asarray(found.lower), np.asarray(found.upper)
    primary = np.isin(cells, found.exposed) if found.source is None else found.source.primary[cells]
    order = np.lexsort((high - low, ~primary))[:most]
    figure = Figure(figsize=(8, 0.26 * max(len(order), 2) + 1.2), layout="constrained")
    axes = figure.add_subplot()
    if len(order) == 0:
        axes.text(0.5, 0.5, "no cell is hidden", ha="center", va="center", transform=axes.transAxes)
        axes.axis("off")
        return figure
    at = np.arange(len(order))
    ends = np.concatenate([low[order], high[order]])
    ends = ends[np.isfinite(ends)]
    left, right = (float(ends.min()), float(ends.max())) if len(ends) else (0.0, 1.0)
    pad = 0.05 * (right - left) or 1.0
    starts, stops = np.clip(low[order], left - pad, None), np.clip(high[order], None, right + pad)
    colours = np.where(primary[order], COLOURS[4], COLOURS[3])
    axes.barh(at, stops - starts, left=starts, height=0.55, color=colours, alpha=0.8)
    axes.plot(np.stack([starts, stops]), np.stack([at, at]), "|", color="#1b1f24", markersize=8)
    axes.set_xlim(left - pad, right + pad)
    if confidential:
        _needs(axes, found, cells[order], at)
    labels = list((found.labels or {}).values())
    axes.set_yticks(at, [", ".join(str(c[k]) for c in labels) or f"cell {cells[k]}" for k in order], fontsize=8)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    if len(ends) and np.abs(ends).max() > 1000 * max(float(np.median(np.abs(ends))), 1e-300):
        axes.set_xscale("symlog", linthresh=max(float(np.median(np.abs(ends))) / 10, 1e-9))
    axes.set_xlabel("what an outsider can deduce (red: sensitive or exposed, blue: complement)")
    return figure


def growth(
    frame: pd.DataFrame, *, x: str = "cells", y: str = "wall", by: Sequence[str] = ("family", "method")
) -> Figure:
    """Median of ``y`` over ``x`` on logarithmic axes, one line per combination of the columns ``by``.

    >>> import pandas as pd
    >>> runs = pd.DataFrame({"cells": [10, 100], "wall": [0.1, 2.0], "method": ["exact", "exact"]})
    >>> growth(runs, by=["method"]).axes[0].get_xlabel()
    'cells'
    """
    from matplotlib.figure import Figure

    missing = [c for c in (x, y, *by) if c not in frame]
    if missing:
        raise InputError(f"the frame has no column {', '.join(missing)}")
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    for names, part in frame.groupby(list(by)):
        line = part.groupby(x)[y].median()
        axes.plot(line.index, line.to_numpy(), marker="o", markersize=4, label=", ".join(map(str, names)))
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel={"wall": "seconds"}.get(y, y))
    axes.grid(alpha=0.3, which="both")
    axes.legend(fontsize=8)
    return figure


def svg(figure: Figure) -> str:
    """A figure as SVG text to be put into a page: it depends on nothing but the figure, and text stays text."""
    import io

    import matplotlib

    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tabprotect"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def kinds(res: Protected) -> Any:
    """For every cell its place in `KINDS`."""
    table = res.table
    kind = np.where(res.suppressed, np.where(table.primary, 4, 3), 1)
    return np.where(~res.suppressed & empty(res), 2, kind)


def layout(res: Protected) -> tuple[Any, list[str], list[str]]:
    """Cell numbers in two dimensions (-1: no such cell) with the labels of rows and columns."""
    dims, n = res.table.dims, res.table.n_cells
    if not dims:
        wide = max(int(np.ceil(np.sqrt(n))), 1)
        where = np.full(-(-n // wide) * wide, -1)
        where[:n] = np.arange(n)
        return where.reshape(-1, wide), [], []
    sizes = [len(d) for d in dims]
    where = np.full(int(np.prod(sizes)), -1)
    where[np.ravel_multi_index(tuple(res.table.codes.T), sizes)] = np.arange(n)
    down, _ = (0, None) if len(dims) == 1 else shape(dims)
    across = [k for k in range(len(dims)) if k != down]
    flat = np.moveaxis(where.reshape(sizes), down, 0).reshape(sizes[down], -1)
    grids = np.indices([sizes[k] for k in across]).reshape(len(across), -1) if across else np.zeros((0, 1), int)
    labels = [
        ", ".join(str(dims[k].codes[c]) for k, c in zip(across, combination, strict=True)) for combination in grids.T
    ]
    return flat, [str(c) for c in dims[down].codes], labels


def _ticks(axes: Any, rows: list[str], columns: list[str]) -> None:
    axes.set_yticks(np.arange(len(rows)) if len(rows) <= TICKS else [], rows if len(rows) <= TICKS else [], fontsize=8)
    some = len(columns) <= TICKS
    turned = 90 if len(columns) > 12 or max(map(len, columns), default=0) > 8 else 0
    axes.set_xticks(np.arange(len(columns)) if some else [], columns if some else [], rotation=turned, fontsize=8)
    axes.xaxis.set_ticks_position("top" if not turned else "bottom")


def _numbers(axes: Any, res: Protected, where: Any) -> None:
    for (r, c), i in np.ndenumerate(where):
        if i < 0:
            continue
        hidden = bool(res.suppressed[i])
        text = "x" if hidden else f"{res.values[i]:,.{res.table.decimals}f}"
        axes.text(c, r, text, ha="center", va="center", fontsize=8, color="white" if hidden else "#1b1f24")


def _needs(axes: Any, found: Any, cells: Any, at: Any) -> None:
    low, high, _ = found.source.needed_levels()
    truth = found.source.values[cells]
    for y, cell, value in zip(at, cells, truth, strict=True):
        axes.plot([value - low[cell], value + high[cell]], [y + 0.36] * 2, color="#1b1f24", linewidth=2)
    axes.plot(truth, at, "o", color="white", markeredgecolor="#1b1f24", markersize=4)
    axes.set_title(
        "CONFIDENTIAL: circles are true values, black lines what protection needs", fontsize=9, color=COLOURS[4]
    )
