"""Random rounding: zero-restricted 50/50 and unbiased, cell by cell or additive."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tabprotect.rounding.cycles import unbiased_by_cycles
from tabprotect.rounding.grid import Grid
from tabprotect.rounding.integer import nearest_by_program
from tabprotect.rounding.network import nearest_by_flow
from tabprotect.solve.stop import Stop
from tabprotect.table.graph import Network
from tabprotect.types import FloatArray, IntArray


def draw(grid: Grid, probability: FloatArray, seed: int) -> IntArray:
    """Every cell between two multiples goes up with its own probability, independently; multiples stay."""
    up = np.random.default_rng(seed).random(grid.n) < probability
    return np.where(grid.target > 0, up, False).astype(np.int64)


def fifty_additive(grid: Grid, network: Network | None, stop: Stop, *, backend: str, seed: int) -> tuple[IntArray, int]:
    """The additive rounding nearest to an independent 50/50 draw.

    Halves do not add up, so no additive rounding has probability ½ in every cell; what is kept of the draw is as much as additivity allows.
    Also returned: by how many bases the range had to be widened.
    """
    drawn = draw(grid, np.full(grid.n, 0.5), seed)
    # a quarter or three quarters: every cell that leaves the draw costs half a base
    leaning = np.where(grid.target > 0, np.where(drawn == 1, 0.75, 0.25), 0.0)
    if network is not None:
        return nearest_by_flow(grid, network, seed=seed, prefer=leaning)[0], 0
    found = nearest_by_program(replace(grid, target=leaning), stop, backend=backend, seed=seed, gap=0.02)
    return found.x, found.widened


def unbiased_additive(
    grid: Grid, network: Network | None, stop: Stop, *, backend: str, seed: int
) -> tuple[IntArray, bool, int]:
    """Random additive rounding whose expectation is the true table, whether that holds exactly, and how far the range had to be widened.

    In a network by cycles (Cox 1987). In any other table by decomposition: a point between multiples is a mixture of an additive
    rounding v and another point of the relaxation with fewer cells between multiples; take v with the probability of its share, else go on with
    the other point. Where no additive rounding agrees with the cells already settled, the expectation cannot be kept: the nearest one is
    taken and the second value is False.
    """
    if network is not None:
        return unbiased_by_cycles(grid, network, seed=seed), True, 0
    rng = np.random.default_rng(seed)
    point = np.clip(grid.target, 0.0, 1.0)
    exact = True
    while True:
        between = (point > 1e-7) & (point < 1 - 1e-7)
        settled = np.rint(point).astype(np.int64)
        if not between.any():
            return settled, exact, 0
        face = replace(
            grid,
            target=np.where(between, point, 0.0),
            origin=grid.origin + grid.base * np.where(between, 0, settled),
            rhs=grid.rhs - grid.matrix @ np.where(between, 0, settled),
            low=np.where(between, 0, 0),
            high=np.where(between, 1, 0),
        )
        found = nearest_by_program(face, stop, backend=backend, seed=int(rng.integers(2**31)), quick=True)
        v = found.x + np.where(between, 0, settled)
        if found.widened or stop.done:
            return v, False, found.widened
        share = float(np.where(v == 1, point, 1.0 - point)[between].min())
        if rng.random() < share or share >= 1.0:
            return v, exact, 0
        rest = (point - share * v) / (1.0 - share)
        point = np.where(between, np.clip(rest, 0.0, 1.0), point)
