"""What attackers know: bounds, zeros, their own contribution, earlier releases."""

from __future__ import annotations

import numpy as np
import pytest

import tabprotect as tp
from tests.attacker.test_attack import d272


def test_more_knowledge_never_widens() -> None:
    table, cells = d272()
    wide = tp.attack(table, cells)
    for known in (
        {"lb": 1},
        {"ub": 20},
        {"share": 0.5},
        {"integer": True},
        {"singletons": True},
        {"lb": 1, "share": 0.9},
    ):
        narrow = tp.attack(table, cells, **known)
        assert (narrow.lower >= wide.lower - 1e-9).all(), known
        assert (narrow.upper <= wide.upper + 1e-9).all(), known


def test_share_is_relative_to_the_value() -> None:
    table, cells = d272()
    found = tp.attack(table, cells, share=0.25)
    truth = table.values[found.cells]
    assert (found.lower >= 0.75 * truth - 1e-9).all()
    assert (found.upper <= 1.25 * truth + 1e-9).all()


def test_a_respondent_alone_in_a_cell_subtracts_itself() -> None:
    # two hidden cells in a row and column pattern; s has one contributor who then knows p exactly
    table = tp.Table.from_relations(
        [10.0, 4.0, 6.0, 7.0, 3.0, 4.0, 17.0, 7.0, 10.0],
        [[-1, 1, 1, 0, 0, 0, 0, 0, 0], [0, 0, 0, -1, 1, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, -1, 1, 1],
         [-1, 0, 0, -1, 0, 0, 1, 0, 0], [0, -1, 0, 0, -1, 0, 0, 1, 0], [0, 0, -1, 0, 0, -1, 0, 0, 1]],
        freq=[9, 1, 8, 8, 4, 4, 17, 5, 12],
    )  # fmt: skip
    table = table.with_status([2], "u").with_levels([2], lpl=1, upl=1)
    hidden = [1, 2, 4, 5]
    assert tp.attack(table, hidden).safe
    inside = tp.attack(table, hidden, singletons=True)
    assert not inside.safe
    assert inside.exposed == (2,)
    assert "respondents" in inside.intervals.fails[1]
    assert not tp.attack(table, hidden, coalitions=[[1]], goal="verdict").safe
    with pytest.raises(tp.errors.InputError, match="number of contributors"):
        tp.attack(table.replace(freq=None), hidden, singletons=True)


def test_an_earlier_release_is_more_knowledge() -> None:
    table, cells = d272()
    found = tp.attack(table, cells, also=[np.array([c for c in cells if c != cells[0]])])
    assert cells[0] not in found.cells
    assert len(found.cells) == len(cells) - 1
    other = tp.examples.d272().replace(name="x")
    with pytest.raises(tp.errors.InputError, match="no dimensions"):
        tp.attack(tp.Table.from_relations([3.0, 1.0, 2.0], [[-1, 1, 1]]), [1, 2], also=[_protected(other)])


def _protected(table: tp.Table) -> tp.Protected:
    hidden = np.zeros(table.n_cells, bool)
    return tp.Protected(table, "suppress", "none", table.values, hidden, "optimal", 0.0, 0.0, 0.0)


def test_known_zeros_and_signs() -> None:
    table = tp.Table.from_relations([3.0, -1.0, 4.0], [[-1, 1, 1]])
    free = tp.attack(table, [1, 2])
    assert free.lower.tolist() == [-np.inf, -np.inf]
    signed = tp.attack(table, [1, 2], lb=[-10, -2, -2])
    assert signed.lower.tolist() == [-2.0, -2.0]
    zero = tp.Table.from_relations([3.0, 0.0, 1.0, 2.0], [[-1, 1, 1, 1]])
    assert tp.attack(zero, [1, 2, 3], zeros=[1]).upper[0] == 0.0


def _census(shape: str, keep: tuple[str, ...]) -> tp.Table:
    rng = np.random.default_rng(4)
    rows = [(a, s, g) for a in "pqr" for s in "fm" for g in ("young", "old")]
    frame = {
        "area": [r[0] for r in rows],
        "sex": [r[1] for r in rows],
        "age": [r[2] for r in rows],
        "n": rng.integers(1, 9, len(rows)),
    }
    import pandas as pd

    inner = pd.DataFrame(frame).groupby(list(keep), as_index=False)["n"].sum()
    return tp.Table.from_frame(inner, by=list(keep), freq="n", name=shape)


def test_a_linked_table_is_more_relations() -> None:
    first, second = _census("1", ("area", "sex")), _census("2", ("area", "age"))
    hidden = np.zeros(first.n_cells, bool)
    # the area totals p and q are hidden here together with their parts, but the other table publishes them
    for i in range(first.n_cells):
        hidden[i] = first.dims[0].codes[first.codes[i, 0]] in ("p", "q")
    alone = tp.attack(first, hidden)
    published = tp.Protected(
        second, "suppress", "none", second.values, np.zeros(second.n_cells, bool), "optimal", 0.0, 0.0, 0.0
    )
    both = tp.attack(first, hidden, also=[published])
    assert len(alone.recovered) == 0
    assert len(both.cells) == len(alone.cells) - 2
    totals = [first.cell(area=a, sex="Total") for a in ("p", "q")]
    assert not set(totals) & set(both.cells)
    assert set(both.cells) <= set(alone.cells)
    at = np.searchsorted(alone.cells, both.cells)
    assert (both.upper <= alone.upper[at]).all()
    assert (both.upper < alone.upper[at]).any()


def test_found_tables_of_other_classifications_together() -> None:
    from tabprotect.attacker import read_published

    first, second = _census("1", ("area", "sex")), _census("2", ("area", "age"))
    one = first.cells[["area", "sex", "value"]].astype({"value": str}).assign(area=lambda f: f.area.astype(str))
    one.loc[one.area.isin(["p", "q"]), "value"] = "x"
    two = second.cells[["area", "age", "value"]].astype({"value": str})
    a, b = read_published(one, ["area", "sex"]), read_published(two, ["area", "age"])
    both = tp.attack(a, also=[b])
    assert len(both.cells) == len(tp.attack(a).cells) - 2
    two.loc[0, "value"] = "1"
    with pytest.raises(tp.errors.InputError, match="different values"):
        tp.attack(a, also=[read_published(two, ["area", "age"])])
