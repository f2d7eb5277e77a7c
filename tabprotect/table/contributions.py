"""What is known of the respondents behind each cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tabprotect.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False, repr=False)
class Contributions:
    """Per cell: number of contributors, the largest contributions in descending order, and the total they are compared with.

    ``top`` is cells × k, zero where a cell has fewer contributors; ``weights`` are the sampling weights of the top contributors
    (None: all one). ``holdings`` is the same with every group of firms counted as one respondent. ``ids`` has the number
    of the respondent where a cell has just one (−1 otherwise), which is what singleton protection needs; `tabulate` makes it from the
    respondent's name, so that it is the same in all tables. ``asked`` (cells × k)
    tells which of the top contributors asked for protection (the request rule). ``total`` is the weighted sum when there are weights (then
    ``unweighted`` is the plain one), and the sum of absolute contributions when negative ones are ranked by size.
    """

    count: IntArray
    top: FloatArray
    total: FloatArray
    weights: FloatArray | None = None
    holdings: Contributions | None = None
    ids: IntArray | None = None
    asked: BoolArray | None = None
    unweighted: FloatArray | None = None

    def __repr__(self) -> str:
        # never the amounts: they are what has to be protected
        extra = [n for n in ("weights", "holdings", "ids", "asked") if getattr(self, n) is not None]
        return f"<Contributions: {len(self.count):,} cells, top {self.top.shape[1]}{', '.join(['', *extra])}>"

    def take(self, cells: Any) -> Contributions:
        """The contributions of some cells (indices or mask), in that order."""
        parts: dict[str, Any] = {}
        for field in fields(self):
            own = getattr(self, field.name)
            parts[field.name] = own if own is None else own.take(cells) if field.name == "holdings" else own[cells]
        return Contributions(**parts)

    @staticmethod
    def stack(parts: Sequence[Contributions]) -> Contributions:
        """The contributions of several tables one after the other; what one of them lacks is left out."""
        whole: dict[str, Any] = {}
        for field in fields(Contributions):
            own = [getattr(p, field.name) for p in parts]
            if any(o is None for o in own):
                whole[field.name] = None
            elif field.name == "holdings":
                whole[field.name] = Contributions.stack(own)
            elif own[0].ndim == 2:
                k = min(o.shape[1] for o in own)
                whole[field.name] = np.concatenate([o[:, :k] for o in own])
            else:
                whole[field.name] = np.concatenate(own)
        return Contributions(**whole)
