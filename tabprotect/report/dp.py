"""Pages of differentially private releases and of tests on them: nothing on them but what was released."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tabprotect.dp import Release, TableRelease
from tabprotect.dp.homogeneity import TestResult
from tabprotect.report.page import facts, figure, rows_table, save_page
from tabprotect.report.plots import svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST = 200
"""So many classes or cells are listed and drawn at most."""


def write_release(found: Release | TableRelease, path: str | Path) -> Path:
    """What was released, what is promised of it and to whom, and how far the noise may have moved it."""
    promise, *rest = found.summary().split("\n")
    parts = [
        "<h1>Differentially private release</h1>",
        f'<p class="banner safe">{escape(promise[:1].upper() + promise[1:])}.</p>',
        facts(
            [
                ("ε", f"{found.epsilon:g}"),
                ("δ", f"{found.delta:g}"),
                ("proved ε", f"{found.proved:.6g}"),
                ("neighbours", found.neighbours),
                ("contributions", f"{found.contributions}"),
            ]
        ),
        f"<p>{escape(rest[0])}.</p>",
    ]
    parts += _histogram(found) if isinstance(found, Release) else _table(found)
    return save_page(path, "Differentially private release", "\n".join(parts))


def _histogram(found: Release) -> list[str]:
    frame = found.publish()
    names, values = [str(c) for c in frame["class"]], frame["value"].to_numpy(float)
    reach = 1.96 * float(np.sqrt(found.noise.variance))
    caption = f"Released counts; the lines are ±{reach:.3g}, about 95 % of the noise."
    rows = [[n, f"{v:,g}"] for n, v in zip(names, frame["value"], strict=True)]
    return [
        figure(svg(_bars(names[:MOST], values[:MOST], reach)), caption),
        "<h2>Counts</h2>",
        rows_table(["class", "released"], rows[:MOST], _cut(len(rows), "classes")),
    ]


def _table(found: TableRelease) -> list[str]:
    expected = found.expected_error(seed=0)
    errors = [[str(r.level), f"{r.cells:,}", f"{r.noise:.4g}", f"{r.released:.4g}"] for r in expected.itertuples()]
    budget = [
        [str(r.level), f"{r.cells:,}", f"{r.share:.1%}", f"{r.epsilon:.4g}", f"{r.sd:.4g}"]
        for r in found.levels.itertuples()
    ]
    published = found.publish()
    rows = [[*(str(v) for v in r[:-1]), f"{r[-1]:,g}"] for r in published.head(MOST).itertuples(index=False)]
    return [
        "<h2>Error to expect</h2>",
        figure(svg(_errors(expected)), "Root mean square error by level: of the noise, and after the table was made consistent."),
        rows_table(["level", "cells", "noise", "released"], errors, "Root mean square error; computed from the release alone."),
        "<h2>Budget</h2>",
        rows_table(["level", "cells", "share", "ε", "standard deviation of the noise"], budget, "Level: depth in each dimension."),
        "<h2>Cells</h2>",
        rows_table(list(map(str, published.columns)), rows, _cut(len(published), "cells")),
    ]  # fmt: skip


def write_test(found: TestResult, histograms: Sequence[Any], names: Sequence[str], path: str | Path) -> Path:
    """Verdict, the noisy histograms beside the common distribution, and the statistic among the bootstrap's."""
    values = [np.asarray(getattr(x, "values", x), dtype=float).ravel() for x in histograms]
    verdict = (
        "The histograms differ by more than sampling and noise explain (level 5 %)."
        if found.reject()
        else "Sampling and noise explain the differences (level 5 %)."
    )
    parts = [
        "<h1>Test of noisy histograms</h1>",
        f'<p class="banner {"unsafe" if found.reject() else "safe"}">{verdict}</p>',
        facts(
            [
                ("P-value", f"{found.p_value:.4g}"),
                ("statistic", f"{found.statistic:.4g}"),
                ("replicates", f"{found.replicates:,}"),
                ("estimated sizes", ", ".join(f"{n:,}" for n in found.sizes)),
                ("χ² test that ignores the noise", f"{found.classical:.4g}"),
            ]
        ),
        figure(
            svg(_shares(found, values, names, _classes(histograms))),
            "Shares of the classes in each noisy histogram, and the estimated common distribution (black).",
        ),
        figure(
            svg(_bootstrap(found)),
            "Statistics of the bootstrap replicates under the hypothesis; red: the observed one.",
        ),
    ]
    return save_page(path, "Test of noisy histograms", "\n".join(parts))


def _classes(histograms: Sequence[Any]) -> list[str] | None:
    """Names of the classes, if a histogram has them."""
    for x in histograms:
        names = getattr(x, "labels", getattr(x, "index", None))
        if names is not None and not callable(names):
            return [str(n) for n in names]
    return None


def _cut(n: int, what: str) -> str:
    return f"The first {MOST} of {n:,} {what}." if n > MOST else f"{n:,} {what}."


def _bars(names: list[str], values: Any, reach: float) -> Figure:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(8, 3.6), layout="constrained")
    axes = drawn.add_subplot()
    at = np.arange(len(values))
    axes.bar(at, values, color="#7aa7d0")
    axes.errorbar(at, values, yerr=reach, fmt="none", ecolor="#1b1f24", elinewidth=1)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("released count")
    if len(names) <= 40:
        axes.set_xticks(at, names, rotation=90 if len(names) > 12 else 0, fontsize=8)
    return drawn


def _errors(frame: Any) -> Figure:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(8, 3.2), layout="constrained")
    axes = drawn.add_subplot()
    at = np.arange(len(frame))
    axes.bar(at - 0.2, frame["noise"], 0.4, label="noise", color="#c9d3dc")
    axes.bar(at + 0.2, frame["released"], 0.4, label="released", color="#3b82c4")
    axes.set_xticks(at, frame["level"], rotation=90 if len(frame) > 12 else 0, fontsize=8)
    axes.set(xlabel="level", ylabel="root mean square error")
    axes.legend(fontsize=8)
    return drawn


def _shares(found: TestResult, values: list[Any], names: Sequence[str], labels: list[str] | None) -> Figure:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(8, 3.6), layout="constrained")
    axes = drawn.add_subplot()
    at, wide = np.arange(found.p0.size), 0.8 / len(values)
    for k, (x, name) in enumerate(zip(values, names, strict=True)):
        axes.bar(at + (k - (len(values) - 1) / 2) * wide, x / (x.sum() or 1.0), wide, color=f"C{k}", label=name)
    axes.plot(at, found.p0, "_", color="black", markersize=10, label="common distribution")
    if found.p0.size <= 40:
        axes.set_xticks(at, labels or [str(j) for j in at], rotation=90 if len(at) > 12 else 0, fontsize=8)
    axes.set(xlabel="class", ylabel="share")
    axes.legend(fontsize=8)
    return drawn


def _bootstrap(found: TestResult) -> Figure:
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(8, 2.8), layout="constrained")
    axes = drawn.add_subplot()
    axes.hist(found.statistics, bins=40, color="#9db8d2")
    axes.axvline(found.statistic, color="#b3261e", linewidth=2)
    axes.set(xlabel="statistic", ylabel="replicates")
    return drawn
