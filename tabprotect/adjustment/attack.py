"""What an outsider learns from an adjusted table who knows the method and the rule.

The outsider sees the adjusted values x and knows the relations and the bounds of the table. Three degrees of knowledge:

- the method alone: every cell may have moved, so the true table is any table within the bounds that adds up (`adjustment_intervals`);
- the method and the office's statement of quality, "no other cell moved by more than the share c" (``accuracy=c``): the other cells become narrow intervals, and the relations may
  then narrow the sensitive ones too;
- the method, the levels and the belief that sensitive cells move exactly as far as they must (`guesses`): then each has two possible values, x − rise and x + fall, and only one
  when the other is outside the bounds. This is the known weakness of minimum-distance adjustment; it is reported, not hidden.
"""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np

from tabprotect.adjustment.problem import moves_needed
from tabprotect.attacker.ranges import Needs, ranges
from tabprotect.errors import InputError
from tabprotect.protected import Protected
from tabprotect.solve.stop import Stop
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, FloatArray, IntArray


def adjustment_intervals(
    res: Protected,
    *,
    accuracy: float | None = None,
    cells: BoolArray | None = None,
    time_limit: float | None = None,
    executor: Executor | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper end of what can be inferred of the sensitive cells (or of ``cells``); the others get what is known of them alone.

    >>> import tabprotect as tp
    >>> res = tp.adjust(tp.examples.d272().mark(tp.rules.Threshold(2)))
    >>> lower, upper = adjustment_intervals(res, accuracy=0.2)
    >>> bool((lower <= res.table.values).all() and (res.table.values <= upper).all())
    True
    """
    table = res.table
    low, high = _room(table, res.values, accuracy)
    chosen = table.primary if cells is None else cells
    everything = np.where(chosen, np.inf, 0.0)
    needs = Needs(everything, everything, np.zeros(table.n_cells))
    down, up = table.values - low, high - table.values
    found = ranges(
        table.relations, (down > 0) | (up > 0), down, up, needs=needs, stop=Stop(time_limit), executor=executor
    )
    known = chosen & found.proved
    return np.where(known, table.values - found.down, low), np.where(known, table.values + found.up, high)


def _room(table: Table, values: FloatArray, accuracy: float | None) -> tuple[FloatArray, FloatArray]:
    """What is known of each cell alone; the truth is always inside."""
    low, high = np.array(table.lb), np.array(table.ub)
    if accuracy is not None:
        if not accuracy >= 0:
            raise InputError(f"accuracy must be a share, e.g. 0.05, not {accuracy!r}")
        # |x − a| ≤ c·a, seen from x
        other = ~table.primary
        least = np.minimum(values / (1 + accuracy), values / max(1 - accuracy, 1e-12))
        most = np.maximum(values / (1 + accuracy), values / max(1 - accuracy, 1e-12))
        low[other] = np.maximum(low, least)[other]
        high[other] = np.minimum(high, most)[other]
    return np.minimum(low, table.values), np.maximum(high, table.values)


@dataclass(frozen=True, eq=False)
class Guesses:
    """What a guesser gets who takes every sensitive cell to have moved exactly by its level.

    ``cells`` are the sensitive cells, ``minimal`` those that did move exactly so, ``single`` those of them for which only one of the two candidates lies within the bounds.
    """

    cells: IntArray
    minimal: BoolArray
    single: BoolArray

    def summary(self) -> str:
        return (
            f"{int(self.minimal.sum()):,} of {len(self.cells):,} sensitive cells moved exactly by their level; a guesser who knows the levels has "
            f"two candidates for {int((self.minimal & ~self.single).sum()):,} of them and one for {int(self.single.sum()):,}"
        )


def guesses(table: Table, values: FloatArray) -> Guesses:
    """The guesser who knows the levels."""
    cells = np.flatnonzero(table.primary)
    rise, fall = moves_needed(table)
    x, moved = values[cells], values[cells] - table.values[cells]
    close = 1e-6 * np.maximum(rise, fall)
    minimal = (np.abs(moved - rise) <= close) | (np.abs(moved + fall) <= close)
    from_below = x - rise >= table.lb[cells] - close
    from_above = x + fall <= table.ub[cells] + close
    return Guesses(cells, minimal, minimal & (from_below != from_above))
