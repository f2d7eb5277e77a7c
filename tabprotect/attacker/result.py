"""What an attack found."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from tabprotect.attacker.certificate import Certificate
from tabprotect.files import write_text
from tabprotect.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Attack:
    """The attacker's interval of every hidden cell, and whether that honours the protection levels.

    ``cells`` are the hidden cells (indices, ascending), ``lower`` and ``upper`` their intervals, ``proved`` whether both ends are exact (an end that
    was only attained when the time ran out, or that was not needed for the verdict, is inside the true interval, so that "safe" stays
    true). ``fails`` says per hidden cell which requirement is missed ("LPL", "UPL", "SPL", or several). ``safe`` is true when no primary cell fails; for a table found without
    true values, when no cell can be recovered exactly. Nothing here is more than an outsider can compute from what is published.
    """

    cells: IntArray
    lower: FloatArray
    upper: FloatArray
    proved: BoolArray
    fails: npt.NDArray[np.str_]
    recovered: tuple[int, ...]
    exposed: tuple[int, ...]
    safe: bool
    goal: str
    runtime: float
    certificate: Certificate | None = None
    labels: Any = None
    info: dict[str, Any] = field(default_factory=dict)
    source: Any = None
    dims: Any = ()
    codes: Any = None
    shown: FloatArray | None = None

    @cached_property
    def intervals(self) -> pd.DataFrame:
        """One row per hidden cell in cell order: its codes, lower, upper, width, whether it is recovered exactly, and what fails."""
        import pandas as pd

        columns: dict[str, Any] = {"cell": self.cells}
        for name, codes in (self.labels or {}).items():
            columns[name] = codes
        columns |= {
            "lower": self.lower,
            "upper": self.upper,
            "width": self.upper - self.lower,
            "recovered": np.isin(self.cells, self.recovered),
            "fails": self.fails,
            "proved": self.proved,
        }
        return pd.DataFrame(columns)

    def summary(self) -> str:
        """A few lines for people."""
        hidden = len(self.cells)
        lines = [
            f"{hidden:,} hidden cells, {len(self.recovered):,} recovered exactly",
            "SAFE: every protection level is honoured"
            if self.safe
            else f"NOT SAFE: {len(self.exposed):,} cells exposed",
        ]
        for cell in self.exposed[:10]:
            k = int(np.searchsorted(self.cells, cell))
            where = ", ".join(f"{n}={c[k]}" for n, c in (self.labels or {}).items()) or f"#{cell}"
            lines.append(
                f"  {where}: [{self.lower[k]:.10g}, {self.upper[k]:.10g}] fails {self.fails[k] or 'recovered exactly'}"
            )
        if len(self.exposed) > 10:
            lines.append(f"  … and {len(self.exposed) - 10:,} more")
        return "\n".join(lines)

    @overload
    def to_html(self, path: str | Path) -> Path: ...
    @overload
    def to_html(self, path: None = None) -> str: ...
    def to_html(self, path: str | Path | None = None) -> Path | str:
        """Write a one-file page, the table with the attacker's intervals, or return it as text without a path."""
        from tabprotect.report.html import attack_page

        text = attack_page(self)
        return text if path is None else write_text(path, text)

    def plot(self, *, confidential: bool = False) -> Figure:
        """The intervals as bars; ``confidential=True`` adds true values and what protection needs."""
        from tabprotect.report.plots import intervals

        return intervals(self, confidential=confidential)

    def _repr_html_(self) -> str:
        from tabprotect.report.html import attack_fragment

        return attack_fragment(self)

    def __repr__(self) -> str:
        verdict = "safe" if self.safe else f"{len(self.exposed):,} exposed"
        return f"<Attack: {len(self.cells):,} hidden cells, {len(self.recovered):,} recovered exactly, {verdict}>"
