"""Noise laws: moments, the mean of clamped noise and its inverse against simulation and sums."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tabprotect.dp.noise import LAWS, Noise, sensitivity
from tabprotect.errors import InputError

SCALES = [0.7, 4.0, 40.0]


def exact_mean(noise: Noise, c: float) -> float:
    """E max(0, c + Z) by summing or integrating the law itself."""
    if noise.law == "laplace":
        z = np.linspace(-40 * noise.scale, 40 * noise.scale, 4_000_001)
        return float(np.trapezoid(np.maximum(0, c + z) * np.exp(-np.abs(z) / noise.scale) / (2 * noise.scale), z))
    reach = int(60 * noise.scale) + 60
    z = np.arange(-reach, reach + 1)
    weights = (
        np.exp(-np.abs(z) / noise.scale) if noise.law == "discrete-laplace" else np.exp(-(z**2) / (2 * noise.scale**2))
    )
    return float(np.sum(np.maximum(0, c + z) * weights) / weights.sum())


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", SCALES)
def test_mean_of_clamped_noise(law: str, scale: float) -> None:
    noise = Noise(law, scale)
    for c in (0, 1, 3, 25):
        # the Gaussian formula is an expansion for large σ
        slack = {0.7: 0.01, 4.0: 1e-4, 40.0: 1e-6}[scale] if law == "gaussian" else 1e-6
        assert float(noise.mean(c)) == pytest.approx(exact_mean(noise, c), rel=1e-5, abs=slack)
    assert float(noise.mean(0)) == pytest.approx(noise.lift)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", SCALES)
def test_inverse(law: str, scale: float) -> None:
    noise = Noise(law, scale)
    c = np.array([0, 0.01, 0.5, 1, 2, 10, 100, 10_000]) * scale
    np.testing.assert_allclose(noise.inverse_mean(noise.mean(c)), c, rtol=1e-7, atol=1e-6 * scale)
    assert noise.inverse_mean([0.0, noise.lift]) == pytest.approx([0, 0], abs=1e-6 * scale)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("scale", [1.0, 4.0, 20_000.0])
def test_simulation_has_the_law(law: str, scale: float) -> None:
    noise = Noise(law, scale)
    z = noise.simulate((200, 1000), seed=11)
    assert z.shape == (200, 1000)
    n = z.size
    assert abs(z.mean()) < 4.5 * np.sqrt(noise.variance / n)
    assert z.var() == pytest.approx(noise.variance, rel=0.03)
    if law == "laplace":
        assert stats.kstest(z.ravel()[:20_000], stats.laplace(scale=scale).cdf).pvalue > 1e-4
    else:
        assert (z == np.rint(z)).all()
    if law == "discrete-laplace":
        assert np.mean(z == 0) == pytest.approx(np.tanh(1 / (2 * scale)), abs=4.5 / np.sqrt(n))
    np.testing.assert_array_equal(z, noise.simulate((200, 1000), seed=11))
    assert (z != noise.simulate((200, 1000), seed=12)).any()


def test_mean_against_simulation() -> None:
    noise = Noise.of_epsilon(0.1)
    for c in (0.0, 5.0, 30.0):
        x = np.maximum(0, c + noise.simulate(400_000, seed=int(c)))
        assert x.mean() == pytest.approx(float(noise.mean(c)), abs=4.5 * x.std() / np.sqrt(x.size))


@pytest.mark.parametrize("alpha", [1.0, 0.1, 0.05, 0.01])
def test_the_formulas_of_the_source(alpha: float) -> None:
    """g(C) = C + exp(−αC/2)/α, C̃ = 0 up to 1/α, X itself from (2/α)·ln(1/(5α)) on."""
    noise = Noise.of_epsilon(alpha)
    c = np.linspace(0, 50 / alpha, 101)
    np.testing.assert_allclose(noise.mean(c), c + np.exp(-alpha * c / 2) / alpha)
    edge = 2 / alpha * np.log(1 / (5 * alpha)) if 5 * alpha < 1 else 0.0
    edge = max(edge, 1 / alpha)
    assert noise.counts([1 / alpha])[0] == 0
    assert noise.counts([edge + 1e-9])[0] == edge + 1e-9
    below = np.linspace(1 / alpha, edge, 7)[1:-1]
    np.testing.assert_allclose(noise.mean(noise.counts(below)), below, rtol=1e-9)


def test_gaussian_counts() -> None:
    noise = Noise("gaussian", 50.0)
    assert noise.counts([10.0])[0] == 0
    assert noise.counts([500.0])[0] == 500.0
    assert 0 < noise.counts([30.0])[0] < 30


def test_scales() -> None:
    assert sensitivity("replace") == 2
    assert Noise.of_epsilon(0.5).scale == 4.0
    assert Noise.of_epsilon(0.5, neighbours="add-remove").scale == 2.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Noise("cauchy", 1.0), "law"),
        (lambda: Noise("laplace", 0.0), "scale"),
        (lambda: Noise.of_epsilon(0.0), "epsilon"),
        (lambda: Noise.of_epsilon(float("nan")), "epsilon"),
        (lambda: Noise.of_epsilon("much"), "epsilon"),
        (lambda: Noise.of_epsilon(1.0, "gaussian"), "Gaussian"),
        (lambda: sensitivity("friends"), "neighbours"),
    ],
)
def test_bad_input(call, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()
