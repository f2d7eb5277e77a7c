"""Compiled loops of the bootstrap: multinomial counts, noise by its law, clamping or projection, and the statistic.

All of this is simulation, with a seeded numpy generator; releases of real data take their noise from OpenDP
(`mechanism.py`).
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

LAPLACE, DISCRETE, GAUSSIAN, NONE = 0, 1, 2, 3
CLAMP, PROJECT = 0, 1
SUMS, SIZES, KNOWN = 0, 1, 2
BLOCK = 64  # replicates drawn together: enough for vector code, few enough to stay in the cache

_INVERSE = np.concatenate([[0.0], 1.0 / np.arange(1, 4096)])
_STIRLING = np.array(
    [
        0.08106146679532726,
        0.04134069595540929,
        0.02767792568499834,
        0.02079067210376509,
        0.01664469118982119,
        0.01387612882307075,
        0.01189670994589177,
        0.01041126526197209,
        0.009255462182712733,
        0.008330563433362871,
    ]
)


@nb.njit(cache=True, error_model="numpy")
def _step(s0: Any, s1: Any, s2: Any, s3: Any) -> Any:
    """The next state of xoshiro256+ (Blackman & Vigna, ACM Trans. Math. Softw. 47, 2021)."""
    t = s1 << np.uint64(17)
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= t
    return s0, s1, s2, (s3 << np.uint64(45)) | (s3 >> np.uint64(19))


@nb.njit(cache=True, error_model="numpy")
def _uniform(state: Any) -> float:
    """A uniform number in [0, 1), from the upper 53 bits: the draws do not depend on numpy's version."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    word = s0 + s3
    state[0], state[1], state[2], state[3] = _step(s0, s1, s2, s3)
    return float(word >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@nb.njit(cache=True, error_model="numpy")
def _fill(state: Any, out: Any) -> None:
    """The next uniform numbers, the same as one by one: the state stays in registers for the whole loop."""
    s0, s1, s2, s3 = state[0], state[1], state[2], state[3]
    for i in range(out.size):
        out[i] = float((s0 + s3) >> np.uint64(11)) * (1.0 / 9007199254740992.0)
        s0, s1, s2, s3 = _step(s0, s1, s2, s3)
    state[0], state[1], state[2], state[3] = s0, s1, s2, s3


@nb.njit(cache=True, error_model="numpy")
def _stirling(k: float) -> float:
    """log k! minus Stirling's formula at k + 1 (Hörmann's correction term)."""
    r = 1.0 / (k + 1.0)
    if k < 10.0:
        return _STIRLING[int(k)]
    return (1.0 / 12 - (1.0 / 360 - r * r / 1260) * r * r) * r


@nb.njit(cache=True, error_model="numpy")
def _few(state: Any, n: float, p: float, log_q: float) -> float:
    """Binomial count of a small mean, by inversion."""
    odds = p / (1.0 - p)
    left = np.exp(n * log_q)
    u, k = _uniform(state), 0
    while u > left and k < n:
        u -= left
        k += 1
        inverse = _INVERSE[k] if k < 4096 else 1.0 / k
        left *= odds * (n - k + 1.0) * inverse
    return float(k)


@nb.njit(cache=True, error_model="numpy")
def _many(state: Any, n: float, p: float, v: float) -> float:
    """Binomial count of a mean of ten or more, p ≤ ½, by transformed rejection; ``v`` is the first uniform number.

    Hörmann, "The generation of binomial random variates", J. Statist. Comput. Simul. 46 (1993), algorithm BTRD.
    """
    variance = n * p * (1.0 - p)
    deviation = np.sqrt(variance)
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_r = 0.92 - 4.2 / b
    while True:
        if v <= 0.86 * v_r:
            u = v / v_r - 0.43
            return np.floor((2.0 * a / (0.5 - abs(u)) + b) * u + c)
        if v >= v_r:
            u = _uniform(state) - 0.5
        else:
            u = v / v_r - 0.93
            u = (0.5 if u > 0.0 else -0.5) - u
            v = _uniform(state) * v_r
        us = 0.5 - abs(u)
        k = np.floor((2.0 * a / us + b) * u + c)
        if 0.0 <= k <= n:
            v *= (2.83 + 5.1 / b) * deviation / (a / (us * us) + b)
            if _accept(v, k, n, p, variance):
                return k
        v = _uniform(state)


@nb.njit(cache=True, error_model="numpy")
def _accept(v: float, k: float, n: float, p: float, variance: float) -> bool:
    """Whether v ≤ P(k)/P(mode): by the recursion near the mode, by squeezes further out, by logarithms at last."""
    odds = p / (1.0 - p)
    m = np.floor((n + 1.0) * p)
    far = abs(k - m)
    if far <= 15.0:
        f, step = 1.0, (n + 1.0) * odds
        for i in range(int(min(k, m)) + 1, int(max(k, m)) + 1):
            f *= step * (_INVERSE[i] if i < 4096 else 1.0 / i) - odds
        return v <= f if k > m else v * f <= 1.0
    log_v = np.log(v)
    middle = -far * far / (2.0 * variance)
    margin = (far / variance) * (((far / 3.0 + 0.625) * far + 1.0 / 6.0) / variance + 0.5)
    if log_v < middle - margin:
        return True
    if log_v > middle + margin:
        return False
    return log_v <= (
        (m + 0.5) * np.log((m + 1.0) / (odds * (n - m + 1.0)))
        + (n + 1.0) * np.log((n - m + 1.0) / (n - k + 1.0))
        + (k + 0.5) * np.log(odds * (n - k + 1.0) / (k + 1.0))
        + _stirling(m)
        + _stirling(n - m)
        - _stirling(k)
        - _stirling(n - k)
    )


@nb.njit(cache=True, error_model="numpy")
def _binomials(state: Any, left: Any, p: float, out: Any) -> None:
    """Binomial counts out of ``left[b]`` each, taken off ``left``.

    The easy four fifths of the draws are one straight loop without branches, which the compiler turns into vector
    code; what that loop cannot settle is done one by one.
    """
    small = min(p, 1.0 - p)
    if small <= 0.0:
        for i in range(out.size):
            out[i] = left[i] if p > 0.5 else 0.0
    elif left.min() * small < 10.0:
        log_q = np.log1p(-small)
        for i in range(out.size):
            if left[i] * small < 10.0:
                out[i] = _few(state, left[i], small, log_q)
            else:
                out[i] = _many(state, left[i], small, _uniform(state))
    else:
        first = np.empty(out.size)
        _fill(state, first)
        spread = small * (1.0 - small)
        for i in range(out.size):
            b = 1.15 + 2.53 * np.sqrt(left[i] * spread)
            v_r = 0.92 - 4.2 / b
            u = first[i] / v_r - 0.43
            a = 2.0 * (-0.0873 + 0.0248 * b + 0.01 * small)
            k = np.floor((a / (0.5 - abs(u)) + b) * u + (left[i] * small + 0.5))
            out[i] = k if u <= 0.43 else -1.0
        for i in range(out.size):
            if out[i] < 0.0:
                out[i] = _many(state, left[i], small, first[i])
    if p > 0.5 and small > 0.0:
        for i in range(out.size):
            out[i] = left[i] - out[i]
    for i in range(out.size):
        left[i] -= out[i]


@nb.njit(cache=True, error_model="numpy")
def add_noise(state: Any, law: int, scale: float, accept: Any, alias: Any, out: Any) -> None:
    """Add independent draws: Laplace and discrete Laplace by inversion, discrete Gaussian by the alias method."""
    uniform = np.empty(out.size)
    if law == LAPLACE:
        _fill(state, uniform)
        for i in range(out.size):
            u = uniform[i] - 0.5
            size = scale * np.log(1.0 - 2.0 * abs(u))
            out[i] += size if u < 0.0 else -size
    elif law == DISCRETE:
        # P(|Z| ≥ k) = 2ρᵏ/(1 + ρ) with ρ = exp(−1/scale)
        factor = (1.0 + np.exp(-1.0 / scale)) / 2.0
        _fill(state, uniform)
        for i in range(out.size):
            u = uniform[i] - 0.5
            size = max(0.0, np.floor(-scale * np.log(factor * (1.0 - 2.0 * abs(u)))))
            out[i] += size if u >= 0.0 else -size
    elif law == GAUSSIAN and accept.size > 0:
        _fill(state, uniform)
        for i in range(out.size):
            u = uniform[i] * accept.size
            k = int(u)
            out[i] += (k if u - k < accept[k] else alias[k]) - accept.size // 2
    elif law == GAUSSIAN:  # so wide that the rounded normal law is the same; Box and Muller
        for i in range(out.size):
            r = np.sqrt(-2.0 * np.log(1.0 - _uniform(state)))
            out[i] += np.rint(scale * r * np.cos(2.0 * np.pi * _uniform(state)))


@nb.njit(cache=True, error_model="numpy")
def project_simplex(y: Any, work: Any) -> None:
    """Nearest non-negative vector with the same sum (or zero, if the sum is negative), in place."""
    total = 0.0
    for j in range(y.size):
        work[j] = y[j]
        total += y[j]
    if total <= 0.0:
        y[:] = 0.0
        return
    work.sort()
    running, shift = 0.0, 0.0
    for j in range(y.size):
        running += work[y.size - 1 - j]
        step = (running - total) / (j + 1)
        if work[y.size - 1 - j] - step <= 0.0:
            break
        shift = step
    for j in range(y.size):
        y[j] = max(0.0, y[j] - shift)


@nb.njit(cache=True, error_model="numpy")
def draw(
    state: Any, size: float, shares: Any, law: int, scale: float, accept: Any, alias: Any, post: int, y: Any
) -> None:
    """A block of noisy histograms, one per column of ``y``; ``shares[j]`` is p_j / (p_j + p_{j+1} + …)."""
    left = np.full(y.shape[1], size)
    for j in range(y.shape[0]):
        _binomials(state, left, shares[j], y[j])
        add_noise(state, law, scale, accept, alias, y[j])
        if post == CLAMP:
            for b in range(y.shape[1]):
                y[j, b] = max(0.0, y[j, b])
    if post == PROJECT:
        one, work = np.empty(y.shape[0]), np.empty(y.shape[0])
        for b in range(y.shape[1]):
            one[:] = y[:, b]
            project_simplex(one, work)
            y[:, b] = one


@nb.njit(cache=True, error_model="numpy")
def statistics(y: Any, sizes: Any, p: Any, form: int, out: Any) -> None:
    """Pearson's ΣΣ(y − E)²/E over the cells with E > 0 of a block of histograms ``y[histogram, class, replicate]``.

    ``form`` says what E is made of: the sums of the noisy histograms, given sizes, or known probabilities.
    """
    k, m, width = y.shape
    n, everything, column = np.zeros((k, width)), np.zeros(width), np.empty(width)
    for i in range(k):
        if form == SIZES:
            n[i, :] = sizes[i]
        else:
            for j in range(m):
                for b in range(width):
                    n[i, b] += y[i, j, b]
        everything += n[i]
    out[:] = 0.0
    for j in range(m):
        column[:] = 0.0
        for i in range(k):
            for b in range(width):
                column[b] += y[i, j, b]
        for b in range(width):
            column[b] = p[j] if form == KNOWN else column[b] / everything[b]
        for i in range(k):
            for b in range(width):
                e = n[i, b] * column[b]
                d = y[i, j, b] - e
                out[b] += d * d / e if e > 0.0 else 0.0


@nb.njit(cache=True, error_model="numpy", nogil=True)
def bootstrap(
    state: Any,
    p: Any,
    shares: Any,
    sizes: Any,
    laws: Any,
    scales: Any,
    accept: Any,
    alias: Any,
    starts: Any,
    post: int,
    form: int,
    observed: float,
    enough: int,
    out: Any,
) -> tuple[int, int]:
    """Statistics of simulated histograms into ``out``; stops early once ``enough`` of them exceed the observed one.

    Returns how many exceed it and how many were drawn.
    """
    k, m = sizes.size, p.size
    above, start = 0, 0
    while start < out.size:
        stop = min(out.size, start + BLOCK)
        y = np.empty((k, m, stop - start))
        for i in range(k):
            a, z = starts[i], starts[i + 1]
            draw(state, sizes[i], shares, laws[i], scales[i], accept[a:z], alias[a:z], post, y[i])
        statistics(y, sizes, p, form, out[start:stop])
        for b in range(start, stop):
            if out[b] > observed:
                above += 1
                if above >= enough:
                    return above, b + 1
        start = stop
    return above, out.size


@nb.njit(cache=True, error_model="numpy")
def alias_table(weights: Any, accept: Any, alias: Any) -> None:
    """Vose's alias tables of a discrete distribution, in place."""
    n = weights.size
    small, large = np.empty(n, np.int64), np.empty(n, np.int64)
    s, g = 0, 0
    scaled = weights * (n / weights.sum())
    for i in range(n):
        accept[i], alias[i] = 1.0, i
        if scaled[i] < 1.0:
            small[s] = i
            s += 1
        else:
            large[g] = i
            g += 1
    while s > 0 and g > 0:
        s -= 1
        i, j = small[s], large[g - 1]
        accept[i], alias[i] = scaled[i], j
        scaled[j] -= 1.0 - scaled[i]
        if scaled[j] < 1.0:
            g -= 1
            small[s] = j
            s += 1
