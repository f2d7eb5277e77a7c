"""Optimal suppression on network tables: cutting planes at the root, then branch-and-cut, all separation by compiled maximum flow.

Reference: M. Fischetti and J. J. Salazar González, "Models and algorithms for the 2-dimensional cell suppression problem in
statistical disclosure control", Mathematical Programming 84 (1999).
"""

from __future__ import annotations

from dataclasses import replace

from tabprotect.solve.branch import branch_and_cut
from tabprotect.solve.side import cores
from tabprotect.solve.stop import Stop
from tabprotect.suppression.network_construct import build
from tabprotect.suppression.network_merge import Merging
from tabprotect.suppression.network_model import NetworkModel
from tabprotect.suppression.network_program import Open
from tabprotect.suppression.network_root import Root, run_root, start_root
from tabprotect.suppression.problem import Pattern, Problem
from tabprotect.types import BoolArray

MOST_THREADS = 8
"""Threads of the tree where nobody says how many: they work in step, so that more of them wait more for each other."""


def solve(
    problem: Problem,
    stop: Stop,
    seed: int = 0,
    start: BoolArray | None = None,
    *,
    solver: str = "auto",
    threads: int | None = None,
) -> Pattern:
    """The cheapest safe pattern of a network problem, or the best found within the limit with a proven bound.

    ``start`` is a safe pattern to begin with; ``solver`` names the tree (``tree``, ``scip`` or ``highs``), which uses all cores (up to eight) unless
    ``threads`` says how many. Raises InputError if the relations are not a
    network, Infeasible if no pattern is safe.
    """
    model = NetworkModel.of(problem)
    hidden = build(model, stop, seed)
    if start is not None:
        given = start[model.network.columns]
        if model.cost(given) < model.cost(hidden) and model.is_safe(given):
            hidden = given | model.fixed
    root = start_root(model, hidden)
    if model.n_needs:
        run_root(root, stop, seed, effort=0.15)
    nodes, threads = 0, threads or min(cores(), MOST_THREADS)
    merging = Merging(root, stop, seed)
    if not root.closed and not stop.done:
        merging.run(stop.part(0.15), threads)
    while not root.closed and not stop.done:
        before = root.cost
        nodes += _tree(root, merging, stop, seed, solver, threads)
        if root.closed or root.cost == before:
            break
    base = model.fixed_cost
    info = {
        "method": "network exact",
        "requirements": len(problem.requirements),
        "open": model.n_needs,
        "rounds": root.rounds,
        "rows": len(root.lp.pool),
        "nodes": nodes,
    }
    bound = root.cost if root.closed else root.rounded
    return model.pattern(root.hidden, base + min(bound, root.cost), optimal=root.closed, info=info)


def _tree(root: Root, merging: Merging, stop: Stop, seed: int, solver: str, threads: int) -> int:
    """Branch over the columns that the root could not fix; takes over pattern and bound. Returns the number of nodes."""
    work = Open(root)
    beside = tuple(work.separate() for _ in range(threads - 1))
    program = replace(work.program, repair=merging.repair(), beside=beside)
    answer = branch_and_cut(program, stop, solver=solver, seed=seed)
    hidden, model = work.pattern(answer.x), work.model
    if answer.optimal:
        root.hidden, root.cost = hidden, model.cost(hidden) - model.fixed_cost
        root.bound = root.cost
    else:
        root.bound = max(root.bound, min(answer.bound, root.cost))
        root.offer(hidden)
    return answer.nodes
