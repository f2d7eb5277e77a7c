"""Optimal suppression on network tables: cutting planes at the root, then branch-and-cut, all separation by compiled maximum flow.

Reference: M. Fischetti and J. J. Salazar González, "Models and algorithms for the 2-dimensional cell suppression problem in
statistical disclosure control", Mathematical Programming 84 (1999).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tabprotect.solve.branch import Program, Separate, branch_and_cut
from tabprotect.solve.cutting import Row
from tabprotect.solve.knapsack import RowSet, strengthen
from tabprotect.solve.side import cores
from tabprotect.solve.stop import Stop
from tabprotect.suppression.network_construct import build, search
from tabprotect.suppression.network_cuts import Separator
from tabprotect.suppression.network_model import NetworkModel
from tabprotect.suppression.network_root import Root, run_root, start_root
from tabprotect.suppression.problem import Pattern, Problem
from tabprotect.types import BoolArray, FloatArray

ONWARD = 0.5
"""Effort of the search from the best pattern beside the tree, again and again: long enough to find something, short enough to be done when it is waited for."""


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
    nodes = 0
    while not root.closed and not stop.done:
        before = root.cost
        nodes += _tree(root, stop, seed, solver, threads or min(cores(), MOST_THREADS))
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


def _tree(root: Root, stop: Stop, seed: int, solver: str, threads: int) -> int:
    """Branch over the columns that the root could not fix; takes over pattern and bound. Returns the number of nodes."""
    full, lp = root.model, root.lp
    start = (root.hidden & ~full.fixed).astype(float)
    allowed = full.candidate & (lp.allowed | (start > 0))
    model = replace(full, candidate=allowed)
    separator = Separator(model)
    needs = np.arange(model.n_needs)
    rows = [_restricted(m.row, allowed) for m in lp.inside]
    capacity = [_restricted(r, allowed) for r in lp.rows if r.kind == "capacity"]

    def separators() -> Separate:
        """One for each thread: it remembers the capacity rows it has seen."""
        known = RowSet(capacity)

        def separate(x: FloatArray, integral: bool, at_root: bool) -> list[Row]:
            if integral and model.is_safe(model.fixed | (x > 0.5)):
                return []
            rows, _ = separator.capacity(x, needs)
            if integral:
                return rows
            known.extend(rows)
            return rows + strengthen(known, x) + separator.bridgeless(x)

        return separate

    quiet = replace(stop, listener=None)  # patterns are made in a thread of their own; the tree tells of them

    def repair(x: FloatArray, call: int) -> FloatArray | None:
        if stop.done:
            return None
        price = model.weight * (1.0 - 0.999 * x) + 1e-6
        hidden = search(model, quiet, seed + call, start=build(model, quiet, seed, price=price), effort=0.1)
        if model.cost(hidden) < model.cost(best[0]):
            best[0] = hidden
        best[0] = search(model, quiet, seed + call, start=best[0], effort=ONWARD)
        return (best[0] & ~model.fixed).astype(float)

    best = [root.hidden]
    program = Program(
        np.where(model.candidate, model.weight, 0.0),
        allowed,
        rows,
        separators(),
        start,
        root.integral,
        repair,
        beside=tuple(separators() for _ in range(threads - 1)),
        offset=model.fixed_cost,
    )
    answer = branch_and_cut(program, stop, solver=solver, seed=seed)
    hidden = model.fixed | (answer.x > 0.5)
    if answer.optimal:
        root.hidden, root.cost = hidden, model.cost(hidden) - model.fixed_cost
        root.bound = root.cost
    else:
        root.bound = max(root.bound, min(answer.bound, root.cost))
        root.offer(hidden)
    return answer.nodes


def _restricted(row: Row, allowed: BoolArray) -> Row:
    """The row without columns that are fixed at zero."""
    keep = allowed[row.columns]
    return Row(row.columns[keep], row.values[keep], row.rhs, row.kind)
