"""``tabprotect compare``: suppression, rounding and adjustment of one table side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tabprotect.cli.common import console, print_json, progress_line
from tabprotect.cli.options import By, Freq, Json, Meta, Report, Rule, Seed, TableFile, Total, Value
from tabprotect.cli.tables import load_table
from tabprotect.errors import InputError, TabprotectError
from tabprotect.protected import Protected
from tabprotect.table.table import Table

app = typer.Typer(add_completion=False)


@app.command()
def compare(
    table: TableFile,
    methods: Annotated[
        str, typer.Option(help="Which of suppress, round, nearest, unbiased, small, adjust, l2.")
    ] = "suppress,round,adjust",
    base: Annotated[float, typer.Option(help="Base of the roundings.")] = 5.0,
    by: By = None,
    value: Value = None,
    freq: Freq = None,
    total: Total = None,
    rule: Rule = None,
    meta: Meta = None,
    time_limit: Annotated[float, typer.Option(help="Seconds for each method.")] = 60.0,
    seed: Seed = 0,
    plot: Annotated[Path | None, typer.Option(help="Write the risk–utility plot (.svg or .png).")] = None,
    report: Report = None,
    json: Json = False,
) -> None:
    """Protect one table in several ways and compare what is kept with what an attacker gets.

    Example: tabprotect compare counts.csv --by region,sex --rule "threshold(2)" --methods suppress,round,adjust --plot risk.svg
    """
    from tabprotect.report.compare import compare as verb

    source = load_table(table, by=by, value=value, freq=freq, total=total, meta=meta, rule=rule)
    if not source.primary.any():
        raise InputError('the table has no sensitive cell: add --rule, e.g. --rule "threshold(2)"')
    results: dict[str, Protected] = {}
    with progress_line("comparing") as listener:
        for name in [m.strip() for m in methods.split(",") if m.strip()]:
            try:
                results[name] = protect_by(name, source, base, time_limit, seed, listener)
            except InputError:
                raise
            except TabprotectError as error:
                console.print(f"{name}: {type(error).__name__}: {error}", style="yellow", markup=False, highlight=False)
    found = verb(source, results, path=plot, time_limit=time_limit)
    if report is not None:
        found.to_html(report)
    if json:
        print_json({"results": found.table.reset_index().to_dict(orient="records")})
        return
    typer.echo(found.summary())
    for file in (plot, report):
        if file is not None:
            typer.echo(f"wrote {file}")


def protect_by(name: str, table: Table, base: float, time_limit: float, seed: int, listener: Any) -> Protected:
    """One of the named methods."""
    options: dict[str, Any] = {"time_limit": time_limit, "seed": seed, "progress": listener}
    if name == "suppress":
        from tabprotect.suppression import suppress

        return suppress(table, **options)
    if name in ("round", "controlled", "nearest", "fifty", "unbiased", "small"):
        from tabprotect.rounding import round_table

        return round_table(table, base, method="controlled" if name == "round" else name, audit="report", **options)
    if name in ("adjust", "l1", "l2", "linf"):
        from tabprotect.adjustment import adjust

        return adjust(table, norm="l1" if name == "adjust" else name, **options)
    raise InputError(
        f"unknown method {name!r}: use suppress, round, nearest, fifty, unbiased, small, adjust, l2 or linf"
    )
