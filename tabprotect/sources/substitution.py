"""Source "substitution" (2008): privacy and accuracy of matrix-based randomisation."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from tabprotect.solve.stop import Listener, Stop
from tabprotect.sources.claim import Claim, Reproduction, number, statement
from tabprotect.substitution import GammaDiagonal, gamma_for, no_breach, posterior_bound, simulate_counts
from tabprotect.substitution.study import STUDIES, Study, population

if TYPE_CHECKING:
    import pandas as pd

TABLE2 = {
    2: ("0.095238", "0.181818", "0.260870"),
    6: ("0.240000", "0.400000", "0.514286"),
    11: ("0.366667", "0.550000", "0.660000"),
    15: ("0.441176", "0.625000", "0.725806"),
    19: ("0.500000", "0.678571", "0.770270"),
    24: ("0.558140", "0.727273", "0.808989"),
}
PRIORS = (0.05, 0.10, 0.15)
FROBENIUS = "misprint: κ_F ≥ N always; leading terms do not survive the square root as printed. The exact form of theorem 3.1 is used"
ORDER = "an order of magnitude, not a bound: constants and the term 2γ are dropped"


def reproduce(*, quick: bool = False, progress: Listener | None = None, seed: int = 0) -> Reproduction:
    """Theorems and table 2 to the digit, figures 2 to 9 by simulation of the same sizes.

    seed: of the simulations.
    """
    stop = Stop(listener=progress)
    studies: dict[str, Study] = {}
    for done, (name, run) in enumerate(STUDIES.items(), 1):
        # the shapes of figures 2 and 3 need the source's 100,000 records, which cost next to nothing
        studies[name] = run(quick=quick and name != "distributions", seed=seed)
        stop.tell(name, done=done, total=len(STUDIES))
    claims = [
        *_theorem22(),
        *_condition(),
        *_section4(),
        *_shapes(studies["distributions"].frame),
        *_standard(studies["standard-errors"].frame),
        *_errors(studies["errors"].frame),
        *_table2(),
        *_changed(studies["changed"].frame),
    ]
    return Reproduction(
        "substitution",
        "Matrix-based randomisation (2008)",
        "Kang, An and Hong, *An analysis of privacy and accuracy for privacy-preserving techniques by matrix-based randomization*, 2008.",
        tuple(claims),
        {name: study.figure() for name, study in studies.items() if name != "posteriors"},
        {name: study.frame for name, study in studies.items()},
        notes=(
            "The data of the source are simulated, so its studies can be repeated as they are: normal and uniform counts, S = 100,000 to 500,000, N = 5 to 100, "
            "γ = 2 to 21. The figures are printed without numbers; what the text reads from them is checked.",
        ),
        captions={
            "distributions": "Figures 2 and 3: original, perturbed and reconstructed counts.",
            "standard-errors": "Figures 4 to 6: standard error and bounds over N, γ and S.",
            "errors": "Figures 7 and 8: error1, error2 and error3 over γ and N (printed estimator, normal data).",
            "changed": "Figure 9: share of changed records (dots: counted).",
        },
        quick=quick,
    )


def _theorem22() -> list[Claim]:
    matrix = GammaDiagonal(50, 11)
    inverse = np.column_stack([matrix.operator.solve(column) for column in np.eye(50)])
    error = float(np.abs(matrix.dense() @ inverse - np.eye(50)).max())
    return [
        statement("theorem 2.2: M M⁻¹ = I (N = 50, γ = 11)", "I", f"largest error {error:.0e}", error < 1e-12),
        number("theorem 2.2: diagonal (γ + N − 2)/(γ − 1)", "5.9", float(inverse[0, 0])),
        number("theorem 2.2: off-diagonal 1/(1 − γ)", "-0.1", float(inverse[0, 1])),
        Claim(
            "theorem 2.2: off-diagonal in the proof of theorem 3.1", "1/γ", "1/(1 − γ)", "explained",
            "misprint: two lines further down the proof uses 1/(1 − γ)",
        ),
    ]  # fmt: skip


def _condition() -> list[Claim]:
    claims = []
    for n, gamma in ((50, 11), (100, 2)):
        matrix = GammaDiagonal(n, gamma)
        dense = matrix.dense()
        two, fro = (float(np.linalg.cond(dense, p)) for p in (2, "fro"))
        ours = matrix.condition_number("2"), matrix.condition_number("fro")
        claims += [
            statement(
                f"theorem 3.2: κ₂ = 1 + N/(γ − 1), N = {n}, γ = {gamma}", f"{1 + n / (gamma - 1):g}", f"{ours[0]:g}",
                bool(np.isclose(two, ours[0]) and np.isclose(ours[0], 1 + n / (gamma - 1))), remark="also by singular values",
            ),
            statement(
                f"theorem 3.2: κ_F ≈ 1 + N^(3/2)/γ², N = {n}, γ = {gamma}", f"{1 + n**1.5 / gamma**2:.2f}", f"{ours[1]:.2f}",
                bool(np.isclose(ours[1], 1 + n**1.5 / gamma**2, rtol=0.01)), why=FROBENIUS if np.isclose(fro, ours[1]) else "",
            ),
        ]  # fmt: skip
    return claims


def _section4() -> list[Claim]:
    """Theorems 4.1 to 4.3 on simulated counts."""
    matrix, x = GammaDiagonal(50, 11), population("normal", 50, 100_000)
    draws = simulate_counts(matrix, x, size=2000, seed=4)
    expected = matrix.apply(x)
    back = matrix.operator.solve(draws.T).T
    left = np.linalg.norm(draws - expected, axis=1) / np.linalg.norm(expected)
    middle = np.linalg.norm(back - x, axis=1) / np.linalg.norm(x)
    kappa = matrix.condition_number("2")
    variance = 49 * (50 + 20) * 100_000 / 60**2
    drawn = float(((draws - expected) ** 2).sum(axis=1).mean())
    bias = float(np.abs((back.mean(axis=0) - x) / (back.std(axis=0) / sqrt(2000))).max())
    flat = GammaDiagonal(50, 2)
    even = population("uniform", 50, 100_000)
    exact, bound, order = flat.standard_error(even), flat.error_bound(even), 50**1.5 / sqrt(2 * 100_000)
    return [
        statement("section 2.2: X̂ = M⁻¹Y is unbiased", "unbiased", f"largest deviation {bias:.1f} standard errors", bias < 4.5),
        statement(
            "theorem 4.1: both inequalities, 2,000 draws", "hold", f"{int(((left / kappa <= middle) & (middle <= kappa * left)).sum()):,} of 2,000",
            bool(((left / kappa <= middle) & (middle <= kappa * left)).all()),
        ),
        statement(
            "theorem 4.2: Var(Y) = (N−1)(N+2γ−2)S/(γ+N−1)², N = 50, γ = 11, S = 100,000", f"{variance:,.0f}",
            f"{float(matrix.variance(x).sum()):,.0f}; drawn {drawn:,.0f}",
            bool(np.isclose(matrix.variance(x).sum(), variance) and abs(drawn / variance - 1) < 0.03),
        ),
        statement(
            "theorem 4.3: sd(X̂)/‖X‖ ≤ κ₂ sd(Y)/‖EY‖, uniform X, N = 50, γ = 2", "holds", f"{exact:.4f} ≤ {bound:.4f}", exact <= bound * (1 + 1e-12),
        ),
        statement(
            "theorem 4.3: ≈ N^(3/2)/√(γS) as bound, same setting", f"{order:.2f}", f"{exact:.4f}", exact <= order, why=ORDER,
        ),
    ]  # fmt: skip


def _shapes(t: pd.DataFrame) -> list[Claim]:
    def distance(part: pd.DataFrame, a: str, b: str) -> float:
        return float((part[a] - part[b]).abs().sum() / part["original"].sum())

    normal, uniform = (t[t["distribution"] == kind] for kind in ("normal", "uniform"))
    flat = normal.assign(flat=normal["original"].mean())
    numbers = [distance(flat, "perturbed", "flat"), distance(flat, "original", "flat")]
    rebuilt, kept = distance(normal, "reconstructed", "original"), distance(normal, "perturbed", "original")
    even, even_rebuilt = distance(uniform, "perturbed", "original"), distance(uniform, "reconstructed", "original")
    return [
        statement(
            "figure 2: normal data come out nearly uniform", "nearly uniform",
            f"distance from uniform {numbers[0]:.2f}, before {numbers[1]:.2f}", numbers[0] < numbers[1] / 3,
        ),
        statement(
            "figure 2: the reconstruction resembles the original", "similar", f"distance from the original {rebuilt:.2f}, unreconstructed {kept:.2f}",
            rebuilt < kept / 3,
        ),
        statement(
            "figure 3: uniform data come out uniform", "very similar", f"distance from the original {even:.3f}", even < 0.15,
        ),
        statement(
            "figure 3: reconstruction makes uniform data worse", "larger error", f"{even_rebuilt:.3f} after, {even:.3f} before", even_rebuilt > even,
        ),
    ]  # fmt: skip


def _standard(t: pd.DataFrame) -> list[Claim]:
    claims = []
    for figure, varied, rising in (("figure 4", "n", True), ("figure 5", "gamma", False), ("figure 6", "S", False)):
        part = t[t["varied"] == varied].sort_values(varied)
        steps = np.diff(part["exact"])
        text = " → ".join(f"{v:.3g}" for v in part["exact"].iloc[[0, len(part) // 2, -1]])
        claims.append(
            statement(
                f"{figure}: standard error over {varied.replace('gamma', 'γ').replace('n', 'N')}", "grows" if rising else "falls", text,
                bool((steps > 0).all() if rising else (steps < 0).all()),
            )
        )  # fmt: skip
        inside = bool((part["exact"] <= part["bound_2"]).all() and (part["bound_2"] <= part["bound_fro"]).all())
        claims.append(
            statement(
                f"{figure}: below the 2-norm bound, that below the Frobenius bound", "below", f"{len(part)} settings", inside,
                remark="bounds κ sd(Y)/‖EY‖ with exact condition numbers",
            )
        )  # fmt: skip
    better = float((t["clipped"] / t["exact"]).median())
    claims.append(
        statement(
            "figure 6: cutting negative counts makes the observed error smaller",
            "smaller",
            f"median ratio {better:.3f}",
            better < 1,
        )
    )
    return claims


def _errors(t: pd.DataFrame) -> list[Claim]:
    claims = []
    for figure, varied, word in (
        ("figure 7", "gamma", "falls with γ (N = 50)"),
        ("figure 8", "n", "grows with N (γ = 11)"),
    ):
        for kind in ("normal", "uniform"):
            part = t[(t["varied"] == varied) & (t["distribution"] == kind) & (t["estimator"] == "floor")].sort_values(
                varied
            )
            for name in ("error1", "error2", "error3"):
                first, last = float(part[name].iloc[0]), float(part[name].iloc[-1])
                # simulated errors wobble from one setting to the next: the trend is the sign of the rank correlation
                trend = float(part[[varied, name]].rank().corr().iloc[0, 1])
                holds = trend < -0.5 if varied == "gamma" else trend > 0.5
                claims.append(
                    statement(
                        f"{figure}: {name} {word}, {kind} data", word.split()[0], f"{first:.3g} → {last:.3g}", holds
                    )
                )
    return [
        *claims,
        Claim(
            "section 5.2: σ in error3", "√(Σ(u − μ)²/S)", "√(Σ X (u − μ)²/S)", "explained", "misprint: the weights X_i are missing",
        ),
    ]  # fmt: skip


def _table2() -> list[Claim]:
    claims = [
        number(f"table 2: γ = {gamma}, ρ1 = {prior:.0%}", printed, float(posterior_bound(gamma, prior)))
        for gamma, row in TABLE2.items()
        for prior, printed in zip(PRIORS, row, strict=True)
    ]
    return [
        *claims,
        number("section 5.3: γ for ρ1 = 5 % and ρ2 = 50 %", "19", gamma_for(0.05, 0.5)),
        number("section 5.3: γ for ρ1 = 10 % and ρ2 = 50 %", "9", gamma_for(0.10, 0.5)),
        statement(
            "theorem 2.1: no breach when ρ2(1 − ρ1)/(ρ1(1 − ρ2)) > γ", "no breach", f"γ = 18.9: {no_breach(18.9, 0.05, 0.5)}, γ = 19.1: {no_breach(19.1, 0.05, 0.5)}",
            no_breach(18.9, 0.05, 0.5) and not no_breach(19.1, 0.05, 0.5),
        ),
    ]  # fmt: skip


def _changed(t: pd.DataFrame) -> list[Claim]:
    error = float((t["expected"] - t["observed"]).abs().max())
    falling = all((np.diff(part.sort_values("gamma")["observed"]) < 0).all() for _, part in t.groupby("n"))
    rising = all((np.diff(part.sort_values("n")["expected"]) > 0).all() for _, part in t.groupby("gamma"))
    one = t[(t["n"] == 50) & (t["gamma"] == 11)].iloc[0]
    return [
        statement("figure 9: the share of changed records falls with γ", "falls", f"N = 50, γ = 11: {one['observed']:.3f}", bool(falling)),
        statement(
            "figure 9: the share is (N − 1)/(γ + N − 1), growing with N", "grows", f"largest difference from the formula {error:.4f}",
            bool(rising) and error < 0.02,
        ),
    ]  # fmt: skip
