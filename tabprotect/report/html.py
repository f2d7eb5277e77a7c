"""One-file HTML reports of protected tables and of attacks."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from tabprotect.linalg.exact import decimals_of
from tabprotect.protected import Protected
from tabprotect.report.bars import MOST, interval_bars, short
from tabprotect.report.grid import Picture, grids
from tabprotect.report.heatmap import heat_map
from tabprotect.report.page import facts, figure, page, rows_table
from tabprotect.report.style import empty
from tabprotect.table.table import Table
from tabprotect.types import FloatArray

ATTACK_SECONDS = 20.0
"""Intervals are computed for at most so long; cells without one then show none."""
MAP_FROM = 200
"""From so many cells on a map shows the pattern at a glance."""


def report(res: Protected, *, confidential: bool = False) -> str:
    """The report of a protected table; true values of hidden cells only with ``confidential=True``."""
    return page(f"Protected: {res.table.name or 'table'}", _report(res, confidential))


def fragment(res: Protected) -> str:
    """The table as published, for notebooks."""
    lines = "".join(f"<p>{escape(line)}</p>" for line in res.summary().split("\n"))
    if res.status == "unsafe":
        return f"<div>{lines}</div>"
    return f"<div>{lines}{_inline(grids(_picture(res)))}</div>"


def _report(res: Protected, confidential: bool) -> str:
    table, found = res.table, _attacked(res)
    lower, upper = found
    picture = _picture(res, lower, upper, table.values if confidential else None)
    kind = {"suppress": "cell suppression", "round": "rounding", "adjust": "controlled tabular adjustment"}.get(
        res.kind, res.kind
    )
    hidden = int(res.suppressed.sum())
    numbers = [
        ("cells", f"{table.n_cells:,}"),
        ("sensitive", f"{int(table.primary.sum()):,}"),
        *([("hidden in all", f"{hidden:,}")] if res.kind == "suppress" else []),
        ("status", res.status),
        ("gap", f"{res.gap:.2%}"),
        ("time", f"{res.runtime:.2f} s"),
    ]
    if res.kind == "suppress" and confidential:
        # a sum over hidden cells is one more equation for an outsider, so that it is not for the published page
        weights = table.weights("value")
        numbers.insert(3, ("value hidden", f"{weights[res.suppressed].sum() / (weights.sum() or 1.0):.1%}"))
    parts = [
        f"<h1>{escape(table.name or 'Table')}: protected by {kind}</h1>",
        f'<p class="muted">tabprotect, method {escape(res.method)}: {escape(str(res.info.get("why", "asked for")))}</p>',
        _banner(res),
        facts(numbers),
        "<h2>The table as published</h2>",
        _key(res),
        grids(picture) or _list_of_cells(res, lower, upper),
    ]
    if hidden and (table.n_cells > MAP_FROM or not table.dims):
        parts.append(figure(heat_map(res), "Where the hidden cells lie: sensitive (red), complements (blue)."))
    if hidden and lower is not None and upper is not None:
        parts += ["<h2>What an outsider can deduce</h2>", _bars(res, lower, upper, confidential)]
    parts += ["<h2>By level</h2>", _levels(res), "<h2>Rule and proof</h2>", _proof(res)]
    if confidential:
        parts.insert(
            1,
            '<p class="banner unsafe">CONFIDENTIAL: this page shows true values of hidden cells and must stay inside the office.</p>',
        )
    return "\n".join(parts)


def _attacked(res: Protected) -> tuple[FloatArray | None, FloatArray | None]:
    """Intervals of hidden cells over all cells (NaN elsewhere and where the time was too short)."""
    if res.kind != "suppress" or not res.suppressed.any():
        return None, None
    from tabprotect.attacker import attack

    found = attack(res, time_limit=ATTACK_SECONDS)
    lower, upper = np.full(res.table.n_cells, np.nan), np.full(res.table.n_cells, np.nan)
    known = found.cells[found.proved]
    lower[known], upper[known] = found.lower[found.proved], found.upper[found.proved]
    return lower, upper


def _picture(res: Protected, lower: Any = None, upper: Any = None, truth: Any = None) -> Picture:
    t = res.table
    return Picture(t.dims, t.codes, res.values, res.suppressed, t.primary, empty(res), t.decimals, lower, upper, truth)


def _banner(res: Protected) -> str:
    if res.kind == "suppress" and res.certificate is not None:
        return '<p class="banner safe">Safe: for every sensitive cell and side there is another table that fits everything published.</p>'
    exposed = res.info.get("exposed", ())
    if len(exposed):
        return f'<p class="banner unsafe">Not safe: {len(exposed)} sensitive cells can be inferred more closely than allowed.</p>'
    return '<p class="banner safe">Checked: relations, bounds and levels hold by plain arithmetic.</p>'


def _key(res: Protected) -> str:
    if not res.suppressed.any():
        return ""
    return '<p class="key"><span class="p">x sensitive</span><span class="s">x hidden to protect others</span> below it: the interval an outsider can deduce</p>'


def _labels(table: Table, cells: Any) -> list[str]:
    return [", ".join(str(d.codes[table.codes[i, k]]) for k, d in enumerate(table.dims)) or f"cell {i}" for i in cells]


def _bars(res: Protected, lower: FloatArray, upper: FloatArray, confidential: bool) -> str:
    table = res.table
    cells = np.flatnonzero(res.suppressed & ~np.isnan(lower))
    if len(cells) == 0:
        return '<p class="muted">The intervals were not computed within the time allowed for the report; the certificate proves the levels.</p>'
    needs: tuple[FloatArray | None, FloatArray | None] = (None, None)
    if confidential:
        low, high, _ = table.needed_levels()
        needs = table.values[cells] - low[cells], table.values[cells] + high[cells]
    svg = interval_bars(_labels(table, cells), lower[cells], upper[cells], table.primary[cells], *needs)
    shown = f", the {MOST} narrowest" if len(cells) > MOST else ""
    caption = f"Intervals an outsider can deduce for the hidden cells{shown}; sensitive cells first (red), complements in blue."
    if confidential:
        caption += " The frames are what protection needs."
    return figure(svg, caption)


def _list_of_cells(res: Protected, lower: Any, upper: Any) -> str:
    """Tables without dimensions: the hidden cells by number."""
    cells = np.flatnonzero(res.suppressed)[:500]
    rows = []
    for i in cells:
        known = lower is not None and not np.isnan(lower[i])
        interval = f"{short(lower[i])} – {short(upper[i])}" if known else "–"
        rows.append([str(int(i)), "sensitive" if res.table.primary[i] else "complement", interval])
    return rows_table(
        ["cell", "kind", "interval"], rows, f"{int(res.suppressed.sum()):,} hidden cells of {res.table.n_cells:,}"
    )


def _levels(res: Protected) -> str:
    """Cells, sensitive and hidden cells by level of the hierarchies: numbers of cells only, no sums of hidden values."""
    table = res.table
    if not table.dims:
        return rows_table(
            ["cells", "sensitive", "complements"],
            [[f"{table.n_cells:,}", f"{int(table.primary.sum()):,}", f"{int(res.secondary.sum()):,}"]],
        )
    level = np.stack([d.level[table.codes[:, k]] for k, d in enumerate(table.dims)], axis=1)
    kinds, which = np.unique(level, axis=0, return_inverse=True)
    which = which.ravel()
    count = np.bincount(which, minlength=len(kinds))
    primary = np.bincount(which, table.primary, len(kinds)).astype(int)
    second = np.bincount(which, res.secondary, len(kinds)).astype(int)
    head = [*(f"level of {d.name}" for d in table.dims), "cells", "sensitive"]
    rows = [[*(str(v) for v in kind), f"{count[k]:,}", f"{primary[k]:,}"] for k, kind in enumerate(kinds)]
    if res.kind == "suppress":
        head += ["complements", "hidden"]
        rows = [[*row, f"{second[k]:,}", f"{(primary[k] + second[k]) / count[k]:.1%}"] for k, row in enumerate(rows)]
    return rows_table(head, rows[:60], "Level 0 is the total.")


def _proof(res: Protected) -> str:
    table = res.table
    reasons, counts = np.unique(table.reason[table.primary], return_counts=True)
    rows = [[str(r) or "given", f"{int(c):,}"] for r, c in zip(reasons, counts, strict=True)]
    text = rows_table(["why sensitive", "cells"], rows) if len(rows) else "<p>No cell is sensitive.</p>"
    if res.certificate is not None:
        text += (
            f"<p>Certificate fingerprint <code>{res.certificate.fingerprint}</code>. The certificate itself is confidential; inside the office it is "
            "checked with exact arithmetic and no solver by <code>tabprotect verify FILE</code>.</p>"
        )
    return text


def _inline(html: str) -> str:
    """Colours for a notebook, where the page's style sheet is not there."""
    return html.replace('class="p"', 'class="p" style="background:#fbe3e0;color:#8c1c13"').replace(
        'class="s"', 'class="s" style="background:#dfeefb;color:#0b4f8a"'
    )


# -- attacks ----------------------------------------------------------------------------------------------------------------
def attack_page(found: Any) -> str:
    """A page with the intervals of every hidden cell."""
    return page("Attack on a published table", "<h1>Attack on a published table</h1>" + _attack_body(found))


def attack_fragment(found: Any) -> str:
    """Verdict and intervals, for notebooks."""
    return f"<div>{_inline(_attack_body(found))}</div>"


def _attack_body(found: Any) -> str:
    state = "safe" if found.safe else "unsafe"
    what = (
        "No hidden cell can be pinned down further than allowed."
        if found.safe
        else f"{len(found.exposed)} cells are exposed."
    )
    cells = found.cells
    labels = [
        ", ".join(str(codes[k]) for codes in (found.labels or {}).values()) or f"cell {c}" for k, c in enumerate(cells)
    ]
    primary = np.isin(cells, found.exposed) if found.source is None else found.source.primary[cells]
    parts = [
        f'<p class="banner {state}">{escape(what)}</p>',
        facts(
            [
                ("hidden cells", f"{len(cells):,}"),
                ("recovered exactly", f"{len(found.recovered):,}"),
                ("time", f"{found.runtime:.2f} s"),
            ]
        ),
    ]
    if found.dims:
        parts += ["<h2>The table, with intervals in the gaps</h2>", grids(_attack_picture(found, primary))]
    if len(cells):
        caption = "Interval of every hidden cell (exposed or sensitive cells first, in red)."
        parts += ["<h2>Intervals</h2>", figure(interval_bars(labels, found.lower, found.upper, primary), caption)]
        rows = [
            [labels[k], short(found.lower[k]), short(found.upper[k]), str(found.fails[k])]
            for k in range(min(len(cells), 1000))
        ]
        parts.append(rows_table(["cell", "lower", "upper", "fails"], rows))
    return "\n".join(parts)


def _attack_picture(found: Any, primary: Any) -> Picture:
    n = len(found.shown)
    lower, upper, marked = np.full(n, np.nan), np.full(n, np.nan), np.zeros(n, bool)
    lower[found.cells], upper[found.cells], marked[found.cells] = found.lower, found.upper, primary
    hidden = np.isnan(found.shown)
    decimals = decimals_of(found.shown, found.lower, found.upper, most=3)
    return Picture(found.dims, found.codes, found.shown, hidden, marked, np.zeros(n, bool), decimals, lower, upper)


# -- tables -----------------------------------------------------------------------------------------------------------------
def table_fragment(table: Table) -> str:
    """The producer's own view of a table in a notebook: all values, sensitive cells marked."""
    shown = Picture(
        table.dims,
        table.codes,
        table.values,
        np.zeros(table.n_cells, bool),
        table.primary,
        table.status == "z",
        table.decimals,
        mark=True,
    )
    return f"<div><p>{escape(repr(table))}</p>{_inline(grids(shown))}</div>"
