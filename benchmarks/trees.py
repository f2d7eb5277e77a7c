"""The own tree (one and two threads) and SCIP's from the same root and the same pattern: ``python -m benchmarks.trees [seconds] [tables]``."""

from __future__ import annotations

import sys
from typing import Any

import tabprotect as tp
from benchmarks.common import save
from benchmarks.suppress import cases
from tabprotect.solve.stop import Stop
from tabprotect.suppression import exact_scip, exact_tree, heuristic
from tabprotect.suppression.exact_root import cut_root, start_root
from tabprotect.suppression.exact_side import Job
from tabprotect.suppression.heuristic_state import witnessed
from tabprotect.suppression.preprocess import reduce
from tabprotect.suppression.problem import Problem
from tabprotect.suppression.settle import settle

NAMES = ["c6o", "c8", "c10", "g3", "hier13x7x7d", "hier13x13x7d"]


def run(name: str, table: tp.Table, limit: float) -> dict[str, Any]:
    problem = settle(reduce(Problem.from_table(table)), Stop(5))
    state = witnessed(problem, heuristic.solve(problem.origin, Stop(10)))
    assert state is not None
    root = cut_root(start_root(problem), state, Stop(60))
    job = Job.of(root, state.hidden, Stop(limit), 0)
    row: dict[str, Any] = {
        "case": name, "pattern": state.cost, "root": root.bound, "scip_suits": exact_scip.suits(problem)
    }  # fmt: skip
    for label, grow in (
        ("own", lambda r, s: exact_tree.grow(r, state.hidden, s, 0, lambda bound: None)),
        ("own_2_threads", lambda r, s: exact_tree.grow(r, state.hidden, s, 0, lambda bound: None, threads=2)),
        ("scip", lambda r, s: exact_scip.grow(r, state.hidden, s, 0, lambda bound: None)),
    ):
        stop = Stop(limit)
        found = grow(job.root(), stop)
        row |= {f"{label}_bound": found.bound, f"{label}_nodes": found.nodes, f"{label}_seconds": stop.seconds}
    return row


def main() -> None:
    limit = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    tp.suppress(tp.examples.d272().mark(tp.rules.Threshold(2)))
    tables = cases()
    rows = []
    for name in sys.argv[2:] or NAMES:
        if name in tables:
            rows.append(run(name, tables[name](), limit))
            print(rows[-1], flush=True)
    save("trees", rows, f"lower bounds (primaries included) after {limit:g} s from the same root and pattern")


if __name__ == "__main__":
    main()
