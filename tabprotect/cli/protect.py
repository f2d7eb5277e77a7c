"""``tabprotect protect``: suppress cells so that no sensitive cell can be inferred."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tabprotect.cli.common import console, print_json, progress_line
from tabprotect.cli.tables import load_table
from tabprotect.errors import InputError
from tabprotect.protected import Protected

app = typer.Typer(add_completion=False)


@app.command()
def protect(
    table: Annotated[
        Path, typer.Argument(help="Cells (CSV, Parquet), JJ, τ-ARGUS .tab, or microdata with --contributor.")
    ],
    by: Annotated[
        list[str] | None, typer.Option(help="Code column, with its hierarchy if any: region=nuts.hrc. Repeat for each.")
    ] = None,
    value: Annotated[str | None, typer.Option(help="Value column; none: a count table.")] = None,
    freq: Annotated[str | None, typer.Option(help="Column with the number of contributors.")] = None,
    total: Annotated[str | None, typer.Option(help="Label of totals in the file, e.g. Total.")] = None,
    rule: Annotated[
        str | None, typer.Option(help='Sensitivity rules, e.g. "p%(10)|freq(3)" or "threshold(2)".')
    ] = None,
    apriori: Annotated[
        Path | None, typer.Option(help="A-priori file (.hst): status, costs, levels of single cells.")
    ] = None,
    contributor: Annotated[str | None, typer.Option(help="Microdata: column that identifies the respondent.")] = None,
    holding: Annotated[
        str | None, typer.Option(help="Microdata: column that identifies the group of the respondent.")
    ] = None,
    weight: Annotated[str | None, typer.Option(help="Microdata: column of sampling weights.")] = None,
    meta: Annotated[Path | None, typer.Option(help="τ-ARGUS metadata (.rda) of a .tab file.")] = None,
    objective: Annotated[str, typer.Option(help="value, count or frequency.")] = "value",
    method: Annotated[
        str, typer.Option(help="auto, exact, network, heuristic, modular, hypercube, circuit or none.")
    ] = "auto",
    time_limit: Annotated[float, typer.Option(help="Seconds.")] = 60.0,
    seed: int = 0,
    zeros: Annotated[bool, typer.Option(help="Allow zero cells as complements.")] = False,
    singletons: Annotated[bool, typer.Option(help="Protect against respondents who are alone in a cell.")] = False,
    repair: Annotated[bool, typer.Option(help="Recompute totals that do not add up.")] = False,
    previous: Annotated[
        Path | None, typer.Option(help="An earlier publication (CSV): keep its pattern as far as possible.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Write the publishable table (.csv, .parquet, .xlsx or .jj).")
    ] = None,
    symbol: Annotated[str, typer.Option(help="What stands in the place of hidden values.")] = "x",
    report: Annotated[Path | None, typer.Option(help="Write the HTML report.")] = None,
    certificate: Annotated[Path | None, typer.Option(help="Write the certificate (confidential).")] = None,
    explain: Annotated[bool, typer.Option(help="Say for which sensitive cells each further cell is hidden.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Suppress cells so that no sensitive cell can be inferred, and prove it.

    Example: tabprotect protect cells.csv --by region=nuts.hrc --by nace --value turnover --freq n --rule "freq(3)" --out published.csv --report report.html
    """
    from tabprotect.suppression import suppress

    source = load_table(
        table,
        by=by,
        value=value,
        freq=freq,
        total=total,
        contributor=contributor,
        holding=holding,
        weight=weight,
        meta=meta,
        apriori=apriori,
        rule=rule,
        repair=repair,
    )
    if not source.primary.any() and rule is None and apriori is None:
        raise InputError(
            'the table has no sensitive cell and no rule was given: add --rule, e.g. --rule "threshold(2)"'
        )
    earlier = None if previous is None else _earlier(previous, source, symbol)
    with progress_line("protecting") as listener:
        res = suppress(
            source,
            objective=objective,
            method=method,
            time_limit=time_limit,
            seed=seed,
            zeros=zeros,
            singletons=singletons,
            previous=earlier,
            progress=listener,
        )
    written = write_outputs(res, out, symbol, report, certificate)
    if json:
        print_json(outcome(res) | {"files": written})
    else:
        typer.echo(res.summary())
        for file in written:
            typer.echo(f"wrote {file}")
    if explain:
        from tabprotect.suppression.explain import explain as why

        typer.echo(why(res).to_string(index=False))
    if res.status == "unsafe":
        console.print("the baseline leaks: it is not published", style="bold red")
        raise typer.Exit(1)


def outcome(res: Protected) -> dict[str, Any]:
    """The result as plain data, without any hidden value."""
    return {
        "method": res.method,
        "status": res.status,
        "objective": res.objective,
        "bound": res.bound,
        "gap": res.gap,
        "runtime": res.runtime,
        "cells": res.table.n_cells,
        "primary": int(res.table.primary.sum()),
        "secondary": int(res.secondary.sum()),
        "suppressed": res.suppressed.nonzero()[0],
        "fingerprint": None if res.certificate is None else res.certificate.fingerprint,
        "why": res.info.get("why"),
    }


def write_outputs(
    res: Protected, out: Path | None, symbol: str, report: Path | None, certificate: Path | None
) -> list[str]:
    """Write what was asked for; returns the names."""
    written = []
    if out is not None:
        write_published(res, out, symbol)
        written.append(str(out))
    if report is not None:
        res.to_html(report)
        written.append(str(report))
    if certificate is not None:
        res.certificate.save(certificate)
        written.append(str(certificate))
    return written


def write_published(res: Protected, out: Path, symbol: str) -> None:
    from tabprotect.files import replacing

    suffix = out.suffix.lower()
    if suffix == ".jj":
        from tabprotect.io.jj import write_jj

        # a JJ file holds all values: it goes back to the office's own tools, with the secondary cells marked 'm'
        write_jj(res.table.with_status(res.secondary, "m"), out)
    elif suffix in (".parquet", ".pq"):
        with replacing(out) as target:
            res.publish().to_parquet(target, index=False)
    elif suffix == ".xlsx":
        from tabprotect.report.style import Symbols

        res.to_excel(out, symbols=Symbols(symbol, symbol))
    elif suffix in (".csv", ".txt", ""):
        with replacing(out) as target:
            res.publish(symbol=symbol).to_csv(target, index=False)
    else:
        raise InputError(f"cannot write {out.suffix} files: use .csv, .parquet, .xlsx or .jj")


def _earlier(path: Path, source: Any, symbol: str) -> Any:
    """The mask of an earlier publication of the same table."""
    from tabprotect.attacker.published import HIDDEN, read_published

    names = [d.name for d in source.dims]
    if not names:
        raise InputError("--previous needs a table with dimensions")
    published = read_published(path, {d.name: d.hierarchy for d in source.dims}, hidden=(*HIDDEN, symbol))
    return published.hidden
