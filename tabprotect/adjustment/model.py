"""The adjustment as a linear mixed-integer program.

Every change is z = z⁺ − z⁻ and every sensitive cell has a binary y that says up (1) or down (0): ``z⁺ ≥ rise·y, z⁺ ≤ M·y, z⁻ ≥ fall·(1−y), z⁻ ≤ M·(1−y)``.
The relaxation of this is weak, since y = ½ lets a sensitive cell "move" up and down at once with no net change to absorb. What it misses is that a relation cannot hold
when one of its cells moves more than all others together: ``Σ_{i≠p} |c_i|·|z_i| ≥ |c_p|·|z_p|``. With |z| = z⁺ + z⁻ these polygon inequalities are linear, and they close most of the gap
(hier13x13x7d: bound of the relaxation 4.62 without, 6.48 with them, optimum 7.26).

Reference: R. A. Dandekar and L. H. Cox, "Synthetic tabular data: an alternative to complementary cell suppression", U.S. Energy Information Administration (2002); J. Castro,
"Minimum-distance controlled perturbation methods for large-scale tabular data protection", European J. Operational Research 171 (2006).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tabprotect.adjustment.problem import Problem
from tabprotect.solve.model import LinearModel
from tabprotect.types import BoolArray, FloatArray, IntArray

# relations longer than this give weak inequalities with many coefficients
LONGEST = 400
# directions of at most this many sensitive cells of a relation are listed
MOST_LISTED = 14


def sense_model(
    problem: Problem,
    norm: str,
    *,
    limit: float = np.inf,
    floor: float = 0.0,
    rows: IntArray | None = None,
) -> LinearModel:
    """The program in units of ``problem.scale``; columns z⁺, z⁻, y (one per sensitive cell), and θ for the maximum norm.

    ``limit`` is the cost of a known solution and ``floor`` a lower bound of the cost of the sensitive cells alone: together they bound every move.
    ``rows`` are relations that imply the others, when they are known.
    """
    n, k, s = problem.n, len(problem.sensitive), problem.scale
    up, down = problem.up / s, problem.down / s
    rise, fall = problem.rise / s, problem.fall / s
    if norm == "l1" and np.isfinite(limit):
        up, down = _trimmed(problem, up, down, limit, floor)
    a, rhs = problem.relations, problem.rhs / s
    if rows is not None:
        a, rhs = sp.csr_array(a)[rows], rhs[rows]
    p = problem.sensitive
    pick = sp.csr_array((np.ones(k), (np.arange(k), p)), shape=(k, n))
    none, extra = sp.csr_array((k, n)), 1 if norm == "linf" else 0
    most_up, most_down = np.maximum(up[p], rise), np.maximum(down[p], fall)
    blocks = [
        [a, -a, sp.csr_array((a.shape[0], k))],
        [pick, none, -sp.diags_array(rise)],
        [pick, none, -sp.diags_array(_finite(most_up, rise))],
        [none, pick, sp.diags_array(fall)],
        [none, pick, sp.diags_array(_finite(most_down, fall))],
    ]
    zero, inf = np.zeros(k), np.full(k, np.inf)
    row_lower = [rhs, zero, -inf, fall, -inf]
    row_upper = [rhs, inf, zero, inf, _finite(most_down, fall)]
    polygons, slack = polygon_rows(problem)
    if polygons.shape[0] and norm != "linf":
        blocks.append([polygons, polygons, sp.csr_array((polygons.shape[0], k))])
        row_lower.append(-slack / s)
        row_upper.append(np.full(polygons.shape[0], np.inf))
    parts, by_sense, least = partition_rows(problem)
    if parts.shape[0] and norm != "linf":
        blocks.append([parts, parts, by_sense / s])
        row_lower.append(least / s)
        row_upper.append(np.full(parts.shape[0], np.inf))
    if problem.balanced:
        blocks.append([sp.csr_array((1, n)), sp.csr_array((1, n)), sp.csr_array(np.ones((1, k)))])
        row_lower.append(np.array([k // 2]))
        row_upper.append(np.array([k - k // 2]))
    matrix = sp.csr_array(sp.vstack([sp.hstack(b, format="csr") for b in blocks], format="csr"))
    y_low, y_high = _sense_bounds(problem)
    lower = np.r_[np.zeros(2 * n), y_low]
    upper = np.r_[up, down, y_high]
    integer = np.r_[np.full(2 * n, problem.whole), np.ones(k, bool)]
    cost = np.r_[problem.weight, problem.weight, np.zeros(k)] * s
    lows, highs = np.concatenate(row_lower), np.concatenate(row_upper)
    if norm == "linf":
        matrix, lows, highs, cost, lower, upper, integer = _with_maximum(
            problem, matrix, lows, highs, lower, upper, integer, extra
        )
    return LinearModel.of(matrix, row_lower=lows, row_upper=highs, cost=cost, lower=lower, upper=upper, integer=integer)


def _finite(most: FloatArray, least: FloatArray) -> FloatArray:
    """An honest big M: infinite room is cut at a thousand times the needed move."""
    return np.where(np.isfinite(most), most, 1e3 * np.maximum(least, 1.0))


def _trimmed(
    problem: Problem, up: FloatArray, down: FloatArray, limit: float, floor: float
) -> tuple[FloatArray, FloatArray]:
    """No cell of a solution at least as good moves further than the cost left for it pays for."""
    s, spare = problem.scale, max(limit - floor, 0.0) * (1 + 1e-6) + 1e-9
    more = spare / (problem.weight * s)
    least = np.zeros(problem.n)
    least[problem.sensitive] = np.maximum(problem.rise, problem.fall) / s
    most = more + least
    if problem.whole:
        most = np.floor(most + 1e-9)
    return np.minimum(up, most), np.minimum(down, most)


def _sense_bounds(problem: Problem) -> tuple[FloatArray, FloatArray]:
    sense = problem.sense
    can_rise, can_fall = problem.possible()
    low = np.where((sense > 0) | ~can_fall, 1.0, 0.0)
    high = np.where((sense < 0) | ~can_rise, 0.0, 1.0)
    return np.minimum(low, high), np.maximum(high, np.minimum(low, high))


def polygon_rows(problem: Problem) -> tuple[sp.csr_array, FloatArray]:
    """One row per relation and sensitive cell in it: the others' absolute changes less the cell's own, times the coefficients,
    and by how much that may be negative because the relation has a right-hand side."""
    a = sp.csr_array(problem.relations)
    size = np.diff(a.indptr)
    line = np.repeat(np.arange(a.shape[0]), size)
    hit = problem.is_sensitive[a.indices] & (size[line] <= LONGEST)
    rows, cells, coefficient = line[hit], a.indices[hit], np.abs(a.data[hit])
    if len(rows) == 0:
        return sp.csr_array((0, problem.n)), np.zeros(0)
    own = sp.csr_array((2.0 * coefficient, (np.arange(len(rows)), cells)), shape=(len(rows), problem.n))
    return sp.csr_array(abs(a[rows]) - own), np.abs(problem.rhs[rows])


def partition_rows(problem: Problem) -> tuple[sp.csr_array, sp.csr_array, FloatArray]:
    """Relations in which the needed moves of several sensitive cells cannot cancel.

    Whatever the directions, needs l of 10, 10 and 10 leave at least 10 over, which the other cells and moves beyond the needs must take:
    ``Σ_others |c|·|z| + Σ_sensitive |c|·(|z| − l) ≥ min over all directions of |Σ ±c·l|`` (a number partitioning problem, solved by listing for up to a dozen
    cells). Returned are the coefficients of |z|, of y, and the right-hand sides.
    """
    a = sp.csr_array(problem.relations)
    k = len(problem.sensitive)
    place = np.full(problem.n, -1)
    place[problem.sensitive] = np.arange(k)
    line = np.repeat(np.arange(a.shape[0]), np.diff(a.indptr))
    hot = np.bincount(line, place[a.indices] >= 0, minlength=a.shape[0])
    rows, sums, ys = [], [], []
    for r in np.flatnonzero((hot >= 2) & (hot <= MOST_LISTED)).tolist():
        part = slice(a.indptr[r], a.indptr[r + 1])
        mine = place[a.indices[part]]
        c, p = a.data[part][mine >= 0], mine[mine >= 0]
        left = _least_left_over(c * problem.rise[p], -c * problem.fall[p])
        needs = np.maximum(problem.rise[p], problem.fall[p]) * np.abs(c)
        if left <= max(0.0, 2 * needs.max() - needs.sum()) + 1e-9 * problem.scale:
            continue  # the polygon inequality says as much
        rows.append(r)
        sums.append(left + float(np.abs(c) @ problem.fall[p]) - abs(problem.rhs[r]))
        ys.append((p, -np.abs(c) * (problem.rise[p] - problem.fall[p])))
    if not rows:
        return sp.csr_array((0, problem.n)), sp.csr_array((0, k)), np.zeros(0)
    length = [len(p) for p, _ in ys]
    by_sense = sp.csr_array(
        (
            np.concatenate([v for _, v in ys]),
            (np.repeat(np.arange(len(rows)), length), np.concatenate([p for p, _ in ys])),
        ),
        shape=(len(rows), k),
    )
    return sp.csr_array(abs(a[rows])), by_sense, np.array(sums)


def _least_left_over(up: FloatArray, down: FloatArray) -> float:
    """min |Σ of one of two numbers per cell|, by listing all choices."""
    sums = np.zeros(1)
    for one, other in zip(up.tolist(), down.tolist(), strict=True):
        sums = np.concatenate([sums + one, sums + other])
    return float(np.abs(sums).min())


def _with_maximum(
    problem: Problem,
    matrix: sp.csr_array,
    lows: FloatArray,
    highs: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    integer: BoolArray,
    extra: int,
) -> tuple[sp.csr_array, FloatArray, FloatArray, FloatArray, FloatArray, FloatArray, BoolArray]:
    """Add θ ≥ weight·(z⁺ + z⁻) for every cell that can move, and make it the objective."""
    n, s = problem.n, problem.scale
    movable = np.flatnonzero((upper[:n] > 0) | (upper[n : 2 * n] > 0))
    k = len(movable)
    w = problem.weight[movable] * s
    pick = sp.csr_array((w, (np.arange(k), movable)), shape=(k, n))
    rest = sp.csr_array((k, matrix.shape[1] - 2 * n))
    rows = sp.hstack([-pick, -pick, rest, np.ones((k, 1))], format="csr")
    wide = sp.hstack([matrix, sp.csr_array((matrix.shape[0], extra))], format="csr")
    least = problem.weight[problem.sensitive] * np.minimum(problem.rise, problem.fall)
    return (
        sp.vstack([wide, rows], format="csr"),
        np.r_[lows, np.zeros(k)],
        np.r_[highs, np.full(k, np.inf)],
        np.r_[np.zeros(matrix.shape[1]), 1.0],
        np.r_[lower, least.max(initial=0.0)],
        np.r_[upper, np.inf],
        np.r_[integer, False],
    )


def changes(problem: Problem, x: FloatArray) -> FloatArray:
    """z of a solution of `sense_model`."""
    z = (x[: problem.n] - x[problem.n : 2 * problem.n]) * problem.scale
    return np.rint(z) if problem.whole else z


def columns(problem: Problem, z: FloatArray, norm: str) -> FloatArray:
    """A change as columns of `sense_model`, to start a solver from."""
    y = (z[problem.sensitive] > 0).astype(float)
    parts = [np.maximum(z, 0.0) / problem.scale, np.maximum(-z, 0.0) / problem.scale, y]
    if norm == "linf":
        parts.append(np.array([problem.cost(z, norm)]))
    return np.concatenate(parts)
