"""Linked tables: shared cells, what must agree, and results split back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import tabprotect as tp
from tabprotect.errors import InputError

NUTS = tp.Hierarchy.from_tree({"N": ["N1", "N2"], "S": ["S1"]})


@pytest.fixture
def records() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    n = 200
    return pd.DataFrame(
        {
            "region": rng.choice(["N1", "N2", "S1"], n),
            "nace": rng.choice(["A", "B", "C"], n),
            "size": rng.choice(["s", "m", "l"], n),
            "firm": rng.integers(0, 90, n),
            "x": rng.integers(1, 100, n),
        }
    )


@pytest.fixture
def tables(records: pd.DataFrame) -> dict[str, tp.Table]:
    return {
        "industry": tp.tabulate(records, by={"region": NUTS, "nace": None}, value="x", contributor="firm"),
        "size": tp.tabulate(
            records, by={"size": None, "region": NUTS}, value="x", contributor="firm", total={"size": "All"}
        ),
    }


def test_cells_with_equal_codes_are_one(tables: dict[str, tp.Table]) -> None:
    both = tp.link(tables)
    # the six regions with the total of the other dimension are shared
    assert both.n_cells == 6 * 4 + 6 * 4 - 6
    assert both.shared.sum() == 6
    both.check_additive()
    # the two sums over regions are in both tables and kept once
    assert both.n_relations == sum(t.n_relations for t in tables.values()) - 3
    values = both.split(both.values)
    for name, table in tables.items():
        np.testing.assert_array_equal(values[name], table.values)
        np.testing.assert_array_equal(both.split(both.contributions.top)[name], table.contributions.top)
        np.testing.assert_array_equal(both.split(both.freq)[name], table.freq)


def test_a_primary_cell_of_one_table_is_primary_in_all(tables: dict[str, tp.Table]) -> None:
    cell = tables["industry"].cell(region="N1", nace="Total")
    tables["industry"] = (
        tables["industry"].with_status(cell, "u", "asked").with_levels(cell, upl=5.0).with_bounds(ub=1e6)
    )
    other = tables["size"].cell(region="N1", size="All")
    tables["size"] = tables["size"].with_levels(other, upl=3.0).with_cost(other, 9.0).protect(other)
    both = tp.link(tables)
    assert both.primary.sum() == 1
    i = int(both.primary.argmax())
    assert (both.upl[i], both.cost[i], both.ub[i], both.reason[i]) == (5.0, 9.0, 1e6, "asked")
    part = both.part("size")
    assert (part.status[other], part.upl[other]) == ("u", 5.0)
    assert part.dims == tables["size"].dims
    assert both.part(1).n_cells == part.n_cells
    with pytest.raises(InputError, match="no table 'q'"):
        both.part("q")


def test_verbs_keep_the_link(tables: dict[str, tp.Table]) -> None:
    both = tp.link(tables).mark(tp.rules.Threshold(2))
    parts = both.split(both.primary)
    assert set(parts) == {"industry", "size"}
    assert parts["size"].sum() + parts["industry"].sum() >= both.primary.sum()


def test_cells_are_named(tables: dict[str, tp.Table]) -> None:
    both = tp.link(tables)
    assert both.label(0) == "industry: region=Total, nace=Total"
    assert both.label(both.n_cells - 1).startswith("size: size=s, region=S1")
    frame = both.cells
    assert list(frame.columns[:4]) == ["table", "region", "nace", "size"]
    assert frame["table"].value_counts().to_dict() == {"industry": 24, "size": 18}
    row = frame.iloc[-1]
    assert (row["region"], row["nace"], row["size"]) == ("S1", "Total", "s")


def test_disagreeing_values_are_named(tables: dict[str, tp.Table]) -> None:
    wrong = tables["size"].values.copy()
    wrong[tables["size"].cell(region="N2", size="All")] += 3
    tables["size"] = tables["size"].replace(values=wrong)
    with pytest.raises(
        InputError,
        match=r"values of 1 shared cells differ.*\n.*industry: region=N2, nace=Total and size: size=All, region=N2 differ by 3",
    ):
        tp.link(tables)


def test_disagreeing_frequencies_are_named(tables: dict[str, tp.Table]) -> None:
    tables["size"] = tables["size"].replace(freq=tables["size"].freq + 1)
    with pytest.raises(InputError, match="frequencies of 6 shared cells differ"):
        tp.link(tables)


def test_pairs_link_tables_without_dimensions() -> None:
    a = tp.Table.from_relations([7.0, 3.0, 4.0], [[-1, 1, 1]])
    b = tp.Table.from_relations([4.0, 1.0, 3.0], [[-1, 1, 1]])
    both = tp.link([a, b], shared=[((0, 2), (1, 0))])
    assert both.values.tolist() == [7, 3, 4, 1, 3]
    both.check_additive()
    assert both.places[1].tolist() == [2, 3, 4]
    with pytest.raises(InputError, match="table '0' has no dimensions"):
        tp.link([a, b])
    with pytest.raises(InputError, match="has no cell 9"):
        tp.link([a, b], shared=[((0, 9), (1, 0))])
    with pytest.raises(InputError, match="shares no cell"):
        tp.link([a, b], shared=[])


def test_pairs_by_codes_and_chains(tables: dict[str, tp.Table]) -> None:
    first = tables["industry"]
    alone = tp.Table.from_relations([first.values[0]], np.zeros((0, 1)))
    both = tp.link(
        {"t": first, "x": alone, "y": alone},
        shared=[(("t", {"region": "Total", "nace": "Total"}), ("x", 0)), (("x", 0), ("y", 0))],
    )
    assert both.n_cells == first.n_cells
    assert both.places[2].tolist() == [0]


def test_three_tables_and_one(tables: dict[str, tp.Table], records: pd.DataFrame) -> None:
    third = tp.tabulate(records, by=["nace", "size"], value="x", contributor="firm", total={"size": "All"})
    system = tp.link([*tables.values(), third])
    assert system.names == ("0", "1", "2")
    system.check_additive()
    assert system.n_cells == 24 + 18 + 16 - 4 - 3
    assert tp.link([third]).n_cells == third.n_cells
    with pytest.raises(InputError, match="no tables"):
        tp.link([])


def test_split_needs_the_whole_system(tables: dict[str, tp.Table]) -> None:
    with pytest.raises(InputError, match="one entry per cell"):
        tp.link(tables).split(np.zeros(3))


def test_mixed_kinds_are_kept_per_cell() -> None:
    n = tp.Table.from_frame(
        {"r": ["a", "b"], "v": ["n", "n"], "x": [1, 2]}, by=["r", "v"], value="x", counts=True, total={"v": None}
    )
    m = tp.Table.from_frame(
        {"r": ["a", "b"], "v": ["m", "m"], "x": [5, 6]}, by=["r", "v"], value="x", total={"v": None}
    )
    pairs: list[Any] = [((0, 0), (1, 0))]
    with pytest.raises(InputError, match="values of 1 shared cells differ"):
        tp.link([n, m], shared=pairs)
    same = m.replace(values=n.values)
    assert tp.link([n, same], shared=pairs).count_cells.tolist() == [True, True, True, False, False]
