"""Sums over classes, and the risk measures made of them.

All measures are sums, minima or maxima over classes. So the tallies of parts of a file (split by class) add up to that of the whole
file, which is how files larger than memory and Spark frames are measured.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import reduce

import numba as nb
import numpy as np

from tabprotect.microdata.classes import ClassTable, Sensitive
from tabprotect.types import FloatArray, IntArray

BINS = 21  # class sizes 1..20, and 21 or more

_MIN = {"k", "l", "entropy"}
_MAX = {"recursive", "t"}


@dataclass(frozen=True)
class Tally:
    """What θ1, θ2, θ3, k, l and t need, for one sensitive attribute.

    Names as in Cho, Kwon and Lee (2012): ``a2`` Σ f·1(r=0), ``b2`` the part of it with f ≥ 2, ``n_2`` the number n(2) of records whose removal makes a
    class agree; ``a3, b3, n_3`` the same for r ≤ c; ``F1, F2, F3`` the population records in the sample's classes of each kind;
    ``in_pairs`` is 2·n₂.
    """

    n: float = 0
    classes: float = 0
    n1: float = 0
    in_pairs: float = 0
    a2: float = 0
    b2: float = 0
    n_2: float = 0
    a3: float = 0
    b3: float = 0
    n_3: float = 0
    F1: float = 0
    F2: float = 0
    F3: float = 0
    k: float = np.inf
    l: float = np.inf
    entropy: float = np.inf
    recursive: float = -np.inf
    t: float = -np.inf
    histogram: tuple[int, ...] = (0,) * BINS

    def __add__(self, other: Tally) -> Tally:
        def join(name: str) -> object:
            x, y = getattr(self, name), getattr(other, name)
            if name == "histogram":
                return tuple(a + b for a, b in zip(x, y, strict=True))
            return min(x, y) if name in _MIN else max(x, y) if name in _MAX else x + y

        return Tally(**{f.name: join(f.name) for f in fields(self)})  # type: ignore[arg-type]

    def theta1_hat(self, p: float) -> float:
        """Skinner and Elliot's estimate of the chance that a unique match is a correct one."""
        return ratio(self.n1 * p, self.n1 * p + self.in_pairs * (1 - p))

    def theta2_hat(self, p: float) -> float:
        """The same for classes whose sensitive values agree."""
        return ratio(self.a2 * p, self.a2 * p + (self.b2 + self.n_2) * (1 - p))

    def theta3_hat(self, p: float) -> float:
        """The same for classes whose sensitive values lie within the tolerance."""
        return ratio(self.a3 * p, self.a3 * p + (self.b3 + self.n_3) * (1 - p))


def total(tallies: list[Tally]) -> Tally:
    """The tally of a file from those of its parts."""
    return reduce(Tally.__add__, tallies, Tally())


def ratio(part: float, whole: float) -> float:
    """A risk as a share of the possible matches; 0 where no match is possible (the source leaves such samples out as θ = 0)."""
    return float(part / whole) if whole > 0 else 0.0


def spread(table: ClassTable, values: FloatArray) -> FloatArray:
    """Range r of the sensitive values of every class; a missing value (−∞) is infinitely far from all but another missing value."""
    with np.errstate(invalid="ignore"):
        return np.where(table.high == table.low, 0.0, values[table.high] - values[table.low])


@nb.njit(cache=True, nogil=True)
def _gap(high, low, values):  # type: ignore[no-untyped-def]
    return 0.0 if high == low else values[high] - values[low]


@nb.njit(cache=True, nogil=True)
def _sums(size, own, distinct, low, low2, high2, high, values, c, people, known):  # type: ignore[no-untyped-def]
    """n, n1, in_pairs, a2, b2, n_2, a3, b3, n_3, F1, F2, F3 and the histogram of class sizes, in one pass.

    A class that does not agree contributes to n(2) the records whose removal makes it agree: both of two, or a lone smallest or largest one;
    to n(3) likewise for the tolerance. ``own / size`` is 1 unless missing keys match anything.
    """
    out = np.zeros(12)
    histogram = np.zeros(BINS, np.int64)
    for j in range(len(size)):
        f, mine = size[j], float(own[j])
        histogram[min(f, BINS) - 1] += 1
        out[0] += mine
        if f == 1:
            out[1] += mine
            out[9] += people[j] if known else 0
        elif f == 2:
            out[2] += mine
        if distinct[j] == 1:
            out[3] += mine
            out[10] += people[j] if known else 0
            if f > 1:
                out[4] += mine
        elif distinct[j] == 2:
            lone = 2 if f == 2 else (low2[j] == high[j]) + (high2[j] == low[j])
            out[5] += lone * mine / f
        if c < 0:
            continue
        if _gap(high[j], low[j], values) <= c:
            out[6] += mine
            out[11] += people[j] if known else 0
            if f > 1:
                out[7] += mine
        else:
            lone = 2 if f == 2 else (_gap(high[j], low2[j], values) <= c) + (_gap(high2[j], low[j], values) <= c)
            out[8] += lone * mine / f
    return out, histogram


def tally(
    table: ClassTable, sensitive: Sensitive | None, tolerance: float | None, population: IntArray | None = None
) -> Tally:
    """Sum a class table; ``population`` has the population frequency F_j of every class."""
    if not len(table):
        return Tally()
    values = None if sensitive is None else sensitive.values
    c = -1.0 if tolerance is None or values is None else float(tolerance)
    out, histogram = _sums(
        table.size, table.own, table.distinct, table.low, table.low2, table.high2, table.high,
        np.zeros(1) if values is None else values, c,
        np.zeros(1, np.int64) if population is None else population, population is not None,
    )  # fmt: skip
    n, n1, in_pairs, a2, b2, n_2, a3, b3, n_3, f1, f2, f3 = out.tolist()
    found = Tally(
        n=n, classes=len(table), n1=n1, in_pairs=in_pairs, F1=f1, k=float(table.size.min()), histogram=tuple(histogram.tolist())
    )  # fmt: skip
    if sensitive is None:
        return found
    return replace(
        found, a2=a2, b2=b2, n_2=n_2, a3=a3, b3=b3, n_3=n_3, F2=f2, F3=f3, l=float(table.distinct.min()),
        entropy=float(table.entropy.min()), recursive=float(table.recursive.max()), t=float(table.t.max()),
    )  # fmt: skip
