"""The bootstrap test: level, power, laws, and the edges."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tabprotect.dp import Noise, goodness_of_fit, homogeneity_test, homogeneity_test_many, release
from tabprotect.dp.homogeneity import estimate, pearson
from tabprotect.dp.study.populations import shape
from tabprotect.dp.study.simulate import Setting, noisy_histogram, rejection_rates
from tabprotect.errors import InputError


def within_binomial_error(rate: float, n: int, p: float = 0.05, sigmas: float = 4.0) -> bool:
    return abs(rate - p) <= sigmas * np.sqrt(p * (1 - p) / n)


# name, N, α, and the classical rate recomputed for the digest of the source
SETTINGS = [
    ("uniform", 5050, 0.5, (0.09, 0.11)),
    ("increasing", 5050, 0.5, (0.18, 0.21)),
    ("normal", 5050, 0.5, (0.51, 0.56)),
    ("uniform", 5050, 0.1, (0.985, 0.985)),
    ("normal", 50_000, 0.01, (1.0, 1.0)),
]


@pytest.mark.parametrize("expected", ["sums", "sizes"])
@pytest.mark.parametrize(("name", "n", "alpha", "classical"), SETTINGS)
def test_level_under_the_null(name: str, n: int, alpha: float, classical: tuple[float, float], expected: str) -> None:
    p, noise, times = shape(name, 20), Noise.of_epsilon(alpha), 400
    ours, theirs = rejection_rates(Setting(p, p, n, (noise, noise), times, 199, (17, n), expected=expected))
    assert within_binomial_error(ours, times)
    low, high = classical
    slack = 4 * np.sqrt(max(high * (1 - high), 0.01) / times)
    assert low - slack <= theirs <= high + slack


@pytest.mark.parametrize("law", ["discrete-laplace", "gaussian"])
@pytest.mark.parametrize("post", ["clamp", "project"])
def test_level_for_other_laws_and_post_processing(law: str, post: str) -> None:
    p, noise, times = shape("normal", 20), Noise(law, 8.0), 300
    ours, _ = rejection_rates(Setting(p, p, 3000, (noise, noise), times, 199, (5,), postprocess=post))
    assert within_binomial_error(ours, times)


def test_level_with_unequal_privacy() -> None:
    p, times = shape("increasing", 18), 300
    noises = Noise.of_epsilon(0.1), Noise.of_epsilon(0.05)
    ours, theirs = rejection_rates(Setting(p, p, 10_000, noises, times, 199, (6,)))
    assert within_binomial_error(ours, times)
    assert theirs > 0.5


def test_power_grows_with_the_sample() -> None:
    p, q, noise = shape("uniform", 18), shape("normal", 18), Noise.of_epsilon(0.1)
    q = 0.7 * p + 0.3 * q
    rates = [rejection_rates(Setting(p, q, n, (noise, noise), 60, 99, (7, n)))[0] for n in (300, 3000, 30_000)]
    assert rates[0] < rates[1] < rates[2] == 1.0


def test_p_values_without_noise_worth_mentioning_are_those_of_chi_square() -> None:
    rng = np.random.default_rng(8)
    x = rng.multinomial(20_000, np.ones(10) / 10, size=2)
    found = homogeneity_test(x[0], x[1], 1e4, 1e4, replicates=4000, seed=1)
    assert found.statistic == pytest.approx(stats.chi2_contingency(x, correction=False).statistic)
    assert found.p_value == pytest.approx(found.classical, abs=0.04)
    assert found.classical == pytest.approx(stats.chi2_contingency(x, correction=False).pvalue)


def test_result_fields() -> None:
    x1, x2 = [100, 50, 20.5, 0], [90, 60, 25, 3.25]
    found = homogeneity_test(x1, x2, 0.5, 0.25, replicates=50, seed=3)
    assert found.p0.sum() == pytest.approx(1.0)
    assert found.sizes.tolist() == found.n_hat.tolist()
    assert found.sizes.tolist() == [170, 175]
    assert found.statistics.shape == (50,)
    assert found.p_value == np.mean(found.statistics > found.statistic)
    assert found.replicates == 50
    assert [n.scale for n in found.noises] == [4.0, 8.0]
    assert found.to_dict()["p_value"] == found.p_value
    assert "P-value" in found.summary()
    again = homogeneity_test(x1, x2, 0.5, 0.25, replicates=50, seed=3)
    np.testing.assert_array_equal(found.statistics, again.statistics)


def test_estimates_of_the_source() -> None:
    """C̃, N̂ and p̂0 by their definitions, element by element."""
    alphas = (0.1, 0.05)
    x = np.array([[0.0, 5.0, 12.0, 80.0], [30.0, 0.0, 19.0, 400.0]])
    tilde = np.zeros_like(x)
    for i, a in enumerate(alphas):
        edge = 2 / a * np.log(1 / (5 * a))
        for j, v in enumerate(x[i]):
            if v <= 1 / a:
                continue
            if v >= edge:
                tilde[i, j] = v
                continue
            low, high = 0.0, v  # bisection instead of Lambert's function
            for _ in range(100):
                middle = (low + high) / 2
                low, high = (middle, high) if middle + np.exp(-a * middle / 2) / a < v else (low, middle)
            tilde[i, j] = low
    sizes, p0 = estimate(x, [Noise.of_epsilon(a) for a in alphas])
    expected = np.rint(tilde.sum(axis=1))
    assert sizes.tolist() == expected.tolist()
    hat = tilde * (expected / tilde.sum(axis=1))[:, None]
    np.testing.assert_allclose(p0, hat.sum(axis=0) / expected.sum(), atol=1e-9)


def test_releases_bring_their_noise() -> None:
    a, b = release([100, 200, 300], 0.5), release([110, 190, 310], 1.0, neighbours="add-remove")
    found = homogeneity_test(a, b, replicates=99, seed=0)
    assert [n.law for n in found.noises] == ["discrete-laplace"] * 2
    assert [n.scale for n in found.noises] == pytest.approx([4.0, 1.0])


def test_gaussian_noise_is_given_as_such() -> None:
    found = homogeneity_test([50, 60], [55, 52], Noise("gaussian", 9.0), Noise("gaussian", 9.0), replicates=99, seed=1)
    assert not found.reject()
    with pytest.raises(InputError, match="Gaussian"):
        homogeneity_test([50, 60], [55, 52], 1.0, 1.0, law="gaussian")


@pytest.mark.parametrize("expected", ["sums", "sizes"])
def test_empty_classes_and_histograms(expected: str) -> None:
    options = {"replicates": 99, "seed": 2, "expected": expected}
    zero = homogeneity_test([0, 0, 0], [0, 0, 0], 1.0, 1.0, **options)
    assert zero.statistic == 0
    assert zero.sizes.tolist() == [0, 0]
    assert zero.p_value == 1.0
    one = homogeneity_test([0, 0, 0], [500, 400, 300], 1.0, 1.0, **options)
    assert np.isfinite(one.p_value)
    assert one.sizes[0] == 0
    empty_class = homogeneity_test([500, 0, 400, 0], [490, 0, 420, 0], 1.0, 1.0, **options)
    assert not empty_class.reject()
    assert empty_class.p0[1] == 0
    single = homogeneity_test([10], [20], 1.0, 1.0, **options)
    assert single.p_value == 1.0
    assert single.classical == 1.0


def test_many_histograms() -> None:
    rng = np.random.default_rng(9)
    p, noise = shape("increasing", 10), Noise.of_epsilon(0.5)
    x = [noisy_histogram(p, 4000, noise, rng, "clamp") for _ in range(5)]
    assert not homogeneity_test_many(x, 0.5, replicates=199, seed=1).reject(0.01)
    x[3] = noisy_histogram(shape("uniform", 10), 4000, noise, rng, "clamp")
    found = homogeneity_test_many(x, [0.5] * 5, replicates=199, seed=1)
    assert found.reject()
    assert found.sizes.size == 5
    two = homogeneity_test_many(x[:2], 0.5, seed=4)
    assert two.p_value == homogeneity_test(x[0], x[1], 0.5, 0.5, seed=4).p_value


def test_goodness_of_fit_level_and_power() -> None:
    rng = np.random.default_rng(10)
    p, noise = shape("normal", 12), Noise.of_epsilon(0.1)
    rejected = [
        goodness_of_fit(noisy_histogram(p, 3000, noise, rng, "clamp"), p, 0.1, replicates=199, seed=rng).reject()
        for _ in range(200)
    ]
    assert within_binomial_error(np.mean(rejected), 200)
    assert goodness_of_fit(noisy_histogram(shape("uniform", 12), 3000, noise, rng, "clamp"), p, 0.1, seed=0).reject()


def test_pearson_ignores_empty_columns() -> None:
    assert pearson(np.array([[5.0, 0, 5], [5, 0, 5]])) == 0
    assert pearson(np.zeros((2, 3))) == 0


def test_pandas_goes_in() -> None:
    found = homogeneity_test(pd.Series([10, 20]), pd.Series([11, 21]), 1.0, 1.0, replicates=20, seed=1)
    assert found.p0.size == 2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: homogeneity_test([1, 2], [1, 2, 3], 1.0, 1.0), "different numbers of classes"),
        (lambda: homogeneity_test([1, 2], [1, 2]), "privacy level of histogram 1"),
        (lambda: homogeneity_test([1, 2], [1, 2], 1.0), "privacy level of histogram 2"),
        (lambda: homogeneity_test([1, np.nan], [1, 2], 1.0, 1.0), "histogram 1"),
        (lambda: homogeneity_test([1, 2], [1, -2], 1.0, 1.0), "histogram 2"),
        (lambda: homogeneity_test([], [], 1.0, 1.0), "no classes"),
        (lambda: homogeneity_test(["a"], [1], 1.0, 1.0), "array of numbers"),
        (lambda: homogeneity_test([1, 2], [1, 2], 0.0, 1.0), "epsilon"),
        (lambda: homogeneity_test([1, 2], [1, 2], 1.0, 1.0, replicates=0), "replicate"),
        (lambda: homogeneity_test([1, 2], [1, 2], 1.0, 1.0, expected="printed"), "expected"),
        (lambda: homogeneity_test([1, 2], [1, 2], 1.0, 1.0, postprocess="smooth"), "post-processing"),
        (lambda: homogeneity_test_many([[1, 2]], 1.0), "at least two"),
        (lambda: homogeneity_test_many([[1, 2], [3, 4]], [1.0]), "privacy levels"),
        (lambda: goodness_of_fit([1, 2], [1, 2, 3], 1.0), "probabilities"),
        (lambda: goodness_of_fit([1, 2], [-1, 2], 1.0), "probabilities"),
    ],
)
def test_bad_input(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
