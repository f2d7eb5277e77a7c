"""Risk and utility of several ways to protect one table, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.protected import Protected
from tabprotect.table.table import Table
from tabprotect.types import FloatArray

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False, repr=False)
class Comparison:
    """One row per result: what is kept, how far values moved, and what an attacker gets of the sensitive cells.

    ``table`` (a frame) has the columns ``hidden`` (cells), ``kept`` (share of the table's information still shown: Σ of the values shown, each less its own change, over Σ of all
    values), ``changed`` (cells), ``largest_change``, ``mean_share`` (mean relative change of the cells shown), ``width`` (median width of the attacker's interval of a sensitive
    cell, relative to its value), ``narrowest`` (the smallest), ``recovered`` (sensitive cells known exactly), ``exposed`` (sensitive cells whose levels are missed) and ``seconds``.
    """

    table: pd.DataFrame

    def plot(self, path: str | Path | None = None) -> Any:
        """Risk against utility, one point per result; written to ``path`` (.svg, .png, .pdf) if given. Returns the matplotlib figure."""
        return draw(self.table, path)

    def to_html(self, path: str | Path) -> Path:
        """Write one page with the plot and the table."""
        from tabprotect.report.page import figure, rows_table, save_page
        from tabprotect.report.plots import svg

        lines = [
            [str(name), *(_short(v) for v in row)]
            for name, row in zip(self.table.index, self.table.values.tolist(), strict=True)
        ]
        caption = "Information lost against the width of the attacker's interval of a sensitive cell; a cross marks results with exposed cells."
        body = f"<h1>Ways to protect one table</h1>{figure(svg(self.plot()), caption)}{rows_table(['result', *self.table.columns], lines)}"
        return save_page(path, "Comparison", body)

    def summary(self) -> str:
        """The table as text."""
        return self.table.to_string(float_format=lambda v: f"{v:.4g}")

    def _repr_html_(self) -> str:
        return str(self.table.to_html(float_format=lambda v: f"{v:.4g}"))

    def __repr__(self) -> str:
        return f"<Comparison of {len(self.table)} results>\n{self.summary()}"


def _short(v: Any) -> str:
    return f"{v:,.4g}" if isinstance(v, float) else f"{v:,}" if isinstance(v, int) else str(v)


def compare(
    table: Table, results: Mapping[str, Protected], *, path: str | Path | None = None, time_limit: float | None = 60.0
) -> Comparison:
    """Compare protected versions of one table: information kept, largest change, intervals the attacker gets; ``path`` writes the plot.

    >>> import tabprotect as tp
    >>> table = tp.examples.d272().mark(tp.rules.Threshold(2))
    >>> found = compare(table, {"round": tp.round(table, base=5), "cta": tp.adjust(table)})
    >>> int(found.table.loc["round", "hidden"]), int(found.table.loc["cta", "recovered"])
    (0, 0)
    """
    if not results:
        raise InputError("nothing to compare: give results as {name: result}")
    for name, res in results.items():
        if res.table.n_cells != table.n_cells or not np.array_equal(res.table.values, table.values):
            raise InputError(f"result {name!r} is of another table")
    import pandas as pd

    rows = {name: _row(table, res, time_limit) for name, res in results.items()}
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame.index.name = "result"
    out = Comparison(frame)
    if path is not None:
        out.plot(path)
    return out


def _row(table: Table, res: Protected, time_limit: float | None) -> dict[str, Any]:
    shown = ~res.suppressed
    size = np.abs(table.values)
    change = np.where(shown, np.abs(res.values - table.values), 0.0)
    kept = np.maximum(size - change, 0.0)[shown].sum() / max(size.sum(), 1e-300)
    share = change[shown] / np.where(size[shown] == 0, 1.0, size[shown])
    lower, upper = _intervals(res, time_limit)
    primary = table.primary
    width = (upper - lower)[primary] / np.where(size[primary] == 0, 1.0, size[primary])
    lpl, upl, spl = table.needed_levels()
    slack = 1e-7 * np.maximum(1.0, size)
    misses = (table.values - lower < lpl - slack) | (upper - table.values < upl - slack) | (upper - lower < spl - slack)
    exact = primary & (upper - lower < 1e-7 * np.maximum(1.0, size))
    return {
        "kind": res.kind,
        "method": res.method,
        "hidden": int((~shown).sum()),
        "kept": float(kept),
        "changed": int((change > 0).sum()),
        "largest_change": float(change.max(initial=0.0)),
        "mean_share": float(share.mean()) if shown.any() else float("nan"),
        "width": float(np.median(width)) if primary.any() else float("nan"),
        "narrowest": float(width.min()) if primary.any() else float("nan"),
        "recovered": int(exact.sum()),
        "exposed": int((primary & misses).sum()),
        "seconds": res.runtime,
    }


def _intervals(res: Protected, time_limit: float | None) -> tuple[FloatArray, FloatArray]:
    """What an outsider knows of every cell."""
    primary = res.table.primary
    if res.kind == "round":
        from tabprotect.rounding import rounding_intervals

        return rounding_intervals(res, cells=primary, time_limit=time_limit)
    if res.kind == "adjust":
        from tabprotect.adjustment import adjustment_intervals

        # the same knowledge as of a rounded table: how far cells that are not sensitive moved at most
        accuracy = res.info.get("largest_share_other")
        usable = accuracy if accuracy is not None and accuracy < 1 else None
        return adjustment_intervals(res, accuracy=usable, time_limit=time_limit)
    from tabprotect.attacker import attack

    found = attack(res, time_limit=time_limit)
    lower, upper = np.array(res.table.values), np.array(res.table.values)
    lower[found.cells], upper[found.cells] = found.lower, found.upper
    return lower, upper


def draw(frame: pd.DataFrame, path: str | Path | None = None) -> Any:
    """Points: information lost (right is worse) against the median width of the attacker's interval (up is safer)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    lost = 1.0 - frame["kept"]
    for name, x, y, exposed in zip(frame.index, lost, frame["width"], frame["exposed"], strict=True):
        axes.scatter([x], [y], marker="o" if exposed == 0 else "X", s=60)
        axes.annotate(str(name), (x, y), textcoords="offset points", xytext=(6, 6))
    axes.set_xlabel("information lost (share of the values)")
    axes.set_ylabel("median width of the attacker's interval\nof a sensitive cell, relative to its value")
    axes.set_title("● all levels honoured   ✖ some sensitive cell exposed", fontsize=9)
    axes.margins(0.15)
    if path is not None:
        target = Path(path)
        part = target.with_name("." + target.stem + ".part" + target.suffix)
        figure.savefig(part, dpi=150)
        part.rename(target)
    return figure
