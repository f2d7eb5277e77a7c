# mypy: disable-error-code="no-untyped-def"
"""The cheapest pattern inside the span of some moves, by branch and bound over its subspaces (compiled).

The hidden cells of a pattern let the outsider move inside a linear space, and the spaces of good patterns have few dimensions even where
hundreds of cells are hidden. So instead of choosing cells, choose a subspace: every cell that is published is one linear equation, and takes
along all cells that then stand still too. What is left must let every need move far enough (a linear program in a few variables).

Publishing and keeping cells are the two branches, dearest first. A cell that moves in proportion to a need, or to a cell that was kept, can
never be published below that point: its price bounds the branch. Subspaces of a space that is too small for a need are too small as well.
In the words of matroids, the search is over the flats of the hidden cells (J. Oxley, "Matroid Theory", 2011, section 1.4).
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from tabprotect.types import BoolArray, FloatArray, IntArray

OPEN, HIDDEN, STILL, IDLE = 0, 1, 2, 3
_ZERO = 1e-7
_EQUAL = 1e-6
inner = numba.njit(cache=True, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]


@dataclass(frozen=True)
class Flat:
    """Cells that can be published (``still``), the price of the others, and a move for every need."""

    still: BoolArray
    price: float
    moves: FloatArray
    nodes: int


@dataclass(frozen=True)
class Wish:
    """What moves in the span have to do: take cell ``row`` to ``goal`` while all cells stay between ``low`` and ``high`` (needs × cells).

    Moves for ``both`` needs work backwards as well.
    """

    row: IntArray
    goal: FloatArray
    both: BoolArray
    low: FloatArray
    high: FloatArray


def echelon(moves: FloatArray, most: int) -> FloatArray | None:
    """A basis of the rows' span in which some cells are coordinates (complete pivoting, so that entries stay small); None beyond ``most``."""
    a = np.ascontiguousarray(moves / np.maximum(np.abs(moves).max(axis=1, keepdims=True), 1e-300))
    rank = eliminate(a, most)
    return None if rank > most else np.asarray(a[:rank])


def cheapest_flat(
    basis: FloatArray, price: FloatArray, idle: BoolArray, wish: Wish, budget: float, most: int
) -> Flat | None:
    """The subspace of least price below ``budget`` in at most so many nodes; None where there is none.

    ``basis`` is dimensions × cells; ``idle`` cells cost nothing whether they move or not.

    >>> b = np.array([[1.0, -1.0, -1.0, 1.0, 0.0, 0.0], [1.0, 0.0, -1.0, 0.0, -1.0, 1.0]])  # two ways to move the first cell
    >>> wish = Wish(np.array([0]), np.array([1.0]), np.array([True]), np.full((1, 6), -5.0), np.full((1, 6), 5.0))
    >>> flat = cheapest_flat(b, np.array([0.0, 2.0, 3.0, 2.0, 4.0, 4.0]), np.zeros(6, bool), wish, 15.0, 100)
    >>> flat.price, flat.still.tolist()
    (7.0, [False, False, False, False, True, True])
    """
    rows = np.ascontiguousarray(basis.T)
    status = np.where(idle, IDLE, OPEN).astype(np.int8)
    status[wish.row] = HIDDEN
    wished = (wish.row, wish.goal, wish.both, wish.low, wish.high)
    best, nodes, still = cheapest_still(rows, price, status, wished, budget, most)
    if best >= budget:
        return None
    moves = _moves(rows, still, wished)
    return None if moves is None else Flat(still, float(best), moves, int(nodes))


def needed_moves(basis: FloatArray, wish: Wish) -> FloatArray | None:
    """A move for every need (needs × cells) in the whole space of a basis (dimensions × cells); None where one has none."""
    wished = (wish.row, wish.goal, wish.both, wish.low, wish.high)
    return _moves(np.ascontiguousarray(basis.T), np.zeros(basis.shape[1], bool), wished)


@numba.njit(cache=True, nogil=True)
def eliminate(a, most):
    """Row echelon form in place, with complete pivoting; the rank, or ``most`` + 1 as soon as it is larger."""
    n, m = a.shape
    for k in range(n):
        i, j, largest = k, 0, 0.0
        for p in range(k, n):
            for q in range(m):
                if abs(a[p, q]) > largest:
                    i, j, largest = p, q, abs(a[p, q])
        if largest < _ZERO:
            return k
        if k == most:
            return most + 1
        for q in range(m):
            a[k, q], a[i, q] = a[i, q], a[k, q]
        pivot = a[k, j]
        for q in range(m):
            a[k, q] /= pivot
        for p in range(n):
            f = a[p, j]
            if p != k and f != 0.0:
                for q in range(m):
                    z = a[p, q] - f * a[k, q]
                    a[p, q] = z if abs(z) > 1e-9 else 0.0
    return n


@inner
def _reaches(rows, d, status, low, high, cell, goal, work, side, y):
    """Whether a cell can be moved to its goal in the space of the rows: a bounded simplex method from zero; ``y`` is the move."""
    n = rows.shape[0]
    sign = 1.0 if goal > 0 else -1.0
    for j in range(n):
        y[j] = 0.0
        for k in range(d):
            work[j, k] = rows[j, k]
    side[:d] = 0  # a coordinate at its upper (1) or lower (−1) end; 0: free
    for _ in range(6 * d + 10):
        column, step, steepest = -1, 0.0, 1e-9
        for k in range(d):
            t = sign * work[cell, k]
            if t > steepest and side[k] != 1:
                column, step, steepest = k, 1.0, t
            elif -t > steepest and side[k] != -1:
                column, step, steepest = k, -1.0, -t
        if column < 0:
            return False
        length = (goal - y[cell]) * sign / steepest
        blocked = -1
        for j in range(n):
            t = step * work[j, column]
            if status[j] == STILL or j == cell or abs(t) < 1e-9:
                continue
            room = (high[j] - y[j]) / t if t > 0 else (low[j] - y[j]) / t
            if room < length - 1e-12:
                length, blocked = max(room, 0.0), j
        for j in range(n):
            y[j] += length * step * work[j, column]
        if blocked < 0:
            return True
        pivot = work[blocked, column]
        side[column] = 1 if step * pivot > 0 else -1
        for j in range(n):
            if j == blocked:
                continue
            f = work[j, column] / pivot
            if f != 0.0:
                for k in range(d):
                    work[j, k] -= f * work[blocked, k]
            work[j, column] = f
        work[blocked, :d] = 0.0
        work[blocked, column] = 1.0
    return False


@inner
def _unmet(rows, d, status, wish, first, work, side, y, done):
    """A need that cannot be met in the space of the rows, or −1; the one that failed last is tried first."""
    need, goal, both, low, high = wish
    done[:] = False
    for a in range(len(need)):
        i = first if a == 0 else (a - 1 if a <= first else a)
        if done[i]:
            continue
        if not _reaches(rows, d, status, low[i], high[i], need[i], goal[i], work, side, y):
            return i
        for b in range(len(need)):  # one move for several needs
            along = y[need[b]] / goal[b]
            if (both[i] and abs(along) >= 1) or (not both[b] and along >= 1):
                done[b] = True
    return -1


@inner
def _mix(d):
    """Three fixed irregular combinations of coordinates; the second one has both signs."""
    mix = np.zeros((3, d))
    for k in range(d):
        for r in range(3):
            mix[r, k] = 0.5 + (0.6180339887 + 0.1366 * r) * (k + 1) % 1.0
        mix[1, k] *= 1.0 if k % 2 else -1.0
    return mix


@inner
def _survey(rows, d, status, price, mix, first, second):
    """Cells that stand still now, cells tied to hidden ones, and what the hidden ones cost; −1 where a hidden cell stands still."""
    n = rows.shape[0]
    for i in range(n):
        if status[i] == STILL:
            continue
        largest = 0.0
        for k in range(d):
            largest = max(largest, abs(rows[i, k]))
        if largest < _ZERO:
            if status[i] == HIDDEN:
                return -1.0
            status[i] = STILL
            continue
        a, b, c = 0.0, 0.0, 0.0
        for k in range(d):
            a += mix[0, k] * rows[i, k]
            b += mix[1, k] * rows[i, k]
            c += mix[2, k] * rows[i, k] * (k + 1)
        if c == 0.0:
            c = 1e-30
        first[i], second[i] = a / c, b / c
    total = 0.0
    for i in range(n):
        if status[i] == OPEN:
            for j in range(n):
                if status[j] == HIDDEN and _tied(first, second, i, j):
                    status[i] = HIDDEN
                    break
        if status[i] == HIDDEN:
            total += price[i]
    return total


@inner
def _tied(first, second, i, j):
    """Whether two cells move in proportion, by ratios of mixed coordinates."""
    return abs(first[i] - first[j]) <= _EQUAL * (1 + abs(first[i])) and abs(second[i] - second[j]) <= _EQUAL * (
        1 + abs(second[i])
    )


@inner
def _classes(status, price, first, second, order, worth):
    """Open cells, one for each class that moves in proportion, dearest class first; how many."""
    n = 0
    for i in range(len(status)):
        if status[i] != OPEN:
            continue
        k = 0
        while k < n and not _tied(first, second, i, order[k]):
            k += 1
        if k == n:
            order[n], worth[n] = i, price[i]
            n += 1
        else:
            worth[k] += price[i]
    for a in range(1, n):
        i, w, b = order[a], worth[a], a
        while b > 0 and worth[b - 1] < w:
            worth[b], order[b] = worth[b - 1], order[b - 1]
            b -= 1
        worth[b], order[b] = w, i
    return n


@inner
def _halt(rows, d, i, out):
    """The space in which cell i stands still, one coordinate less."""
    pivot = 0
    for k in range(1, d):
        if abs(rows[i, k]) > abs(rows[i, pivot]):
            pivot = k
    for j in range(rows.shape[0]):
        f = rows[j, pivot] / rows[i, pivot]
        c = 0
        for k in range(d):
            if k != pivot:
                z = rows[j, k] - f * rows[i, k]
                out[j, c] = z if abs(z) > 1e-10 else 0.0
                c += 1


@numba.njit(cache=True, nogil=True)
def cheapest_still(basis, price, start, wish, budget, most):
    """The least price below ``budget`` of a subspace, the nodes it took, and which cells stand still in it.

    ``basis`` is cells × dimensions. Depth first; at each level the cells to publish next are tried from the dearest on, those tried before being kept.
    """
    n, top = basis.shape
    mix = _mix(top)
    rows = np.zeros((top + 1, n, top))
    status = np.zeros((top + 1, n), np.int8)
    order = np.zeros((top + 1, n), np.int64)
    worth = np.zeros((top + 1, n))
    cost, count, tried = np.zeros(top + 1), np.zeros(top + 1, np.int64), np.zeros(top + 1, np.int64)
    first, second, y, work = np.zeros(n), np.zeros(n), np.zeros(n), np.zeros((n, top))
    side, done = np.zeros(top, np.int64), np.zeros(len(wish[0]), np.bool_)
    rows[0], status[0] = basis, start
    best, still, nodes, last, level, entered = budget, np.zeros(n, np.bool_), 0, 0, 0, True
    while level >= 0:
        d = top - level
        if entered:
            entered = False
            nodes += 1
            cost[level] = _survey(rows[level], d, status[level], price, mix, first, second)
            fits = 0.0 <= cost[level] < best
            if fits:
                missed = _unmet(rows[level], d, status[level], wish, last, work, side, y, done)
                last, fits = (missed, False) if missed >= 0 else (last, True)
            if not fits:
                level -= 1
                continue
            count[level] = _classes(status[level], price, first, second, order[level], worth[level])
            tried[level] = 0
        k = tried[level]
        if k > 0:
            cost[level] += worth[level, k - 1]
            status[level, order[level, k - 1]] = HIDDEN
        if cost[level] >= best or nodes >= most or k >= count[level]:
            if k >= count[level] and cost[level] < best:
                best = cost[level]
                for i in range(n):
                    still[i] = status[level, i] == STILL
            level -= 1
            continue
        tried[level] = k + 1
        _halt(rows[level], d, order[level, k], rows[level + 1])
        status[level + 1] = status[level]
        level += 1
        entered = True
    return best, nodes, still


@numba.njit(cache=True, nogil=True)
def halt_all(basis, still):
    """The space in which the given cells stand still (cells × dimensions)."""
    n, d = basis.shape
    rows, other = basis.copy(), np.zeros((n, d))
    for i in range(n):
        largest = 0.0
        for k in range(d):
            largest = max(largest, abs(rows[i, k]))
        if still[i] and largest >= _ZERO:
            _halt(rows, d, i, other)
            rows, other = other, rows
            d -= 1
    return rows[:, :d].copy()


@numba.njit(cache=True, nogil=True)
def _moves(basis, still, wish):
    """A move for every need in the space where the given cells stand still (None where one has none after all)."""
    need, goal, _, low, high = wish
    rows = halt_all(basis, still)
    n, d = rows.shape
    status = np.where(still, np.int8(STILL), np.int8(OPEN))
    work, side, y = np.zeros((n, d)), np.zeros(d, np.int64), np.zeros(n)
    moves = np.zeros((len(need), n))
    for i in range(len(need)):
        if not _reaches(rows, d, status, low[i], high[i], need[i], goal[i], work, side, y):
            return None
        moves[i] = y
    moves[:, still] = 0.0
    return moves
