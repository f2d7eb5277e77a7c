"""Finding the directions and the changes: a start within seconds, a bound, and improvement until the gap or the time is reached.

Small and middle tables: directions are turned one by one (`flips`), the relaxation is made strong (`cuts`), and both go to the integer program, with moves trimmed by the cost. Large ones are improved block by block: the cells around a few
neighbouring sensitive cells are freed, all others stay, and the small program is solved exactly (block-coordinate descent, as a fix-and-relax heuristic that never gets worse).

Reference: J. A. González and J. Castro, "A heuristic block coordinate descent approach for controlled tabular adjustment", Computers & Operations Research 38 (2011).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from tabprotect.adjustment.bound import least_moves, packing_bound
from tabprotect.adjustment.cuts import tighten
from tabprotect.adjustment.fixed import TIGHT, adjust_fixed, polish
from tabprotect.adjustment.flips import improve_by_flips
from tabprotect.adjustment.model import changes, columns, sense_model
from tabprotect.adjustment.problem import Problem
from tabprotect.adjustment.reduce import reduce_problem
from tabprotect.adjustment.regions import REGION, cross, improve_by_regions
from tabprotect.adjustment.senses import balanced_senses
from tabprotect.solve import backend as backends
from tabprotect.solve.highs import Highs
from tabprotect.solve.model import LinearModel
from tabprotect.solve.result import INFEASIBLE, OPTIMAL
from tabprotect.solve.stop import Stop
from tabprotect.table.graph import Network, network_of
from tabprotect.types import BoolArray, FloatArray, IntArray

# largest problem (coefficients of the relations) that goes to the integer program as a whole, and whose relaxation is solved
WHOLE, RELAXED = 150_000, 600_000
# HiGHS looks at the clock between steps; with more coefficients per second that is left, one step would take longer than that
PER_SECOND = 30_000
# relaxations with more columns are solved by the interior point method, once
BY_SIMPLEX = 60_000
BLOCK_CELLS, BLOCK_SENSITIVE = 3_000, 24


@dataclass(frozen=True, eq=False)
class Adjusted:
    """Changes, their cost, a lower bound, whether proved best, and how they were found."""

    z: FloatArray
    cost: float
    bound: float
    optimal: bool
    how: str


def search(problem: Problem, norm: str, stop: Stop, *, gap: float, backend: str, seed: int) -> Adjusted | None:
    """The best adjustment found, or None when none was (then the problem is infeasible, or the time was too short)."""
    small = reduce_problem(problem, norm)
    stuck = np.diff(small.expand.indptr)[problem.sensitive] == 0  # the relations leave the cell no variable at all
    can_rise, can_fall = small.problem.possible()
    if stuck.any() or not (can_rise | can_fall).all():
        return None
    # in a network table no cell is in many relations; looking for a network elsewhere is a waste
    entries = np.diff(sp.csc_array(small.problem.relations).indptr)
    network = network_of(small.problem.relations) if entries.max(initial=0) <= 4 else None
    found = _search(small.problem, norm, network, stop, gap=gap, backend=backend, seed=seed)
    if found is None:
        return None
    sense = np.where(small.back(found.z)[problem.sensitive] > 0, 1, -1)
    z = polish(problem, small.back(found.z), sense)
    cost = problem.cost(z, norm)
    return replace(found, z=z, cost=cost, bound=min(found.bound, cost))


def _search(
    problem: Problem, norm: str, network: Network | None, stop: Stop, *, gap: float, backend: str, seed: int
) -> Adjusted | None:
    size = problem.relations.nnz
    bound = packing_bound(problem) if norm == "l1" else least_moves(problem, norm)
    best = start(problem, norm, network, stop.part(0.4), seed)
    if best is not None:
        stop.tell("start", cost=problem.cost(best, norm), bound=bound)
    if not free_senses(problem).any() and best is not None and not problem.whole:
        return _done(problem, best, norm, problem.cost(best, norm), "directions given")
    if norm == "l2":
        return _by_flips(problem, best, bound, network, stop, gap, seed)
    if best is not None and norm == "l1" and size <= WHOLE:
        # many directions are left to the regions, which come later and get further
        share = 0.05 if len(problem.sensitive) > 2 * REGION else 0.25
        best = improve_by_flips(problem, best, stop.part(share), bound=bound, gap=gap, seed=seed)
    limit = np.inf if best is None else problem.cost(best, norm)
    model = None
    if size <= RELAXED and not stop.done:
        model, raised = _relaxation(problem, norm, limit, stop.part(0.35), goal=limit * (1 - max(gap, 1e-9)))
        bound = max(bound, raised)
    if best is not None and _close(limit, bound, gap):
        return _done(problem, best, norm, bound, "start")
    if best is None or size <= WHOLE:
        if model is None:
            model = sense_model(problem, norm, limit=limit, floor=least_moves(problem, norm))
        if best is None or model.matrix.nnz <= PER_SECOND * stop.left:
            parts = norm == "l1" and len(problem.sensitive) > 2 * REGION
            part = stop.part(0.7) if parts else stop
            found = _by_program(problem, model, norm, best, bound, part, gap, backend, seed)
            return _by_parts(problem, model, found, best, stop, gap, seed) if parts and found is not None else found
    # a block does not see the balance of the whole table
    if norm == "l1" and len(problem.sensitive) > BLOCK_SENSITIVE and not problem.balanced:
        best = improve_by_blocks(problem, best, stop, bound=bound, gap=gap, seed=seed)
    return _done(problem, best, norm, bound, "blocks")


def _close(cost: float, bound: float, gap: float) -> bool:
    return cost - bound <= max(gap, 1e-9) * abs(cost)


def _done(problem: Problem, z: FloatArray, norm: str, bound: float, how: str) -> Adjusted:
    cost = problem.cost(z, norm)
    return Adjusted(z, cost, min(bound, cost), cost - bound <= 1e-6 * abs(cost), how)


def free_senses(problem: Problem) -> BoolArray:
    """Sensitive cells that can still go both ways."""
    can_rise, can_fall = problem.possible()
    return can_rise & can_fall


def start(problem: Problem, norm: str, network: Network | None, stop: Stop, seed: int) -> FloatArray | None:
    """The best of a few balanced choices of directions, each with its convex problem solved."""
    best, tries = None, 6 if problem.relations.nnz < WHOLE else 1
    choices = [balanced_senses(problem, seed=seed + t, squares=norm == "l2") for t in range(tries)]
    if free_senses(problem).any() and not problem.balanced:
        can_rise, _ = problem.possible()
        choices.append(np.where(can_rise, 1, -1))
    for sense in choices:
        if stop.done and best is not None:
            break
        if norm == "linf" and best is not None and problem.relations.nnz > WHOLE:
            break
        z = adjust_fixed(problem, sense, norm, network=network, stop=stop)
        if z is None:
            continue
        z = polish(problem, z, sense)
        if best is None or problem.cost(z, norm) < problem.cost(best, norm):
            best = z
        if sense is choices[tries - 1] and best is not None:
            break  # all up is only for tables where balancing fails
    return best


def _relaxation(problem: Problem, norm: str, limit: float, stop: Stop, *, goal: float) -> tuple[LinearModel, float]:
    """The integer program, as strong as the time allows, and a bound."""
    rows = problem.spanning if problem.relations.nnz <= WHOLE else None
    model = sense_model(problem, norm, limit=limit, floor=least_moves(problem, norm), rows=rows)
    if norm == "l1" and model.n <= BY_SIMPLEX:
        model, bound = tighten(problem, model, stop, goal=goal)
        return model, bound * (1 - 1e-9)
    result = Highs(**TIGHT, **({"solver": "ipm"} if model.n > BY_SIMPLEX else {})).solve(model.relaxed(), stop)
    return model, result.bound * (1 - 1e-9) if result.status == OPTIMAL else -np.inf


def _by_program(
    problem: Problem,
    model: LinearModel,
    norm: str,
    best: FloatArray | None,
    bound: float,
    stop: Stop,
    gap: float,
    backend: str,
    seed: int,
) -> Adjusted | None:
    """The whole integer program, from the best start."""
    first = None if best is None else columns(problem, best, norm)
    solver = Highs(mip_feasibility_tolerance=1e-9, **TIGHT) if backend == "highs" else backends.get(backend)
    result = solver.solve(model, stop, gap=gap, start=first, seed=seed)
    if result.status == INFEASIBLE and best is None:
        return None
    bound = max(bound, result.bound * (1 - 1e-9)) if np.isfinite(result.bound) else bound
    candidate = None
    if result.found:
        sense = np.where(result.x[2 * problem.n : 2 * problem.n + len(problem.sensitive)] > 0.5, 1, -1)
        candidate = polish(problem, changes(problem, result.x), sense)
    if candidate is None or (best is not None and problem.cost(best, norm) < problem.cost(candidate, norm)):
        candidate = best
    return None if candidate is None else _done(problem, candidate, norm, bound, "integer program")


def _by_parts(
    problem: Problem, model: LinearModel, found: Adjusted, best: FloatArray | None, stop: Stop, gap: float, seed: int
) -> Adjusted:
    """Many directions: better tables from the integer program's and the one before."""
    if _close(found.cost, found.bound, gap) or stop.done:
        return found
    z = found.z if best is None else cross(problem, model, found.z, best, stop.part(0.25), seed)
    z = improve_by_regions(problem, model, z, stop, bound=found.bound, gap=gap, seed=seed)
    return _done(problem, z, "l1", found.bound, "integer program")


def improve_by_blocks(
    problem: Problem, z: FloatArray, stop: Stop, *, bound: float, gap: float, seed: int, most_failures: int = 60
) -> FloatArray:
    """Better changes by exact solution of one neighbourhood after the other; never worse than ``z``."""
    rng = np.random.default_rng(seed)
    rows, cols = sp.csr_array(problem.relations), sp.csc_array(problem.relations)
    failures = 0
    here = float(problem.cost(z, "l1"))
    while not stop.done and failures < most_failures and not _close(here, bound, gap):
        free = neighbourhood(problem, rows, cols, rng)
        part = problem.part(free, z)
        old = z[free]
        model = sense_model(part, "l1", limit=part.cost(old, "l1"), floor=least_moves(part, "l1"))
        limit = Stop(min(5.0, stop.left))
        found = Highs(**TIGHT).solve(model, limit, gap=1e-4, start=columns(part, old, "l1"), seed=seed)
        failures += 1
        if not found.found:
            continue
        sense = np.where(found.x[2 * part.n : 2 * part.n + len(part.sensitive)] > 0.5, 1, -1)
        new = polish(part, changes(part, found.x), sense)
        gain = part.cost(old, "l1") - part.cost(new, "l1")
        if gain > 1e-7 * abs(here) and _keeps(part, new, old):
            z = z.copy()
            z[free] = new
            here, failures = float(problem.cost(z, "l1")), 0
            stop.tell("blocks", cost=here, bound=bound)
    return z


def _keeps(part: Problem, new: FloatArray, old: FloatArray) -> bool:
    before = np.abs(part.relations @ old - part.rhs).max(initial=0.0)
    after = np.abs(part.relations @ new - part.rhs).max(initial=0.0)
    return bool(after <= max(before, 1e-9 * part.scale))


def neighbourhood(problem: Problem, rows: sp.csr_array, cols: sp.csc_array, rng: np.random.Generator) -> BoolArray:
    """Cells around a random sensitive cell: relation by relation outwards, until there are enough."""
    free = np.zeros(problem.n, bool)
    seen = np.zeros(rows.shape[0], bool)
    queue = [int(rng.choice(problem.sensitive))]
    free[queue[0]] = True
    count, hot = 1, 1
    while queue and count < BLOCK_CELLS and hot < BLOCK_SENSITIVE:
        cell = queue.pop(0)
        for r in rng.permutation(cols.indices[cols.indptr[cell] : cols.indptr[cell + 1]]):
            if seen[r]:
                continue
            seen[r] = True
            members = rows.indices[rows.indptr[r] : rows.indptr[r + 1]]
            new = members[~free[members]]
            free[new] = True
            count, hot = count + len(new), hot + int(problem.is_sensitive[new].sum())
            inner = new[problem.is_sensitive[new]] if problem.is_sensitive[new].any() else new
            queue.extend(rng.permutation(inner)[:20].tolist())
            if count >= BLOCK_CELLS or hot >= BLOCK_SENSITIVE:
                break
    return free


def _by_flips(
    problem: Problem,
    best: FloatArray | None,
    bound: float,
    network: Network | None,
    stop: Stop,
    gap: float,
    seed: int,
) -> Adjusted | None:
    """L2: turn single directions as long as that helps, trying first the cells that pull hardest against their bound.

    The lower bound is the relaxation: absolute changes that keep the polygon inequalities (a convex program without directions).
    """
    if best is None:
        found = _by_program(problem, sense_model(problem, "l1"), "l1", None, bound, stop, 0.5, "highs", seed)
        if found is None:
            return None
        sense = np.where(found.z[problem.sensitive] > 0, 1, -1)
        z = adjust_fixed(problem, sense, "l2")
        best = found.z if z is None else polish(problem, z, sense)
    bound = max(bound, _square_bound(problem, stop))
    free = np.flatnonzero(free_senses(problem))
    rng = np.random.default_rng(seed)
    sense = np.where(best[problem.sensitive] > 0, 1, -1)
    cost = problem.cost(best, "l2")
    flips = 0 if problem.balanced else 1
    failures = 0
    order: IntArray = rng.permutation(free)
    while flips and len(order) and failures < len(order) and not stop.done and not _close(cost, bound, gap):
        p = int(order[failures % len(order)])
        turned = sense.copy()
        turned[p] = -turned[p]
        z = adjust_fixed(problem, turned, "l2", network=network, stop=stop)
        failures += 1
        if z is not None and problem.cost(z, "l2") < cost * (1 - 1e-9):
            best, sense, failures = polish(problem, z, turned), turned, 0
            cost = problem.cost(best, "l2")
            order = rng.permutation(free)
            stop.tell("directions", cost=cost, bound=bound)
    return replace(_done(problem, best, "l2", bound, "projection"), optimal=len(free) == 0 or _close(cost, bound, 1e-6))


def _square_bound(problem: Problem, stop: Stop) -> float:
    """min Σ w·t² with t ≥ needs and the polygon inequalities, by its dual: one multiplier per inequality, coordinate ascent."""
    from tabprotect.adjustment.square import square_bound

    return square_bound(problem, stop)
