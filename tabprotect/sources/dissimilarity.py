"""Source "dissimilarity" (2017): how far de-identified data are from the original, k-anonymity against microaggregation."""

from __future__ import annotations

from typing import Any

import numpy as np

from tabprotect.microdata import dissimilarity
from tabprotect.microdata.study import AnonymityStudy, anonymity_study
from tabprotect.solve.stop import Listener
from tabprotect.sources.claim import Claim, Reproduction, number, statement

NORMALISED = (
    "as printed, a wrong nominal value counts as distance 0; counting it as 1 (convention “normalised”) turns the finding round, "
    "because microaggregation replaces most nominal sensitive values"
)


def reproduce(
    *, quick: bool = False, progress: Listener | None = None, study: AnonymityStudy | None = None, **options: Any
) -> Reproduction:
    """The definitions on small files, and the findings of figures 1 and 2 on a seeded stand-in.

    study: a finished `anonymity_study`; ``options`` are passed to it otherwise (``records``, ``ks``).
    """
    study = study or anonymity_study(quick=quick, progress=progress, **options)
    frame = study.table.round(6)
    return Reproduction(
        "dissimilarity",
        "Dissimilarity of de-identified data (2017)",
        "Kang, Oh, Yong and Lee, *A study on the preservation of similarity of privated data*, 2017.",
        (*_definitions(), *_figure1(study), *_figure2(study)),
        {"printed": study.figure("printed"), "normalised": study.figure("normalised")},
        {"study": frame},
        notes=(
            "The 8,000,000 credit records of a telephone company are not available. A seeded file of "
            f"{study.records:,} made-up records with the same 24 attributes (6 quasi-identifiers, 7 nominal and 11 numeric sensitive attributes) stands in; the "
            "figures are printed without numbers, so directions and orderings are compared. Real data can be passed to "
            "`tabprotect.microdata.study.anonymity_study(data=…)`.",
            f"Recoding chosen for k-anonymity (level per quasi-identifier): {', '.join(f'{k} {v}' for k, v in study.levels.items())}.",
        ),
        captions={
            "printed": "Figures 1 and 2, distance as printed (a value outside the set counts 0).",
            "normalised": "The same with the normalised distance (a value outside the set counts 1).",
        },
        quick=quick,
    )


def _definitions() -> list[Claim]:
    """Section 3 on files small enough to compute by hand."""
    import pandas as pd

    ages = pd.DataFrame({"age": [20, 30, 40, 60]})
    moved = dissimilarity(ages, pd.DataFrame({"age": [25, 30, 40, 60]}), convention="printed")
    regions = pd.DataFrame({"region": ["a", "b", "c", "d"]})
    released = pd.DataFrame({"region": ["ab", "ab", "cd", "cd"]})
    meaning = {"region": {"ab": ["a", "b"], "cd": ["c", "d"]}}
    printed, fair = (dissimilarity(regions, released, meaning=meaning, convention=c) for c in ("printed", "normalised"))
    wrong = pd.DataFrame({"region": ["b", "b", "c", "d"]})
    outside = [dissimilarity(regions, wrong, convention=c).RTab for c in ("printed", "normalised")]
    return [
        number("section 3: numeric, |20 − 25| / (60 − 20)", "0.125", float(moved.RCol["age"][0])),
        number("section 3: categorical, set of 2 of 4 values, (2 − 1)/4", "0.25", float(printed.RCol["region"][0])),
        number("section 3: RTab is the mean over records and attributes, (5/40)/4", "0.03125", moved.RTab),
        statement(
            "section 3: a value outside the set counts 0",
            "0",
            f"{outside[0]:g} printed, {outside[1]:g} normalised",
            outside[0] == 0,
            remark="rewards a wrong value; the normalised convention counts 1",
        ),
        statement(
            "section 3: distances reach the whole of [0, 1]",
            "0 ≤ RCol ≤ 1",
            f"a fully generalised value: printed 3/4, normalised {_whole():g}; set of 2 of 4: {fair.RCol['region'][0]:.4f}",
            _whole() == 1.0,
            remark="the printed divisor |distinct| keeps 1 out of reach; normalised divides by |distinct| − 1",
        ),
    ]


def _whole() -> float:
    import pandas as pd

    regions, all_of_them = pd.DataFrame({"r": list("abcd")}), pd.DataFrame({"r": ["*"] * 4})
    return dissimilarity(regions, all_of_them, convention="normalised").RTab


def _lines(study: AnonymityStudy, convention: str, column: str) -> tuple[Any, Any, str]:
    """k-anonymity's and microaggregation's values over k, and both as text."""
    parts = {}
    t = study.table[study.table["convention"] == convention]
    for model in ("k-anonymity", "microaggregation"):
        parts[model] = t[t["model"] == model].sort_values("k")[column].to_numpy()
    text = "; ".join(f"{m} {' → '.join(f'{v:.4g}' for v in values)}" for m, values in parts.items())
    return parts["k-anonymity"], parts["microaggregation"], text


def _figure1(study: AnonymityStudy) -> list[Claim]:
    ks = ", ".join(str(k) for k in sorted(study.table["k"].unique()))
    anonymous, grouped, text = _lines(study, "printed", "survival")
    return [
        statement(
            "figure 1: survival of k-anonymity is slightly better", "higher", text, bool((anonymous >= grouped).all()),
            remark=f"k = {ks}",
        ),
        statement(
            "figure 1: survival falls with k", "falling", text,
            bool((np.diff(anonymous) <= 0).all() and (np.diff(grouped) <= 0).all()),
        ),
    ]  # fmt: skip


def _figure2(study: AnonymityStudy) -> list[Claim]:
    claims = []
    anonymous, grouped, text = _lines(study, "printed", "total")
    claims += [
        statement(
            "figure 2a: microaggregation has the smaller total dissimilarity", "smaller", text, bool((grouped < anonymous).all()),
            remark="one sentence of the text says “higher”, the others and the conclusion say smaller",
        ),
        statement(
            "figure 2a: microaggregation's grows slightly with k", "growing", text, bool((np.diff(grouped) >= 0).all())
        ),
    ]  # fmt: skip
    fair_anonymous, fair_grouped, fair = _lines(study, "normalised", "total")
    claims.append(
        statement(
            "figure 2a: the same when wrong values count", "smaller", fair, bool((fair_grouped < fair_anonymous).all()), remark=NORMALISED
        )
    )  # fmt: skip
    anonymous, grouped, text = _lines(study, "printed", "quasi-identifiers")
    claims.append(
        statement(
            "figure 2b: k-anonymity changes quasi-identifiers much more", "larger", text, bool((anonymous > grouped).all())
        )
    )  # fmt: skip
    for name, what in (("nominal", "figure 2c"), ("numeric", "figure 2d")):
        anonymous, grouped, text = _lines(study, "printed", name)
        claims.append(
            statement(f"{what}: k-anonymity leaves {name} sensitive attributes alone", "0", text, not anonymous.any())
        )
        claims.append(
            statement(
                f"{what}: microaggregation changes {name} sensitive attributes", "above 0", text, bool((grouped > 0).all()),
                why="as printed, a nominal value replaced by another one counts 0; normalised it is "
                + _lines(study, "normalised", name)[2].split("; ")[1],
            )
        )  # fmt: skip
    return claims
