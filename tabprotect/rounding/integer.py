"""Rounding of any table: integer program with a good start, widened step by step where no adjacent rounding exists.

From three dimensions on an additive table of adjacent multiples need not exist (and deciding it is NP-complete), so three things are tried in turn: the
annealing over inner cells (`search`), the integer program with that start, and, when both say no, the same with one more multiple allowed
on each side: by the integer program at a price that makes such jumps few, in large tables by annealing, where jumps cost their distance.

References: L. H. Cox, "On properties of multi-dimensional statistical tables", J. Statist. Plann. Inference 117 (2003); J. J. Salazar-González,
"Controlled rounding and cell perturbation", Math. Programming 105 (2006).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from tabprotect.errors import Infeasible, Unsafe
from tabprotect.rounding.bound import priced_bound
from tabprotect.rounding.grid import Grid
from tabprotect.rounding.search import HOPELESS, Leaves, anneal, outside
from tabprotect.solve import backend as backends
from tabprotect.solve.highs import Highs
from tabprotect.solve.model import LinearModel
from tabprotect.solve.result import INFEASIBLE, OPTIMAL
from tabprotect.solve.stop import Stop
from tabprotect.types import BoolArray, FloatArray, IntArray

# above this many cells an annealed table is only improved when the caller gives time
LARGE = 40_000
# up to this many the integer program needs no start
SMALL = 300
# above this many an annealed table with jumps is taken as it is: the integer program would not find a better one
MIDDLE = 5_000
# largest relaxation (coefficients of the relations) that is solved to start from
RELAXED = 60_000
# sweeps of the slowest annealing
SLOWEST = 20_000


@dataclass(frozen=True, eq=False)
class Rounded:
    """Steps of all cells, a lower bound of the cost, whether it is proved best, and by how many bases the range had to be widened."""

    x: IntArray
    bound: float
    optimal: bool
    widened: int = 0


def nearest_by_program(
    grid: Grid,
    stop: Stop,
    *,
    backend: str = "highs",
    gap: float = 0.0,
    seed: int = 0,
    keep: BoolArray | None = None,
    quick: bool = False,
) -> Rounded:
    """The nearest additive rounding of any table; ``keep`` are cells that must not be widened, ``quick`` takes any that is near."""
    kept = np.zeros(grid.n, bool) if keep is None else keep
    gap = max(gap, 0.2) if quick else gap
    leaves = Leaves.of(grid) if grid.unit else None
    start, excess, bound = None, -1, _floor(grid)
    if leaves is not None and grid.n > SMALL:
        start, excess, bound = _annealed(grid, leaves, stop.part(0.6), seed, quick)
        stop.tell("annealed", cost=grid.cost(start), bound=bound)
        if excess == 0 and quick:
            return Rounded(start, bound, False)
        if excess == 0:
            return _improve(grid, start, bound, stop, backend, gap, seed)
        if grid.n > MIDDLE and not (outside(grid, start) & kept).any():
            return _jumping(grid, leaves, start, kept, stop, seed, quick)
    found = _program(grid, None, stop.part(0.5), backend, gap, seed)
    if isinstance(found, Rounded):
        return found
    for steps in (1, 2, 4):
        wide = grid.widened(steps, kept)
        usable = start is not None and not outside(wide, start).any()
        answer = _program(wide, start if usable else None, stop, backend, gap, seed, inner=grid)
        if isinstance(answer, Rounded):
            return Rounded(answer.x, answer.bound, answer.optimal, _jump(grid, answer.x))
    if start is not None and not (outside(grid, start) & kept).any():
        return Rounded(start, _floor(grid), False, _jump(grid, start))
    if found == INFEASIBLE:
        raise Infeasible(
            "no additive rounding exists, not even with four more multiples on each side: some relations cannot hold"
        )
    raise Unsafe("no additive rounding was found within the time limit", bound=_floor(grid))


def _annealed(grid: Grid, leaves: Leaves, stop: Stop, seed: int, quick: bool) -> tuple[IntArray, int, float]:
    """The best of a few annealed tables, how far it leaves the range, and a lower bound.

    The relaxation, where it can be solved, is mostly whole already: rounded, it is a far better start than the nearest multiples.
    """
    bound, first = _floor(grid), None
    if grid.matrix.nnz <= RELAXED and not quick:
        model = program(grid).relaxed()
        # these relaxations are degenerate: of 20³ cells the interior point method takes 0.3 s, simplex more than 20
        result = backends.checked(model, Highs(solver="ipm").solve(model, stop.part(0.6)))
        if result.status == OPTIMAL:
            bound = max(bound, result.objective * (1 - 1e-7))
            if result.x.size == grid.n:
                first = np.rint(result.x).astype(np.int64)
    if first is None and not quick:
        bound = max(bound, priced_bound(grid, 1.1 * bound, stop.part(0.1)))
    # slow cooling is worth more than a new start, but a small table goes to the integer program anyway
    sweeps = 100 if quick else 2_000 if MIDDLE < grid.n <= LARGE else 400
    best, best_excess = anneal(grid, leaves, stop, seed=seed, sweeps=sweeps, start=first)
    for more in range(1, 1 if quick or grid.n > LARGE else 4):
        if stop.done or best_excess > HOPELESS * len(leaves.total):
            break
        x, excess = anneal(grid, leaves, stop, seed=seed + more, sweeps=sweeps, start=first)
        if (excess, grid.cost(x)) < (best_excess, grid.cost(best)):
            best, best_excess = x, excess
    return best, best_excess, bound


def _jumping(
    grid: Grid, leaves: Leaves, start: IntArray, kept: BoolArray, stop: Stop, seed: int, quick: bool
) -> Rounded:
    """Annealed again with one more multiple allowed to the totals (two, four), as slowly as the time allows; the nearest with the least jump."""
    best, inner, sweeps = start, kept.copy(), 100 if quick else 400
    inner[leaves.leaf] = True
    search = stop.part(0.8)
    for steps in (1, 2, 4):
        if steps > max(1, _jump(grid, best)) or search.done:
            break
        wide, began = grid.widened(steps, inner), search.seconds
        x, excess = anneal(wide, leaves, search, seed=seed, sweeps=sweeps)
        while excess == 0 and not quick and sweeps < SLOWEST and search.left > 5 * (search.seconds - began):
            best = min(best, x, key=lambda point: (_jump(grid, point), grid.cost(point)))
            sweeps, began = 4 * sweeps, search.seconds
            x, excess = anneal(wide, leaves, search, seed=seed, sweeps=sweeps)
        best = min(best, x, key=lambda point: (_jump(grid, point), grid.cost(point)))
        if _jump(grid, best) <= steps:
            break
    jump = _jump(grid, best)
    bound = priced_bound(grid.widened(jump, kept), grid.cost(best), stop)
    stop.tell("jumps", cost=grid.cost(best), bound=bound)
    return Rounded(best, max(bound, _floor(grid)), False, jump)


def _floor(grid: Grid) -> float:
    """No rounding is nearer than every cell at its nearest multiple."""
    return grid.cost(grid.nearest())


def _jump(grid: Grid, x: IntArray) -> int:
    return int(np.maximum(0, np.maximum(grid.low - x, x - grid.high)).max(initial=0))


def _improve(grid: Grid, start: IntArray, bound: float, stop: Stop, backend: str, gap: float, seed: int) -> Rounded:
    """Prove or improve an adjacent rounding in the time that is left."""
    if (grid.n > LARGE and stop.time_limit is None) or grid.cost(start) - bound <= gap * grid.cost(start):
        return Rounded(start, bound, False)
    found = _program(grid, start, stop, backend, gap, seed)
    if not isinstance(found, Rounded):
        return Rounded(start, bound, False)
    if grid.cost(found.x) <= grid.cost(start):
        return Rounded(found.x, max(bound, found.bound) if not found.optimal else found.bound, found.optimal)
    return Rounded(start, max(bound, found.bound), False)


def _program(
    grid: Grid, start: IntArray | None, stop: Stop, backend: str, gap: float, seed: int, inner: Grid | None = None
) -> Rounded | str:
    """The integer program; the status when it gives no point. ``inner`` is the grid before widening: leaving it costs extra."""
    if stop.done:
        return "limit"
    model = program(grid, inner)
    step = objective_step(grid) if inner is None else 0.0
    first = None if start is None else _columns(grid, start, inner)
    solver = backends.get(backend)
    if backend == "highs":
        # the cost only takes values a step apart: a smaller gap is none
        solver = Highs(mip_abs_gap=max(1e-9, step * (1 - 1e-6)), mip_heuristic_effort=0.2)
    result = backends.checked(model, solver.solve(model, stop, gap=gap, start=first, seed=seed))
    if not result.found:
        return result.status
    x = np.rint(result.x[: grid.n]).astype(np.int64)
    if model.n > grid.n:
        further = np.rint(result.x[grid.n :]).astype(np.int64)
        x = x + further[: grid.n] - further[grid.n :]
    if not grid.additive(x):
        return "failed"
    bound = max(result.bound, _floor(grid)) if inner is None else _floor(grid)
    cost = grid.cost(x)
    if inner is None and step > 0 and bound > cost - step * (1 - 1e-6):
        bound = cost
    optimal = result.status == OPTIMAL and inner is None and (gap == 0 or bound >= cost * (1 - 1e-9))
    return Rounded(x, cost if optimal else min(bound, cost), optimal)


def program(grid: Grid, inner: Grid | None = None) -> LinearModel:
    """min Σ weight·|x − target| over the allowed steps, relations kept.

    Between the two multiples next to the value the cost is linear in x. Where more multiples are allowed every further step is a variable
    of its own; leaving ``inner`` costs more than any other change of the table.
    """
    slope = grid.weight * (1.0 - 2.0 * grid.target)
    base_low, base_high = np.zeros(grid.n), np.where(grid.target > 0, 1.0, 0.0)
    offset = float(grid.weight @ grid.target)
    extra_up, extra_down = grid.high - base_high, -grid.low
    if not (extra_up.any() or extra_down.any()):
        return LinearModel.of(
            grid.matrix,
            row_lower=grid.rhs,
            row_upper=grid.rhs,
            cost=slope,
            lower=base_low,
            upper=base_high,
            integer=True,
            offset=offset,
        )
    jump = np.zeros(grid.n) if inner is None else np.full(grid.n, float(grid.weight.max()) * 100.0)
    free_up = 0.0 if inner is None else (inner.high - base_high)
    free_down = 0.0 if inner is None else -inner.low.astype(float)
    # steps allowed anyway cost their distance only
    price_up = grid.weight + np.where(extra_up > free_up, jump, 0.0)
    price_down = grid.weight + np.where(extra_down > free_down, jump, 0.0)
    matrix = sp.hstack([grid.matrix, grid.matrix, -grid.matrix], format="csr")
    n = grid.n
    return LinearModel.of(
        matrix,
        row_lower=grid.rhs,
        row_upper=grid.rhs,
        cost=np.r_[slope, price_up, price_down],
        lower=np.zeros(3 * n),
        upper=np.r_[base_high, extra_up, extra_down],
        integer=True,
        offset=offset,
    )


def _columns(grid: Grid, x: IntArray, inner: Grid | None) -> FloatArray:
    """A choice of steps in the columns of `program`."""
    base_high = np.where(grid.target > 0, 1, 0)
    if np.array_equal(grid.high, base_high) and not grid.low.any():
        return x.astype(float)
    core = np.clip(x, 0, base_high)
    return np.r_[core, np.maximum(x - base_high, 0), np.maximum(-x, 0)].astype(float)


def objective_step(grid: Grid) -> float:
    """A number of which all costs are whole multiples apart, 0 if none is known.

    With equal weights on whole residues, Σ|r − a| has the parity of Σ(r − a). If the relations cover every cell an odd number of times, that
    sum is even, and costs are two units apart.
    """
    slope = grid.weight[grid.low < grid.high] * (1.0 - 2.0 * grid.target[grid.low < grid.high])
    if len(slope) == 0:
        return 0.0
    for digits in range(4):
        scaled = slope * 10.0**digits
        if np.all(np.abs(scaled - np.rint(scaled)) <= 1e-6):
            unit = float(np.gcd.reduce(np.abs(np.rint(scaled)).astype(np.int64))) / 10.0**digits
            odd = np.all(np.rint(np.abs(slope) / unit) % 2 == 1) if unit else False
            return 2 * unit if odd and _covers_oddly(grid) else unit
    return 0.0


def _covers_oddly(grid: Grid) -> bool:
    """Whether some set of relations covers every free cell an odd number of times (elimination over GF(2))."""
    free = grid.low < grid.high
    rows = sp.csr_array(grid.matrix)[:, np.flatnonzero(free)]
    if rows.shape[0] > 3000 or not np.array_equal(np.abs(rows.data) % 2, np.ones_like(rows.data)):
        return False
    wanted = (1 << rows.shape[1]) - 1
    pivots: dict[int, int] = {}
    for r in range(rows.shape[0]):
        line = 0
        for c in rows.indices[rows.indptr[r] : rows.indptr[r + 1]].tolist():
            line ^= 1 << c
        while line:
            top = line.bit_length()
            if top not in pivots:
                pivots[top] = line
                break
            line ^= pivots[top]
    while wanted:
        top = wanted.bit_length()
        if top not in pivots:
            return False
        wanted ^= pivots[top]
    return True
