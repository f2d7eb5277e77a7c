"""Key sets and minimal uniques against the definition."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabprotect as tp
from tabprotect.errors import InputError


@given(st.lists(st.tuples(*[st.integers(0, 2)] * 4), min_size=1, max_size=12))
@settings(max_examples=25, deadline=None)
def test_minimal_uniques_are_their_definition(rows: list[tuple[int, ...]]) -> None:
    df = pd.DataFrame(rows, columns=list("abcd"))
    found = tp.microdata.key_sets(df, keys=list("abcd"), max_size=4)

    def unique(record: int, keys: tuple[str, ...]) -> bool:
        at = ["abcd".index(c) for c in keys]
        return sum(all(r[j] == rows[record][j] for j in at) for r in rows) == 1

    for s, uniques, minimal in zip(found.sets, found.uniques, found.minimal, strict=True):
        alone = [r for r in range(len(rows)) if unique(r, s)]
        inner = list(chain.from_iterable(combinations(s, i) for i in range(1, len(s))))
        assert uniques == len(alone)
        assert minimal == sum(not any(unique(r, t) for t in inner) for r in alone)


def test_views() -> None:
    df = pd.DataFrame({"sex": [0, 0, 1, 1, 0], "age": [1, 1, 1, 1, 9], "id": range(5)})
    found = tp.microdata.key_sets(df, keys=["sex", "age", "id"], max_size=2)
    assert found.table["keys"].tolist()[0] == "id"
    assert found.by_key == {"sex": 0, "age": 1, "id": 5}
    assert found.riskiest(1)["record"].tolist() == [4]
    assert "6 combinations" in found.summary()
    assert (np.diff(found.table["uniques"]) <= 0).all()


def test_bad_input() -> None:
    with pytest.raises(InputError):
        tp.microdata.key_sets(pd.DataFrame({"a": [1]}), keys=["a"], max_size=0)
    with pytest.raises(InputError):
        tp.microdata.key_sets(pd.DataFrame({"a": [1]}), keys=["b"])
