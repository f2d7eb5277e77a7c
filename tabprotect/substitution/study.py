"""The source's studies, one function each: a frame with the numbers and a figure of them.

Numbers in figures 2 to 9 and table 2 of the source ``substitution`` (2008), recomputed with the corrected formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.substitution.matrix import GammaDiagonal
from tabprotect.substitution.privacy import posterior_bound
from tabprotect.substitution.simulate import simulate_counts
from tabprotect.types import FloatArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Study:
    """A finished study: ``frame`` has the numbers, ``figure()`` draws them, ``note`` says what to see."""

    name: str
    title: str
    note: str
    frame: pd.DataFrame = field(repr=False)
    draw: Callable[[pd.DataFrame, Figure], None] = field(repr=False)

    def figure(self) -> Figure:
        """A new matplotlib figure; needs no display."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, 3.6), layout="constrained")
        self.draw(self.frame, figure)
        figure.suptitle(self.title)
        return figure

    def summary(self) -> str:
        """Title, numbers and note as text."""
        return f"{self.title}\n{self.frame.to_string(index=False)}\n{self.note}"


def population(kind: str, n: int, records: int) -> FloatArray:
    """Counts of n values: "normal" (density at n points of [-3, 3]) or "uniform", rounded so that they sum to ``records``.

    >>> population("uniform", 4, 10).tolist()
    [3.0, 3.0, 2.0, 2.0]
    """
    if kind not in ("normal", "uniform"):
        raise InputError(f"unknown distribution {kind!r}: use 'normal' or 'uniform'")
    density = np.exp(-0.5 * np.linspace(-3, 3, n) ** 2) if kind == "normal" else np.ones(n)
    exact = density / density.sum() * records
    counts = np.floor(exact)
    counts[np.argsort(counts - exact, kind="stable")[: round(records - counts.sum())]] += 1
    return counts


def errors(x: Any, estimate: Any) -> tuple[float, float, float]:
    """The source's error1 (absolute deviation per record), error2 (mean) and error3 (standard deviation) on values 1 … n.

    The printed σ lacks the weights X_i; here they are. As printed, both means divide by the true number of records.

    >>> [round(error, 4) for error in errors([5, 5], [4, 6])]
    [0.2, 0.1, 0.0101]
    """
    true, found = np.asarray(x, dtype=np.float64), np.asarray(estimate, dtype=np.float64)
    values = np.arange(1, true.size + 1)
    (m, s), (m_hat, s_hat) = (_moments(values, counts, float(true.sum())) for counts in (true, found))
    return float(np.abs(found - true).sum() / true.sum()), abs(m - m_hat), abs(s - s_hat)


def distributions(*, quick: bool = False, seed: int = 0) -> Study:
    """Figures 2 and 3: original, perturbed and reconstructed counts of normal and uniform data.

    >>> distributions(quick=True).frame.shape
    (100, 7)
    """
    import pandas as pd

    matrix, rows = GammaDiagonal(50, 11), []
    for i, kind in enumerate(("normal", "uniform")):
        x = population(kind, 50, 20_000 if quick else 100_000)
        codes = np.repeat(np.arange(50), x.astype(np.int64))
        y = matrix.counts(matrix.randomize(codes, seed=seed + i))
        parts = [x, y, *(matrix.reconstruct(y, method=method) for method in ("clipped", "nnls", "ml"))]
        rows += [(kind, value + 1, *(part[value] for part in parts)) for value in range(50)]
    names = ["distribution", "value", "original", "perturbed", "reconstructed", "nnls", "ml"]
    note = "Normal data come out nearly flat and are recovered; uniform data come out uniform without reconstruction."
    title = "Original, perturbed and reconstructed (n = 50, γ = 11)"
    return Study("distributions", title, note, pd.DataFrame(rows, columns=names), _draw_distributions)


def standard_errors(*, quick: bool = False, seed: int = 0) -> Study:
    """Figures 4 to 6: standard error against its bounds as n, γ and S vary, normal data; simulated with the clipped estimator too.

    >>> frame = standard_errors(quick=True).frame
    >>> bool((frame["exact"] <= frame["bound_2"]).all() and (frame["bound_2"] <= frame["bound_fro"]).all())
    True
    """
    import pandas as pd

    ns = (5, 20, 50, 100) if quick else range(5, 101, 5)
    gammas = (2, 6, 11, 21) if quick else range(2, 22)
    sizes = (100_000, 500_000) if quick else range(100_000, 500_001, 100_000)
    settings = [("n", n, 11, 100_000) for n in ns]
    settings += [("gamma", 50, g, 100_000) for g in gammas]
    settings += [("S", 50, 11, s) for s in sizes]
    rows, rng = [], np.random.default_rng(seed)
    for varied, n, gamma, records in settings:
        matrix, x = GammaDiagonal(n, gamma), population("normal", n, records)
        draws = simulate_counts(matrix, x, size=20 if quick else 200, seed=rng)
        raw = matrix.operator.solve(draws.T).T
        size = float(np.linalg.norm(x))
        simulated = [
            sqrt(float(((found - x) ** 2).sum(axis=1).mean())) / size for found in (raw, np.rint(raw.clip(min=0)))
        ]
        bounds = (matrix.standard_error(x), matrix.error_bound(x, "2"), matrix.error_bound(x, "fro"))
        rows.append((varied, n, gamma, records, *simulated, *bounds, n**1.5 / sqrt(gamma * records)))
    names = ["varied", "n", "gamma", "S", "simulated", "clipped", "exact", "bound_2", "bound_fro", "printed_order"]
    note = "The exact value lies below both bounds; N^1.5/sqrt(gamma S) is an order of magnitude and not a bound. Clipping helps."
    title = "Standard error sd(X̂)/‖X‖ and its bounds"
    return Study("standard-errors", title, note, pd.DataFrame(rows, columns=names), _draw_standard_errors)


def estimation_errors(*, quick: bool = False, seed: int = 0) -> Study:
    """Figures 7 and 8: error1, error2 and error3 over γ (n = 50) and over n (γ = 11), for every estimator.

    >>> sorted(estimation_errors(quick=True).frame["estimator"].unique().tolist())
    ['clipped', 'floor', 'ml', 'nnls', 'unbiased']
    """
    import pandas as pd

    settings: list[tuple[str, int, float]] = [("gamma", 50, g) for g in ((2, 11, 21) if quick else range(2, 22))]
    settings += [("n", n, 11) for n in ((10, 50, 100) if quick else range(10, 101, 10))]
    rows, rng = [], np.random.default_rng(seed)
    for kind in ("normal", "uniform"):
        for varied, n, gamma in settings:
            matrix, x = GammaDiagonal(n, gamma), population(kind, n, 100_000)
            draws = simulate_counts(matrix, x, size=5 if quick else 50, seed=rng)
            for method in ("unbiased", "floor", "clipped", "nnls", "ml"):
                found = np.array([errors(x, matrix.reconstruct(y, method=method)) for y in draws]).mean(axis=0)
                rows.append((kind, varied, n, gamma, method, *found))
    names = ["distribution", "varied", "n", "gamma", "estimator", "error1", "error2", "error3"]
    note = (
        "All three errors fall with γ and grow with n; estimators that keep the total beat clipping on mean and spread."
    )
    frame = pd.DataFrame(rows, columns=names)
    return Study("errors", "error1, error2, error3 (S = 100,000)", note, frame, _draw_errors)


def changed(*, quick: bool = False, seed: int = 0) -> Study:
    """Figure 9: share of records whose value changes, by γ and n; expected and counted.

    >>> frame = changed(quick=True).frame
    >>> bool((abs(frame["expected"] - frame["observed"]) < 0.02).all())
    True
    """
    import pandas as pd

    rows, records = [], 20_000 if quick else 100_000
    for n in (10, 50, 100):
        codes = np.repeat(np.arange(n), population("normal", n, records).astype(np.int64))
        for gamma in (2, 11, 21) if quick else range(2, 22):
            matrix = GammaDiagonal(n, gamma)
            observed = float((matrix.randomize(codes, seed=seed + 1000 * n + gamma) != codes).mean())
            rows.append((n, gamma, matrix.changed_share(), observed))
    note = "The share (n − 1)/(γ + n − 1) falls with γ and grows with n."
    frame = pd.DataFrame(rows, columns=["n", "gamma", "expected", "observed"])
    return Study("changed", "Share of changed records", note, frame, _draw_changed)


def posteriors(*, quick: bool = False, seed: int = 0) -> Study:
    """Table 2: the posterior that a property of prior 5, 10 or 15 % cannot exceed, by γ.

    >>> posteriors().frame.round(6).iloc[0].tolist()
    [2.0, 0.095238, 0.181818, 0.26087]
    """
    import pandas as pd

    rows = [(gamma, *posterior_bound(gamma, [0.05, 0.10, 0.15])) for gamma in (2, 6, 11, 15, 19, 24)]
    note = "γ = 19 keeps a property of prior 5 % at a posterior of at most 50 %."
    frame = pd.DataFrame(rows, columns=["gamma", "rho1=5%", "rho1=10%", "rho1=15%"])
    return Study("posteriors", "Largest posterior ρ2 for prior ρ1", note, frame, _draw_posteriors)


STUDIES: dict[str, Callable[..., Study]] = {
    "distributions": distributions,
    "standard-errors": standard_errors,
    "errors": estimation_errors,
    "changed": changed,
    "posteriors": posteriors,
}


def run(name: str, *, quick: bool = False, seed: int = 0) -> Study:
    """One study by its name."""
    if name not in STUDIES:
        raise InputError(f"unknown study {name!r}: use one of {', '.join(STUDIES)}")
    return STUDIES[name](quick=quick, seed=seed)


def _moments(values: Any, counts: FloatArray, total: float) -> tuple[float, float]:
    mean = float(values @ counts / total)
    return mean, sqrt(max(float((values - mean) ** 2 @ counts / total), 0.0))


def _draw_distributions(frame: pd.DataFrame, figure: Figure) -> None:
    for axes, (kind, part) in zip(figure.subplots(1, 2), frame.groupby("distribution"), strict=True):
        _lines(axes, part, "value", ("original", "perturbed", "reconstructed"), "records")
        axes.set_title(str(kind))


def _draw_standard_errors(frame: pd.DataFrame, figure: Figure) -> None:
    for axes, varied in zip(figure.subplots(1, 3), ("n", "gamma", "S"), strict=True):
        lines = ("simulated", "clipped", "exact", "bound_2", "bound_fro", "printed_order")
        _lines(axes, frame[frame["varied"] == varied], varied, lines, "standard error")
        axes.set_yscale("log")
        axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4))


def _draw_errors(frame: pd.DataFrame, figure: Figure) -> None:
    part = frame[(frame["distribution"] == "normal") & (frame["estimator"] == "floor")]
    for axes, varied in zip(figure.subplots(1, 2), ("gamma", "n"), strict=True):
        _lines(axes, part[part["varied"] == varied], varied, ("error1", "error2", "error3"), "error (normal data)")


def _draw_changed(frame: pd.DataFrame, figure: Figure) -> None:
    axes = figure.subplots()
    for n, part in frame.groupby("n"):
        (line,) = axes.plot(part["gamma"], part["expected"], label=f"n = {n}")
        axes.plot(part["gamma"], part["observed"], "o", markersize=3, color=line.get_color())
    axes.set_xlabel("γ")
    axes.set_ylabel("share of changed records")
    axes.legend()


def _draw_posteriors(frame: pd.DataFrame, figure: Figure) -> None:
    _lines(figure.subplots(), frame, "gamma", tuple(frame.columns[1:]), "largest posterior ρ2")


def _lines(axes: Any, frame: pd.DataFrame, x: str, columns: Iterable[str], label: str) -> None:
    for column in columns:
        axes.plot(frame[x], frame[column], marker=".", label=column)
    axes.set_xlabel("γ" if x == "gamma" else x)
    axes.set_ylabel(label)
    axes.legend(fontsize=7)
