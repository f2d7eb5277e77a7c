"""The study of the similarity source: how well θ̂ estimates θ in 36 settings of recoding and sampling fraction."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numba as nb
import numpy as np

from tabprotect.errors import InputError
from tabprotect.microdata.encode import combine, encode, group
from tabprotect.microdata.frames import read, with_columns
from tabprotect.microdata.recoding import Recoding
from tabprotect.microdata.synthetic import households
from tabprotect.solve.stop import Listener, Stop
from tabprotect.types import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

AGE = {
    "a0": None,
    "a1": Recoding("bands", width=5, low=20, high=80),
    "a2": Recoding("bands", width=10, low=20, high=80),
}
SIZE = {"m0": None, "m1": Recoding("cuts", edges=(2, 4, 6)), "m2": Recoding("cuts", edges=(3, 5))}
FRACTIONS = (0.20, 0.10, 0.05, 0.02)
TOLERANCE = 300_000.0  # 300,000 won, the source's example of a similar income


@dataclass(frozen=True)
class ThetaStudy:
    """``table``: one row per setting with the mean θ, mean θ̂ and MAPE of each measure; ``errors``: θ̂ − θ in the raw 20 % setting."""

    table: pd.DataFrame
    errors: pd.DataFrame = field(repr=False)
    samples: int
    records: int

    def histogram(self, width: float = 0.01) -> pd.DataFrame:
        """Frequencies of θ̂ − θ, the source's table 4.5, with mean and standard deviation in the last two rows."""
        import pandas as pd

        top = np.ceil(self.errors.abs().to_numpy().max() / width + 0.5)
        edges = (np.arange(-top, top + 1) - 0.5) * width
        counts = {c: np.histogram(self.errors[c], edges)[0] for c in self.errors}
        frame = pd.DataFrame(counts, index=[f"({a:.3f}, {b:.3f}]" for a, b in pairwise(edges)])
        frame.loc["mean"] = self.errors.mean()
        frame.loc["sd"] = self.errors.std(ddof=1)
        return frame

    def claims(self) -> dict[str, bool]:
        """The source's findings, checked on these numbers."""
        t, sd = self.table, self.errors.std(ddof=1)
        return {
            "MAPE(θ2) < MAPE(θ1) in every setting": bool((t["mape2"] < t["mape1"]).all()),
            "MAPE(θ3) < MAPE(θ1) in every setting": bool((t["mape3"] < t["mape1"]).all()),
            "mean θ̂2 and θ̂3 agree with mean θ2 and θ3 (within a fifth)": all(
                bool((np.abs(t[f"theta{i}_hat"] / t[f"theta{i}"] - 1) < 0.2).all()) for i in (2, 3)
            ),
            "sd(θ̂3−θ3) < sd(θ̂2−θ2) < sd(θ̂1−θ1)": bool(sd["theta3"] < sd["theta2"] < sd["theta1"]),
        }

    def figure(self) -> Figure:
        """MAPE of the three measures by setting, and the distribution of θ̂ − θ."""
        from matplotlib.figure import Figure

        fig = Figure(figsize=(11, 4.2), layout="constrained")
        left, right = fig.subplots(1, 2, width_ratios=[1.7, 1])
        at = np.arange(len(self.table))
        for i, mark in ((1, "o"), (2, "s"), (3, "^")):
            left.plot(at, self.table[f"mape{i}"], mark + "-", ms=4, lw=1, label=f"θ{i}")
        left.set_yscale("log")
        left.set_xticks(
            at,
            [f"{r} {f:.0%}" for r, f in zip(self.table["recoding"], self.table["fraction"], strict=True)],
            rotation=90,
            fontsize=7,
        )
        left.set_ylabel("MAPE, %")
        left.legend()
        for name, style in (("theta1", "-"), ("theta2", "--"), ("theta3", ":")):
            count, edges = np.histogram(self.errors[name], bins=30)
            right.stairs(count, edges, label=f"{name.replace('theta', 'θ̂')} − {name.replace('theta', 'θ')}", ls=style)
        right.set_xlabel("error of the estimate, raw keys, 20 % sample")
        right.set_ylabel("samples")
        right.legend()
        return fig


def theta_study(
    *,
    samples: int = 1000,
    seed: int = 0,
    quick: bool = False,
    population: Any = None,
    tolerance: float = TOLERANCE,
    executor: Executor | None = None,
    progress: Listener | None = None,
) -> ThetaStudy:
    """Mean θ, mean θ̂ and MAPE over many samples, for 9 recodings × 4 sampling fractions.

    population: a frame with sex, age, size, education and income; by default the seeded stand-in for the survey.
    quick: 60 samples per setting, for a smoke test.

    >>> theta_study(samples=20).table.shape
    (36, 11)

    Reference: Cho, Kwon and Lee (2012), tables 4.3 to 4.5. Their m1 is misprinted as "2–3, 3–5"; it is 2–3, 4–5 here. MAPE averages over
    samples with θ > 0.
    """
    import pandas as pd

    samples = min(samples, 60) if quick else samples
    if samples < 2:
        raise InputError("a study needs at least 2 samples per setting")
    frame = read(households() if population is None else population, ["sex", "age", "size", "education", "income"])
    values = {c: frame.get_column(c).to_numpy().astype(np.float64) for c in ("education", "income")}
    jobs: list[tuple[Any, ...]] = []
    for a, by_age in AGE.items():
        for m, by_size in SIZE.items():
            classes = _classes(frame, by_age, by_size)
            jobs += [
                (f"{a}{m}", f, classes, values, tolerance, samples, (seed, len(jobs), i))
                for i, f in enumerate(FRACTIONS)
            ]
    stop = Stop(listener=progress)
    run: Callable[..., Any] = map if executor is None else executor.map
    rows, errors = [], None
    for done, (job, found) in enumerate(zip(jobs, run(_setting, jobs), strict=True), 1):
        rows.append({"recoding": job[0], "fraction": job[1], **_means(found)})
        if done == 1:
            errors = pd.DataFrame({f"theta{i}": found[f"theta{i}_hat"] - found[f"theta{i}"] for i in (1, 2, 3)})
        stop.tell("settings", done=done, total=len(jobs))
    assert errors is not None
    return ThetaStudy(pd.DataFrame(rows), errors, samples, len(frame))


def _classes(frame: Any, by_age: Recoding | None, by_size: Recoding | None) -> IntArray:
    columns = []
    for name, recoding in (("sex", None), ("age", by_age), ("size", by_size)):
        column = encode(frame, name)
        if recoding is not None:
            labels = np.array(recoding.labels(column), dtype=object)
            column = encode(with_columns(frame, {name: labels[column.codes]}), name)
        columns.append(column)
    key, span = combine([c.codes for c in columns], [c.size for c in columns], len(frame))
    return group(key, span)[0]


def _means(found: dict[str, FloatArray]) -> dict[str, float]:
    row: dict[str, float] = {}
    for i in (1, 2, 3):
        true, guess = found[f"theta{i}"], found[f"theta{i}_hat"]
        some = true > 0
        row[f"theta{i}"], row[f"theta{i}_hat"] = float(true[some].mean()), float(guess[some].mean())
        row[f"mape{i}"] = float(100 * (np.abs(guess[some] - true[some]) / true[some]).mean())
    return row


def _setting(job: tuple[Any, ...]) -> dict[str, FloatArray]:
    """All samples of one setting: θ and θ̂ for uniques, agreeing and similar classes."""
    _, fraction, classes, values, tolerance, samples, seed = job
    n = len(classes)
    size = round(n * fraction)
    rng = np.random.default_rng(seed)
    found = {}
    chance = rng.random((samples, n), dtype=np.float32)
    chosen = _draw(chance, size)
    frequency = np.bincount(classes)
    for name, key, c in (("theta2", "education", 0.0), ("theta3", "income", tolerance)):
        order = np.lexsort([values[key], classes])
        out = _thetas(classes[order], order, values[key][order], frequency, chosen, size / n, c)
        found["theta1"], found["theta1_hat"], found[name], found[f"{name}_hat"] = out.T
    return found


@nb.njit(cache=True, nogil=True)
def _draw(chance, size):  # type: ignore[no-untyped-def]
    """Simple random samples without replacement, record by record (Knuth's algorithm S)."""
    samples, n = chance.shape
    chosen = np.zeros((samples, n), np.bool_)
    for s in range(samples):
        have = 0
        for i in range(n):
            if (n - i) * chance[s, i] < size - have:
                chosen[s, i] = True
                have += 1
                if have == size:
                    break
    return chosen


@nb.njit(cache=True, nogil=True)
def _thetas(classes, record, value, frequency, chosen, p, c):  # type: ignore[no-untyped-def]
    """θ1, θ̂1 and the similar-class θ, θ̂ of each sample, from one pass over the population sorted by class and value.

    With c = 0 the similar classes are the agreeing ones and n(3) is n(2), so one pass serves θ2 and θ3.
    """
    out = np.zeros((len(chosen), 4))
    n = len(classes)
    for s in range(len(chosen)):
        n1 = f1 = pairs = a = b = big_f = lone = 0.0
        i = 0
        while i < n:
            j = classes[i]
            f = 0
            low = low2 = high = high2 = 0.0
            while i < n and classes[i] == j:
                if chosen[s, record[i]]:
                    v = value[i]
                    f += 1
                    high2, high = high, v
                    if f == 1:
                        low = v
                    elif f == 2:
                        low2 = v
                i += 1
            if f == 0:
                continue
            if f == 1:
                n1 += 1
                f1 += frequency[j]
            elif f == 2:
                pairs += 2
            if f == 1 or high - low <= c:
                a += f
                big_f += frequency[j]
                if f > 1:
                    b += f
            elif f == 2:
                lone += 2
            else:
                lone += (high - low2 <= c) + (high2 - low <= c)
        if f1 > 0:
            out[s, 0] = n1 / f1
        if n1 + pairs > 0:
            out[s, 1] = n1 * p / (n1 * p + pairs * (1 - p))
        if big_f > 0:
            out[s, 2] = a / big_f
        if a + lone > 0:
            out[s, 3] = a * p / (a * p + (b + lone) * (1 - p))
    return out
