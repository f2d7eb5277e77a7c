"""``tabprotect protect``: suppress cells so that no sensitive cell can be inferred."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tabprotect.cli.common import console, print_json, progress_line
from tabprotect.cli.options import By, Freq, Json, Meta, Report, Rule, Seed, TimeLimit, Total, Value
from tabprotect.cli.output import outcome, suppressed, write_outputs
from tabprotect.cli.tables import load_table
from tabprotect.errors import InputError
from tabprotect.protected import Protected

app = typer.Typer(add_completion=False)


@app.command()
def protect(
    table: Annotated[
        Path, typer.Argument(help="Cells (CSV, Parquet), JJ, τ-ARGUS .tab, or microdata with --contributor.")
    ],
    by: By = None,
    value: Value = None,
    freq: Freq = None,
    total: Total = None,
    rule: Rule = None,
    apriori: Annotated[
        Path | None, typer.Option(help="A-priori file (.hst): status, costs, levels of single cells.")
    ] = None,
    contributor: Annotated[str | None, typer.Option(help="Microdata: column that identifies the respondent.")] = None,
    holding: Annotated[
        str | None, typer.Option(help="Microdata: column that identifies the group of the respondent.")
    ] = None,
    weight: Annotated[str | None, typer.Option(help="Microdata: column of sampling weights.")] = None,
    meta: Meta = None,
    objective: Annotated[str, typer.Option(help="value, count or frequency.")] = "value",
    method: Annotated[
        str, typer.Option(help="auto, exact, network, heuristic, modular, hypercube, circuit or none.")
    ] = "auto",
    time_limit: TimeLimit = 60.0,
    seed: Seed = 0,
    gap: Annotated[
        float, typer.Option(help="Stop when the gap is proved to be at most this (0.05: five percent).")
    ] = 0.0,
    threads: Annotated[
        int | None,
        typer.Option(
            help="All work in one process with so many threads, the same in every run; by default a second core is used."
        ),
    ] = None,
    zeros: Annotated[bool, typer.Option(help="Allow zero cells as complements.")] = False,
    singletons: Annotated[bool, typer.Option(help="Protect against respondents who are alone in a cell.")] = False,
    repair: Annotated[bool, typer.Option(help="Recompute totals that do not add up.")] = False,
    previous: Annotated[
        Path | None, typer.Option(help="An earlier publication (CSV): keep its pattern as far as possible.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write the publishable table (.csv, .parquet or .xlsx).")] = None,
    symbol: Annotated[str, typer.Option(help="What stands in the place of hidden values.")] = "x",
    report: Report = None,
    confidential: Annotated[
        bool, typer.Option("--confidential", help="The report shows true values: not for publication.")
    ] = False,
    certificate: Annotated[Path | None, typer.Option(help="Write the certificate (confidential).")] = None,
    explain: Annotated[bool, typer.Option(help="Say for which sensitive cells each further cell is hidden.")] = False,
    json: Json = False,
) -> None:
    """Suppress cells so that no sensitive cell can be inferred, and prove it.

    Example: tabprotect protect cells.csv --by region=nuts.hrc --by nace --value turnover --freq n --rule "freq(3)" --out published.csv --report report.html
    """
    from tabprotect.suppression import suppress

    source = load_table(
        table, by=by, value=value, freq=freq, total=total, contributor=contributor, holding=holding, weight=weight,
        meta=meta, apriori=apriori, rule=rule, repair=repair,
    )  # fmt: skip
    if not source.primary.any() and rule is None and apriori is None:
        raise InputError(
            'the table has no sensitive cell and no rule was given: add --rule, e.g. --rule "threshold(2)"'
        )
    earlier = None if previous is None else _earlier(previous, source, symbol)
    with progress_line("protecting") as listener:
        res = suppress(
            source, objective=objective, method=method, time_limit=time_limit, seed=seed, zeros=zeros,
            singletons=singletons, previous=earlier, gap=gap, threads=threads, progress=listener,
        )  # fmt: skip
    written = write_outputs(res, out, symbol, report, certificate, confidential=confidential)
    _tell(res, written, explain, json)
    if res.status == "unsafe":
        console.print("the baseline leaks: it is not published", style="bold red")
        raise typer.Exit(1)


def _tell(res: Protected, written: list[str], explain: bool, json: bool) -> None:
    """The outcome as text, or all of it as one JSON object."""
    reasons = None
    if explain:
        from tabprotect.suppression.explain import explain as why

        reasons = why(res)
    if json:
        extra = {} if reasons is None else {"explain": reasons.to_dict("records")}
        print_json(outcome(res) | suppressed(res) | {"files": written} | extra)
        return
    typer.echo(res.summary())
    for file in written:
        typer.echo(f"wrote {file}")
    if reasons is not None:
        typer.echo(reasons.to_string(index=False))


def _earlier(path: Path, source: Any, symbol: str) -> Any:
    """The mask of an earlier publication of the same table."""
    from tabprotect.attacker.published import HIDDEN, read_published

    names = [d.name for d in source.dims]
    if not names:
        raise InputError("--previous needs a table with dimensions")
    published = read_published(path, {d.name: d.hierarchy for d in source.dims}, hidden=(*HIDDEN, symbol))
    return published.hidden
