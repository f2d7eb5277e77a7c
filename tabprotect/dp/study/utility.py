"""Power as a measure of utility: which mechanism leaves most of a difference to be seen?"""

from __future__ import annotations

import time
from concurrent.futures import Executor
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tabprotect.dp.mechanism import Mechanism
from tabprotect.dp.noise import LAWS
from tabprotect.dp.study.populations import classes
from tabprotect.dp.study.power import comparisons
from tabprotect.dp.study.result import Study
from tabprotect.dp.study.simulate import Setting, rejection_rates, run_all, simulate_release
from tabprotect.solve.stop import Listener

DELTA = 1e-6
SIZES = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000)


def utility(
    *,
    quick: bool = False,
    repetitions: int | None = None,
    replicates: int | None = None,
    epsilon: float = 0.1,
    populations: str | Path | None = None,
    seed: int = 5,
    executor: Executor | None = None,
    progress: Listener | None = None,
) -> Study:
    """Power that mechanisms of the same ε leave: Laplace, discrete Laplace and Gaussian (δ = 10⁻⁶), clamped or
    projected.

    The scale of the Gaussian noise is OpenDP's; the noise itself is simulated. Beside the power, ``l1`` is the mean
    L1 error per person.

    >>> study = utility(quick=True, repetitions=5, replicates=19)
    >>> len(study.table["mechanism"].unique())
    6
    """
    import pandas as pd

    start = time.perf_counter()
    times, b = repetitions or (50 if quick else 1000), replicates or (199 if quick else 999)
    pairs = [pair for pair in comparisons(populations) if pair[0] == "different"][:1]
    same = comparisons(populations)[0]
    noises = {
        law: Mechanism.for_epsilon(epsilon, l1=2, law=law, delta=DELTA if law == "gaussian" else 0.0).noise
        for law in LAWS
    }
    sizes, numbers = ((2000, 20_000), (18,)) if quick else (SIZES, (86, 18))
    cells = list(product([same, *pairs], LAWS, ("clamp", "project"), numbers, sizes))
    settings = [
        Setting(classes(p1, m), classes(p2, m), n, (noises[law],) * 2, times, b, (seed, i), postprocess=post)
        for i, ((_, _, p1, p2), law, post, m, n) in enumerate(cells)
    ]
    rates, cpu = run_all(rejection_rates, settings, executor, progress, "utility")
    rows = []
    for setting, ((truth, pair, _, _), law, post, m, n), (rate, _) in zip(settings, cells, rates, strict=True):
        rows.append(
            {
                "truth": truth,
                "populations": pair,
                "mechanism": f"{law}, {post}",
                "scale": noises[law].scale,
                "classes": m,
                "n": n,
                "rejections": rate,
                "l1": _error(setting),
            }
        )
    table = pd.DataFrame(rows)
    return Study(
        "utility",
        f"Power as a measure of utility, ε = {epsilon:g}",
        table,
        _figure(table),
        f"{times} repetitions, {b} bootstrap replicates, level 5 %; the Gaussian law has δ = {DELTA:g} on top of ε.",
        time.perf_counter() - start,
        cpu,
    )


def _error(setting: Setting, draws: int = 20) -> float:
    """Mean L1 distance of a noisy histogram from its counts, per person."""
    rng, total = np.random.default_rng((*setting.seed, 1)), 0.0
    for _ in range(draws):
        counts = rng.multinomial(setting.n, setting.p1).astype(np.float64)
        total += float(np.abs(simulate_release(counts, setting.noises[0], rng, setting.postprocess) - counts).sum())
    return total / draws / setting.n


def _figure(table: Any) -> Any:
    from matplotlib.figure import Figure

    pairs, numbers = table["populations"].unique(), table["classes"].unique()
    figure = Figure(figsize=(4.2 * len(numbers) + 1, 3.2 * len(pairs)), layout="tight")
    axes = figure.subplots(len(pairs), len(numbers), squeeze=False, sharex=True)
    colours: dict[str, str] = {law: f"C{k}" for k, law in enumerate(LAWS)}
    for (i, pair), (j, m) in product(enumerate(pairs), enumerate(numbers)):
        part = table[(table["populations"] == pair) & (table["classes"] == m)]
        for name, line in part.groupby("mechanism", sort=False):
            law, post = str(name).split(", ")
            style = "o-" if post == "clamp" else "s--"
            axes[i][j].plot(line["n"], line["rejections"], style, markersize=3, color=colours[law], label=name)
        axes[i][j].axhline(0.05, color="black", linewidth=0.7)
        axes[i][j].set_xscale("log")
        axes[i][j].set_title(f"{pair}, M = {m}", fontsize=9)
    axes[-1][0].legend(fontsize=7)
    figure.supxlabel("N")
    figure.supylabel("share of rejections")
    return figure
