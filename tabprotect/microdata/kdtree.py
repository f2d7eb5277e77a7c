"""A kd-tree that forgets points, and shrinks its boxes as they leave: compiled, for searches between removals.

A tree is a tuple (order, home, start, alive, low, high, depth): leaves own slices of ``order``, node i has children 2i+1 and 2i+2.
"""

from __future__ import annotations

import numba as nb
import numpy as np

LEAF = 12


@nb.njit(cache=True, nogil=True)
def build(x, leaf):  # type: ignore[no-untyped-def]
    """A balanced tree: node i has children 2i+1 and 2i+2; leaves own a slice of ``order``; returns also each record's leaf."""
    n, d = x.shape
    depth = 0
    while (n >> depth) > leaf:
        depth += 1
    nodes = (1 << (depth + 1)) - 1
    start = np.zeros(nodes, np.int64)
    alive = np.zeros(nodes, np.int64)
    low = np.full((nodes, d), np.inf)
    high = np.full((nodes, d), -np.inf)
    order = np.arange(n)
    home = np.empty(n, np.int64)
    alive[0] = n
    for node in range(nodes):
        s, c = start[node], alive[node]
        for i in range(s, s + c):
            for j in range(d):
                low[node, j] = min(low[node, j], x[order[i], j])
                high[node, j] = max(high[node, j], x[order[i], j])
        if 2 * node + 1 < nodes:
            wide = 0
            for j in range(1, d):
                if high[node, j] - low[node, j] > high[node, wide] - low[node, wide]:
                    wide = j
            part = order[s : s + c].copy()
            order[s : s + c] = part[np.argsort(x[part, wide], kind="mergesort")]
            half = c // 2
            start[2 * node + 1], alive[2 * node + 1] = s, half
            start[2 * node + 2], alive[2 * node + 2] = s + half, c - half
        else:
            for i in range(s, s + c):
                home[order[i]] = node
    return order, home, start, alive, low, high, depth


@nb.njit(cache=True, nogil=True)
def remove(x, r, tree):  # type: ignore[no-untyped-def]
    """Forget a record, and shrink the boxes on the way up as far as they change."""
    order, home, start, alive, low, high, _ = tree
    d = x.shape[1]
    node = home[r]
    s, c = start[node], alive[node]
    for i in range(s, s + c):
        if order[i] == r:
            order[i] = order[s + c - 1]
            break
    alive[node] = c - 1
    touched = False
    for j in range(d):
        if x[r, j] <= low[node, j] or x[r, j] >= high[node, j]:
            touched = True
    if touched:
        for j in range(d):
            a, b = np.inf, -np.inf
            for i in range(s, s + c - 1):
                a, b = min(a, x[order[i], j]), max(b, x[order[i], j])
            low[node, j], high[node, j] = a, b
    while node > 0:
        node = (node - 1) // 2
        alive[node] -= 1
        if touched:
            touched = False
            for j in range(d):
                a = min(low[2 * node + 1, j], low[2 * node + 2, j])
                b = max(high[2 * node + 1, j], high[2 * node + 2, j])
                if a != low[node, j] or b != high[node, j]:
                    low[node, j], high[node, j], touched = a, b, True


@nb.njit(cache=True, nogil=True)
def farthest(x, p, tree, stack):  # type: ignore[no-untyped-def]
    """The record farthest from a point; the first one among equals, as a scan would find it."""
    order, _, start, alive, low, high, depth = tree
    d = x.shape[1]
    first_leaf = (1 << depth) - 1
    best, who = -1.0, -1
    top = 1
    stack[0] = 0
    while top:
        top -= 1
        node = stack[top]
        if alive[node] == 0:
            continue
        far = 0.0
        for j in range(d):
            g = max(high[node, j] - p[j], p[j] - low[node, j])
            far += g * g
        if far < best:
            continue
        if node >= first_leaf:
            for i in range(start[node], start[node] + alive[node]):
                r = order[i]
                g = 0.0
                for j in range(d):
                    g += (x[r, j] - p[j]) ** 2
                if g > best or (g == best and r < who):
                    best, who = g, r
            continue
        # the child whose box reaches farther goes on top of the stack, so that the bound grows early
        a, b = 2 * node + 1, 2 * node + 2
        fa, fb = 0.0, 0.0
        for j in range(d):
            g = max(high[a, j] - p[j], p[j] - low[a, j])
            fa += g * g
            g = max(high[b, j] - p[j], p[j] - low[b, j])
            fb += g * g
        if fa > fb:
            stack[top], stack[top + 1] = b, a
        else:
            stack[top], stack[top + 1] = a, b
        top += 2
    return who


@nb.njit(cache=True, nogil=True)
def nearest(x, p, tree, stack, gaps, found):  # type: ignore[no-untyped-def]
    """Fill ``found`` with the nearest records to a point, nearest first, lower index first among equals; returns how many."""
    order, _, start, alive, low, high, depth = tree
    d, want = x.shape[1], len(found)
    first_leaf = (1 << depth) - 1
    have = 0
    top = 1
    stack[0] = 0
    while top:
        top -= 1
        node = stack[top]
        if alive[node] == 0:
            continue
        near = 0.0
        for j in range(d):
            g = max(low[node, j] - p[j], p[j] - high[node, j], 0.0)
            near += g * g
        if have == want and near > gaps[want - 1]:
            continue
        if node >= first_leaf:
            for i in range(start[node], start[node] + alive[node]):
                r = order[i]
                g = 0.0
                for j in range(d):
                    g += (x[r, j] - p[j]) ** 2
                if have == want and (g > gaps[have - 1] or (g == gaps[have - 1] and r > found[have - 1])):
                    continue
                at = have if have < want else want - 1
                while at > 0 and (gaps[at - 1] > g or (gaps[at - 1] == g and found[at - 1] > r)):
                    gaps[at], found[at] = gaps[at - 1], found[at - 1]
                    at -= 1
                gaps[at], found[at] = g, r
                have = min(have + 1, want)
            continue
        a, b = 2 * node + 1, 2 * node + 2
        fa, fb = 0.0, 0.0
        for j in range(d):
            g = max(low[a, j] - p[j], p[j] - high[a, j], 0.0)
            fa += g * g
            g = max(low[b, j] - p[j], p[j] - high[b, j], 0.0)
            fb += g * g
        if fa < fb:
            stack[top], stack[top + 1] = b, a
        else:
            stack[top], stack[top + 1] = a, b
        top += 2
    return have
