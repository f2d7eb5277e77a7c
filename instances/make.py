"""Make the instances of this folder and prove their optima: ``python -m instances.make``.

Every table comes from a seeded generator (or is the published D272 table). The optimum of each is proved by one compact mixed-integer model, solved
to a gap of zero by HiGHS: binary z (hidden or not) and, for each requirement (cell, sense, level), its own move y with ``relations @ y = 0`` and
``−down·z ≤ y ≤ up·z`` that reaches the level. Tables with few candidates are proved again by trying all patterns. Nothing here uses the
methods of the package, so that their results can be checked against these.
"""

from __future__ import annotations

import csv
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

import tabprotect as tp
from tabprotect.files import write_text

HERE = Path(__file__).resolve().parent
Requirement = tuple[int, int, float]


# -- tables --------------------------------------------------------------------------------------------------------------------
def firms(seed: int, by: dict[str, Any], records: int, decimals: int = 0) -> tp.Table:
    """A magnitude table of log-normal contributions of firms, with p% primaries."""
    rng = np.random.default_rng(seed)
    data: dict[str, Any] = {
        "firm": np.arange(records),
        "value": np.ceil(rng.lognormal(3, 1.3, records) * 10**decimals) / 10**decimals,
    }
    for name, spec in by.items():
        leaves = [spec.codes[i] for i in spec.leaves] if isinstance(spec, tp.Hierarchy) else list(spec)
        share = rng.dirichlet(np.full(len(leaves), 1.5))
        data[name] = rng.choice(leaves, records, p=share)
    table = tp.tabulate(data, by=by, value="value", contributor="firm")
    return bounded(table.mark(tp.rules.PPercent(10) | tp.rules.Threshold(1)))


def bounded(table: tp.Table) -> tp.Table:
    """Outsiders know that nothing is negative or more than twice the largest cell."""
    return table.with_bounds(lb=0.0, ub=2 * float(table.values.max()))


def d272_report() -> tp.Table:
    """D272 under the report's assumptions: margins are published, everybody knows that filled cells are at least 1, and a primary cell
    must only not be recovered exactly (its interval has to be one unit wide)."""
    table = tp.examples.d272().mark(tp.rules.Threshold(2))
    margins = np.flatnonzero((table.codes == 0).any(axis=1))
    bare = table.protect(margins).with_levels(table.primary, lpl=0, upl=0, spl=1)
    return bare.with_bounds(lb=np.minimum(table.values, 1), ub=2 * float(table.values.max()))


def chained() -> tp.Table:
    """Arbitrary relations without dimensions: quarters, halves and two breakdowns of a year that share cells."""
    rng = np.random.default_rng(11)
    part = rng.integers(4, 60, (4, 3)).astype(float)
    part[2, 1], part[0, 2] = 2, 1
    quarters, products = part.sum(axis=1), part.sum(axis=0)
    halves = np.array([quarters[:2].sum(), quarters[2:].sum()])
    values = np.concatenate([part.ravel(), quarters, products, halves, [part.sum()]])
    rows = []
    for q in range(4):
        rows.append({12 + q: -1, **{3 * q + p: 1 for p in range(3)}})
    for p in range(3):
        rows.append({16 + p: -1, **{3 * q + p: 1 for q in range(4)}})
    rows += [{19: -1, 12: 1, 13: 1}, {20: -1, 14: 1, 15: 1}, {21: -1, 19: 1, 20: 1}, {21: -1, 16: 1, 17: 1, 18: 1}]
    matrix = np.zeros((len(rows), len(values)))
    for r, row in enumerate(rows):
        matrix[r, list(row)] = list(row.values())
    table = tp.Table.from_relations(values, matrix, freq=values.astype(np.int64), counts=True)
    return bounded(table.mark(tp.rules.Threshold(3)))


def tables() -> dict[str, tp.Table]:
    """All instances by name."""
    nace = tp.Hierarchy.from_tree({"A": ["A1", "A2"], "B": ["B1", "B2", "B3"], "C": []}, total="T")
    place = tp.Hierarchy.from_tree({"N": ["N1", "N2"], "S": ["S1", "S2"]}, total="T")
    return {
        "d272": bounded(tp.examples.d272().mark(tp.rules.Threshold(2))),
        "d272_report": d272_report(),
        "chained": chained(),
        "flat3x3": firms(7, {"a": list("pqr"), "b": list("xyz")}, 40),
        "flat4x5": firms(1, {"a": list("pqrs"), "b": list("vwxyz")}, 90),
        "flat8x6": firms(2, {"a": list("pqrstuvw"), "b": list("uvwxyz")}, 260),
        "decimals": firms(3, {"a": list("pqrst"), "b": list("wxyz")}, 110, decimals=2),
        "tree1": firms(4, {"nace": nace, "b": list("wxyz")}, 170),
        "tree2": firms(5, {"nace": nace, "place": place}, 200),
        "cube3": firms(6, {"a": list("pqr"), "b": list("xyz"), "c": list("lmn")}, 150),
    }


# -- proofs --------------------------------------------------------------------------------------------------------------------
def requirements(table: tp.Table) -> list[Requirement]:
    """What a safe pattern must allow: (cell, +1 up / −1 down / 0 width, level)."""
    lpl, upl, spl = table.needed_levels()
    found = []
    for p in np.flatnonzero(table.primary).tolist():
        for sense, level in ((1, upl[p]), (-1, lpl[p]), (0, spl[p])):
            if level > 0:
                found.append((p, sense, float(level)))
    return found


def compact(table: tp.Table, objective: str) -> tuple[float, np.ndarray]:
    """Optimal cost (primaries included) and pattern by the compact model."""
    n, m = table.n_cells, table.n_relations
    weights, needs = table.weights(objective), requirements(table)
    down, up = table.values - table.lb, table.ub - table.values
    moves = [(p, s, level) for p, sense, level in needs for s in ((sense,) if sense else (1, -1))]
    k = len(moves)
    eye = sp.identity(n, format="csr")
    blocks: list[Any] = []
    low, high = [], []
    for r in range(k):
        left = [None] * (k + 1)
        for matrix, z_part, lo, hi in (
            (table.relations, sp.csr_array((m, n)), 0.0, 0.0),
            (eye, sp.diags_array(-up), -np.inf, 0.0),
            (eye, sp.diags_array(down), 0.0, np.inf),
        ):
            row = left.copy()
            row[0], row[1 + r] = z_part, matrix
            blocks.append(row)
            low.append(np.full(matrix.shape[0], lo))
            high.append(np.full(matrix.shape[0], hi))
    system = sp.block_array(blocks, format="csr")
    extra, extra_low = _levels(needs, n, k)
    hidden = table.primary | (table.status == "m")
    free = hidden | table.suppressible()
    bounds = Bounds(
        np.concatenate([hidden.astype(float), np.tile(-down, k)]), np.concatenate([free.astype(float), np.tile(up, k)])
    )
    answer = milp(
        np.concatenate([weights, np.zeros(n * k)]),
        integrality=np.concatenate([np.ones(n), np.zeros(n * k)]),
        bounds=bounds,
        constraints=[
            LinearConstraint(system, np.concatenate(low), np.concatenate(high)),
            LinearConstraint(extra, extra_low, np.inf),
        ],
        options={"mip_rel_gap": 0.0, "time_limit": 600},
    )
    if answer.status != 0:
        raise RuntimeError(f"not proved: {answer.message}")
    pattern = answer.x[:n] > 0.5
    if not is_safe(table, pattern, needs):
        raise RuntimeError("the solver's pattern is not safe")
    return float(weights[pattern].sum()), pattern


def _levels(needs: list[Requirement], n: int, k: int) -> tuple[Any, np.ndarray]:
    """Rows that ask each move to reach its level; a width is asked of two moves together."""
    rows, cols, data, low, r = [], [], [], [], 0
    for row, (p, sense, level) in enumerate(needs):
        for s in (sense,) if sense else (1, -1):
            rows.append(row)
            cols.append(n + r * n + p)
            data.append(float(s))
            r += 1
        low.append(level)
    return sp.csr_array((data, (rows, cols)), shape=(len(needs), n + n * k)), np.array(low)


def is_safe(table: tp.Table, pattern: np.ndarray, needs: list[Requirement]) -> bool:
    """Can the attacker's bounds be as far away as needed? One linear program per requirement and side."""
    columns = np.flatnonzero(pattern)
    matrix = table.relations[:, columns].toarray()
    bounds = list(zip((table.lb - table.values)[columns], (table.ub - table.values)[columns], strict=True))
    for p, sense, level in needs:
        reach = 0.0
        for s in (sense,) if sense else (1, -1):
            goal = np.where(columns == p, -float(s), 0.0)
            reach += -linprog(goal, A_eq=matrix, b_eq=np.zeros(len(matrix)), bounds=bounds).fun
        if reach < level - 1e-6 * max(1.0, level):
            return False
    return True


def brute_force(table: tp.Table, objective: str, most: int = 14) -> float | None:
    """The cheapest safe pattern by trying all, cheapest first; None when there are too many candidates."""
    weights, needs = table.weights(objective), requirements(table)
    candidates = np.flatnonzero(table.suppressible() & ~table.primary)
    if len(candidates) > most:
        return None
    choices = [c for k in range(len(candidates) + 1) for c in itertools.combinations(candidates.tolist(), k)]
    choices.sort(key=lambda c: weights[list(c)].sum())
    for choice in choices:
        pattern = table.primary.copy()
        pattern[list(choice)] = True
        if is_safe(table, pattern, needs):
            return float(weights[pattern].sum())
    raise RuntimeError("no safe pattern")


def main() -> None:
    rows = []
    for name, table in tables().items():
        tp.write_jj(table, HERE / f"{name}.jj")
        again = tp.read_jj(HERE / f"{name}.jj")  # what is proved is what is in the file
        for objective in ("value", "count"):
            optimum, pattern = compact(again, objective)
            tried = brute_force(again, objective)
            if tried is not None and abs(tried - optimum) > 1e-6:
                raise RuntimeError(f"{name}: compact {optimum}, brute force {tried}")
            proof = "compact MILP (HiGHS)" + ("" if tried is None else " and brute force")
            rows.append([name, again.n_cells, int(again.primary.sum()), objective, f"{optimum:.10g}", proof])
            print(*rows[-1], f"({int(pattern.sum())} hidden)", flush=True)
    lines: list[str] = []
    writer = csv.writer(_Lines(lines), lineterminator="\n")
    writer.writerows([["name", "cells", "primary", "objective", "optimum", "proved_by"], *rows])
    write_text(HERE / "optima.csv", lines)


class _Lines:
    """A file that keeps its lines."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def write(self, text: str) -> None:
        self.lines.append(text)


if __name__ == "__main__":
    main()
