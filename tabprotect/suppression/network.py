"""Suppression on network tables by shortest paths, clean-up and local search: safe at once, better with time.

Every requirement is met in turn by successive cheapest paths, on which hidden cells are free; what turns out to be idle is published again.
A few rounds of cutting planes give a lower bound and a fractional pattern, along which a second pattern is built; then small groups of
secondaries are taken out and the requirements that relied on them are met anew, keeping what is not dearer.

References: J. P. Kelly, B. L. Golden and A. A. Assad, "Cell suppression: disclosure protection for sensitive tabular data", Networks 22
(1992); J. Castro, "Network flows heuristics for complementary cell suppression", in Inference Control in Statistical
Databases (2002).
"""

from __future__ import annotations

from tabprotect.solve.stop import Stop
from tabprotect.suppression.network_construct import build
from tabprotect.suppression.network_model import NetworkModel
from tabprotect.suppression.network_root import run_root, start_root
from tabprotect.suppression.problem import Pattern, Problem

ROUNDS = 12
"""Rounds of cutting planes: most of the bound and of the guidance comes early."""


def solve(problem: Problem, stop: Stop, seed: int = 0) -> Pattern:
    """A good safe pattern of a network problem with a lower bound; see `network_exact.solve` for a proven one.

    Raises InputError if the relations are not a network, Infeasible if no pattern is safe.

    >>> from tabprotect.table.examples import d272
    >>> table = d272().with_status([22], "u").with_levels([22], lpl=1, upl=1)
    >>> int(solve(Problem.from_table(table), Stop()).suppressed.sum())
    4
    """
    model = NetworkModel.of(problem)
    root = start_root(model, build(model, stop, seed))
    if model.n_needs and not stop.done:
        run_root(root, stop, seed, rounds=ROUNDS, effort=3.0 if model.network.n_arcs < 50_000 else 0.1)
    info = {
        "method": "network",
        "requirements": len(problem.requirements),
        "open": model.n_needs,
        "rounds": root.rounds,
    }
    bound = model.fixed_cost + min(root.rounded, root.cost)
    return model.pattern(root.hidden, bound, optimal=root.closed, info=info)
