"""The one result type of all table methods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tabprotect.errors import Unsafe
from tabprotect.files import write_text
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, FloatArray

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from tabprotect.report.style import Symbols


@dataclass(frozen=True, eq=False, repr=False)
class Protected:
    """A protected table: what may be published, what it cost, and how far from the best possible it is at most.

    ``kind`` is ``suppress``, ``round`` or ``adjust``; ``values`` are the released values in cell order (NaN where hidden); ``status`` is
    ``optimal`` (proved) or ``feasible``; ``bound`` a lower bound of ``objective``. ``table`` is the true table and stays inside the office: nothing
    of its hidden values is shown by this object's repr, summary or reports.
    """

    table: Table
    kind: str
    method: str
    values: FloatArray
    suppressed: BoolArray
    status: str
    objective: float
    bound: float
    runtime: float
    certificate: Any = None
    info: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("values", "suppressed"):
            array = getattr(self, name).view()
            array.flags.writeable = False
            object.__setattr__(self, name, array)

    @property
    def gap(self) -> float:
        """(objective − bound) / objective; 0 when proved optimal."""
        if self.objective <= self.bound:
            return 0.0
        return (self.objective - self.bound) / max(abs(self.objective), 1e-300)

    @property
    def secondary(self) -> BoolArray:
        """Cells hidden to protect others."""
        return self.suppressed & ~self.table.primary

    def _refuse_unsafe(self) -> None:
        if self.status == "unsafe":
            raise Unsafe(
                "this table is the unprotected baseline (method 'none'): it leaks and cannot be published",
                cells=self.info.get("exposed", ()),
            )

    def publish(self, symbol: str | None = None) -> pd.DataFrame:
        """The table as it may be published: codes and released values, NaN (or ``symbol``) where hidden; no other information."""
        import pandas as pd

        self._refuse_unsafe()
        columns: dict[str, Any] = {}
        for k, dim in enumerate(self.table.dims):
            columns[dim.name] = pd.Categorical.from_codes(self.table.codes[:, k], categories=list(dim.codes))
        if not self.table.dims:
            columns["cell"] = np.arange(self.table.n_cells)
        values: Any = self.values
        if symbol is not None:
            values = np.where(self.suppressed, symbol, self._plain_numbers())
        columns["value"] = values
        return pd.DataFrame(columns)

    def _plain_numbers(self) -> Any:
        decimals = self.table.decimals
        return np.array(["" if np.isnan(v) else f"{v:.{decimals}f}" for v in self.values], dtype=object)

    def summary(self) -> str:
        """A few lines for people: method, status, cost, gap, cells."""
        from tabprotect.report.text import summary

        return summary(self)

    @overload
    def to_html(self, path: str | Path, *, confidential: bool = False) -> Path: ...
    @overload
    def to_html(self, path: None = None, *, confidential: bool = False) -> str: ...
    def to_html(self, path: str | Path | None = None, *, confidential: bool = False) -> Path | str:
        """Write the one-file report, or return it as text without a path; ``confidential=True`` adds the internal view."""
        from tabprotect.report.html import report

        self._refuse_unsafe()
        text = report(self, confidential=confidential)
        return text if path is None else write_text(path, text)

    def to_excel(self, path: str | Path, *, symbols: Symbols | None = None) -> Path:
        """Write the published table as a workbook with the office's symbols and a sheet of codes."""
        from tabprotect.report.excel import write_excel

        self._refuse_unsafe()
        return write_excel(self, path, symbols=symbols)

    def plot(self) -> Figure:
        """Map of the table: published, sensitive and complementary cells, no hidden value."""
        from tabprotect.report.plots import pattern

        self._refuse_unsafe()
        return pattern(self)

    def _repr_html_(self) -> str:
        from tabprotect.report.html import fragment

        return fragment(self)

    @property
    def cost_text(self) -> str:
        """The objective for people; left out where it would be the value of a single hidden cell."""
        return (
            "(not shown)" if self.kind == "suppress" and int(self.suppressed.sum()) == 1 else f"{self.objective:,.10g}"
        )

    def __repr__(self) -> str:
        hidden = int(self.suppressed.sum())
        return (
            f"<Protected by {self.kind} ({self.method}): {self.status}, gap {self.gap:.2%}, "
            f"{hidden:,} of {self.table.n_cells:,} cells hidden>"
        )
