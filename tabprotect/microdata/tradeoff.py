"""Risk against loss over a range of k: what protection costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tabprotect.errors import Infeasible, InputError
from tabprotect.microdata.disclosure import risk
from tabprotect.microdata.distance import dissimilarity
from tabprotect.microdata.generalization import generalize
from tabprotect.microdata.microaggregation import microaggregate
from tabprotect.microdata.recipe import Deidentified

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


def trade_off(
    data: Any,
    *,
    keys: Sequence[str],
    hierarchies: Mapping[str, Any] | None = None,
    ks: Sequence[int] = (2, 3, 5, 10, 20),
    sensitive: str | None = None,
    fraction: float = 1.0,
    suppression: float = 0.01,
    time_limit: float = 10.0,
) -> pd.DataFrame:
    """Risk and dissimilarity of the keys for recoding (if hierarchies are given) and microaggregation of the keys, over k.

    >>> import pandas as pd, tabprotect as tp
    >>> df = pd.DataFrame({"age": range(20, 60), "pay": range(40)})
    >>> tp.microdata.trade_off(df, keys=["age"], hierarchies={"age": [5, 10]}, ks=[2, 5])["method"].tolist()
    ['as it is', 'recoding', 'microaggregation', 'recoding', 'microaggregation']
    """
    import pandas as pd

    start = Deidentified.start(data)
    rows = [_row(data, start, "as it is", 1, keys, sensitive, fraction)]
    for k in ks:
        for method in ("recoding", "microaggregation"):
            try:
                if method == "recoding":
                    if hierarchies is None:
                        continue
                    done = generalize(
                        start, hierarchies=hierarchies, k=k, suppression=suppression, time_limit=time_limit
                    )
                else:
                    done = microaggregate(start, columns=keys, k=k)
            except (Infeasible, InputError):
                continue  # this k is out of reach for the method: no point in the plot
            rows.append(_row(data, done, method, k, keys, sensitive, fraction))
    return pd.DataFrame(rows)


def _row(
    data: Any, done: Deidentified, method: str, k: int, keys: Sequence[str], sensitive: str | None, fraction: float
) -> dict[str, Any]:
    found = risk(done.data, keys=keys, sensitive=sensitive, fraction=fraction)
    far = dissimilarity(data, done, columns=list(keys))
    return {
        "method": method, "k": k, "k reached": found.k, "uniques": found.P1, "same sensitive value": found.P2,
        "match risk": found.classes_count / max(found.n, 1), "dissimilarity": far.RTab, "survival": far.survival,
    }  # fmt: skip


def trade_off_figure(table: pd.DataFrame) -> Figure:
    """Match risk (mean of 1/class size) against the dissimilarity of the keys."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(7, 4), layout="constrained")
    ax = fig.subplots()
    for (method, part), mark in zip(table.groupby("method", sort=False), ("D", "o", "s"), strict=False):
        ax.plot(part["dissimilarity"], part["match risk"], mark + "-", label=str(method), ms=5)
        for x, y, k in zip(part["dissimilarity"], part["match risk"], part["k"], strict=True):
            ax.annotate(f"k={k}", (x, y), textcoords="offset points", xytext=(4, 4), fontsize=8)
    ax.set_yscale("log")
    ax.set_xlabel("dissimilarity of the keys (RTab)")
    ax.set_ylabel("mean match probability")
    ax.legend()
    return fig
