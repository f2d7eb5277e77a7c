"""What attackers know: bounds, zeros, their own contribution, earlier releases."""

from __future__ import annotations

import numpy as np
import pytest

import tabprotect as tp
from tests.attacker.test_attack import d272


def test_more_knowledge_never_widens() -> None:
    table, cells = d272()
    wide = tp.attack(table, cells)
    for known in ({"lb": 1}, {"ub": 20}, {"share": 0.5}, {"integer": True}, {"singletons": True}, {"lb": 1, "share": 0.9}):
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
    with pytest.raises(tp.errors.InputError, match=r"tp\.link"):
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
