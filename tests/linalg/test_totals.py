"""Totals read off relations."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tabprotect.linalg.totals import Totals


def test_two_way_table_has_one_definition_per_total() -> None:
    flat = sp.csr_array([[-1.0, 1, 1]])
    a = sp.vstack([sp.kron(flat, sp.identity(3)), sp.kron(sp.identity(3), flat)]).tocsr()
    totals = Totals.of(a)
    assert totals.leaf.reshape(3, 3).tolist() == [[False] * 3, [False, True, True], [False, True, True]]
    assert totals.depth == 2
    values = totals.add_up(np.array([0, 0, 0, 0, 1, 2, 0, 3, 4], dtype=float))
    assert values.tolist() == [10, 4, 6, 3, 1, 2, 7, 3, 4]


def test_sign_and_coefficients_do_not_matter() -> None:
    totals = Totals.of([[2.0, -1, -1], [0, 0, 0]])
    assert totals.add_up(np.array([0.0, 3, 5])).tolist() == [4, 3, 5]
    assert totals.rows.tolist() == [0, -1, -1]


def test_relations_without_a_total_define_nothing() -> None:
    totals = Totals.of([[1.0, 1, -1, -1]])
    assert totals.leaf.all()
    assert totals.depth == 0


def test_a_circle_is_no_definition() -> None:
    assert Totals.of([[-1.0, 1, 1, 0], [1, -1, 0, 1]]) is None
