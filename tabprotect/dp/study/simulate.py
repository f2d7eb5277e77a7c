"""Repeated experiments: draw two noisy histograms, test them, count the rejections."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np
from scipy.special import chdtrc

from tabprotect.dp.homogeneity import FORMS, Bootstrap, estimate, pearson
from tabprotect.dp.noise import Noise
from tabprotect.solve.stop import Listener, Progress
from tabprotect.types import FloatArray

S = TypeVar("S")
R = TypeVar("R")


@dataclass(frozen=True)
class Setting:
    """One experiment: two distributions, their size, their noise, and how often to repeat it."""

    p1: FloatArray
    p2: FloatArray
    n: int
    noises: tuple[Noise, Noise]
    repetitions: int
    replicates: int
    seed: tuple[int, ...]
    postprocess: str = "clamp"
    expected: str = "sums"
    level: float = 0.05
    bootstrap: bool = True


def noisy_histogram(p: FloatArray, n: int, noise: Noise | None, rng: np.random.Generator, post: str) -> FloatArray:
    """A multinomial histogram after (simulated) noise and post-processing; no noise for None."""
    counts = rng.multinomial(n, p).astype(np.float64)
    return counts if noise is None else simulate_release(counts, noise, rng, post)


def simulate_release(counts: FloatArray, noise: Noise, rng: np.random.Generator, post: str) -> FloatArray:
    """Counts with simulated noise, clamped or projected. For studies only."""
    y = counts + noise.simulate(counts.size, rng)
    if post == "project":
        from tabprotect.dp import kernels

        kernels.project_simplex(y, np.empty_like(y))
        return y
    return np.maximum(y, 0.0)


def rejection_rates(setting: Setting) -> tuple[float, float]:
    """Share of rejections at the level: by the bootstrap test, by the χ² test that ignores the noise.

    The bootstrap stops as soon as its P-value can no longer fall below the level; the decision is that of all
    replicates.
    """
    s = setting
    rng = np.random.default_rng(s.seed)
    enough = int(np.ceil(s.level * s.replicates - 1e-9))  # so many above: the P-value is not below the level
    by_bootstrap = by_classical = 0
    for _ in range(s.repetitions):
        x = np.array(
            [noisy_histogram(p, s.n, z, rng, s.postprocess) for p, z in zip((s.p1, s.p2), s.noises, strict=True)]
        )
        statistic = pearson(x)
        by_classical += bool(chdtrc(s.p1.size - 1, statistic) < s.level)
        if s.bootstrap:
            sizes, p0 = estimate(x, s.noises, s.postprocess)
            boot = Bootstrap(p0, sizes, s.noises, s.postprocess, FORMS.index(s.expected))
            above, _ = boot.statistics(s.replicates, rng, observed=statistic, enough=enough)
            by_bootstrap += statistic > 0 and above < enough
    return by_bootstrap / s.repetitions if s.bootstrap else np.nan, by_classical / s.repetitions


def run_all(
    function: Callable[[S], R],
    settings: Iterable[S],
    executor: Executor | None = None,
    progress: Listener | None = None,
    phase: str = "study",
) -> tuple[list[R], float]:
    """Apply a function to all settings, on any executor; progress is told as they finish.

    Returns the answers in order, and the CPU seconds that they took wherever they ran.
    """
    todo: Sequence[S] = list(settings)
    start = time.perf_counter()
    timed = partial(_timed, function)

    def tell(done: int) -> None:
        if progress is not None:
            progress(Progress(time.perf_counter() - start, phase, done=done, total=len(todo)))

    found: list[tuple[R, float]] = []
    if executor is None:
        for s in todo:
            found.append(timed(s))
            tell(len(found))
    else:
        futures = [executor.submit(timed, s) for s in todo]
        for done, _ in enumerate(as_completed(futures), start=1):
            tell(done)
        found = [future.result() for future in futures]
    return [answer for answer, _ in found], sum(seconds for _, seconds in found)


def _timed(function: Callable[[S], R], setting: S) -> tuple[R, float]:
    start = time.thread_time()
    answer = function(setting)
    return answer, time.thread_time() - start
