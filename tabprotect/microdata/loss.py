"""Information loss as users of microaggregation know it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.microdata.frames import checked, read
from tabprotect.microdata.verbs import numbers
from tabprotect.types import FloatArray, IntArray


def sum_of_squares(points: FloatArray, labels: IntArray) -> tuple[float, float]:
    """Sum of squares within groups (SSE) and in total (SST)."""
    if not len(points):
        return 0.0, 0.0
    _, place = np.unique(labels, return_inverse=True)
    size = np.bincount(place)
    within = sum(float(((x - (np.bincount(place, x) / size)[place]) ** 2).sum()) for x in points.T)
    return within, float(((points - points.mean(axis=0)) ** 2).sum())


@dataclass(frozen=True)
class Loss:
    """Sums of squares of standardised columns, IL% = 100·SSE/SST, and IL1s, the mean absolute change in units of √2·sd."""

    sse: float
    sst: float
    il1s: float

    @property
    def percent(self) -> float:
        """IL%: 0 for unchanged data, 100 when every value became the mean."""
        return 100.0 * self.sse / self.sst if self.sst > 0 else 0.0


def information_loss(
    original: Any, released: Any, *, columns: Sequence[str] | None = None, standardise: bool = True
) -> Loss:
    """SSE/SST (IL%) and IL1s of numeric columns between two files with the same records in the same order.

    Columns are standardised by the original's mean and standard deviation, so that units do not matter.

    >>> import pandas as pd, tabprotect as tp
    >>> a = pd.DataFrame({"x": [1.0, 2, 3, 4]})
    >>> round(tp.microdata.information_loss(a, pd.DataFrame({"x": [1.5, 1.5, 3.5, 3.5]})).percent, 6)
    20.0

    References: Domingo-Ferrer and Mateo-Sanz (2002); Mateo-Sanz, Sebé and Domingo-Ferrer (2004) for IL1s.
    """
    a, b = read(original), read(getattr(released, "data", released))
    if len(a) != len(b):
        raise InputError(f"{len(a)} original and {len(b)} released records; information loss compares record by record")
    names = [
        c
        for c in a.columns
        if c in b.columns and a.get_column(c).dtype.is_numeric() and b.get_column(c).dtype.is_numeric()
    ]
    names = names if columns is None else checked(b.columns, checked(a.columns, columns))
    sse = sst = moved = 0.0
    for name in names:
        x, y = numbers(a, name), numbers(b, name)
        spread = float(np.nanstd(x, ddof=1)) if len(x) > 1 else 0.0
        scale = spread if standardise and spread > 0 else 1.0
        sse += float(np.nansum(((x - y) / scale) ** 2))
        sst += float(np.nansum(((x - np.nanmean(x)) / scale) ** 2)) if len(x) else 0.0
        moved += float(np.nanmean(np.abs(x - y))) / (np.sqrt(2) * spread) if spread > 0 else 0.0
    return Loss(sse, sst, moved / len(names) if names else 0.0)
