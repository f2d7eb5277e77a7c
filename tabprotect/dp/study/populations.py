"""Populations of the studies: the three shapes of the source, and age distributions (a seeded stand-in, or real ones
from a file).
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tabprotect.errors import InputError
from tabprotect.types import FloatArray

AGES = 86  # single years 0 to 84, and 85 and over
CLASSES = {86: 1, 18: 5, 9: 10}  # number of classes -> width in years


def shape(name: str, m: int) -> FloatArray:
    """The distributions of the source's first study: ``uniform``, ``increasing`` (p ∝ j) or ``normal`` (density at m
    points of [−3, 3]).

    >>> shape("increasing", 4).tolist()
    [0.1, 0.2, 0.3, 0.4]
    """
    weights = {
        "uniform": np.ones(m),
        "increasing": np.arange(1.0, m + 1),
        "normal": np.exp(-(np.linspace(-3.0, 3.0, m) ** 2) / 2.0),
    }.get(name)
    if weights is None:
        raise InputError(f"unknown shape {name!r}: use uniform, increasing or normal")
    return weights / weights.sum()


def ages(path: str | Path | None = None, seed: int = 2020) -> dict[str, FloatArray]:
    """Age distributions over 86 classes (0 to 84, 85+): columns of a CSV file (first column the age), or a made-up
    stand-in.

    The stand-in has the shape of the source's populations: an old country with the bulge of its baby boom and few
    children, a younger, flatter one, and two regions of the first that differ a little.

    >>> {name: p.size for name, p in ages().items()}
    {'country A': 86, 'country B': 86, 'capital region': 86, 'other regions': 86}
    """
    return _read(Path(path)) if path is not None else _stand_in(seed)


def classes(p: FloatArray, m: int) -> FloatArray:
    """Ages in m = 86 single years, 18 five-year or 9 ten-year classes, the last one open.

    >>> classes(np.ones(86) / 86, 9).round(3).tolist()
    [0.116, 0.116, 0.116, 0.116, 0.116, 0.116, 0.116, 0.116, 0.07]
    """
    if m not in CLASSES:
        raise InputError(f"ages come in {', '.join(map(str, CLASSES))} classes, not in {m}")
    group = np.minimum(np.arange(p.size) // CLASSES[m], m - 1)
    return np.asarray(np.bincount(group, weights=p, minlength=m), dtype=np.float64)


def _stand_in(seed: int) -> dict[str, FloatArray]:
    age = np.arange(AGES, dtype=float)

    def bump(centre: float, width: float) -> FloatArray:
        return np.exp(-(((age - centre) / width) ** 2) / 2.0)

    survival = 1.0 / (1.0 + np.exp((age - 80.0) / 6.0))
    ripple = np.exp(np.random.default_rng(seed).normal(0.0, 0.02, (2, AGES)))
    old = (0.45 + 0.45 * bump(50, 12) + 0.25 * bump(27, 5) - 0.12 * bump(3, 6)) * survival * ripple[0]
    young = (0.8 + 0.12 * bump(28, 7) + 0.12 * bump(58, 7)) * survival * ripple[1]
    old[-1], young[-1] = 2.5 * old[-2], 4.0 * young[-2]
    tilt = np.exp(0.10 * bump(33, 9) - 0.10 * bump(75, 12))
    capital, other = old * tilt, old / tilt
    names = ("country A", "country B", "capital region", "other regions")
    return {name: p / p.sum() for name, p in zip(names, (old, young, capital, other), strict=True)}


def _read(path: Path) -> dict[str, FloatArray]:
    if not path.is_file():
        raise InputError("no such file", file=path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    if len(rows) < 2 or len(rows[0]) < 3:
        raise InputError("a header, an age column and at least two populations are needed", file=path)
    sums: Mapping[str, FloatArray] = {name: np.zeros(AGES) for name in rows[0][1:]}
    for number, row in enumerate(rows[1:], start=2):
        try:
            age = int(row[0].strip().rstrip("+"))
            counts = [float(v) for v in row[1:]]
        except (ValueError, IndexError):
            raise InputError("an age and one number per population are needed", file=path, line=number) from None
        if age < 0 or len(counts) != len(sums) or any(not c >= 0 for c in counts):
            raise InputError("an age and one number from 0 on per population are needed", file=path, line=number)
        for name, count in zip(sums, counts, strict=True):
            sums[name][min(age, AGES - 1)] += count
    for name, total in sums.items():
        if total.sum() <= 0:
            raise InputError(f"population {name!r} is empty", file=path)
    return {name: p / p.sum() for name, p in sums.items()}
