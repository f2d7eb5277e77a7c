"""What a study returns: a table, a figure, and how it was made."""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tabprotect.files import write_bytes, write_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """A finished study: ``table`` with one row per setting, ``figure``, and ``note`` on what to see in it.

    ``seconds`` is the time that passed, ``cpu`` the CPU seconds of all settings wherever they ran.
    """

    name: str
    title: str
    table: pd.DataFrame
    figure: Figure
    note: str
    seconds: float
    cpu: float

    @cached_property
    def png(self) -> bytes:
        """The figure as a PNG file."""
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=110)
        return buffer.getvalue()

    def save(self, folder: str | Path) -> list[Path]:
        """Write NAME.csv and NAME.png."""
        where = Path(folder)
        where.mkdir(parents=True, exist_ok=True)
        table, figure = where / f"{self.name}.csv", where / f"{self.name}.png"
        write_text(table, self.table.to_csv(index=False))
        write_bytes(figure, self.png)
        return [table, figure]

    def summary(self) -> str:
        """Title, note and table as text."""
        return f"{self.title}\n{self.note}\n\n{self.table.to_string(index=False, float_format=lambda v: f'{v:.4g}')}"

    def __repr__(self) -> str:
        return f"<Study {self.name}: {len(self.table)} rows, {self.seconds:.1f} s, {self.cpu:.1f} s of CPU>"


def write_html(studies: Iterable[Study], path: str | Path) -> Path:
    """One self-contained page with the figures and tables of all studies."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>Differential privacy: studies</title>",
        "<style>body{font:15px system-ui;max-width:70em;margin:2em auto;padding:0 1em}table{border-collapse:collapse}"
        "td,th{padding:.15em .7em;text-align:right;border-bottom:1px solid #ddd}img{max-width:100%}</style>",
        "<h1>Differentially private histograms: studies</h1>",
    ]
    for study in studies:
        picture = base64.b64encode(study.png).decode()
        parts += [
            f"<h2>{html.escape(study.title)}</h2><p>{html.escape(study.note)} ({study.seconds:.0f} s)</p>",
            f'<img alt="{html.escape(study.title)}" src="data:image/png;base64,{picture}">',
            "<details><summary>Table</summary>",
            study.table.to_html(index=False, border=0, float_format=lambda v: f"{v:.4g}"),
            "</details>",
        ]
    return write_text(path, "\n".join([*parts, "</html>"]))
