"""Compiled substitution of codes: one pass over the records, exact integer probabilities, no temporary arrays.

A kernel returns -1, or the position of the first code outside the domain. Probabilities are thresholds on 64-bit words.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from tabprotect.substitution.chacha import WORDS, refill

_u64 = np.uint64


@nb.njit(nogil=True, cache=True)
def uniform(codes, out, state, position, n, keep, width):  # type: ignore[no-untyped-def]
    """Keep the code when the word is below ``keep``; otherwise the word's multiple of ``width`` is the new code."""
    words = np.empty(WORDS, np.uint64)
    scale = 1.0 / np.float64(width)
    skip = position % 8
    for start in range(-skip, codes.size, WORDS):
        refill(words, state, (position + start) // 8)
        for i in range(max(start, 0), min(start + WORDS, codes.size)):
            code = np.int64(codes[i])
            if code < 0 or code >= n:
                return i
            word = words[i - start]
            rest = word - keep
            # a product with the reciprocal is several times faster than 64-bit division, and at most one off
            step = _u64(np.float64(rest) * scale)
            below = step * width
            step = step - _u64(below > rest) + _u64(below <= rest and rest - below >= width)
            out[i] = code if word < keep else np.int64(step)
    return -1


@nb.njit(nogil=True, cache=True)
def retention(codes, out, state, position, n, keep, cumulative):  # type: ignore[no-untyped-def]
    """Keep code k when a first word is below ``keep[k]``; otherwise a second word picks from one cumulative distribution."""
    words = np.empty(WORDS, np.uint64)
    skip = position % 8
    for start in range(-skip, 2 * codes.size, WORDS):
        refill(words, state, (position + start) // 8)
        first = max(start, 0)
        for i in range((first + 1) // 2, min(start + WORDS, 2 * codes.size) // 2):
            code = np.int64(codes[i])
            if code < 0 or code >= n:
                return i
            at = 2 * i - start
            out[i] = code if words[at] < keep[code] else _search(cumulative, 0, n, words[at + 1])
    return -1


@nb.njit(nogil=True, cache=True)
def columns(codes, out, state, position, n, indptr, indices, cumulative):  # type: ignore[no-untyped-def]
    """Search a word in the cumulative column of the code; columns are stored one after the other, zeros left out."""
    words = np.empty(WORDS, np.uint64)
    skip = position % 8
    for start in range(-skip, codes.size, WORDS):
        refill(words, state, (position + start) // 8)
        for i in range(max(start, 0), min(start + WORDS, codes.size)):
            code = np.int64(codes[i])
            if code < 0 or code >= n:
                return i
            out[i] = indices[_search(cumulative, indptr[code], indptr[code + 1], words[i - start])]
    return -1


@nb.njit(nogil=True, cache=True)
def _search(cumulative, low, high, word):  # type: ignore[no-untyped-def]
    """First position with word < cumulative[position]; the last one stands for the whole remaining probability."""
    high -= 1
    while low < high:
        middle = (low + high) // 2
        if word < cumulative[middle]:
            high = middle
        else:
            low = middle + 1
    return low
