"""Moves with awkward denominators: a safe pattern is called safe, whichever moves the outsider's programs end with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tabprotect as tp
from tabprotect.attacker.moves import MoveChecker
from tabprotect.bench.families import magnitude
from tabprotect.linalg.exact import common_denominator

# hidden cells of magnitude(1307, "15,15,15", mean=40), as bits: the move that shows three of its needs has 64ths in 441 cells
SAFE = (
    "0000000000000000000000000000000000000000000000000000000000000000000000002613410044010b0001081021600000000a00040a0a1235204a010000"
    "00004210008c123c00000000000002a0000000000000000012300108412000000000201000001004000040440091000050000000000000002284428022010041"
    "000000002105008420800000100822041104120900006301220801800081600100000000028840c46000630400000000000010101300000a22b4108822620028"
    "00002040000016480005000000002240050000001800054800002c000000000500000b020030000000000a200190000000000230421201820000481200920000"
    "00000c000202029000000000101900114400380048104080000000822800200800000012061802140000426200000211440022296602000026bf42a022010241"
    "00000000203000002005208600000095000000000000000000220000000000000000040205021200040410020000110000000000000002030000000000000005"
    "00000150018800002480218001100000000020480410204100900000004100000000000002210000000000000000104000000248000000001229000000000000"
    "000042000022002800002284000001804144280109026042080a4080400142240000400220014780600110800000009020400048260020080611161201504201"
)


def _pattern() -> Any:
    return np.unpackbits(np.frombuffer(bytes.fromhex(SAFE), np.uint8)).astype(bool)


@pytest.fixture(scope="module")
def table() -> tp.Table:
    return magnitude(1307, "15,15,15", mean=40)


def test_a_move_in_64ths_is_made_exact(table: tp.Table) -> None:
    found = tp.attack(table, _pattern(), goal="verdict")
    assert found.safe
    assert tp.verify(found.certificate).ok


def test_an_exposed_cell_is_still_found(table: tp.Table) -> None:
    pattern = _pattern()
    pattern[np.flatnonzero(pattern & ~table.primary)[::7]] = False
    assert not tp.attack(table, pattern, goal="verdict").safe
    assert not tp.attack(table, pattern).safe


def test_other_moves_are_asked_for_where_one_cannot_be_made_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    table = magnitude(204, "6,6,6", mean=30)
    pattern = tp.suppress(table).suppressed
    check, blocks = MoveChecker.check_many, []

    def refuse_the_first(self: MoveChecker, moves: Any, wanted: Any) -> Any:
        blocks.append(moves)
        return iter(()) if len(blocks) == 1 else check(self, moves, wanted)

    monkeypatch.setattr(MoveChecker, "check_many", refuse_the_first)
    assert tp.attack(table, pattern, goal="verdict").safe
    assert len(blocks) > 1


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [([0.5, 1 / 64], 64), ([1 / 7, 1 / 11, 3.0], 77), ([2.0, -5.0], 1), ([np.sqrt(2)], 1), ([], 1)],
)
def test_common_denominator(numbers: list[float], expected: int) -> None:
    assert common_denominator(np.array(numbers)) == expected
