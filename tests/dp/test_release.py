"""Releases of histograms: the promise, the noise, and what is refused."""

from __future__ import annotations

import json
import sys

import numpy as np
import pandas as pd
import pytest

from tabprotect.dp import Budget, Noise, Release, release
from tabprotect.dp.budget import exact
from tabprotect.dp.mechanism import Mechanism
from tabprotect.errors import BudgetExceeded, InputError, SolverUnavailable

COUNTS = np.array([0, 3, 50, 1200, 7, 0])
LAWS = {"discrete-laplace": {}, "laplace": {}, "gaussian": {"delta": 1e-6}}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("neighbours", ["replace", "add-remove"])
@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 7.7])
def test_privacy_map_never_exceeds_epsilon(law: str, neighbours: str, epsilon: float) -> None:
    found = release(COUNTS, epsilon, law=law, neighbours=neighbours, **LAWS[law])
    assert exact(found.proved) <= exact(epsilon)
    assert found.proved == pytest.approx(epsilon, rel=1e-6)  # and wastes nothing
    assert (found.values >= 0).all()
    if law != "gaussian":
        assert found.scale == pytest.approx((2 if neighbours == "replace" else 1) / epsilon)
    if law != "laplace":
        assert (found.values == np.rint(found.values)).all()
    assert (found.law, found.neighbours, found.epsilon) == (law, neighbours, epsilon)


@pytest.mark.parametrize("law", LAWS)
def test_unbiased_before_clamping(law: str) -> None:
    counts = np.full(4000, 2)
    found = release(counts, 0.5, law=law, clamp=False, **LAWS[law])
    assert (found.values < 0).any()
    error = found.values - 2
    # 6 sigma: the noise is not seeded, so this may fail once in 10⁸ runs
    assert abs(error.mean()) < 6 * np.sqrt(found.noise.variance / counts.size)
    assert error.var() == pytest.approx(found.noise.variance, rel=0.35)


def test_clamped_mean_is_g() -> None:
    found = release(np.zeros(4000, int), 0.5, law="laplace")
    assert found.values.mean() == pytest.approx(2.0, abs=6 * np.sqrt(12 / 4000))
    assert found.clamped


def test_contributions_scale_the_noise() -> None:
    assert release(COUNTS, 1.0, contributions=3).scale == pytest.approx(6.0)
    gauss = [release(COUNTS, 1.0, law="gaussian", delta=1e-6, contributions=k).scale for k in (1, 3)]
    assert gauss[1] == pytest.approx(3 * gauss[0], rel=1e-6)


def test_two_releases_differ() -> None:
    """No seed, no repetition: the randomness is OpenDP's."""
    a, b = (release(np.full(200, 100), 0.1).values for _ in range(2))
    assert (a != b).any()


def test_budget_is_charged_once_and_refuses() -> None:
    budget = Budget(1.0)
    release(COUNTS, 0.7, budget=budget)
    with pytest.raises(BudgetExceeded, match="nothing was released"):
        release(COUNTS, 0.7, budget=budget)
    assert budget.left[0] == pytest.approx(0.3)
    with pytest.raises(InputError):
        release([-1, 2], 0.1, budget=budget)
    assert len(budget.ledger) == 1  # bad input costs nothing


def test_round_trip_and_looks() -> None:
    series = pd.Series([4, 5, 6], index=["a", "b", "c"])
    found = release(series, 1.0)
    again = Release.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.values.tolist() == found.values.tolist()
    assert again.noise == found.noise
    frame = found.publish()
    assert frame["class"].tolist() == ["a", "b", "c"]
    assert frame["value"].tolist() == found.values.tolist()
    assert "ε = 1" in found.summary()
    assert "replaced" in found.summary()
    with pytest.raises(ValueError, match="read-only"):
        found.values[0] = 1
    with pytest.raises(InputError, match="not a release"):
        Release.from_dict({"values": [1]})


def test_shape_is_kept() -> None:
    assert release(np.ones((3, 4), int), 1.0).values.shape == (3, 4)


@pytest.mark.parametrize(
    ("counts", "options", "message"),
    [
        ([1, 2], {"epsilon": 0}, "epsilon"),
        ([1, 2], {"epsilon": -1}, "epsilon"),
        ([1, 2], {"epsilon": float("nan")}, "epsilon"),
        ([1, float("nan")], {}, "entry 1 is not a number"),
        ([1, -2], {}, "entry 1 is negative"),
        ([1.5, 2], {}, "entry 0 is not a whole number"),
        ([2.0**60], {}, "too large"),
        ([], {}, "at least one"),
        (5, {}, "at least one"),
        (["a"], {}, "numbers"),
        ([1], {"law": "uniform"}, "law"),
        ([1], {"neighbours": "any"}, "neighbours"),
        ([1], {"law": "gaussian"}, "delta"),
        ([1], {"delta": 0.1}, "delta"),
        ([1], {"delta": 2}, "delta"),
        ([1], {"contributions": 0}, "contributions"),
        ([1], {"contributions": 1.5}, "contributions"),
    ],
)
def test_bad_input(counts, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        release(counts, **options)


def test_error_text_tells_no_counts() -> None:
    with pytest.raises(InputError) as caught:
        release([123457.5, -98765], 1.0)
    assert "123457" not in str(caught.value)


def test_without_opendp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opendp", None)
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(SolverUnavailable, match="pip install"):
        release(COUNTS, 1.0)
    assert Noise.of_epsilon(1.0).simulate(3, seed=0).shape == (3,)  # simulation does not need it


def test_mechanism_describes_itself() -> None:
    assert "discrete Laplace" in Mechanism.for_epsilon(1.0, l1=2).describe()
