"""What noise does to the classical χ² test: its null distribution and its rate of false alarms."""

from __future__ import annotations

import time
from concurrent.futures import Executor
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from tabprotect.dp.homogeneity import pearson
from tabprotect.dp.noise import Noise
from tabprotect.dp.study.populations import shape
from tabprotect.dp.study.result import Study
from tabprotect.dp.study.simulate import Setting, noisy_histogram, rejection_rates, run_all
from tabprotect.solve.stop import Listener
from tabprotect.types import FloatArray

SHAPES = ("uniform", "increasing", "normal")
SIZE, ALPHA = 5050, 0.5


def null_distribution(
    *,
    quick: bool = False,
    repetitions: int | None = None,
    seed: int = 1,
    executor: Executor | None = None,
    progress: Listener | None = None,
) -> Study:
    """Distribution of Pearson's statistic under the null hypothesis, with and without noise (figure 3 of the source).

    N = 5,050, α = 0.5, M = 20 and 100; uniform, increasing and normal distributions. Without noise it is χ²(M − 1),
    with noise it is not.

    >>> study = null_distribution(quick=True)
    >>> sorted(study.table["noise"].unique().tolist())
    ['laplace', 'none']
    """
    import pandas as pd
    from matplotlib.figure import Figure
    from scipy.stats import chi2

    start = time.perf_counter()
    times = repetitions or (200 if quick else 1000)
    cells = list(product((20, 100), (False, True), SHAPES))
    settings = [
        (shape(name, m), SIZE, Noise.of_epsilon(ALPHA) if noisy else None, times, (seed, i))
        for i, (m, noisy, name) in enumerate(cells)
    ]
    found, cpu = run_all(_statistics, settings, executor, progress, "null distribution")
    rows = []
    figure = Figure(figsize=(10, 11), layout="tight")
    axes = figure.subplots(4, 3)
    for (m, noisy, name), t, axis in zip(cells, found, axes.flat, strict=True):
        law = chi2(m - 1)
        rows.append(
            {
                "classes": m,
                "shape": name,
                "noise": "laplace" if noisy else "none",
                "mean": t.mean(),
                "sd": t.std(),
                "chi2_mean": m - 1.0,
                "chi2_sd": np.sqrt(2.0 * (m - 1)),
                "above_95": float(np.mean(t > law.ppf(0.95))),
            }
        )
        grid = np.linspace(0.0, max(t.max(), law.ppf(0.999)), 300)
        axis.hist(t, bins=30, density=True, color="#9db8d2")
        axis.plot(grid, law.pdf(grid), color="#c0392b")
        axis.set_title(f"{name}, M = {m}" + (f", α = {ALPHA}" if noisy else ", no noise"), fontsize=9)
    return Study(
        "null",
        "Null distribution of the classical statistic",
        pd.DataFrame(rows),
        figure,
        f"N = {SIZE}, {times} repetitions. Red: χ²(M − 1). Without noise the share above its 95 % point is 5 %, with noise it is not.",
        time.perf_counter() - start,
        cpu,
    )


def _statistics(setting: tuple[FloatArray, int, Noise | None, int, tuple[int, ...]]) -> FloatArray:
    p, n, noise, times, seed = setting
    rng = np.random.default_rng(seed)
    return np.array(
        [pearson(np.array([noisy_histogram(p, n, noise, rng, "clamp") for _ in (1, 2)])) for _ in range(times)]
    )


# shape, N, α: the settings whose rates were recomputed for the digest of the source, M = 20
ERROR_SETTINGS = (
    ("uniform", 5050, 0.5),
    ("increasing", 5050, 0.5),
    ("normal", 5050, 0.5),
    ("uniform", 5050, 0.1),
    ("normal", 50_000, 0.01),
)


def error_rates(
    *,
    quick: bool = False,
    repetitions: int | None = None,
    replicates: int | None = None,
    seed: int = 2,
    executor: Executor | None = None,
    progress: Listener | None = None,
) -> Study:
    """Rate of false alarms at 5 % of the classical and of the bootstrap test, with both forms of the expected counts.

    >>> study = error_rates(quick=True, repetitions=40)
    >>> bool((study.table["bootstrap"] < 0.25).all())
    True
    """
    import pandas as pd
    from matplotlib.figure import Figure

    start = time.perf_counter()
    times, b = repetitions or (100 if quick else 1000), replicates or (199 if quick else 999)
    cells = list(product(ERROR_SETTINGS, (20,) if quick else (20, 100)))
    settings = []
    for i, ((name, n, alpha), m) in enumerate(cells):
        noise = Noise.of_epsilon(alpha)
        base = Setting(shape(name, m), shape(name, m), n, (noise, noise), times, b, (seed, i))
        settings += [base, replace(base, expected="sizes")]
    found, cpu = run_all(rejection_rates, settings, executor, progress, "error rates")
    rows: list[dict[str, Any]] = []
    for i, ((name, n, alpha), m) in enumerate(cells):
        (sums, classical), (sizes, _) = found[2 * i], found[2 * i + 1]
        rows.append(
            {
                "shape": name,
                "classes": m,
                "n": n,
                "alpha": alpha,
                "bootstrap": sums,
                "bootstrap_sizes": sizes,
                "classical": classical,
            }
        )
    table = pd.DataFrame(rows)
    figure = Figure(figsize=(9, 4.5), layout="tight")
    axis = figure.subplots()
    place = np.arange(len(table))
    for k, (column, colour) in enumerate(
        (("bootstrap", "#2e7d32"), ("bootstrap_sizes", "#81c784"), ("classical", "#c0392b"))
    ):
        axis.bar(place + 0.27 * (k - 1), table[column], 0.25, label=column, color=colour)
    axis.axhline(0.05, color="black", linewidth=0.8)
    axis.set_xticks(
        place,
        [f"{r.shape_}\nM={r.classes}\nα={r.alpha}" for r in table.rename(columns={"shape": "shape_"}).itertuples()],
        fontsize=7,
    )
    axis.set_ylabel("rejections under H0")
    axis.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)  # above: bars reach 1
    return Study(
        "errors",
        "Type-I error of the classical and of the bootstrap test",
        table,
        figure,
        f"Level 5 %, {times} repetitions, {b} bootstrap replicates. Bootstrap: E from the sums of the noisy counts, or from N̂.",
        time.perf_counter() - start,
        cpu,
    )
