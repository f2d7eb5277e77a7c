"""Sums over classes, and the risk measures made of them.

All measures are sums, minima or maxima over classes. So the tallies of parts of a file (split by class) add up to that of the whole
file, which is how files larger than memory and Spark frames are measured.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import reduce

import numpy as np
import numpy.typing as npt

from tabprotect.microdata.classes import ClassTable, Sensitive
from tabprotect.types import BoolArray, FloatArray, IntArray

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


def spreads(table: ClassTable, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Ranges r, r⁽⁻¹⁾ and r⁽⁻ᶠ⁾ of every class: all values, without the smallest, without the largest.

    A missing value (−∞) is at distance 0 from another missing value and infinitely far from anything else.
    """

    def gap(high: npt.NDArray[np.int32], low: npt.NDArray[np.int32]) -> FloatArray:
        with np.errstate(invalid="ignore"):
            return np.where(high == low, 0.0, values[high] - values[low])

    return gap(table.high, table.low), gap(table.high, table.low2), gap(table.high2, table.low)


def alike(table: ClassTable) -> tuple[BoolArray, FloatArray]:
    """Which classes have one sensitive value, and how many records of each other class stand in the way of that: its part of n(2)."""
    same = table.distinct == 1
    two = table.distinct == 2
    lone = (table.low2 == table.high).astype(np.float64) + (table.high2 == table.low)
    return same, np.where(two, np.where(table.size == 2, 2.0, lone * (table.size >= 3)), 0.0)


def near(table: ClassTable, values: FloatArray, tolerance: float) -> tuple[BoolArray, FloatArray]:
    """Which classes lie within the tolerance, and each other class's part of n(3)."""
    r, without_low, without_high = spreads(table, values)
    close = r <= tolerance
    lone = (without_low <= tolerance).astype(np.float64) + (without_high <= tolerance)
    return close, np.where(close, 0.0, np.where(table.size == 2, 2.0, lone))


def tally(
    table: ClassTable, sensitive: Sensitive | None, tolerance: float | None, population: IntArray | None = None
) -> Tally:
    """Sum a class table; ``population`` has the population frequency F_j of every class."""
    size, own = table.size, table.own
    if not len(size):
        return Tally()
    one = size == 1
    many = size >= 2

    def records(mask: BoolArray) -> float:
        return float(own[mask].sum(dtype=np.int64))

    def people(mask: BoolArray) -> float:
        return 0.0 if population is None else float(population[mask].sum())

    found: dict[str, object] = {
        "n": float(own.sum(dtype=np.int64)),
        "classes": float(len(size)),
        "n1": records(one),
        "in_pairs": records(size == 2),
        "F1": people(one),
        "k": float(size.min()),
        "histogram": tuple(np.bincount(np.minimum(size, BINS), minlength=BINS + 1)[1:].tolist()),
    }
    if sensitive is not None:
        same, lone = alike(table)
        found |= {
            "a2": records(same), "b2": records(same & many), "n_2": float((lone * own / size).sum()), "F2": people(same),
            "l": float(table.distinct.min()), "entropy": float(table.entropy.min()),
            "recursive": float(table.recursive.max()), "t": float(table.t.max()),
        }  # fmt: skip
        if tolerance is not None and sensitive.values is not None:
            close, lone = near(table, sensitive.values, tolerance)
            found |= {
                "a3": records(close), "b3": records(close & many), "n_3": float((lone * own / size).sum()), "F3": people(close),
            }  # fmt: skip
    return Tally(**found)  # type: ignore[arg-type]
