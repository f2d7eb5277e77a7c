"""MDAV and V-MDAV partitions, exact, with a kd-tree that forgets records as they are grouped.

MDAV asks for three things again and again: the record farthest from a point, the record farthest from that one, and the k−1 nearest ones.
Scanning all records for each is quadratic. Here they are searches in a kd-tree whose boxes shrink when records leave, so the answers are the same
and the work is close to n·log n for the few columns that microaggregation is used with.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from tabprotect.microdata.kdtree import LEAF, build, farthest, nearest, remove
from tabprotect.types import FloatArray, IntArray


@nb.njit(cache=True, nogil=True)
def _rank_by_distance(x, label, center, ref, ranked):  # type: ignore[no-untyped-def]
    """The records left, farthest from a point first, and their distances."""
    left = 0
    for i in range(len(x)):
        if label[i] < 0:
            g = 0.0
            for j in range(x.shape[1]):
                g += (x[i, j] - center[j]) ** 2
            ref[left], ranked[left] = np.sqrt(g), i
            left += 1
    turn = np.argsort(-ref[:left], kind="mergesort")
    ranked[:left] = ranked[:left][turn]
    ref[:left] = ref[:left][turn]
    return left


@nb.njit(cache=True, nogil=True)
def _farthest_from_center(x, label, center, old, ref, ranked, head, size):  # type: ignore[no-untyped-def]
    """The record farthest from the centre, found in a ranking made for an older centre; also what was looked at.

    The centre moves little, and by the triangle inequality a distance changes by no more than that, so only a thin shell is looked at. A
    tree does badly here: what is left becomes a ball, and nearly every box reaches its surface.
    """
    d = x.shape[1]
    moved = 0.0
    for j in range(d):
        moved += (center[j] - old[j]) ** 2
    moved = np.sqrt(moved) * (1 + 1e-12) + 1e-300
    while label[ranked[head]] >= 0:
        head += 1
    best, who, seen = -1.0, -1, 0
    for i in range(head, size):
        if (ref[i] * (1 + 1e-12) + moved) ** 2 < best:
            break
        seen += 1
        r = ranked[i]
        if label[r] >= 0:
            continue
        g = 0.0
        for j in range(d):
            g += (x[r, j] - center[j]) ** 2
        if g > best or (g == best and r < who):
            best, who = g, r
    return who, head, seen


@nb.njit(cache=True, nogil=True)
def _take(x, p, k, tree, stack, gaps, found, label, number, sums):  # type: ignore[no-untyped-def]
    """Make the k records nearest to a point a group."""
    nearest(x, p, tree, stack, gaps, found)
    for i in range(k):
        q = found[i]
        label[q] = number
        for j in range(x.shape[1]):
            sums[j] -= x[q, j]
        remove(x, q, tree)


@nb.njit(cache=True, nogil=True)
def _mdav(x, k, leaf):  # type: ignore[no-untyped-def]
    n, d = x.shape
    tree = build(x, leaf)
    stack = np.empty(128, np.int64)
    gaps, found = np.empty(k), np.empty(k, np.int64)
    label = np.full(n, -1, np.int64)
    sums = np.zeros(d)
    for i in range(n):
        for j in range(d):
            sums[j] += x[i, j]
    ref, ranked = np.empty(n), np.empty(n, np.int64)
    old = sums / n
    size = _rank_by_distance(x, label, old, ref, ranked)
    left, groups, head, work = n, 0, 0, 0
    while left >= 2 * k:
        center = sums / left
        if work > 4 * left:  # as much was spent on looking as a new ranking costs
            old, head, work = center, 0, 0
            size = _rank_by_distance(x, label, old, ref, ranked)
        r, head, seen = _farthest_from_center(x, label, center, old, ref, ranked, head, size)
        work += seen
        s = farthest(x, x[r], tree, stack) if left >= 3 * k else -1
        _take(x, x[r], k, tree, stack, gaps, found, label, groups, sums)
        groups, left = groups + 1, left - k
        if s >= 0:
            if label[s] >= 0:  # many equal records: s went with r
                s = farthest(x, x[r], tree, stack)
            _take(x, x[s], k, tree, stack, gaps, found, label, groups, sums)
            groups, left = groups + 1, left - k
    for i in range(n):
        if label[i] < 0:
            label[i] = groups
    return label


def mdav(x: FloatArray, k: int) -> IntArray:
    """Group number of each record by MDAV: groups of k, the last one up to 2k−1.

    x: records × (standardised) columns. References: Domingo-Ferrer and Mateo-Sanz (2002); Domingo-Ferrer and Torra (2005).

    >>> import numpy as np
    >>> mdav(np.array([[0.0], [10.0], [0.1], [10.1], [0.2], [10.2]]), 3).tolist()
    [0, 1, 0, 1, 0, 1]
    """
    if len(x) < 2 * k:
        return np.zeros(len(x), np.int64)
    return _mdav(np.ascontiguousarray(x, dtype=np.float64), k, LEAF)


@nb.njit(cache=True, nogil=True)
def _vmdav(x, k, gamma, leaf):  # type: ignore[no-untyped-def]
    n, d = x.shape
    tree = build(x, leaf)
    stack = np.empty(128, np.int64)
    gaps, found = np.empty(k), np.empty(k, np.int64)
    one_gap, one = np.empty(1), np.empty(1, np.int64)
    two_gap, two = np.empty(2), np.empty(2, np.int64)
    group = np.empty(2 * k, np.int64)
    label = np.full(n, -1, np.int64)
    sums = np.zeros(d)
    for i in range(n):
        for j in range(d):
            sums[j] += x[i, j]
    ref, ranked = np.empty(n), np.empty(n, np.int64)
    _rank_by_distance(x, label, sums / n, ref, ranked)  # the centre stays, so the ranking does too
    left, groups, head = n, 0, 0
    while left >= k:
        while label[ranked[head]] >= 0:
            head += 1
        _take(x, x[ranked[head]], k, tree, stack, gaps, found, label, groups, sums)
        group[:k] = found
        size, left = k, left - k
        while size < 2 * k - 1 and left > 0:
            inside, e = np.inf, -1
            for i in range(size):
                nearest(x, x[group[i]], tree, stack, one_gap, one)
                if one_gap[0] < inside:
                    inside, e = one_gap[0], one[0]
            outside = np.inf
            if left > 1:
                nearest(x, x[e], tree, stack, two_gap, two)
                outside = two_gap[0] if two[0] != e else two_gap[1]
            if np.sqrt(inside) >= gamma * np.sqrt(outside):
                break
            label[e] = groups
            remove(x, e, tree)
            group[size] = e
            size, left = size + 1, left - 1
        groups += 1
    return label, groups


def vmdav(x: FloatArray, k: int, gamma: float = 0.2) -> IntArray:
    """Group number of each record by V-MDAV: groups of k to 2k−1, which take in neighbours that lie closer to them than to others.

    gamma: how readily groups grow; 0.2 suits scattered data, about 1.1 clustered data. The up to k−1 records that remain join the group with
    the nearest centre. Reference: Solanas and Martínez-Ballesté (2006).

    >>> import numpy as np
    >>> vmdav(np.array([[0.0], [0.1], [0.2], [9.0], [9.1], [9.2], [9.3]]), 3, gamma=1.1).tolist()
    [0, 0, 0, 1, 1, 1, 1]
    """
    if len(x) < 2 * k:
        return np.zeros(len(x), np.int64)
    x = np.ascontiguousarray(x, dtype=np.float64)
    label, groups = _vmdav(x, k, gamma, LEAF)
    rest = np.flatnonzero(label < 0)
    if len(rest):
        inside = label >= 0
        size = np.bincount(label[inside], minlength=groups)
        centers = np.stack([np.bincount(label[inside], x[inside, j], groups) / size for j in range(x.shape[1])], axis=1)
        for r in rest:
            label[r] = int(((centers - x[r]) ** 2).sum(axis=1).argmin())
    return label


@nb.njit(cache=True, nogil=True)
def _shortest_path(x, k):  # type: ignore[no-untyped-def]
    n = len(x)
    s1, s2 = np.zeros(n + 1), np.zeros(n + 1)
    for i in range(n):
        s1[i + 1] = s1[i] + x[i]
        s2[i + 1] = s2[i] + x[i] * x[i]
    cost = np.full(n + 1, np.inf)
    cut = np.zeros(n + 1, np.int64)
    cost[0] = 0.0
    for j in range(k, n + 1):
        for i in range(max(0, j - 2 * k + 1), j - k + 1):
            t = s1[j] - s1[i]
            c = cost[i] + (s2[j] - s2[i]) - t * t / (j - i)
            if c < cost[j]:
                cost[j], cut[j] = c, i
    label = np.empty(n, np.int64)
    j, g = n, 0
    while j > 0:
        label[cut[j] : j] = g
        j, g = cut[j], g + 1
    return label


def optimal_univariate(x: FloatArray, k: int) -> IntArray:
    """Group number of each value in the partition with the least sum of squares: a shortest path over the sorted values.

    Reference: Hansen and Mukherjee (2003).

    >>> import numpy as np
    >>> groups = optimal_univariate(np.array([1.0, 9.0, 1.2, 9.1, 1.1, 9.2, 9.3]), 3)
    >>> groups.tolist()
    [1, 0, 1, 0, 1, 0, 0]
    """
    order = np.argsort(x, kind="stable")
    label = np.zeros(len(x), np.int64)
    if len(x) >= 2 * k:
        ranked = x[order].astype(np.float64)
        label[order] = _shortest_path(ranked - ranked.mean(), k)
    return label
