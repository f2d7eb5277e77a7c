"""Options that several commands share, each written once: its type, its help text, and the columns of the user's file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TableFile = Annotated[Path, typer.Argument(help="Cells (CSV, Parquet), JJ, or τ-ARGUS .tab.")]
By = Annotated[
    list[str] | None, typer.Option(help="Code column, with its hierarchy if any: region=nuts.hrc. Repeat for each.")
]
Value = Annotated[str | None, typer.Option(help="Value column; none: a count table.")]
Freq = Annotated[str | None, typer.Option(help="Column with the number of contributors.")]
Total = Annotated[str | None, typer.Option(help="Label of totals in the file, e.g. Total.")]
Rule = Annotated[str | None, typer.Option(help='Sensitivity rules, e.g. "p%(10)|freq(3)" or "threshold(2)".')]
Meta = Annotated[Path | None, typer.Option(help="τ-ARGUS metadata (.rda) of a .tab file.")]
TimeLimit = Annotated[float, typer.Option(help="Seconds.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Out = Annotated[Path | None, typer.Option(help="Write the protected table (.csv, .parquet or .xlsx).")]
Report = Annotated[Path | None, typer.Option(help="Write the HTML report.")]
Json = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")]
