"""Source "similarity" (2012): disclosure risk of a microdata sample by similarity of the sensitive values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tabprotect.microdata import risk
from tabprotect.microdata.study import ThetaStudy, theta_study
from tabprotect.solve.stop import Listener
from tabprotect.sources.claim import Claim, Reproduction, number, statement
from tabprotect.sources.similarity_printed import TABLE43, TABLE44, TABLE45

if TYPE_CHECKING:
    import pandas as pd

# table 1.1: department, sex, year, grade
TABLE11 = [
    *((("statistics", "m", 2), g) for g in ("B", "B", "B")),
    *((("administration", "m", 3), g) for g in ("C", "B", "A")),
    *((("administration", "f", 3), g) for g in ("C", "B", "A")),
    *((("sociology", "m", 2), g) for g in ("A", "C", "B+")),
]
# table 3.1: the sample, and the population by class
SAMPLE = [
    ("m", "A", "C"), ("m", "A", "C"), ("m", "C", "F"), ("m", "D", "A"), ("m", "D", "A"),
    ("m", "D", "C"), ("m", "G", "C"), ("f", "B", "B"), ("f", "B", "A"), ("f", "H", "C"),
]  # fmt: skip
PEOPLE = {
    ("m", "A"): 9, ("m", "C"): 19, ("m", "D"): 20, ("m", "F"): 10,
    ("m", "G"): 3, ("f", "B"): 21, ("f", "G"): 3, ("f", "H"): 15,
}  # fmt: skip
# section 3.2 and 3.3: sensitive values of one class, tolerance, how often the class is counted in n(2) or n(3)
EXAMPLES = [
    ((100, 100, 150), None, 1), ((100, 150, 150), None, 1), ((100, 100, 100, 150), None, 1),
    ((100, 150, 150, 150), None, 1), ((100, 100, 150, 150), None, 0),
    ((100, 120, 150), 20, 1), ((100, 120, 140), 20, 2), ((100, 125, 150), 20, 0),
]  # fmt: skip


def reproduce(
    *, quick: bool = False, progress: Listener | None = None, study: ThetaStudy | None = None, **options: Any
) -> Reproduction:
    """The worked examples to the digit, and the study of tables 4.3 to 4.5 on a seeded stand-in for the survey.

    study: a finished `theta_study`; ``options`` are passed to it otherwise (``samples``, ``seed``, ``population``).
    """
    study = study or theta_study(quick=quick, progress=progress, **options)
    compared = _compared(study)
    return Reproduction(
        "similarity",
        "Disclosure risk of microdata by similarity (2012)",
        "Cho, Kwon and Lee, *Study on a measurement of disclosure risk of microdata by similarity*, 2012.",
        (*_examples(), *_study(study, compared), *_table45(study)),
        {"study": study.figure()},
        {"table-4.3-4.4": compared, "table-4.5": study.histogram().reset_index(names="interval")},
        notes=(
            "The household survey of 2010 is not available. A seeded population of "
            f"{study.records:,} made-up households with the same variables and ranges stands in, {study.samples:,} samples per setting; its digits cannot "
            "be those of the source, so the findings are compared: which estimator is better, and whether estimate and truth agree. "
            "A real file can be passed to `tabprotect.microdata.study.theta_study(population=…)`. "
            "The file `figures/similarity-table-4.3-4.4.csv` has all 36 settings, printed and ours side by side.",
            "The tolerance for incomes is not printed for the study; 300,000 won, the example of section 3.3, is used.",
        ),
        captions={"study": "MAPE in the 36 settings (tables 4.3 and 4.4), and the errors of table 4.5 and figure 4.1."},
        quick=quick,
    )


def _examples() -> list[Claim]:
    import pandas as pd

    course = pd.DataFrame([(*key, grade) for key, grade in TABLE11], columns=["dept", "sex", "year", "grade"])
    first = risk(course, keys=["dept", "sex", "year"], sensitive="grade")
    sample = pd.DataFrame(SAMPLE, columns=["sex", "school", "grade"])
    people = pd.DataFrame([(*key, n) for key, n in PEOPLE.items()], columns=["sex", "school", "n"])
    found = risk(
        sample, keys=["sex", "school"], sensitive="grade", fraction=0.1, population=people, population_count="n"
    )
    claims = [
        number("table 1.1: k-anonymity of the course", "3", first.k),
        statement("table 1.1: one class has a single grade (l-diversity)", "l = 1", f"l = {first.l}", first.l == 1),
        number("table 3.1: θ1 = 3/37", "0.081", _number(found.theta1)),
        number("table 3.1: θ2 = 5/46", "0.109", _number(found.theta2)),
        number(
            "table 3.1: θ̂1, not printed, 0.3/3.9 from the formula", "0.0769", _number(found.theta1_hat)
        ),
        number("table 3.1: θ̂2, not printed, 0.5/5.0 from the formula", "0.100", _number(found.theta2_hat)),
    ]  # fmt: skip
    for values, tolerance, counted in EXAMPLES:
        place, name = ("section 3.2", "n(2)") if tolerance is None else ("section 3.3", "n(3), c = 20")
        item = f"{place}: {name} counts ({', '.join(map(str, values))})"
        claims.append(number(item, str(counted), _lone(values, tolerance)))
    return claims


def _lone(values: tuple[int, ...], tolerance: float | None) -> float:
    """n(2) or n(3) of one class, recovered from θ̂ (p = 1/2: θ̂ = A/(A + B + n), one class that counts beside it)."""
    import pandas as pd

    frame = pd.DataFrame({"key": ["x"] * len(values) + ["y"], "v": [*map(float, values), 1.0]})
    found = risk(frame, keys=["key"], sensitive="v", fraction=0.5, tolerance=tolerance)
    theta = _number(found.theta2_hat if tolerance is None else found.theta3_hat)
    return round(1 / theta - 1, 9)


def _number(value: float | None) -> float:
    return float("nan") if value is None else float(value)


def _compared(study: ThetaStudy) -> pd.DataFrame:
    """Tables 4.3 and 4.4, printed and ours in one frame."""
    import pandas as pd

    rows = []
    names = ["theta1", "theta1_hat", "theta2", "theta2_hat", "mape1", "mape2", "theta3", "theta3_hat", "mape3"]
    for setting, a, b in zip(study.table.to_dict("records"), TABLE43, TABLE44, strict=True):
        printed = (*a, b[2], b[3], b[5])
        row: dict[str, Any] = {"recoding": setting["recoding"], "fraction": setting["fraction"]}
        for name, value in zip(names, printed, strict=True):
            row[f"{name} printed"], row[f"{name} ours"] = value, round(float(setting[name]), 4)
        rows.append(row)
    return pd.DataFrame(rows)


def _study(study: ThetaStudy, compared: pd.DataFrame) -> list[Claim]:
    """The findings drawn from tables 4.3 and 4.4, checked on the printed numbers too, and the raw 20 % setting digit by digit."""
    t, claims, n = study.table, [], len(study.table)
    for i, place, printed_row in ((2, "table 4.3", TABLE43[0]), (3, "table 4.4", TABLE44[0])):
        better = int((t[f"mape{i}"] < t["mape1"]).sum())
        printed = int((compared[f"mape{i} printed"] < compared["mape1 printed"]).sum())
        off = np.abs(t[f"theta{i}_hat"] / t[f"theta{i}"] - 1)
        printed_off = np.abs(compared[f"theta{i}_hat printed"] / compared[f"theta{i} printed"] - 1)
        ratio = t[f"theta{i}"] / t["theta1"]
        printed_ratio = compared[f"theta{i} printed"] / compared["theta1 printed"]
        claims += [
            statement(
                f"{place}: settings with MAPE(θ{i}) < MAPE(θ1)", f"{printed} of 36", f"{better} of {n}", better == n
            ),
            statement(
                f"{place}: mean θ̂{i} agrees with mean θ{i}",
                f"median difference {100 * printed_off.median():.1f} %, largest {100 * printed_off.max():.1f} %",
                f"median difference {100 * off.median():.1f} %, largest {100 * off.max():.1f} %",
                bool(off.median() < 0.05),
            ),
            statement(
                f"{place}: θ{i} is of the size of θ1",
                f"median ratio {printed_ratio.median():.3f}",
                f"median ratio {ratio.median():.3f}",
                bool(np.abs(ratio - 1).median() < 0.25),
            ),
        ]
        columns = ("theta1", "theta1_hat", f"theta{i}", f"theta{i}_hat", "mape1", f"mape{i}")
        names = ("mean θ1", "mean θ̂1", f"mean θ{i}", f"mean θ̂{i}", "MAPE(θ1) in %", f"MAPE(θ{i}) in %")
        for name, column, value in zip(names, columns, printed_row, strict=True):
            claims.append(_digits(f"{place}: raw keys, 20 %, {name}", value, float(t[column].iloc[0])))
    return claims


def _digits(item: str, printed: float, ours: float) -> Claim:
    """A number that depends on the survey: shown side by side, never counted as agreement."""
    return Claim(item, f"{printed:.4g}", f"{ours:.4g}", "explained", "made-up households in place of the survey")


def _table45(study: ThetaStudy) -> list[Claim]:
    sd, mean = study.errors.std(ddof=1), study.errors.mean()
    order = bool(sd["theta3"] < sd["theta2"] < sd["theta1"])
    claims = [
        statement(
            "table 4.5: sd(θ̂3 − θ3) < sd(θ̂2 − θ2) < sd(θ̂1 − θ1)",
            "0.0133 < 0.0164 < 0.0255",
            " < ".join(f"{sd[f'theta{i}']:.4f}" for i in (3, 2, 1)) if order else str(sd.round(4).to_dict()),
            order,
        )
    ]
    for i in (1, 2, 3):
        printed_mean, printed_sd = TABLE45[i]
        claims.append(_digits(f"table 4.5: sd of θ̂{i} − θ{i}", printed_sd, float(sd[f"theta{i}"])))
        error = float(mean[f"theta{i}"])
        # the mean of n errors of this spread is within three standard errors of zero when the estimator is unbiased
        limit = 3 * float(sd[f"theta{i}"]) / np.sqrt(len(study.errors)) + 0.002
        claims.append(
            statement(
                f"table 4.5: mean of θ̂{i} − θ{i} is near 0", f"{printed_mean:.4f}", f"{error:.4f}", abs(error) < limit
            )
        )
    return claims
