"""How large samples must be before the test tells two age distributions apart."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Executor
from itertools import product
from pathlib import Path
from typing import Any

from tabprotect.dp.noise import Noise
from tabprotect.dp.study.populations import ages, classes
from tabprotect.dp.study.result import Study
from tabprotect.dp.study.simulate import Setting, rejection_rates, run_all
from tabprotect.solve.stop import Listener
from tabprotect.types import FloatArray

SIZES = tuple(f * 10**k for k in range(3, 8) for f in (1, 5))
QUICK_SIZES = (1000, 10_000, 100_000)
ALPHAS = (1.0, 0.1, 0.01)
CLASS_NUMBERS = (86, 18, 9)


def power(
    *,
    quick: bool = False,
    repetitions: int | None = None,
    replicates: int | None = None,
    populations: str | Path | None = None,
    seed: int = 3,
    executor: Executor | None = None,
    progress: Listener | None = None,
) -> Study:
    """Rejection rates over N, α and M: false alarms within one population, power between two (figures 9 to 11 of the
    source).

    >>> study = power(quick=True, repetitions=5, replicates=19)
    >>> sorted(study.table["truth"].unique().tolist())
    ['different', 'same']
    """
    alphas = [(a, a) for a in ALPHAS]
    title = "Errors and power over N, α and M"
    note = "Dashed: classical χ² test, which ignores the noise. Same population: should be 5 %. Different: the higher the better."
    return _rates("power", title, note, alphas, quick, repetitions, replicates, populations, seed, executor, progress)


def unequal(
    *,
    quick: bool = False,
    repetitions: int | None = None,
    replicates: int | None = None,
    populations: str | Path | None = None,
    seed: int = 4,
    executor: Executor | None = None,
    progress: Listener | None = None,
) -> Study:
    """The same with different privacy levels, α = 0.1 against 0.05 (figure 12 of the source).

    >>> unequal(quick=True, repetitions=5, replicates=19).table["alpha2"].unique().tolist()
    [0.05]
    """
    title = "Errors and power with unequal privacy levels (α = 0.1 and 0.05)"
    note = "Dashed: classical χ² test. The bootstrap uses each histogram's own noise."
    return _rates(
        "unequal", title, note, [(0.1, 0.05)], quick, repetitions, replicates, populations, seed, executor, progress
    )


def comparisons(populations: str | Path | None) -> list[tuple[str, str, FloatArray, FloatArray]]:
    """What is compared: the first population with itself, then every following pair (A with B, C with D, …)."""
    found = ages(populations)
    names = list(found)
    first = names[0]
    pairs = [("same", f"{first} twice", found[first], found[first])]
    pairs += [("different", f"{a} / {b}", found[a], found[b]) for a, b in zip(names[::2], names[1::2], strict=False)]
    return pairs


def _rates(
    name: str,
    title: str,
    note: str,
    alphas: Sequence[tuple[float, float]],
    quick: bool,
    repetitions: int | None,
    replicates: int | None,
    populations: str | Path | None,
    seed: int,
    executor: Executor | None,
    progress: Listener | None,
) -> Study:
    import pandas as pd

    start = time.perf_counter()
    times, b = repetitions or (50 if quick else 1000), replicates or (199 if quick else 999)
    sizes, numbers = (QUICK_SIZES, (18,)) if quick else (SIZES, CLASS_NUMBERS)
    cells = list(product(comparisons(populations), alphas, numbers, sizes))
    settings = [
        Setting(classes(p1, m), classes(p2, m), n, (Noise.of_epsilon(a1), Noise.of_epsilon(a2)), times, b, (seed, i))
        for i, ((_, _, p1, p2), (a1, a2), m, n) in enumerate(cells)
    ]
    # the longest first, so that the last worker is not left alone with one of them; seeds go with the setting, not
    # with the order
    order = sorted(range(len(settings)), key=lambda i: -settings[i].p1.size)
    found, cpu = run_all(rejection_rates, [settings[i] for i in order], executor, progress, name)
    rates: dict[int, tuple[float, float]] = dict(zip(order, found, strict=True))
    rows = [
        {
            "truth": truth,
            "populations": pair,
            "alpha1": a1,
            "alpha2": a2,
            "classes": m,
            "n": n,
            "bootstrap": rates[i][0],
            "classical": rates[i][1],
        }
        for i, ((truth, pair, _, _), (a1, a2), m, n) in enumerate(cells)
    ]
    table = pd.DataFrame(rows)
    about = f"{times} repetitions, {b} bootstrap replicates, level 5 %. "
    return Study(name, title, table, draw_rates(table), about + note, time.perf_counter() - start, cpu)


def draw_rates(table: Any) -> Any:
    """Share of rejections over N, a panel for every pair of populations and number of classes."""
    from matplotlib.figure import Figure

    pairs, numbers = table["populations"].unique(), table["classes"].unique()
    figure = Figure(figsize=(3.4 * len(numbers) + 1, 2.7 * len(pairs) + 0.5), layout="tight")
    axes = figure.subplots(len(pairs), len(numbers), squeeze=False, sharex=True, sharey=True)
    for (i, pair), (j, m) in product(enumerate(pairs), enumerate(numbers)):
        axis = axes[i][j]
        part = table[(table["populations"] == pair) & (table["classes"] == m)]
        for k, ((a1, a2), line) in enumerate(part.groupby(["alpha1", "alpha2"], sort=False)):
            label = f"α = {a1:g}" if a1 == a2 else f"α = {a1:g}, {a2:g}"
            axis.plot(line["n"], line["bootstrap"], "o-", markersize=3, color=f"C{k}", label=label)
            axis.plot(line["n"], line["classical"], "--", linewidth=0.9, color=f"C{k}")
        axis.axhline(0.05, color="black", linewidth=0.7)
        axis.set_xscale("log")
        axis.set_ylim(-0.03, 1.03)
        axis.set_title(f"{pair}, M = {m}", fontsize=9)
    axes[0][0].legend(fontsize=8)
    figure.supxlabel("N")
    figure.supylabel("share of rejections")
    return figure
