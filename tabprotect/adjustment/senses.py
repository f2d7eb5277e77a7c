# mypy: disable-error-code="no-untyped-def,call-arg"
"""Which sensitive cells go up and which down: directions that leave the relations little to absorb.

The moves of the sensitive cells in a relation should cancel; what is left over the other cells of the relation have to take, at the price of the cheapest of
them. Annealing over the signs minimises that estimate; it is quick (a million flips a second) and close enough to pick a start for the exact methods.
"""

from __future__ import annotations

import numba
import numpy as np
import scipy.sparse as sp

from tabprotect.adjustment.problem import Problem
from tabprotect.types import FloatArray, IntArray


def balanced_senses(problem: Problem, *, seed: int = 0, sweeps: int = 200, squares: bool = False) -> IntArray:
    """One sign per sensitive cell, respecting given senses, bounds, and ``problem.balanced``."""
    k = len(problem.sensitive)
    rng = np.random.default_rng(seed)
    can_rise, can_fall = problem.possible()
    choice = np.where(can_rise & can_fall, rng.choice([-1, 1], k), np.where(can_rise, 1, -1)).astype(np.int64)
    free = np.flatnonzero(can_rise & can_fall)
    if problem.balanced:
        choice = _half(choice, free, rng)
    if len(free) == 0 or problem.relations.nnz == 0:
        return choice
    part = sp.csc_array(problem.relations)[:, problem.sensitive]
    price = _absorbing_price(problem)
    move = np.where(choice > 0, problem.rise, -problem.fall)
    left = np.asarray(part @ move)
    own = problem.weight[problem.sensitive]
    scale = float(np.mean(price[np.unique(part.indices)])) * problem.scale if part.nnz else 1.0
    for stage in range(30):
        heat = scale * 2.0 * 0.001 ** (stage / 29) if stage < 29 else 0.0
        _flip(
            choice, left, free, part.indptr, part.indices, part.data, problem.rise, problem.fall,
            own, price, max(1, sweeps // 30) * len(free), heat, squares, problem.balanced, rng,
        )  # fmt: skip
    return choice


def _half(choice: IntArray, free: IntArray, rng: np.random.Generator) -> IntArray:
    """As many up as down, as far as the free cells allow."""
    out = choice.copy()
    others = np.delete(out, free)
    wanted = np.clip(len(out) // 2 - int((others > 0).sum()), 0, len(free))
    out[free] = -1
    out[rng.permutation(free)[:wanted]] = 1
    return out


def _absorbing_price(problem: Problem) -> FloatArray:
    """Per relation: what one unit costs that its cheapest other cells have to take."""
    a = sp.csr_array(problem.relations)
    movable = (problem.up > 0) | (problem.down > 0)
    cost = np.where(movable & ~problem.is_sensitive, problem.weight, np.inf)[a.indices]
    price = np.full(a.shape[0], np.inf)
    np.minimum.at(price, np.repeat(np.arange(a.shape[0]), np.diff(a.indptr)), cost)
    finite = price[np.isfinite(price)]
    return np.where(np.isfinite(price), price, 10.0 * (finite.max() if len(finite) else 1.0))


@numba.njit(cache=True)
def _flip(choice, left, free, ptr, row, coef, rise, fall, own, price, steps, heat, squares, balanced, rng):
    n = len(free)
    for _ in range(steps):
        p = free[int(rng.random() * n)]
        q = -1
        if balanced:
            # two cells with opposite signs change places
            for _try in range(16):
                c = free[int(rng.random() * n)]
                if choice[c] != choice[p]:
                    q = c
                    break
            if q < 0:
                continue
        change = _turn(p, choice, left, ptr, row, coef, rise, fall, own, price, squares)
        if q >= 0:
            change += _turn(q, choice, left, ptr, row, coef, rise, fall, own, price, squares)
        if change > 0 and (heat <= 0 or rng.random() >= np.exp(-change / heat)):
            _turn(p, choice, left, ptr, row, coef, rise, fall, own, price, squares)
            if q >= 0:
                _turn(q, choice, left, ptr, row, coef, rise, fall, own, price, squares)


@numba.njit(cache=True)
def _turn(p, choice, left, ptr, row, coef, rise, fall, own, price, squares):
    """Turn the sign of p; what that changes in the estimate."""
    before = rise[p] if choice[p] > 0 else -fall[p]
    choice[p] = -choice[p]
    after = rise[p] if choice[p] > 0 else -fall[p]
    change = own[p] * ((after * after - before * before) if squares else (abs(after) - abs(before)))
    for k in range(ptr[p], ptr[p + 1]):
        r = row[k]
        old = left[r]
        left[r] = old + coef[k] * (after - before)
        if squares:
            change += price[r] * (left[r] * left[r] - old * old)
        else:
            change += price[r] * (abs(left[r]) - abs(old))
    return change
