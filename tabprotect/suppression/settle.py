"""Requirements that hold already because the cells hidden anyway protect each other: proved once and taken out of the problem.

Feasibility only grows with hidden cells, so what holds for the primaries alone holds for every pattern. In tables with many primaries
this settles most requirements.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tabprotect.solve.stop import Stop
from tabprotect.suppression.heuristic_group import GroupRouter, build
from tabprotect.suppression.moves import BOTH, Move, Router, meets, needs_of, stack
from tabprotect.suppression.preprocess import Reduced
from tabprotect.types import IntArray


def settle(problem: Reduced, stop: Stop, seed: int = 0) -> Reduced:
    """The problem without the requirements that moves of free cells meet; the moves are kept as proofs."""
    columns: IntArray = np.flatnonzero(problem.free)
    needs = needs_of(problem)
    if len(columns) < 2 or not needs or problem.matrix.shape[0] == 0:
        return problem
    rng = np.random.default_rng(seed)
    moves, _ = build(problem, needs, GroupRouter(problem, columns), stop, rng, limit=5.0)
    used: list[Move] = []
    settled: set[int] = set()
    for move in moves:
        steps = np.zeros(problem.n)
        steps[move.cells] = move.steps
        hit = [n.cell for n in needs if n.sense == BOTH and abs(steps[n.cell]) >= n.level * (1 - 1e-7)]
        if not settled.issuperset(hit):
            settled.update(hit)
            used += [move, move.back]
    router = Router(problem, columns)
    cost = np.ones(problem.n)
    for need in needs:
        if stop.done:
            break
        if need.sense != BOTH or need.cell in settled:
            continue
        route = router.route(need, cost, time_limit=min(2.0, stop.left))
        if route is not None and meets(need, route):
            settled.add(need.cell)
            used += [route, route.back]
    left = tuple(r for r in problem.requirements if r.cell not in settled)
    return replace(problem, requirements=left, proofs=stack(used, problem.n))
