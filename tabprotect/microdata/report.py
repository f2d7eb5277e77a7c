"""A one-file HTML report of microdata risk: before and after, what was done, and what it cost. No outside resources, no record values."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tabprotect.microdata.disclosure import Risk
from tabprotect.microdata.distance import Dissimilarity
from tabprotect.microdata.keysets import KeySets
from tabprotect.microdata.recipe import Recipe
from tabprotect.microdata.tally import BINS

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

STYLE = """
:root { color-scheme: light dark; --line: #8886; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; } caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { border-bottom: 1px solid var(--line); padding: .3rem .8rem; text-align: right; } th:first-child, td:first-child { text-align: left; }
tbody tr:nth-child(even) { background: var(--soft); } figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; background: #fff; }
code { background: var(--soft); padding: .1rem .3rem; overflow-wrap: anywhere; } .note { border-left: 4px solid var(--line); padding-left: 1rem; }
"""

MEASURES = [
    ("records", "n", "{:,}", "records in the file"),
    ("classes", "classes_count", "{:,}", "combinations of key values that occur"),
    ("uniques", "uniques", "{:,}", "records alone in their class"),
    ("k", "k", "{}", "smallest class"),
    ("l", "l", "{}", "fewest distinct sensitive values in a class"),
    ("entropy l", "entropy_l", "{:.3f}", "exp of the smallest entropy of a class"),
    ("t", "t", "{:.3f}", "largest distance of a class from the file"),
    ("P1", "P1", "{:.4f}", "share of uniques"),
    ("P2", "P2", "{:.4f}", "share of records in classes with one sensitive value"),
    ("P3", "P3", "{:.4f}", "share of records in classes within the tolerance"),
    ("θ1", "theta1", "{:.4f}", "chance that a unique match is right (population)"),
    ("θ2", "theta2", "{:.4f}", "the same for classes that agree"),
    ("θ3", "theta3", "{:.4f}", "the same for classes within the tolerance"),
    ("θ̂1", "theta1_hat", "{:.4f}", "estimate of θ1 from the sample"),
    ("θ̂2", "theta2_hat", "{:.4f}", "estimate of θ2 from the sample"),
    ("θ̂3", "theta3_hat", "{:.4f}", "estimate of θ3 from the sample"),
]


def html_report(
    before: Risk,
    after: Risk | None = None,
    *,
    recipe: Recipe | None = None,
    distance: Dissimilarity | None = None,
    keys: KeySets | None = None,
    trade_off: pd.DataFrame | None = None,
    title: str = "Disclosure risk of microdata",
) -> str:
    """The report as one HTML page.

    >>> import pandas as pd, tabprotect as tp
    >>> page = html_report(tp.microdata.risk(pd.DataFrame({"a": [1, 1, 2]}), keys=["a"]))
    >>> page.startswith("<!doctype html>"), "http" in page.replace("http://www.w3.org", "")
    (True, False)
    """
    parts = [f"<h1>{escape(title)}</h1>", _measures(before, after), _sizes(before, after)]
    if recipe is not None and len(recipe):
        steps = "".join(f"<li><code>{escape(line)}</code></li>" for line in recipe.describe())
        parts.append(f"<h2>What was done</h2><ol>{steps}</ol>")
    if distance is not None:
        parts.append(_distance(distance))
    if keys is not None:
        parts.append(_keys(keys))
    if trade_off is not None:
        from tabprotect.microdata.tradeoff import trade_off_figure

        parts.append("<h2>Risk against loss</h2>")
        parts.append(svg(trade_off_figure(trade_off), "Match risk against dissimilarity of the keys, by method and k"))
        parts.append(_table("Risk against loss", list(trade_off.columns), trade_off.to_numpy().tolist()))
    parts.append(
        '<p class="note">The page holds counts and measures only, no key or sensitive value of any record. θ after Cho, Kwon and Lee (2012); '
        "dissimilarity after Kang, Oh, Yong and Lee (2017).</p>"
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head><body><main>{''.join(parts)}</main></body></html>\n"
    )


def save_report(path: str | Path, page: str) -> None:
    """Write the page to a temporary name and rename it."""
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{os.getpid()}")
    scratch.write_text(page, encoding="utf-8")
    scratch.replace(target)


def svg(figure: Figure, label: str) -> str:
    """A figure as inline SVG with a text alternative."""
    import matplotlib

    page = io.StringIO()
    # text stays text, so that it can be read aloud; a fixed salt keeps the page the same for the same data
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "tabprotect"}):
        figure.savefig(page, format="svg", metadata={"Date": None, "Creator": None})
    picture = re.sub(r"<metadata>.*?</metadata>", "", page.getvalue(), flags=re.S)
    picture = picture[picture.index("<svg") :].replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1)
    return f"<figure>{picture}<figcaption>{escape(label)}</figcaption></figure>"


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    top = "".join(f'<th scope="col">{escape(str(h))}</th>' for h in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(_text(v))}</td>" for v in row) + "</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def _text(v: Any) -> str:
    if v is None or (isinstance(v, float) and v != v):
        return "–"
    return f"{v:,.4g}" if isinstance(v, float) else f"{v:,}" if isinstance(v, int) else str(v)


def _measures(before: Risk, after: Risk | None) -> str:
    rows = []
    for name, attribute, form, meaning in MEASURES:
        values = [getattr(r, attribute) for r in (before, after) if r is not None]
        if all(v is None for v in values):
            continue
        rows.append([name, *("–" if v is None else form.format(v) for v in values), meaning])
    head = ["measure", "before", "after", "meaning"] if after is not None else ["measure", "value", "meaning"]
    about = f"Keys: {', '.join(before.keys)}" + (
        f"; sensitive: {', '.join(before.sensitive)}" if before.sensitive else ""
    )
    return f"<p>{escape(about)}</p>" + _table("Measures of disclosure risk", head, rows)


def _sizes(before: Risk, after: Risk | None) -> str:
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7, 3), layout="constrained")
    ax = fig.subplots()
    at = np.arange(1, BINS + 1)
    found = [("before", before)] + ([("after", after)] if after is not None else [])
    for i, (name, risk) in enumerate(found):
        ax.bar(at + (i - 0.5 * (len(found) - 1)) * 0.4, np.array(risk.histogram), width=0.4, label=name, hatch="//" * i)
    ax.set_yscale("symlog")
    ax.set_xticks(at, [*map(str, at[:-1]), f"≥{BINS}"], fontsize=8)
    ax.set_xlabel("class size")
    ax.set_ylabel("number of classes")
    if after is not None:
        ax.legend()
    return "<h2>Class sizes</h2>" + svg(
        fig, "Number of classes by class size" + ("" if after is None else ", before and after")
    )


def _distance(found: Dissimilarity) -> str:
    rows = [
        ["whole table (RTab)", found.RTab],
        *([g, v] for g, v in found.groups.items()),
        *([c, v] for c, v in found.columns.items()),
    ]
    return (
        f"<h2>How far the released data are from the original</h2><p>{found.survival:.2%} of the records survive.</p>"
        + _table(f"Dissimilarity ({found.convention})", ["part", "dissimilarity"], rows)
    )


def _keys(found: KeySets) -> str:
    order = np.argsort(-found.uniques, kind="stable")[:15]
    rows = [[" × ".join(found.sets[i]), int(found.uniques[i]), int(found.minimal[i]), int(found.k[i])] for i in order]
    return "<h2>Which keys expose</h2>" + _table(
        "Combinations of keys with most uniques", ["keys", "uniques", "minimal uniques", "k"], rows
    )
