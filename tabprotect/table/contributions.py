"""What is known of the respondents behind each cell."""

from __future__ import annotations

from dataclasses import dataclass

from tabprotect.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class Contributions:
    """Per cell: number of contributors, the largest contributions in descending order, and the total they are compared with.

    ``top`` is cells × k, zero where a cell has fewer contributors; ``weights`` are the sampling weights of the top contributors
    (None: all one). ``holdings`` is the same with every group of firms counted as one respondent. ``ids`` are the respondents'
    numbers in the cell when there is just one of them (−1 otherwise), which is what singleton protection needs. ``asked`` (cells × k)
    tells which of the top contributors asked for protection (the request rule).
    """

    count: IntArray
    top: FloatArray
    total: FloatArray
    weights: FloatArray | None = None
    holdings: Contributions | None = None
    ids: IntArray | None = None
    asked: BoolArray | None = None
