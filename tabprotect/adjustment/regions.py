"""Better directions by freeing some of them: integer programs of a few dozen directions in which every cell may move.

Turning directions one by one (`flips`) gets stuck where several cells have to turn together, and the whole integer program spends most of its time on the bound. Here all directions but those of
some neighbouring sensitive cells are fixed, while the changes of all cells stay free, on the strengthened model (`cuts`): most of these programs are solved in seconds. Two good tables agree in
about half of their directions; with those fixed and the others free, the program often finds what neither has alone.

References: P. Shaw, "Using constraint programming and local search methods to solve vehicle routing problems", CP98, LNCS 1520 (1998), for neighbourhoods of related variables; E. Rothberg, "An evolutionary algorithm for
polishing mixed integer programming solutions", INFORMS J. Computing 19 (2007), for combining two solutions.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from tabprotect.adjustment.fixed import TIGHT, polish
from tabprotect.adjustment.flips import neighbours
from tabprotect.adjustment.model import changes, columns
from tabprotect.adjustment.problem import Problem
from tabprotect.solve.highs import Highs
from tabprotect.solve.model import LinearModel
from tabprotect.solve.stop import Stop
from tabprotect.types import FloatArray, IntArray

# directions freed at a time, and the longest a region may take
REGION, SECONDS = 28, 8.0


def cross(
    problem: Problem, model: LinearModel, one: FloatArray, other: FloatArray, stop: Stop, seed: int
) -> FloatArray:
    """The best changes found among those that have the directions in which the two agree; never worse than the better one."""
    best, rest = sorted((one, other), key=lambda z: problem.cost(z, "l1"))
    differ = _differing(problem, best, rest)
    found = _solve(problem, model, best, differ, stop, seed) if len(differ) else None
    return found if found is not None and problem.cost(found, "l1") < problem.cost(best, "l1") else best


def _differing(problem: Problem, one: FloatArray, other: FloatArray) -> IntArray:
    """Sensitive cells whose directions differ, once the other table is turned round if that makes them fewer."""
    agree = (one[problem.sensitive] > 0) == (other[problem.sensitive] > 0)
    return np.flatnonzero(~agree if agree.mean() >= 0.5 else agree)


def improve_by_regions(
    problem: Problem,
    model: LinearModel,
    z: FloatArray,
    stop: Stop,
    *,
    bound: float,
    gap: float,
    seed: int,
    most_failures: int = 12,
) -> FloatArray:
    """Changes at most as dear as ``z``; ``model`` is a (strengthened) `sense_model` of the L1 norm."""
    rng = np.random.default_rng(seed)
    near = neighbours(problem)
    cost, failures, each = problem.cost(z, "l1"), 0, min(SECONDS, 0.2 * stop.left)
    while failures < most_failures and not stop.done and cost - bound > gap * abs(cost):
        stop.tell("regions", cost=cost, bound=bound)
        found = _solve(problem, model, z, _region(near, rng), stop.part(min(1.0, each / max(stop.left, 1e-9))), seed)
        failures += 1
        if found is not None and problem.cost(found, "l1") < cost * (1 - 1e-7):
            z, failures = found, 0
            cost = problem.cost(z, "l1")
    return z


def _region(near: Any, rng: np.random.Generator) -> IntArray:
    """A sensitive cell and those around it: its neighbours, theirs, and so on."""
    queue = [int(rng.integers(near.shape[0]))]
    seen = set(queue)
    for cell in queue:
        others = near.indices[near.indptr[cell] : near.indptr[cell + 1]]
        for other in rng.permutation(others).tolist():
            if other not in seen:
                seen.add(other)
                queue.append(other)
        if len(queue) >= REGION:
            break
    return np.array(queue[:REGION])


def _solve(
    problem: Problem, model: LinearModel, z: FloatArray, region: IntArray, stop: Stop, seed: int
) -> FloatArray | None:
    """The best changes with all directions outside the region as ``z`` has them."""
    n, k = problem.n, len(problem.sensitive)
    raised = (z[problem.sensitive] > 0).astype(float)
    lower, upper = model.lower.copy(), model.upper.copy()
    y = slice(2 * n, 2 * n + k)
    inside = np.zeros(k, bool)
    inside[region] = True
    lower[y], upper[y] = np.where(inside, lower[y], raised), np.where(inside, upper[y], raised)
    part = replace(model, lower=lower, upper=upper)
    silent = replace(stop, listener=None)  # the bound of a part is not one of the whole
    result = Highs(mip_feasibility_tolerance=1e-9, **TIGHT).solve(
        part, silent, gap=2e-4, start=columns(problem, z, "l1"), seed=seed
    )
    if not result.found:
        return None
    return polish(problem, changes(problem, result.x), np.where(result.x[y] > 0.5, 1, -1))
