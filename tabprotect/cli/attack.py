"""``tabprotect attack``: what can be deduced from a published table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tabprotect.cli.common import print_json, progress_line
from tabprotect.cli.options import By, Json
from tabprotect.cli.tables import parse_by
from tabprotect.errors import InputError

app = typer.Typer(add_completion=False)


@app.command()
def attack(
    table: Annotated[
        Path, typer.Argument(help="A published table with gaps (CSV, Parquet), or a JJ file with status u and m.")
    ],
    by: By = None,
    value: Annotated[str, typer.Option(help="Value column.")] = "value",
    total: Annotated[str | None, typer.Option(help="Label of totals; default: a usual one.")] = None,
    hidden: Annotated[
        str | None, typer.Option(help="Symbols of hidden cells, separated by blanks, if not one of x c : * … or blank.")
    ] = None,
    decimal: Annotated[str, typer.Option(help="Decimal sign.")] = ".",
    thousands: Annotated[str | None, typer.Option(help="Thousands separator.")] = None,
    lb: Annotated[float | None, typer.Option(help="The attacker knows that no cell is below this.")] = None,
    ub: Annotated[float | None, typer.Option(help="The attacker knows that no cell is above this.")] = None,
    integer: Annotated[bool, typer.Option(help="The attacker knows that the cells are whole numbers.")] = False,
    verdict: Annotated[bool, typer.Option(help="Only whether it is safe (JJ files), not all intervals.")] = False,
    also: Annotated[
        list[Path] | None, typer.Option(help="Another release of the same table (CSV). Repeat for more.")
    ] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write an HTML page with the table and the intervals.")] = None,
    out: Annotated[Path | None, typer.Option(help="Write the intervals as CSV.")] = None,
    json: Json = False,
) -> None:
    """Exact bounds of every hidden cell of a published table; exit code 1 if something leaks.

    Example: tabprotect attack published.csv --by region --by nace --value turnover
    """
    symbols = () if hidden is None else tuple(hidden.split())
    with progress_line("attacking") as listener:
        known = {"lb": lb, "ub": ub, "integer": integer, "time_limit": time_limit, "progress": listener}
        if table.suffix.lower() == ".jj":
            found = _attack_jj(table, verdict, known)
        else:
            look = {"total": total, "decimal": decimal, "thousands": thousands}
            found = _attack_published([table, *(also or [])], by, value, symbols, look, known)
    if out is not None:
        from tabprotect.files import replacing

        with replacing(out) as target:
            found.intervals.to_csv(target, index=False)
    if report is not None:
        found.to_html(report)
    if json:
        print_json(
            {
                "safe": found.safe,
                "hidden": len(found.cells),
                "recovered": found.recovered,
                "exposed": found.exposed,
                "runtime": found.runtime,
                "intervals": found.intervals.to_dict("records"),
            }
        )
    else:
        typer.echo(found.summary())
        typer.echo(found.intervals.to_string(index=False, max_rows=40))
    if not found.safe:
        raise typer.Exit(1)


def _attack_jj(path: Path, verdict: bool, known: dict[str, Any]) -> Any:
    """A JJ file: primary cells and those marked 'm' are hidden."""
    from tabprotect.attacker import attack as run
    from tabprotect.io.jj import read_jj

    source = read_jj(path)
    return run(source, source.primary | (source.status == "m"), goal="verdict" if verdict else "bounds", **known)


def _attack_published(
    paths: list[Path],
    by: list[str] | None,
    value: str,
    symbols: tuple[str, ...],
    look: dict[str, Any],
    known: dict[str, Any],
) -> Any:
    """A publication, together with further releases of the same table."""
    from tabprotect.attacker import attack as run
    from tabprotect.attacker.published import HIDDEN, read_published

    if not by:
        raise InputError("say which columns hold the codes: --by region --by nace=nace.hrc", file=paths[0])
    first, *others = (read_published(p, parse_by(by), value, hidden=(*HIDDEN, *symbols), **look) for p in paths)
    return run(first, also=others, **known)
