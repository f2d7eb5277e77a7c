"""Do noisy histograms come from the same distribution? A parametric bootstrap test on what was released, and nothing
else.

Son, Park & Jung, "A parametric bootstrap test for comparing differentially private histograms" (2021): from the noisy
counts and the noise laws alone, estimate the counts behind them, pool them, and compare the observed statistic with
those of histograms drawn from the pooled estimate and put through the same release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import chdtrc

from tabprotect.dp.noise import Noise, check_choice, random_state
from tabprotect.dp.release import Release
from tabprotect.errors import InputError
from tabprotect.types import FloatArray, IntArray

FORMS = ("sums", "sizes")
POSTS = ("clamp", "project")


@dataclass(frozen=True, eq=False)
class TestResult:
    """Answer of a bootstrap test.

    ``p0`` is the estimated common distribution p̂0, ``sizes`` the estimated numbers of people N̂ (one per histogram),
    ``statistics`` the bootstrap statistics, ``classical`` the P-value of the χ² test that ignores the noise (for
    comparison: it does not hold its level).
    """

    __test__ = False  # not a test class, whatever pytest thinks

    p_value: float
    statistic: float
    p0: FloatArray
    sizes: IntArray
    replicates: int
    classical: float
    noises: tuple[Noise, ...]
    statistics: FloatArray = field(repr=False)

    @property
    def n_hat(self) -> IntArray:
        """N̂, the estimated sizes."""
        return self.sizes

    def reject(self, level: float = 0.05) -> bool:
        """Whether the P-value is below the level."""
        return self.p_value < level

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON."""
        return {
            "p_value": self.p_value,
            "statistic": self.statistic,
            "sizes": self.sizes.tolist(),
            "p0": self.p0.tolist(),
            "replicates": self.replicates,
            "classical_p_value": self.classical,
            "noise": [{"law": n.law, "scale": n.scale} for n in self.noises],
        }

    def summary(self) -> str:
        """A few lines for people."""
        sizes = ", ".join(f"{n:,}" for n in self.sizes)
        return (
            f"P-value {self.p_value:.4g} (statistic {self.statistic:.6g}, {self.replicates} bootstrap replicates)\n"
            f"estimated sizes {sizes}; {self.p0.size} classes; a χ² test that ignores the noise would say {self.classical:.4g}"
        )


def homogeneity_test(
    x1: Any,
    x2: Any,
    eps1: Any = None,
    eps2: Any = None,
    *,
    replicates: int = 999,
    law: str = "laplace",
    neighbours: str = "replace",
    expected: str = "sums",
    postprocess: str = "clamp",
    seed: Any = None,
) -> TestResult:
    """Test whether two differentially private histograms come from the same distribution.

    Parameters
    ----------
    x1, x2
        The noisy histograms: arrays, or what `release` returned (then the noise is known and ``eps1``, ``eps2`` are
        not needed).
    eps1, eps2
        Their privacy levels ε (may differ), or `Noise` objects.
    replicates
        Number of bootstrap replicates.
    law, neighbours
        The noise law and neighbours of the release, used with the ε's; the source has Laplace(2/ε).
    expected
        What the expected counts of the bootstrap are made of: ``"sums"`` of the noisy counts, or the estimated
        ``"sizes"`` N̂ as the source prints it. Both hold the level.
    postprocess
        What was done to the noisy counts: ``"clamp"`` (negative ones set to 0) or ``"project"`` (nearest non-negative
        ones with the same sum).
    seed
        Anything numpy takes as a seed.

    >>> same = homogeneity_test([103, 52, 20], [95, 60, 21], 0.5, 0.5, seed=1)
    >>> other = homogeneity_test([103, 52, 20], [30, 60, 121], 0.5, 0.5, seed=1)
    >>> same.p_value > 0.05 > other.p_value
    True
    """
    return homogeneity_test_many(
        [x1, x2],
        [eps1, eps2],
        replicates=replicates,
        law=law,
        neighbours=neighbours,
        expected=expected,
        postprocess=postprocess,
        seed=seed,
    )


def homogeneity_test_many(
    histograms: Sequence[Any],
    epsilons: Any = None,
    *,
    replicates: int = 999,
    law: str = "laplace",
    neighbours: str = "replace",
    expected: str = "sums",
    postprocess: str = "clamp",
    seed: Any = None,
) -> TestResult:
    """The same test for any number of noisy histograms (two or more); ``epsilons`` is one ε for all or one per
    histogram.

    >>> a, b, c = [50, 80, 30], [48, 85, 26], [55, 70, 33]
    >>> homogeneity_test_many([a, b, c], 0.5, seed=3).reject()
    False
    """
    if len(histograms) < 2:
        raise InputError("a test of homogeneity needs at least two histograms")
    given = list(epsilons) if isinstance(epsilons, Sequence) else [epsilons] * len(histograms)
    if len(given) != len(histograms):
        raise InputError(f"{len(given)} privacy levels for {len(histograms)} histograms")
    x, noises = _observed(histograms, given, law, neighbours)
    form = FORMS.index(check_choice(expected, FORMS, "form of the expected counts"))
    sizes, p0 = estimate(x, noises, postprocess)
    return Bootstrap(p0, sizes, noises, postprocess, form).test(x, replicates, seed)


def goodness_of_fit(
    x: Any,
    probabilities: Any,
    epsilon: Any = None,
    *,
    replicates: int = 999,
    law: str = "laplace",
    neighbours: str = "replace",
    postprocess: str = "clamp",
    seed: Any = None,
) -> TestResult:
    """Test whether a noisy histogram comes from a known distribution.

    >>> goodness_of_fit([260, 240, 251, 249], [1, 1, 1, 1], 0.5, seed=0).reject()
    False
    """
    observed, noises = _observed([x], [epsilon], law, neighbours)
    p = np.asarray(probabilities, dtype=np.float64)
    if p.shape != observed.shape[1:]:
        raise InputError(f"{p.size} probabilities for {observed.shape[1]} classes")
    if not (np.isfinite(p).all() and (p >= 0).all() and p.sum() > 0):
        raise InputError("probabilities must be non-negative, finite and not all zero")
    sizes, _ = estimate(observed, noises, postprocess)
    return Bootstrap(p / p.sum(), sizes, noises, postprocess, 2).test(observed, replicates, seed)


def estimate(x: FloatArray, noises: Sequence[Noise], postprocess: str = "clamp") -> tuple[IntArray, FloatArray]:
    """N̂ of every histogram and the pooled distribution p̂0 (uniform when nothing at all is left of the counts)."""
    if check_choice(postprocess, POSTS, "post-processing") == "project":
        counts = x  # the sum is unbiased as it is
    else:
        counts = np.array([noise.counts(row) for noise, row in zip(noises, x, strict=True)])
    sums = counts.sum(axis=1)
    sizes = np.rint(sums).astype(np.int64)
    if sizes.sum() == 0:
        return sizes, np.full(x.shape[1], 1.0 / x.shape[1])
    scaled = counts * np.divide(sizes, sums, out=np.zeros(len(sums)), where=sums > 0)[:, None]
    return sizes, scaled.sum(axis=0) / sizes.sum()


@dataclass(frozen=True, eq=False)
class Bootstrap:
    """Histograms of given sizes from one distribution, put through the same noise and post-processing again and
    again.
    """

    p0: FloatArray
    sizes: IntArray
    noises: Sequence[Noise]
    postprocess: str
    form: int

    def statistics(
        self, replicates: int, seed: Any = None, *, observed: float = np.inf, enough: int | None = None
    ) -> tuple[int, FloatArray]:
        """How many bootstrap statistics exceed ``observed``, and all of them (fewer once ``enough`` exceed it)."""
        from tabprotect.dp import kernels

        tails = np.cumsum(self.p0[::-1])[::-1]
        shares = np.clip(np.divide(self.p0, tails, out=np.ones_like(tails), where=tails > 0), 0.0, 1.0)
        last = np.flatnonzero(self.p0 > 0)[-1]
        shares[last] = 1.0  # everybody is somewhere, whatever the rounding of the sums says
        tables = [noise.tables() for noise in self.noises]
        out = np.empty(replicates)
        above, drawn = kernels.bootstrap(
            random_state(seed),
            self.p0,
            shares,
            self.sizes.astype(np.float64),
            np.array([noise.kind for noise in self.noises]),
            np.array([noise.scale for noise in self.noises]),
            np.concatenate([accept for accept, _ in tables]),
            np.concatenate([alias for _, alias in tables]),
            np.cumsum([0, *(accept.size for accept, _ in tables)]),
            POSTS.index(self.postprocess),
            self.form,
            observed,
            replicates + 1 if enough is None else enough,
            out,
        )
        return int(above), out[:drawn]

    def test(self, x: FloatArray, replicates: int, seed: Any) -> TestResult:
        """Compare the statistic of ``x`` with the bootstrap."""
        if replicates < 1:
            raise InputError("at least one bootstrap replicate is needed")
        statistic = pearson(x, self.p0 if self.form == 2 else None)
        above, drawn = self.statistics(replicates, seed, observed=statistic)
        rows, columns = len(x), int((x.sum(axis=0) > 0).sum())
        freedom = (columns - 1) * (1 if self.form == 2 else rows - 1)
        classical = float(chdtrc(freedom, statistic)) if freedom > 0 else 1.0
        # nothing can speak less against equality than a statistic of 0, even if all replicates have it
        p_value = above / replicates if statistic > 0 else 1.0
        return TestResult(p_value, statistic, self.p0, self.sizes, replicates, classical, tuple(self.noises), drawn)


def pearson(x: FloatArray, p: FloatArray | None = None) -> float:
    """Pearson's statistic of the rows of ``x``: against each other (E = row sum × column sum / total), or against
    ``p``.

    >>> round(pearson(np.array([[10.0, 20.0], [20.0, 10.0]])), 9)
    6.666666667
    """
    n = x.sum(axis=1)
    if n.sum() <= 0:
        return 0.0
    e = np.outer(n, x.sum(axis=0) / n.sum() if p is None else p)
    return float(np.sum(np.divide((x - e) ** 2, e, out=np.zeros_like(e), where=e > 0)))


def _observed(
    histograms: Sequence[Any], epsilons: Sequence[Any], law: str, neighbours: str
) -> tuple[FloatArray, tuple[Noise, ...]]:
    rows, noises = [], []
    for i, (given, epsilon) in enumerate(zip(histograms, epsilons, strict=True), start=1):
        values = given.values if isinstance(given, Release) else given
        try:
            row = np.asarray(values, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            raise InputError(f"histogram {i} must be an array of numbers") from None
        if row.size == 0:
            raise InputError(f"histogram {i} has no classes")
        if not np.isfinite(row).all() or (row < 0).any():
            raise InputError(f"histogram {i}: noisy counts must be finite and not negative (release with clamp=True)")
        rows.append(row)
        if isinstance(epsilon, Noise):
            noises.append(epsilon)
        elif epsilon is not None:
            noises.append(Noise.of_epsilon(epsilon, law, neighbours))
        elif isinstance(given, Release):
            noises.append(given.noise)
        else:
            raise InputError(f"the privacy level of histogram {i} is missing: give its ε, or the release itself")
    if len({row.size for row in rows}) != 1:
        raise InputError(f"the histograms have different numbers of classes: {', '.join(str(r.size) for r in rows)}")
    return np.array(rows), tuple(noises)
