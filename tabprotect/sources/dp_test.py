"""Source "dp-test" (2021): bootstrap test for the homogeneity of two differentially private histograms."""

from __future__ import annotations

from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tabprotect.dp import homogeneity_test
from tabprotect.dp.noise import Noise
from tabprotect.dp.study import error_rates, null_distribution, power, unequal
from tabprotect.dp.study.populations import ages, classes
from tabprotect.dp.study.power import draw_rates
from tabprotect.dp.study.simulate import Setting, noisy_histogram, rejection_rates
from tabprotect.errors import InputError
from tabprotect.solve.stop import Listener
from tabprotect.sources.claim import Claim, Reproduction, number, statement

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ALPHAS = (1.0, 0.1, 0.01)
# rejection rates under H0 recomputed before for M = 20, level 5 %, by (shape, α): bootstrap, classical
EARLIER = {
    ("uniform", 0.5): (".04–.05", ".09–.11"),
    ("increasing", 0.5): (".04–.05", ".18–.21"),
    ("normal", 0.5): (".05–.06", ".51–.56"),
    ("uniform", 0.1): (".03–.04", ".985"),
    ("normal", 0.01): (".04–.05", "1.0"),
}
STAND_IN = "made-up age distributions in place of the 2020 populations"


def reproduce(
    *,
    quick: bool = False,
    progress: Listener | None = None,
    repetitions: int | None = None,
    replicates: int | None = None,
    executor: Executor | None = None,
    studies: str | Path | None = None,
) -> Reproduction:
    """The formulas of section 4.1 to the digit, and figures 1, 3, 4 and 7 to 12 by simulation on a seeded stand-in.

    repetitions, replicates: of the simulations, instead of 1,000 and 999 (with ``quick`` 200 and 199).
    studies: folder of a finished ``tabprotect dp study all --out FOLDER``; the two long studies are read from it.
    """
    times, b = repetitions or (200 if quick else 1000), replicates or (199 if quick else 999)
    shared: dict[str, Any] = {"quick": quick, "repetitions": times, "progress": progress, "executor": executor}
    null, errors = null_distribution(**shared), error_rates(replicates=b, **shared)
    if studies is None:
        rates, mixed = (f(replicates=b, **shared).table for f in (power, unequal))
    else:
        rates, mixed = _finished(Path(studies), "power", 270), _finished(Path(studies), "unequal", 90)
    classical = _classical(times)
    strong = _strong(times, b)
    claims = [
        *_figure1(),
        *_figure3(null.table, times),
        *_figure4(),
        *_estimates(),
        *_errors(errors.table, times),
        *_figure9(classical),
        *_figure10(rates, strong, times),
        *_figure11(rates),
        *_figure12(mixed, times),
        *_misprints(),
    ]
    figures = {"null": null.figure, "errors": errors.figure, "power": draw_rates(rates), "unequal": draw_rates(mixed)}
    return Reproduction(
        "dp-test",
        "Homogeneity test of two differentially private histograms (2021)",
        "Son, Park and Jung, *A parametric bootstrap test for comparing differentially private histograms*, 2021.",
        tuple(claims),
        {"populations": _populations(), "classical": _classical_figure(classical), **figures},
        {"classical": classical, "null": null.table, "errors": errors.table, "power": rates, "unequal": mixed},
        notes=(
            "The age distributions of 2020 (Korea, the United States, the capital region and the rest of Korea) are not available. Made-up ones of the same shape "
            "stand in (single years 0–84, 85 and over; an old country, a younger one, two regions of the first that differ a little); the figures are "
            "printed without numbers, so directions and orderings are compared. Real ones can be passed with `populations=` to the studies of "
            f"`tabprotect.dp.study`. {times:,} repetitions with {b:,} bootstrap replicates; figures 2, 5 and 6 are diagrams of the procedure.",
        ),
        captions={
            "populations": "Figures 7 and 8: the stand-in populations, and samples of 50,000 with α = 0.1.",
            "classical": "Figure 9: type-I error of the classical test, which ignores the noise.",
            "null": "Figure 3: null distributions with and without noise.",
            "errors": "Type-I error by shape.",
            "power": "Figures 10 and 11: errors within one population, power between two.",
            "unequal": "Figure 12: different privacy levels.",
        },
        quick=quick,
    )  # fmt: skip


def _finished(folder: Path, name: str, settings: int) -> pd.DataFrame:
    """The table of a finished study in full."""
    import pandas as pd

    file = folder / f"{name}.csv"
    if not file.is_file():
        raise InputError("no such file: run 'tabprotect dp study all --out FOLDER' first", file=file)
    table = pd.read_csv(file)
    if len(table) != settings:
        raise InputError(f"{len(table)} settings instead of {settings}: not the full study", file=file)
    return table


def _limit(times: int, rate: float = 0.05, sigmas: float = 3.5) -> float:
    """What a rejection rate of 5 % does not exceed by chance in so many repetitions (and in a table of many settings)."""
    return rate + sigmas * float(np.sqrt(rate * (1 - rate) / times))


def _figure1() -> list[Claim]:
    """Weak noise leaves the histogram alone, strong noise does not, and the total changes."""
    p, rng = classes(ages()["country A"], 86), np.random.default_rng(1)
    counts = rng.multinomial(50_000, p).astype(float)
    share, total = {}, {}
    for alpha in ALPHAS:
        noisy = np.maximum(counts + Noise.of_epsilon(alpha).simulate(86, rng), 0.0)
        share[alpha], total[alpha] = float(np.abs(noisy - counts).sum() / counts.sum()), float(noisy.sum())
    text = ", ".join(f"α = {a:g}: {share[a]:.1%} of the counts moved" for a in ALPHAS)
    return [
        statement("figure 1: weak noise (α = 1) hardly changes the histogram", "almost the same", text, share[1.0] < 0.02),
        statement(
            "figure 1: strong noise (α = 0.01) changes it much", "quite different", text, share[0.01] > 10 * share[1.0]
        ),
        statement(
            "figure 1: the total changes too", "changes",
            ", ".join(f"α = {a:g}: {total[a]:,.0f} of 50,000" for a in ALPHAS), all(t != 50_000 for t in total.values()),
            remark=STAND_IN,
        ),
    ]  # fmt: skip


def _figure3(t: pd.DataFrame, times: int) -> list[Claim]:
    plain, noisy = t[t["noise"] == "none"], t[t["noise"] == "laplace"]
    above = plain["above_95"]
    ratio = noisy.assign(shift=noisy["mean"] / noisy["chi2_mean"], spread=noisy["sd"] / noisy["chi2_sd"])
    by_shape = ratio[ratio["classes"] == 20].set_index("shape")["shift"]
    wide, narrow = (ratio[ratio["classes"] == m].set_index("shape")["shift"] for m in (100, 20))
    shapes = ", ".join(f"{k} {v:.2f}" for k, v in by_shape.items())
    return [
        statement(
            "figure 3: without noise the statistic follows χ²(M − 1)", "5 % above the 95 % point",
            f"{above.min():.1%} to {above.max():.1%}", bool((above < _limit(times)).all() and (above > 0.0).all()),
        ),
        statement(
            "figure 3: with noise (α = 0.5) it moves to the right", "moves", f"mean {ratio['shift'].min():.2f} to {ratio['shift'].max():.2f} times M − 1",
            bool((ratio["shift"] > 1).all()),
        ),
        statement(
            "figure 3: and spreads", "spreads", f"sd {ratio['spread'].min():.2f} to {ratio['spread'].max():.2f} times that of χ²",
            bool((ratio["spread"] > 1).all()),
        ),
        statement("figure 3: by how much depends on p0 (M = 20)", "depends", shapes, bool(by_shape.max() > 1.2 * by_shape.min())),
        statement(
            "figure 3: more classes, more change", "more", ", ".join(f"{k} {narrow[k]:.2f} → {wide[k]:.2f}" for k in wide.index),
            bool((wide > narrow).all()), remark="mean over M − 1, M = 20 → 100",
        ),
    ]  # fmt: skip


def _figure4() -> list[Claim]:
    """g(C) = E[X | C] against the mean of many draws."""
    rng, claims = np.random.default_rng(4), []
    for alpha in (1.0, 0.1, 0.05, 0.01):
        noise = Noise.of_epsilon(alpha)
        at = np.array([0.0, 1 / alpha, 5 / alpha])
        g = noise.mean(at)
        drawn = np.maximum(at[:, None] + noise.simulate((3, 200_000), rng), 0.0)
        error = np.abs(drawn.mean(axis=1) - g) / (drawn.std(axis=1) / np.sqrt(200_000))
        claims.append(
            statement(
                f"figure 4: g(0) = 1/α, α = {alpha:g}", f"{1 / alpha:g}",
                f"{g[0]:g}; 200,000 draws {drawn[0].mean():.4g}", bool(np.isclose(g[0], 1 / alpha) and (error < 4.5).all()),
                remark=f"bias at C = 1/α: {g[1] - at[1]:.3g}, at C = 5/α: {g[2] - at[2]:.3g}",
            )
        )  # fmt: skip
    return claims


def _estimates() -> list[Claim]:
    """Equations (4.1) to (4.3): the inverse in closed form and the three branches of C̃."""
    noise = Noise.of_epsilon(0.1)
    counts = np.array([0.5, 3.0, 20.0, 80.0])
    back = noise.inverse_mean(noise.mean(counts))
    k = 2 / 0.1 * np.log(1 / (5 * 0.1))
    below, middle, beyond = noise.counts([9.0, 12.0, k + 1.0])
    tiny = homogeneity_test([0.0, 3.0, 1.0, 0.0], [2.0, 0.0, 4.0, 0.0], 0.1, 0.05, replicates=99, seed=1)
    return [
        statement(
            "equation 4.1: g⁻¹(g(C)) = C (closed form, Lambert W)", "C", f"largest error {np.abs(back - counts).max():.1e}",
            bool(np.allclose(back, counts)),
        ),
        number("equation 4.2: X ≤ 1/α, α = 0.1, X = 9", "0", float(below)),
        statement(
            "equation 4.2: 1/α < X < k(α), X = 12", "g⁻¹(12)", f"{middle:.4f}", bool(np.isclose(noise.mean(middle), 12.0)),
        ),
        number("equation 4.2: k(0.1) = 20 ln 2, from |C − g(C)| < 5", "13.86", float(k)),
        number("equation 4.2: X ≥ k(α), X = k + 1", f"{k + 1:.4f}", float(beyond)),
        statement(
            "section 3: the test works with counts below 5 and empty classes", "always", f"P = {tiny.p_value:.3g}",
            bool(0 <= tiny.p_value <= 1), remark="unequal α (0.1 and 0.05), raw totals unknown",
        ),
    ]  # fmt: skip


def _errors(t: pd.DataFrame, times: int) -> list[Claim]:
    claims = []
    for row in t.to_dict("records"):
        boot, plain = EARLIER[row["shape"], row["alpha"]] if row["classes"] == 20 else ("", "")
        worst = max(row["bootstrap"], row["bootstrap_sizes"])
        claims.append(
            statement(
                f"section 4.1: type-I error, {row['shape']}, M = {row['classes']}, N = {row['n']:,}, α = {row['alpha']:g}",
                "5 %; classical more",
                f"{row['bootstrap']:.3f} ({row['bootstrap_sizes']:.3f} with N̂ in E); classical {row['classical']:.3f}",
                worst < _limit(times) and row["classical"] > row["bootstrap"],
                remark=f"recomputed before: {boot} / {plain}" if boot else "",
            )
        )
    return claims


def _classical(times: int) -> pd.DataFrame:
    """Figure 9: rejections of the classical test within one population, no bootstrap needed."""
    import pandas as pd

    p = ages()["country A"]
    rows = []
    for i, m in enumerate((86, 18, 9)):
        for j, alpha in enumerate(ALPHAS):
            for e in range(3, 9):
                noise = Noise.of_epsilon(alpha)
                q = classes(p, m)
                setting = Setting(q, q, 10**e, (noise, noise), times, 1, (9, i, j, e), bootstrap=False)
                rows.append((m, alpha, 10**e, rejection_rates(setting)[1]))
    return pd.DataFrame(rows, columns=["classes", "alpha", "n", "classical"])


def _strong(times: int, replicates: int) -> pd.DataFrame:
    """The hardest setting of figure 10: 86 classes, α = 0.01."""
    import pandas as pd

    q, noise = classes(ages()["country A"], 86), Noise.of_epsilon(0.01)
    rows = []
    for n in (50_000, 500_000):
        setting = Setting(q, q, n, (noise, noise), times, replicates, (10, n))
        rows.append((n, rejection_rates(setting)[0]))
    return pd.DataFrame(rows, columns=["n", "bootstrap"])


def _figure9(t: pd.DataFrame) -> list[Claim]:
    def rate(m: int, alpha: float, n: int) -> float:
        return float(t[(t["classes"] == m) & (t["alpha"] == alpha) & (t["n"] == n)]["classical"].iloc[0])

    strong = t[t["alpha"] == 0.01].groupby("n")["classical"].max()
    by_m = t.groupby("classes")["classical"].mean()
    text = ", ".join(f"N = {n:.0e}: {v:.2f}" for n, v in strong.items())
    return [
        statement(
            "figure 9: the classical test does not hold 5 %", "fails", f"worst rate at α = 0.01 — {text}", rate(86, 0.01, 10**5) > 0.5,
            remark=STAND_IN,
        ),
        statement(
            "figure 9: fewer classes, fewer errors", "fewer", ", ".join(f"M = {m}: mean {v:.2f}" for m, v in by_m.items()),
            bool(by_m[9] <= by_m[18] <= by_m[86]),
        ),
        statement(
            "figure 9: it takes ten million people or more to hold the level", "10⁷",
            f"α = 0.01, M = 86: {rate(86, 0.01, 10**6):.2f} at 10⁶, {rate(86, 0.01, 10**7):.2f} at 10⁷, {rate(86, 0.01, 10**8):.2f} at 10⁸",
            rate(86, 0.01, 10**6) > 0.2 and rate(86, 0.01, 10**8) < 0.2,
        ),
    ]  # fmt: skip


def _level(item: str, t: pd.DataFrame, times: int, remark: str = "") -> Claim:
    """Rejections within one population: 5 % in every setting, or too many only where the noise drowns the counts."""
    same = t[t["truth"] == "same"]
    over = same[same["bootstrap"] >= _limit(times)]
    deviation = np.sqrt(8.0) / over[["alpha1", "alpha2"]].min(axis=1)  # of Laplace(2/α)
    drowned = over["n"] / over["classes"] < 3 * deviation
    places = ", ".join(
        f"{r.bootstrap:.3f} at M = {r.classes}, N = {r.n:,}, α = {r.alpha2:g}" for r in over.itertuples()
    )
    why = f"{places}: the mean count is below three standard deviations of the noise, where p̂0 is poor (methods page, limits)"
    rates, numbers = same["bootstrap"], ", ".join(str(m) for m in same["classes"].unique())
    return statement(
        item, "5 %", f"{rates.min():.3f} to {rates.max():.3f} in {len(rates)} settings (M = {numbers})", over.empty,
        why=why if bool(drowned.all()) else "", remark=remark,
    )  # fmt: skip


def _figure10(t: pd.DataFrame, strong: pd.DataFrame, times: int) -> list[Claim]:
    hard = ", ".join(f"N = {n:,.0f}: {v:.3f}" for n, v in strong.itertuples(index=False))
    return [
        _level("figure 10: the bootstrap test holds 5 %", t, times, STAND_IN),
        statement(
            "figure 10: also for M = 86 and α = 0.01 from N = 50,000 on", "held", hard, bool((strong["bootstrap"] < _limit(times)).all()),
        ),
    ]  # fmt: skip


def _needed(t: pd.DataFrame) -> dict[tuple[str, float, int], float]:
    """By pair, α and number of classes: the smallest N with a power of at least 80 %."""
    found = {}
    for (pair, alpha, m), part in t[t["truth"] == "different"].groupby(
        ["populations", "alpha1", "classes"], sort=False
    ):
        enough = part[part["bootstrap"] >= 0.8]["n"]
        found[str(pair), float(alpha), int(m)] = float(enough.min()) if len(enough) else float("inf")
    return found


def _figure11(t: pd.DataFrame) -> list[Claim]:
    need = _needed(t)
    pairs, numbers = list(dict.fromkeys(k[0] for k in need)), sorted({k[2] for k in need})

    def show(pair: str, m: int) -> str:
        return ", ".join(f"α = {a:g}: {need[pair, a, m]:,.0f}" for a in ALPHAS)

    m = 18
    big, small = pairs[0], pairs[1]
    weak = t[(t["populations"] == big) & (t["alpha1"] == 1.0) & (t["classes"] == m) & (t["n"] <= 10_000)]
    claims = [
        statement(
            "figure 11: weak noise (α = 1) has good power from N = 5,000 on", "very good",
            f"{big}: " + ", ".join(f"N = {n:,}: {v:.2f}" for n, v in zip(weak["n"], weak["bootstrap"], strict=True)),
            bool(weak["bootstrap"].iloc[-1] > 0.9), remark=STAND_IN,
        ),
        statement(
            "figure 11: more privacy needs larger samples", "larger", f"N for a power of 80 %, {big}: {show(big, m)}",
            all(need[pair, a, m] <= need[pair, b, m] for pair in pairs for a, b in ((1.0, 0.1), (0.1, 0.01))),
        ),
        statement(
            "figure 11: a smaller difference needs larger samples", "larger", f"{small}: {show(small, m)}",
            all(need[big, a, m] <= need[small, a, m] for a in ALPHAS),
        ),
    ]  # fmt: skip
    if len(numbers) > 1:
        claims.append(
            statement(
                "figure 11: more classes need larger samples", "larger",
                "; ".join(f"M = {k}: {show(small, k)}" for k in numbers),
                all(need[p, a, numbers[0]] <= need[p, a, numbers[-1]] for p in pairs for a in ALPHAS),
            )
        )  # fmt: skip
    return claims


def _figure12(t: pd.DataFrame, times: int) -> list[Claim]:
    top = t[(t["truth"] == "different") & (t["n"] >= 50_000)].groupby("populations", sort=False)["bootstrap"].min()
    return [
        _level("figure 12: α = 0.1 against 0.05, the level is held", t, times),
        statement(
            "figure 12: the power is very good from 10,000 or 50,000 on", "very good",
            ", ".join(f"{pair}: {v:.2f}" for pair, v in top.items()), bool((top > 0.9).all()), remark=STAND_IN,
        ),
    ]  # fmt: skip


def _misprints() -> list[Claim]:
    scale = Noise.of_epsilon(0.5).scale
    return [
        Claim(
            "definition 1: bound of the likelihood ratio", "log(P1/P2) ≤ e^α", "P1/P2 ≤ e^α", "explained",
            "misprint: either the log or the exponential is too many",
        ),
        Claim("algorithm 2: noise of X", "Lap(α_i/α_j)", f"Lap(2/α), {scale:g} for α = 0.5", "explained", "misprint: equation 2.4 and algorithm 1 have 2/α"),
    ]  # fmt: skip


def _populations() -> Figure:
    from matplotlib.figure import Figure

    rng, found = np.random.default_rng(8), ages()
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    for k, pair in enumerate((("country A", "country B"), ("capital region", "other regions"))):
        for name in pair:
            noisy = noisy_histogram(found[name], 50_000, Noise.of_epsilon(0.1), rng, "clamp")
            axes[0][k].plot(100 * found[name], label=name)
            axes[1][k].plot(noisy, label=name)
        axes[0][k].legend(fontsize=8)
        axes[0][k].set_ylabel("share, %")
        axes[1][k].set_ylabel("noisy count")
        axes[1][k].set_xlabel("age (85: 85 and over)")
    return figure


def _classical_figure(t: pd.DataFrame) -> Figure:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 3.2), layout="constrained")
    for axis, (m, part) in zip(figure.subplots(1, 3, sharey=True), t.groupby("classes", sort=False), strict=True):
        for alpha, line in part.groupby("alpha", sort=False):
            axis.plot(line["n"], line["classical"], "o-", markersize=3, label=f"α = {alpha:g}")
        axis.axhline(0.05, color="black", linewidth=0.7)
        axis.set(xscale="log", title=f"M = {m}", xlabel="N")
    figure.axes[0].set_ylabel("type-I error")
    figure.axes[0].legend(fontsize=8)
    return figure
