"""What the attacker knows besides the published table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Knowledge:
    """What an outsider, or an insider, may know of the hidden cells.

    Parameters
    ----------
    lb, ub
        Bounds of the cells: one number or one per cell. None: the table's own.
    share
        Bounds as a share of the true value: 0.5 means the attacker knows every cell to within ±50 %.
    nonnegative
        True: nothing is below zero. False: that is not known. None: as the table's own bounds say.
    integer
        The values are whole numbers (counts), and the attacker uses it.
    zeros
        Cells (indices or mask) known to be zero: they must be zero in truth.
    coalitions
        Groups of respondents who pool what they know, each given by the cells (indices) in which they are the only
        contributors: they know those cells exactly. Each group attacks on its own; an interval is the narrowest any of them finds.
    singletons
        Every hidden cell with one contributor is a coalition of its own (contributors of one holding form one together).

    >>> Knowledge(lb=1).bounds(np.array([5.0, 2.0]), np.zeros(2), np.full(2, np.inf))[0].tolist()
    [1.0, 1.0]
    """

    lb: Any = None
    ub: Any = None
    share: float | None = None
    nonnegative: bool | None = None
    integer: bool = False
    zeros: Any = None
    coalitions: Sequence[Sequence[int]] = ()
    singletons: bool = False

    def __post_init__(self) -> None:
        if self.share is not None and not 0 <= self.share < np.inf:
            raise InputError(f"share must be a number ≥ 0, got {self.share}")

    def bounds(
        self, values: FloatArray, lb: FloatArray, ub: FloatArray, hidden: BoolArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bounds of all cells under this knowledge; ``values`` may be NaN where the truth is unknown.

        Bounds that the truth of a ``hidden`` cell contradicts are an error; published cells are known anyway.
        """
        n = len(values)
        low = lb.copy() if self.lb is None else _spread(self.lb, n, "lb")
        high = ub.copy() if self.ub is None else _spread(self.ub, n, "ub")
        if self.share is not None:
            if np.isnan(values).any():
                raise InputError(
                    "bounds as a share of the value need the true values: give absolute bounds lb and ub instead"
                )
            room = self.share * np.abs(values)
            low, high = np.maximum(low, values - room), np.minimum(high, values + room)
        if self.nonnegative is True:
            low = np.maximum(low, 0.0)
        elif self.nonnegative is False and self.lb is None:
            low = np.where(low == 0.0, -np.inf, low)
        if self.zeros is not None:
            low[self.zeros], high[self.zeros] = 0.0, 0.0
        truth = ~np.isnan(values)
        wrong = truth & ((values < low - 1e-9 * np.abs(low)) | (values > high + 1e-9 * np.abs(high)))
        if hidden is not None:
            wrong &= hidden
        if wrong.any():
            raise InputError(
                f"what the attacker is said to know is wrong for {int(wrong.sum())} cell(s), the first is cell {int(wrong.argmax())}: "
                "its value is outside the bounds"
            )
        return np.where(truth, np.minimum(low, values), low), np.where(truth, np.maximum(high, values), high)


def _spread(given: Any, n: int, name: str) -> FloatArray:
    array = np.asarray(given, float)
    if array.ndim == 0:
        return np.full(n, float(array))
    if array.shape != (n,):
        raise InputError(f"{name} must be one number or one per cell ({n}), got {array.size}")
    return array.copy()
