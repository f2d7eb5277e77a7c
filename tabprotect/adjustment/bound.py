# mypy: disable-error-code="no-untyped-def"
"""Lower bounds of the cost of any adjustment, without solving a program."""

from __future__ import annotations

import numba
import numpy as np
import scipy.sparse as sp

from tabprotect.adjustment.problem import Problem


def least_moves(problem: Problem, norm: str) -> float:
    """What the sensitive cells cost by themselves: each moves at least its smaller need."""
    can_rise, can_fall = problem.possible()
    move = np.minimum(np.where(can_rise, problem.rise, np.inf), np.where(can_fall, problem.fall, np.inf))
    move = np.where(np.isfinite(move), move, 0.0)
    z = np.zeros(problem.n)
    z[problem.sensitive] = move
    return problem.cost(z, norm)


def packing_bound(problem: Problem) -> float:
    """L1: the sensitive cells' own moves, and what the relations must absorb of them.

    Every polygon inequality Σ_{i≠p}|c_i||z_i| ≥ |c_p||z_p| may be charged to its cells as long as no cell is charged more than its weight. Greedy: largest need first, each
    charges what is left. A dual solution of the relaxation, so always a valid bound; linear in the number of coefficients.
    """
    a = sp.csr_array(problem.relations)
    if a.nnz == 0 or problem.rhs.any():
        return least_moves(problem, "l1")
    can_rise, can_fall = problem.possible()
    need = np.zeros(problem.n)
    move = np.minimum(np.where(can_rise, problem.rise, np.inf), np.where(can_fall, problem.fall, np.inf))
    need[problem.sensitive] = np.where(np.isfinite(move), move, 0.0)
    line = np.repeat(np.arange(a.shape[0]), np.diff(a.indptr))
    hit = np.flatnonzero(problem.is_sensitive[a.indices])
    gain = need[a.indices[hit]] * np.abs(a.data[hit])
    order = hit[np.argsort(-gain, kind="stable")]
    gain_of_charges = _charge(
        line[order], a.indices[order], a.indptr, a.indices, np.abs(a.data), problem.weight.copy(), need
    )
    return least_moves(problem, "l1") + float(gain_of_charges)


@numba.njit(cache=True)
def _charge(rows, cells, ptr, col, size, budget, need):
    total = 0.0
    for k in range(len(rows)):
        r, p = rows[k], cells[k]
        own, others, most = 0.0, 0.0, np.inf
        for i in range(ptr[r], ptr[r + 1]):
            c = col[i]
            if c == p:
                own = size[i]
                continue
            others += size[i] * need[c]
            if budget[c] / size[i] < most:
                most = budget[c] / size[i]
        # charging m gives m·(own·need of p − Σ size·need of the others that must move anyway)
        worth = own * need[p] - others
        if worth <= 0 or most <= 0 or most == np.inf:
            continue
        total += most * worth
        for i in range(ptr[r], ptr[r + 1]):
            c = col[i]
            if c != p:
                budget[c] -= most * size[i]
            else:
                budget[c] += most * size[i]
    return total
