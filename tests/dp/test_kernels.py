"""The compiled loops against exact distributions and plain numpy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tabprotect.dp import kernels
from tabprotect.dp.homogeneity import pearson
from tabprotect.dp.noise import Noise, random_state

NO_TABLE = np.zeros(0), np.zeros(0, dtype=np.int64)


@pytest.mark.parametrize(
    ("n", "p"),
    [(1, 0.3), (50, 0.1), (1000, 0.02), (30, 0.5), (25, 0.45), (200, 0.9), (100_000, 0.3), (10**7, 0.999)],
)
def test_binomials_have_their_law(n: int, p: float) -> None:
    size = 100_000
    left, out = np.full(size, float(n)), np.empty(size)
    kernels._binomials(random_state(5), left, p, out)
    np.testing.assert_array_equal(left, n - out)
    values = np.arange(out.min(), out.max() + 1)
    expected = stats.binom.pmf(values, n, p) * size
    keep = expected > 5
    seen = np.bincount((out - out.min()).astype(int), minlength=values.size)
    statistic = np.sum((seen[keep] - expected[keep]) ** 2 / expected[keep])
    assert stats.chi2.sf(statistic, keep.sum() - 1) > 1e-4
    assert seen[~keep].sum() < expected[~keep].sum() + 60


def test_certain_and_impossible_classes() -> None:
    left, out = np.array([7.0, 0.0]), np.empty(2)
    kernels._binomials(random_state(0), left, 0.0, out)
    assert out.tolist() == [0, 0]
    kernels._binomials(random_state(0), left, 1.0, out)
    assert out.tolist() == [7, 0]
    assert left.tolist() == [0, 0]


def test_draw_is_multinomial_without_noise() -> None:
    p = np.array([0.5, 0.0, 0.3, 0.2])
    shares = np.array([0.5, 0.0, 0.6, 1.0])
    y = np.empty((4, 5000))
    kernels.draw(random_state(1), 40.0, shares, kernels.NONE, 1.0, *NO_TABLE, kernels.CLAMP, y)
    np.testing.assert_array_equal(y.sum(axis=0), 40)
    assert not y[1].any()
    np.testing.assert_allclose(y.mean(axis=1), 40 * p, atol=0.25)
    assert np.cov(y)[0, 2] == pytest.approx(-40 * 0.5 * 0.3, rel=0.12)


@pytest.mark.parametrize("form", [kernels.SUMS, kernels.SIZES, kernels.KNOWN])
def test_statistic_against_numpy(form: int) -> None:
    rng = np.random.default_rng(2)
    y = rng.poisson(5.0, (3, 6, 10)).astype(float)
    y[:, 2, :] = 0.0
    p, sizes, out = rng.dirichlet(np.ones(6)), np.array([30.0, 25.0, 35.0]), np.empty(10)
    kernels.statistics(y, sizes, p, form, out)
    for b in range(10):
        x = y[:, :, b]
        if form == kernels.SIZES:
            e = np.outer(sizes / sizes.sum(), x.sum(axis=0))
            terms = np.divide((x - e) ** 2, e, out=np.zeros_like(e), where=e > 0)
            assert out[b] == pytest.approx(terms.sum())
        else:
            assert out[b] == pytest.approx(pearson(x, p if form == kernels.KNOWN else None))


def test_statistic_of_nothing() -> None:
    out = np.empty(2)
    kernels.statistics(np.zeros((2, 3, 2)), np.zeros(2), np.ones(3) / 3, kernels.SUMS, out)
    assert out.tolist() == [0, 0]


def test_simplex_projection() -> None:
    from tabprotect.linalg.projection import project

    rng = np.random.default_rng(4)
    for _ in range(20):
        y = rng.normal(1.0, 5.0, 8)
        ours = y.copy()
        kernels.project_simplex(ours, np.empty(8))
        if y.sum() <= 0:
            assert not ours.any()
        else:
            np.testing.assert_allclose(ours, project(np.ones((1, 8)), y, rhs=[y.sum()]).x, atol=1e-6)


def test_early_stop_makes_the_same_decision() -> None:
    p = np.full(5, 0.2)
    shares = p / np.cumsum(p[::-1])[::-1]
    noise = Noise.of_epsilon(0.5)
    args = (p, shares, np.array([100.0, 100.0]), np.array([noise.kind] * 2), np.array([noise.scale] * 2), *NO_TABLE)
    starts = np.zeros(3, dtype=np.int64)
    for observed in (0.5, 4.0, 12.0, 40.0):
        full, short = np.empty(200), np.empty(200)
        above, _ = kernels.bootstrap(random_state(3), *args, starts, 0, 0, observed, 10**6, full)
        stopped, drawn = kernels.bootstrap(random_state(3), *args, starts, 0, 0, observed, 10, short)
        assert above == (full > observed).sum()
        assert (above < 10) == (stopped < 10)
        assert drawn == (200 if above < 10 else int(np.flatnonzero(full > observed)[9]) + 1)
