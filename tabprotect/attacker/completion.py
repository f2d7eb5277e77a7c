"""A completion of a table with gaps: one table that fits what is published, or the relations that contradict each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.attacker.system import components
from tabprotect.errors import InputError
from tabprotect.solve.lp import PersistentLP
from tabprotect.types import FloatArray


def complete(
    relations: Any,
    rhs: FloatArray,
    values: FloatArray,
    lb: FloatArray,
    ub: FloatArray,
    describe: Any = None,
    tolerance: float = 1e-9,
) -> FloatArray:
    """Fill the gaps (NaN) so that all relations and bounds hold; raises InputError naming the relations in conflict.

    >>> complete(sp.csr_array(np.array([[-1.0, 1, 1]])), np.zeros(1), np.array([5.0, np.nan, 2.0]), np.zeros(3), np.full(3, np.inf)).tolist()
    [5.0, 3.0, 2.0]
    """
    hidden = np.isnan(values)
    known = np.where(hidden, 0.0, values)
    target = rhs - relations @ known
    size = np.abs(relations) @ np.abs(known) + np.abs(rhs)
    filled = values.copy()
    a = sp.csr_array(sp.csc_array(relations)[:, np.flatnonzero(hidden)])
    closed = np.diff(a.indptr) == 0
    wrong = np.flatnonzero(closed & (np.abs(target) > tolerance * np.maximum(size, 1e-300)))
    if len(wrong):
        raise InputError(_conflict(wrong, describe, "published cells alone do not add up"))
    for c in components(relations, hidden, np.zeros(len(hidden)), np.zeros(len(hidden))):
        if c.matrix.shape[0] == 0:
            filled[c.cells] = np.clip(0.0, lb[c.cells], ub[c.cells])
            continue
        rows = _rows_of(relations, c.cells)
        filled[c.cells] = _fit(
            sp.csr_array(sp.csc_array(relations)[:, c.cells])[rows],
            target[rows],
            size[rows],
            lb[c.cells],
            ub[c.cells],
            rows,
            describe,
        )
    return filled


def _rows_of(relations: Any, cells: Any) -> Any:
    part = sp.csc_array(relations)[:, cells]
    return np.unique(part.indices)


def _fit(
    matrix: Any, target: FloatArray, size: FloatArray, lb: FloatArray, ub: FloatArray, rows: Any, describe: Any
) -> FloatArray:
    """Least total violation of the relations over the bounds; zero means a completion."""
    scale = max(float(np.abs(target).max(initial=0.0)), 1.0)
    m, n = matrix.shape
    elastic = sp.hstack([matrix, sp.eye_array(m), -sp.eye_array(m)])
    cost = np.concatenate([np.zeros(n), np.ones(2 * m)])
    lower = np.concatenate([lb / scale, np.zeros(2 * m)])
    upper = np.concatenate([ub / scale, np.full(2 * m, np.inf)])
    lp = PersistentLP(elastic, lower, upper, target / scale, target / scale)
    answer = lp.solve(cost)
    if answer.status != "optimal":
        raise InputError("the table with gaps cannot be completed: the bounds given for the hidden cells are empty")
    slack = (answer.x[n : n + m] + answer.x[n + m :]) * scale
    wrong = np.flatnonzero(slack > 1e-7 * np.maximum(size, scale * 1e-6))
    if len(wrong):
        raise InputError(
            _conflict(
                rows[wrong[np.argsort(-slack[wrong], kind="stable")]], describe, "no values of the hidden cells fit"
            )
        )
    return answer.x[:n] * scale


def _conflict(rows: Any, describe: Any, why: str) -> str:
    names = [str(int(r)) if describe is None else describe(int(r)) for r in rows[:5]]
    more = f" and {len(rows) - 5} more" if len(rows) > 5 else ""
    return f"the published table cannot be completed ({why}); relations in conflict: " + "; ".join(names) + more
