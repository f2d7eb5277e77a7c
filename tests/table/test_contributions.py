"""Contributions: taking, stacking, and a repr that tells nothing."""

from __future__ import annotations

import numpy as np

from tabprotect.table.contributions import Contributions


def some(n: int, k: int, *, holdings: bool = True) -> Contributions:
    top = -np.sort(-np.random.default_rng(n).integers(1, 9_999, (n, k)).astype(float), axis=1)
    inner = some(n, k, holdings=False) if holdings else None
    return Contributions(np.arange(n), top, top.sum(axis=1), weights=top * 0 + 2, holdings=inner, ids=np.arange(n) * 7)


def test_take_keeps_all_columns_together() -> None:
    known = some(5, 3)
    part = known.take(np.array([4, 1]))
    assert part.count.tolist() == [4, 1]
    assert part.ids.tolist() == [28, 7]
    np.testing.assert_array_equal(part.holdings.top, known.holdings.top[[4, 1]])
    assert part.asked is None
    np.testing.assert_array_equal(known.take(known.count > 2).top, known.top[3:])


def test_stack_keeps_what_all_have() -> None:
    both = Contributions.stack([some(3, 3), some(4, 2, holdings=False)])
    assert both.top.shape == (7, 2)
    assert both.count.tolist() == [0, 1, 2, 0, 1, 2, 3]
    assert both.holdings is None
    assert both.weights is not None


def test_repr_shows_no_amount() -> None:
    known = some(3, 2)
    assert repr(known) == "<Contributions: 3 cells, top 2, weights, holdings, ids>"
    assert not any(f"{v:g}" in repr(known) for v in known.top.ravel() if v > 99)
