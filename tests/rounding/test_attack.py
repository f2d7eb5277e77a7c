"""What the roundings together give away."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tabprotect as tp
from tabprotect.errors import Unsafe
from tabprotect.rounding import rounding_intervals
from tabprotect.rounding.attack import published_room
from tabprotect.table.table import Table


def by_listing(table: Table, values: np.ndarray, info: dict[str, object]) -> tuple[np.ndarray, np.ndarray]:
    """All whole-number tables that could have been published like this."""
    low, high = published_room(table, values, info)
    inner = [i for i in range(table.n_cells) if i != 0]
    options = [range(int(low[i]), int(high[i]) + 1) for i in inner]
    possible = []
    for choice in itertools.product(*options):
        full = np.r_[sum(choice), choice]
        if low[0] <= full[0] <= high[0]:
            possible.append(full)
    found = np.array(possible)
    return found.min(axis=0), found.max(axis=0)


@pytest.mark.parametrize("inner", [[1, 1, 1], [4, 0, 2], [2, 2, 2], [3, 1, 4]])
def test_intervals_equal_those_of_listing_all_tables(inner: list[int]) -> None:
    table = Table.from_relations([float(sum(inner)), *map(float, inner)], [[-1, 1, 1, 1]], counts=True)
    res = tp.round(table, base=3)
    lower, upper = rounding_intervals(res)
    low, high = by_listing(table, res.values, dict(res.info))
    assert np.array_equal(lower, low)
    assert np.array_equal(upper, high)


def test_totals_can_narrow_parts_below_one_base() -> None:
    # parts 0, 0, 0 under a total of 9: the parts must be at their upper ends
    table = Table.from_relations([6.0, 2, 2, 2], [[-1, 1, 1, 1]], counts=True)
    info = {"base": 3.0, "method": "controlled", "widened": 0, "zero_restricted": True, "exact": np.zeros(4, bool)}
    low, high = published_room(table, np.array([6.0, 0, 0, 6]), info)
    assert (high - low).tolist() == [4, 2, 2, 6]  # 4..8, 0..2, 0..2, and the part shown as 6 reaches down to the truth


def test_a_count_that_is_recovered_exactly_raises() -> None:
    # rounding to base 1 protects nothing
    table = tp.examples.d272().mark(tp.rules.Threshold(2))
    with pytest.raises(Unsafe, match="recovered exactly"):
        tp.round(table, base=1)
    res = tp.round(table, base=1, audit="report")
    assert len(res.info["recovered"]) == 4


def test_attack_verb_judges_rounded_tables() -> None:
    table = tp.examples.d272().mark(tp.rules.Threshold(2))
    assert tp.attack(tp.round(table, base=5)).safe
    coarse = tp.attack(tp.round(table, base=3))
    assert not coarse.recovered
    assert set(coarse.exposed) == set(tp.round(table, base=3).info["exposed"])


def test_no_true_value_is_shown() -> None:
    table = Table.from_relations([23457.0, 11111, 12346], [[-1, 1, 1]]).with_status([1], "u").with_levels([1], 50, 50)
    res = tp.round(table, base=1000)
    assert "11111" not in repr(res)
    assert "11111" not in res.summary()
