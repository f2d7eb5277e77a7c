"""Branch-and-cut over 0–1 covering programs whose rows are only known through a separator.

Three solvers answer alike, and only ever return points that the separator accepts: ``tree``, our own tree on one warm HiGHS linear program
(the default); ``scip``, one SCIP tree with a constraint handler (the ``scip`` extra); ``highs``, a sequence of integer programs, each with the rows that the
last answer violated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tabprotect.errors import InputError, SolverUnavailable
from tabprotect.solve.cutting import Row
from tabprotect.solve.stop import Stop
from tabprotect.types import BoolArray, FloatArray, IntArray

Separate = Callable[[FloatArray, bool, bool], list[Row]]
"""(x, integral, root) → violated rows; for an integral x none means that x is feasible."""

Repair = Callable[[FloatArray, int], "FloatArray | None"]
"""(fractional x, number of the call) → a feasible 0–1 point, or None."""


@dataclass(frozen=True, eq=False)
class Program:
    """min cost·x over 0–1 columns in ``allowed``, rows known so far, the separator, a feasible start, a bound known already.

    The tree also takes ``known`` rows that need not be in the program from the start, separators for further threads (``beside``), how many
    threads may be ``busy`` now (all where it is None), ``news``, which is told the bound again and again and may answer with a better
    feasible point, ``watch``, which is told the relaxation's point of every node, the ``offset`` between its costs and those that progress
    shows, and how many nodes it may have at ``most``.
    """

    cost: FloatArray
    allowed: BoolArray
    rows: list[Row]
    separate: Separate
    start: FloatArray
    integral: bool
    repair: Repair | None = None
    bound: float = 0.0
    known: tuple[Row, ...] = ()
    beside: tuple[Separate, ...] = ()
    busy: Callable[[], int] | None = None
    news: Callable[[float], FloatArray | None] | None = None
    watch: Callable[[FloatArray], None] | None = None
    offset: float = 0.0
    most: int | None = None

    @property
    def cutoff(self) -> float:
        """A better point costs at most this."""
        value = float(self.cost @ self.start)
        return value - 1.0 + 1e-6 if self.integral else value * (1 - 1e-9)


@dataclass(frozen=True, eq=False)
class TreeAnswer:
    """Best point, lower bound, whether it is proven, and how many nodes it took."""

    x: FloatArray
    bound: float
    optimal: bool
    nodes: int
    solver: str


def branch_and_cut(program: Program, stop: Stop, *, solver: str = "auto", seed: int = 0) -> TreeAnswer:
    """Solve by the named solver: ``tree`` (also ``auto``), ``scip`` or ``highs``.

    >>> need = Row(np.array([0, 1, 2]), np.array([1.0, 1.0, 1.0]), 2.0)
    >>> missing = lambda x, integral, root: [need] if need.slack(x) < -1e-6 else []
    >>> p = Program(np.array([3.0, 1.0, 2.0]), np.ones(3, bool), [], missing, np.ones(3), True)
    >>> branch_and_cut(p, Stop(), solver="highs").x.tolist()
    [0.0, 1.0, 1.0]
    """
    if solver == "auto":
        solver = "tree"
    if solver == "tree":
        from tabprotect.solve.branch_tree import solve_tree

        return solve_tree(program, stop, seed)
    if solver == "scip":
        try:
            from tabprotect.solve.branch_scip import solve_tree as solve_by_scip
        except ImportError as error:
            raise SolverUnavailable("SCIP is not installed: pip install 'tabprotect[scip]'") from error
        return solve_by_scip(program, stop, seed)
    if solver == "highs":
        return _solve_sequence(program, stop, seed)
    raise InputError(f"unknown solver {solver!r}: use 'auto', 'tree', 'scip' or 'highs'")


def _solve_sequence(program: Program, stop: Stop, seed: int) -> TreeAnswer:
    """Integer programs by HiGHS until the answer violates nothing."""
    import highspy

    columns = np.flatnonzero(program.allowed)
    at = np.full(len(program.cost), -1, np.int64)
    at[columns] = np.arange(len(columns))
    h = highspy.Highs()
    for name, value in {"output_flag": False, "threads": 1, "random_seed": seed % 2**31, "mip_rel_gap": 0.0}.items():
        h.setOptionValue(name, value)
    empty = np.zeros(0, np.int32)
    n = len(columns)
    h.addCols(n, program.cost[columns], np.zeros(n), np.ones(n), 0, empty, empty, np.zeros(0))
    h.changeColsIntegrality(n, np.arange(n, dtype=np.int32), np.array([highspy.HighsVarType.kInteger] * n))
    add_rows(h, program.rows, at)
    best, best_cost, bound, nodes = program.start, float(program.cost @ program.start), program.bound, 0
    while not stop.done:
        h.setOptionValue("time_limit", h.getRunTime() + min(stop.left, 1e7))
        h.run()
        info, status = h.getInfo(), h.getModelStatus()
        nodes += max(int(info.mip_node_count), 0)
        if status == highspy.HighsModelStatus.kInfeasible:
            break
        finished = status == highspy.HighsModelStatus.kOptimal
        bound = max(bound, float(info.objective_function_value if finished else info.mip_dual_bound))
        stop.tell("tree", cost=best_cost + program.offset, bound=bound + program.offset)
        if finished and bound >= best_cost - 1e-9 * max(1.0, best_cost):
            return TreeAnswer(best, best_cost, True, nodes, "highs")
        x = np.zeros(len(program.cost))
        values = np.array(h.getSolution().col_value)
        if len(values) != n or not (finished or np.isfinite(info.objective_function_value)):
            break
        x[columns] = np.rint(values)
        rows = program.separate(x, True, False)
        if not rows and float(program.cost @ x) < best_cost:
            best, best_cost = x, float(program.cost @ x)
        if not rows and finished:
            return TreeAnswer(best, best_cost, True, nodes, "highs")
        if not finished:
            break
        if program.repair is not None:
            other = program.repair(x, nodes)
            if other is not None and float(program.cost @ other) < best_cost:
                best, best_cost = other, float(program.cost @ other)
        add_rows(h, rows, at)
    if h.getModelStatus() == highspy.HighsModelStatus.kInfeasible:
        # only possible when the allowed columns exclude every point as cheap as the start: the start is optimal
        return TreeAnswer(best, best_cost, True, nodes, "highs")
    return TreeAnswer(best, min(bound, best_cost), False, nodes, "highs")


def add_rows(h: Any, rows: list[Row], at: IntArray) -> None:
    """Append rows to a HiGHS model whose column j is ``at[j]``."""
    if not rows:
        return
    index, value, starts = [], [], [0]
    for row in rows:
        here = at[row.columns]
        index.append(here[here >= 0])
        value.append(row.values[here >= 0])
        starts.append(starts[-1] + len(index[-1]))
    h.addRows(
        len(rows), np.array([r.rhs for r in rows]), np.full(len(rows), np.inf), starts[-1],
        np.array(starts[:-1], np.int32), np.concatenate(index).astype(np.int32), np.concatenate(value),
    )  # fmt: skip
