# mypy: disable-error-code="no-untyped-def"
"""A lower bound of the cost of any additive rounding, by Lagrangian relaxation of the relations.

With a price on every relation the cells no longer depend on each other: each takes the step that is cheapest for it, and the sum is a lower bound whatever the prices are. Nothing has to be
trusted: the bound is plain arithmetic. Subgradient steps make the prices good; the best they can reach is the bound of the linear relaxation, without
solving a linear program of that size.

Reference: M. Held, P. Wolfe and H. P. Crowder, "Validation of subgradient optimization", Mathematical Programming 6 (1974).
"""

from __future__ import annotations

import numba
import numpy as np
import scipy.sparse as sp

from tabprotect.rounding.grid import Grid
from tabprotect.solve.stop import Stop

PATIENCE = 20


def priced_bound(grid: Grid, goal: float, stop: Stop, *, rounds: int = 2000) -> float:
    """The best bound found; ``goal`` is the cost of a known rounding, which no bound exceeds.

    >>> from tabprotect.rounding.grid import make_grid
    >>> from tabprotect.table.examples import d272
    >>> grid = make_grid(d272(), np.full(36, 5.0))  # nearest multiples: 46, nearest that add up: 50
    >>> 49.5 < priced_bound(grid, 50.0, Stop(10)) <= 50
    True
    """
    matrix = sp.csr_array(grid.matrix)
    turned = sp.csr_array(matrix.T)
    price, best_price = np.zeros(matrix.shape[0]), np.zeros(matrix.shape[0])
    x = np.empty(grid.n)
    best, length, failures = -np.inf, 1.0, 0
    for _ in range(rounds):
        if stop.done:
            break
        value = price @ grid.rhs + _cheapest(turned @ price, grid.low, grid.high, grid.target, grid.weight, x)
        if value > best + 1e-5 * abs(best):
            failures = 0
        else:
            failures += 1
        if value > best:
            best, best_price = value, price
        if failures >= PATIENCE:
            length, failures, price = length / 2, 0, best_price
            if length < 1e-3:
                break
            continue
        slope = grid.rhs - matrix @ x
        size = float(slope @ slope)
        if size == 0.0:
            break  # an additive choice that is cheapest for every cell
        price = price + length * (goal - value) / size * slope
    # the sum has as many roundings as cells
    return float(best) - 1e-12 * grid.n * float(np.abs(grid.weight).max(initial=0.0))


@numba.njit(cache=True)
def _cheapest(offer, low, high, target, weight, x):
    """The cheapest allowed step of every cell when a step up is paid ``offer``; the sum of what they cost."""
    total = 0.0
    for i in range(len(x)):
        least = np.inf
        for s in range(low[i], high[i] + 1):
            cost = weight[i] * abs(s - target[i]) - offer[i] * s
            if cost < least:
                least, x[i] = cost, s
        total += least
    return total
