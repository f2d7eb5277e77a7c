"""Tables, plots and a page from results, and the comparison of two result files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tabprotect.files import write_text
from tabprotect.report.page import figure as framed
from tabprotect.report.page import rows_table, save_page
from tabprotect.report.plots import growth, svg

if TYPE_CHECKING:
    import pandas as pd


def gap_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Per case and method: status, cost, gap to the proved bound and to the best value known (best-known or best of this run), time, safety."""
    best = frame.groupby("case")["objective"].transform("min")
    known = frame["best_known"].astype(float) if "best_known" in frame else np.nan
    reference = np.fmin(best, known)
    out = frame[["case", "cells", "primary", "method", "status", "objective"]].copy()
    out["gap"] = frame["gap"]
    out["above best"] = frame["objective"] / reference - 1
    out["seconds"] = frame["wall"]
    out["safe"] = frame.get("safe")
    return out


def compare_results(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Case by case: ratios new/old of time and cost, and the change of the gap; over 1 is worse."""
    keys = ["case", "method"]
    one, two = (f.groupby(keys)[["wall", "objective", "gap"]].min() for f in (old, new))
    both = one.join(two, lsuffix="_old", rsuffix="_new", how="inner").reset_index()
    both["time ratio"] = both["wall_new"] / both["wall_old"]
    both["cost ratio"] = both["objective_new"] / both["objective_old"]
    both["gap change"] = both["gap_new"] - both["gap_old"]
    return both[[*keys, "time ratio", "cost ratio", "gap change"]].sort_values("cost ratio", ascending=False)


def performance_profile(frame: pd.DataFrame, of: str = "wall") -> Any:
    """Share of cases that a method finishes within a factor of the best (Dolan and Moré, 2002), as a matplotlib figure."""
    from matplotlib.figure import Figure

    pivot = frame.pivot_table(index="case", columns="method", values=of, aggfunc="min")
    ratio = pivot.div(pivot.min(axis=1).clip(lower=1e-9), axis=0)
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    top = float(np.nanmax(ratio.to_numpy())) * 1.1
    for method in ratio:
        factors = np.sort(ratio[method].dropna().to_numpy())
        steps = np.arange(1, len(factors) + 1) / len(ratio)
        axes.step(
            [1, *factors, max(top, 2)], [0, *steps, steps[-1] if len(steps) else 0], where="post", label=str(method)
        )
    axes.set(xscale="log", xlabel=f"{of} as a multiple of the best method's", ylabel="share of cases", ylim=(0, 1.03))
    axes.legend()
    return figure


def save_plots(frame: pd.DataFrame, folder: str | Path) -> list[Path]:
    """Write ``profile.svg`` and ``growth.svg``."""
    where = Path(folder)
    where.mkdir(parents=True, exist_ok=True)
    drawn = {"profile": performance_profile(frame), "growth": growth(frame)}
    return [write_text(where / f"{name}.svg", svg(picture)) for name, picture in drawn.items()]


def write_html(frame: pd.DataFrame, path: str | Path) -> Path:
    """One page with the table of gaps, the performance profile and the growth curves."""
    table = gap_table(frame)
    rows = [[_cell(v) for v in row] for row in table.to_numpy(dtype=object).tolist()]
    parts = [
        "<h1>Benchmark</h1>",
        rows_table(list(table.columns), rows, "gap: to the proved bound; above best: to the best value known"),
        framed(
            svg(performance_profile(frame)), "Share of cases that a method finishes within a factor of the fastest."
        ),
        framed(svg(growth(frame)), "Median time against the number of cells, by family and method."),
    ]
    return save_page(path, "Benchmark", "\n".join(parts))


def _cell(v: Any) -> str:
    if v is None or (isinstance(v, float) and np.isnan(v)):
        return "–"
    return f"{v:,.4g}" if isinstance(v, float) else str(v)
