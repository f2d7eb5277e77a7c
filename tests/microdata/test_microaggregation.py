"""Microaggregation: published information losses, brute force, and the promises about groups."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabprotect as tp
from tabprotect.errors import InputError
from tabprotect.microdata.loss import sum_of_squares
from tabprotect.microdata.mdav import mdav, optimal_univariate, vmdav

micro = tp.microdata.microaggregate


def mdav_by_scanning(x: np.ndarray, k: int) -> np.ndarray:
    """MDAV as it is written in the literature."""
    label, left, g = np.full(len(x), -1), np.arange(len(x)), 0

    def take(center: int) -> None:
        nonlocal left, g
        gap = ((x[left] - x[center]) ** 2).sum(axis=1)
        chosen = left[np.lexsort((left, gap))[:k]]
        label[chosen] = g
        left, g = np.setdiff1d(left, chosen), g + 1

    while len(left) >= 2 * k:
        r = left[((x[left] - x[left].mean(axis=0)) ** 2).sum(axis=1).argmax()]
        s = left[((x[left] - x[r]) ** 2).sum(axis=1).argmax()]
        more = len(left) >= 3 * k
        take(r)
        if more:
            take(s)
    label[left] = g
    return label


@pytest.mark.parametrize(("k", "loss"), [(3, "5.692186"), (5, "9.088435"), (10, "14.15593")])
def test_reference_losses_on_census(shared: Path, k: int, loss: str) -> None:
    census = pd.read_csv(shared / "data" / "casc_census.csv")
    done = micro(census, columns=list(census.columns), k=k)
    digits = len(loss.split(".")[1])
    assert f"{done.details['information loss %']:.{digits}f}" == loss
    assert f"{tp.microdata.information_loss(census, done).percent:.{digits}f}" == loss
    assert tp.microdata.risk(done.data, keys=list(census.columns)).k == k


@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize("k", [2, 3, 7])
def test_tree_finds_what_scanning_finds(columns: int, k: int) -> None:
    x = np.random.default_rng(columns).standard_normal((700, columns))
    ours, theirs = mdav(x, k), mdav_by_scanning(x, k)
    assert (ours == theirs).all()


def test_tree_finds_what_scanning_finds_where_many_records_are_equal() -> None:
    x = np.random.default_rng(1).integers(0, 4, (400, 2)).astype(float)
    ours, theirs = mdav(x, 4), mdav_by_scanning(x, 4)
    assert sum_of_squares(x, ours)[0] == pytest.approx(sum_of_squares(x, theirs)[0], rel=0.05, abs=1e-9)
    assert np.bincount(ours).min() >= 4


points = st.integers(1, 60).flatmap(
    lambda n: st.lists(st.tuples(st.integers(-5, 5), st.integers(0, 3)), min_size=n, max_size=n)
)


@given(points, st.integers(1, 6), st.sampled_from([mdav, vmdav]))
@settings(max_examples=120, deadline=None)
def test_every_group_has_between_k_and_2k(rows: list[tuple[int, int]], k: int, method: object) -> None:
    x = np.array(rows, dtype=float)
    sizes = np.bincount(method(x, k))  # type: ignore[operator]
    assert sizes.sum() == len(x)
    if len(x) >= k:
        assert sizes.min() >= k
        limit = 2 * k - 1 if method is mdav else 3 * k - 2  # the up to k−1 last records join any group
        assert sizes.max() <= max(limit, len(x) if len(x) < 2 * k else limit)


def best_partition(x: list[float], k: int) -> float:
    """Least sum of squares over all partitions of the sorted values into runs of at least k."""
    x = sorted(x)
    best = np.inf
    cuts = range(k, len(x) - k + 1)
    for chosen in range(1 << len(cuts)):
        edges = [0, *(c for i, c in enumerate(cuts) if chosen >> i & 1), len(x)]
        if all(b - a >= k for a, b in pairwise(edges)):
            best = min(best, sum(float(np.var(x[a:b]) * (b - a)) for a, b in pairwise(edges)))
    return best


@given(st.lists(st.integers(0, 30), min_size=2, max_size=13), st.integers(2, 4))
@settings(max_examples=80, deadline=None)
def test_univariate_partition_is_optimal(values: list[int], k: int) -> None:
    x = np.array(values, dtype=float)
    if len(x) < k:
        return
    assert sum_of_squares(x[:, None], optimal_univariate(x, k))[0] == pytest.approx(best_partition(values, k), abs=1e-9)


def test_optimal_loses_less_than_any_other_on_each_column() -> None:
    rng = np.random.default_rng(0)
    df = pd.DataFrame(rng.lognormal(size=(500, 2)), columns=["a", "b"])
    loss = {
        m: micro(df, columns=["a"], k=4, method=m).details["information loss %"] for m in ("optimal", "mdav", "vmdav")
    }
    assert loss["optimal"] <= min(loss.values())
    both = micro(df, columns=["a", "b"], k=4, method="optimal").data
    assert both.groupby("a").size().min() >= 4
    assert both.groupby("b").size().min() >= 4


def test_variable_groups_follow_clusters() -> None:
    rng = np.random.default_rng(2)
    centers = np.repeat(np.arange(20) * 100.0, 5)
    df = pd.DataFrame({"x": centers + rng.random(100)})
    fixed = micro(df, columns=["x"], k=3).details["information loss %"]
    free = micro(df, columns=["x"], k=3, method="vmdav", gamma=1000)
    assert free.details["information loss %"] < fixed / 10
    assert free.details["largest group"] == 5


def test_mixed_columns() -> None:
    df = pd.DataFrame(
        {
            "pay": [1.0, 2, 3, 100, 101, 102],
            "size": pd.Categorical(list("SSMLLM"), categories=list("SML"), ordered=True),
            "town": list("aabccc"),
        }
    )
    done = micro(df, columns=["pay", "size", "town"], k=3)
    assert done.data["pay"].tolist() == [2.0] * 3 + [101.0] * 3
    assert done.data["size"].tolist() == ["S"] * 3 + ["L"] * 3
    assert done.data["town"].tolist() == ["a"] * 3 + ["c"] * 3
    ranks = micro(df.assign(size=[1, 2, 9, 1, 2, 9]), columns=["pay", "size"], k=3, ordinal=["size"])
    assert ranks.data["size"].tolist() == [2] * 6


def test_groups_stay_within_strata_and_leftovers_go() -> None:
    df = pd.DataFrame({"sex": ["m"] * 7 + ["f"] * 2, "pay": [1.0, 2, 3, 10, 11, 12, 13, 5, 6]})
    done = micro(df, columns=["pay"], k=3, within=["sex"])
    assert done.data["sex"].tolist() == ["m"] * 7  # two records cannot make a group of three
    assert done.details["dropped"] == 2
    assert done.kept.tolist() == list(range(7))
    exact = micro(df, columns=["pay"], k=3, within=["sex"], leftover="drop")
    assert (exact.details["smallest group"], exact.details["largest group"], exact.details["dropped"]) == (3, 3, 3)


def test_blocks_cost_little_and_keep_the_promise() -> None:
    df = pd.DataFrame(np.random.default_rng(0).standard_normal((3000, 3)), columns=list("abc"))
    whole = micro(df, columns=list("abc"), k=3)
    with ThreadPoolExecutor(2) as pool:
        blocked = micro(df, columns=list("abc"), k=3, blocks=8, executor=pool)
    again = micro(df, columns=list("abc"), k=3, blocks=8)
    assert blocked.data.equals(again.data)
    assert blocked.details["smallest group"] >= 3
    assert blocked.details["information loss %"] < 1.3 * whole.details["information loss %"]


def test_means_are_kept() -> None:
    df = pd.DataFrame(np.random.default_rng(0).exponential(size=(200, 2)), columns=["a", "b"])
    done = micro(df, columns=["a", "b"], k=5)
    assert done.data.mean().to_numpy() == pytest.approx(df.mean().to_numpy())
    median = micro(df, columns=["a", "b"], k=5, aggregate="median").data
    assert set(median["a"]) <= set(df["a"])


@pytest.mark.parametrize(
    ("bad", "words"),
    [({"k": 0}, "k=0"), ({"method": "pca"}, "method"), ({"columns": []}, "at least one column"), ({"columns": ["z"]}, "no column"),
     ({"k": 9}, "cannot form"), ({"blocks": 0}, "blocks"), ({"aggregate": "mode"}, "aggregate"), ({"gamma": -1}, "gamma"),
     ({"leftover": "burn"}, "leftover"), ({"within": ["a"]}, "kept within"), ({"columns": ["t"], "method": "optimal"}, "nominal"),
     ({"columns": ["h"]}, "missing values")],
)  # fmt: skip
def test_bad_input_is_explained(bad: dict, words: str) -> None:
    df = pd.DataFrame({"a": [1.0, 2, 3, 4], "t": list("xyxy"), "h": [1.0, None, 2, 3]})
    with pytest.raises(InputError, match=words):
        micro(df, **({"columns": ["a"], "k": 2} | bad))
