"""The study of the dissimilarity source: k-anonymity against microaggregation as k grows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tabprotect.errors import InputError
from tabprotect.microdata.distance import dissimilarity
from tabprotect.microdata.generalization import generalize
from tabprotect.microdata.microaggregation import microaggregate
from tabprotect.microdata.recipe import Deidentified, Recipe
from tabprotect.microdata.suppression import suppress_records
from tabprotect.microdata.synthetic import NOMINAL, NUMERIC, QUASI, accounts
from tabprotect.solve.stop import Listener, Stop

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

GROUPS = {"quasi-identifiers": QUASI, "nominal": NOMINAL, "numeric": NUMERIC}
HIERARCHIES: dict[str, Any] = {
    "sex": [],
    "age": [5, 10, 20],
    "region": [{f"r{i:02}": f"group {min(i, 7) // 2}" for i in range(16)}],
    "plan": [{f"p{i:02}": f"tier {i // 4}" for i in range(8)}],
    "tenure": [6, 12, 24, 72],
    "job": [{f"j{i:02}": f"field {i // 3}" for i in range(12)}, {f"j{i:02}": f"sector {i // 6}" for i in range(12)}],
}


@dataclass(frozen=True)
class AnonymityStudy:
    """``table``: one row per model, k and convention: survival and dissimilarity in total and by group of attributes."""

    table: pd.DataFrame
    levels: dict[str, int]
    records: int

    def _model(self, name: str, convention: str) -> pd.DataFrame:
        t = self.table
        return t[(t["model"] == name) & (t["convention"] == convention)].set_index("k").sort_index()

    def claims(self) -> dict[str, bool]:
        """The source's findings, checked on these numbers (in the printed convention)."""
        anon, agg = self._model("k-anonymity", "printed"), self._model("microaggregation", "printed")
        grows = agg["total"].diff().dropna()
        return {
            "survival falls with k for both models": bool(
                (anon["survival"].diff().dropna() <= 0).all() and (agg["survival"].diff().dropna() <= 0).all()
            ),
            "k-anonymity survives slightly more records": bool((anon["survival"] >= agg["survival"]).all()),
            "k-anonymity leaves sensitive attributes unchanged": bool((anon[["nominal", "numeric"]] == 0).all().all()),
            "k-anonymity changes quasi-identifiers more": bool(
                (anon["quasi-identifiers"] > agg["quasi-identifiers"]).all()
            ),
            "microaggregation has the smaller total dissimilarity": bool((agg["total"] < anon["total"]).all()),
            "microaggregation's dissimilarity grows slowly with k": bool(
                (grows >= 0).all() and agg["total"].iloc[-1] < anon["total"].iloc[-1]
            ),
        }

    def figure(self, convention: str = "printed") -> Figure:
        """Survival, and dissimilarity in total, of quasi-identifiers, nominal and numeric attributes, over k."""
        from matplotlib.figure import Figure

        fig = Figure(figsize=(12, 6), layout="constrained")
        axes = fig.subplots(2, 3).ravel()
        titles = {
            "survival": "survival rate",
            "total": "dissimilarity, all attributes",
            **{g: f"dissimilarity, {g}" for g in GROUPS},
        }
        for ax, (name, title) in zip(axes, titles.items(), strict=False):
            for model, style in (("k-anonymity", "o-"), ("microaggregation", "s--")):
                part = self._model(model, convention)
                ax.plot(part.index, part[name], style, ms=4, label=model)
            ax.set_title(title, fontsize=10)
            ax.set_xlabel("k")
            ax.set_xscale("log")
            ax.set_xticks(part.index, [str(k) for k in part.index], minor=False)
            ax.minorticks_off()
        axes[0].legend()
        axes[5].axis("off")
        return fig


def anonymity_study(
    *,
    records: int = 20_000,
    ks: Sequence[int] = (2, 3, 5, 10, 20, 50),
    seed: int = 2017,
    quick: bool = False,
    data: Any = None,
    suppression: float = 0.01,
    progress: Listener | None = None,
) -> AnonymityStudy:
    """Survival rate and dissimilarity of k-anonymity and of microaggregation for growing k.

    k-anonymity: the best recoding of the six quasi-identifiers for the largest k (at most the share ``suppression`` of records lost), kept for all k, and the
    records of classes below k dropped. Microaggregation: all 24 attributes, groups of exactly k of the same sex and region; what does not fill a group is
    dropped.

    quick: 4,000 records and three values of k.

    >>> anonymity_study(records=1500, ks=(2, 5)).table.shape
    (8, 8)

    Reference: Kang, Oh, Yong and Lee (2017), figures 1 and 2.
    """
    import pandas as pd

    if quick:
        records, ks = min(records, 4000), (2, 5, 10)
    if len(ks) < 2 or min(ks) < 2:
        raise InputError("the study needs at least two values of k, all of at least 2")
    frame = accounts(records, seed) if data is None else data
    stop = Stop(listener=progress)
    coarse = generalize(frame, hierarchies=HIERARCHIES, k=max(ks), suppression=suppression, time_limit=30)
    recoded = Recipe(coarse.recipe.steps[:1]).apply(frame)
    rows: list[dict[str, Any]] = []
    for done, k in enumerate(sorted(ks), 1):
        anonymous = suppress_records(recoded, keys=list(QUASI), k=k)
        grouped = microaggregate(
            frame,
            columns=["age", "plan", "tenure", "job", *NOMINAL, *NUMERIC],
            k=k,
            within=["sex", "region"],
            leftover="drop",
        )
        for model, released in (("k-anonymity", anonymous), ("microaggregation", grouped)):
            rows += [_row(frame, released, model, k, convention) for convention in ("printed", "normalised")]
        stop.tell("k", done=done, total=len(ks))
    return AnonymityStudy(pd.DataFrame(rows), dict(coarse.details["levels"]), len(frame))


def _row(frame: Any, released: Deidentified, model: str, k: int, convention: str) -> dict[str, Any]:
    found = dissimilarity(frame, released, groups=GROUPS, convention=convention)
    return {
        "model": model,
        "k": k,
        "convention": convention,
        "survival": found.survival,
        "total": found.RTab,
        **found.groups,
    }
