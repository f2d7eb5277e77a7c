"""Compiled search for boxes (see `boxes`): one chain of codes for each dimension, their product, its capacity and its price."""
# ruff: noqa: NPY002 - compiled code has no other generator than the legacy one

from __future__ import annotations

from typing import Any

import numba
import numpy as np

LONGEST = 24
"""Most codes in one chain; deeper hierarchies than about ten levels do not occur."""


@numba.njit(cache=True)
def plant(seed: int) -> None:
    """Seed the generator of compiled code, which is not numpy's own."""
    np.random.seed(seed)


@numba.njit(cache=True)
def _down(code: int, sign: int, start: Any, kids: Any, chain: Any, signs: Any, length: int) -> int:
    """Append a code and one code below it on every level down to a leaf."""
    while length < LONGEST:
        chain[length], signs[length] = code, sign
        length += 1
        many = start[code + 1] - start[code]
        if many == 0:
            return length
        code = kids[start[code] + np.random.randint(many)]
    return -1


@numba.njit(cache=True)
def draw_chain(code: int, parent: Any, start: Any, kids: Any, chain: Any, signs: Any) -> int:
    """A random movement of one dimension: up from the code some levels, then across to a sibling, both sides down to leaves."""
    length = _down(code, 1, start, kids, chain, signs, 0)
    at = code
    while length > 0:
        up = parent[at]
        if up < 0:
            return length
        many = start[up + 1] - start[up]
        if many > 1 and np.random.random() < 0.85:
            other = kids[start[up] + np.random.randint(many)]
            while other == at:
                other = kids[start[up] + np.random.randint(many)]
            return _down(other, -1, start, kids, chain, signs, length)
        if length >= LONGEST:
            return -1
        chain[length], signs[length] = up, 1
        length += 1
        at = up
    return -1


@numba.njit(cache=True)
def _measure(
    pick: Any, chains: Any, signs: Any, lengths: Any, strides: Any, grid: Any, up: Any, down: Any, used: Any, price: Any,
    both: bool, direction: int, best: float, cells: Any, flips: Any,
) -> tuple[float, float, int]:  # fmt: skip
    """Price and capacity of one product of chains; cells and signs go to the last two arrays. Price −1 where a cell is missing."""
    d = len(pick)
    total, cap, count = 0.0, np.inf, 0
    position = np.zeros(d, np.int64)
    while True:
        at, sign = 0, direction
        for k in range(d):
            at += chains[k, pick[k], position[k]] * strides[k]
            sign *= signs[k, pick[k], position[k]]
        cell = grid[at]
        if cell < 0 or count >= len(cells):
            return -1.0, 0.0, 0
        room = min(up[cell], down[cell]) if both else (up[cell] if sign > 0 else down[cell])
        room -= used[cell]
        cap = min(cap, room)
        total += price[cell]
        if cap <= 0 or total >= best:
            return -1.0, 0.0, 0
        cells[count], flips[count] = cell, sign
        count += 1
        k = d - 1
        while k >= 0:
            position[k] += 1
            if position[k] < lengths[k, pick[k]]:
                break
            position[k] = 0
            k -= 1
        if k < 0:
            return total, cap, count


@numba.njit(cache=True)
def find_boxes(
    codes: Any, level: float, both: bool, direction: int, options: int, tries: int, parents: Any, starts: Any, kids: Any,
    offsets: Any, kid_offsets: Any, strides: Any, grid: Any, up: Any, down: Any, used: Any, price: Any, cells: Any, steps: Any,
) -> int:  # fmt: skip
    """Boxes through one cell that together move it by ``level``: how many entries of ``cells`` and ``steps``, or −1.

    ``used`` is room taken by earlier boxes of the same move and is put back before returning; prices of cells taken are counted once.
    """
    d = len(codes)
    chains = np.zeros((d, options, LONGEST), np.int64)
    signs = np.zeros((d, options, LONGEST), np.int64)
    lengths = np.zeros((d, options), np.int64)
    limit = 4096
    now_cells, now_flips = np.zeros(limit, np.int64), np.zeros(limit, np.int64)
    best_cells, best_flips = np.zeros(limit, np.int64), np.zeros(limit, np.int64)
    pick = np.zeros(d, np.int64)
    written, left, done = 0, level, False
    for _ in range(tries):
        for k in range(d):
            for o in range(options):
                lengths[k, o] = draw_chain(
                    codes[k], parents[offsets[k] : offsets[k + 1]], starts[offsets[k] + k : offsets[k + 1] + k + 1],
                    kids[kid_offsets[k] :], chains[k, o], signs[k, o],
                )  # fmt: skip
        best, best_cap, best_count = np.inf, 0.0, 0
        pick[:] = 0
        while True:
            fine = True
            for k in range(d):
                fine = fine and lengths[k, pick[k]] > 0
            if fine:
                total, cap, count = _measure(
                    pick, chains, signs, lengths, strides, grid, up, down, used, price, both, direction,
                    best if best_cap >= left else np.inf, now_cells, now_flips,
                )  # fmt: skip
                if total >= 0 and cap > 1e-3 * level:
                    # a box that carries all beats one that does not; among the others, most carried for the price
                    whole = cap >= left
                    value = total if whole else (total + 1.0) * left / cap * 4.0
                    if value < best:
                        best, best_cap, best_count = value, cap, count
                        best_cells[:count] = now_cells[:count]
                        best_flips[:count] = now_flips[:count]
            k = d - 1
            while k >= 0:
                pick[k] += 1
                if pick[k] < options:
                    break
                pick[k] = 0
                k -= 1
            if k < 0:
                break
        if best_count == 0 or written + best_count > len(cells):
            continue
        step = min(left, best_cap)
        for i in range(best_count):
            cells[written + i] = best_cells[i]
            steps[written + i] = step * best_flips[i]
            used[best_cells[i]] += step
        written += best_count
        left -= step
        if left <= 1e-9 * level:
            done = True
            break
    for i in range(written):
        used[cells[i]] = 0.0
    return written if done else -1
