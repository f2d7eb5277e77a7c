"""``tabprotect tabulate``: make a table with contributor information from microdata."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from tabprotect.cli.common import print_json, progress_line
from tabprotect.cli.options import Json
from tabprotect.cli.tables import parse_by
from tabprotect.errors import InputError
from tabprotect.table.hierarchy import Hierarchy
from tabprotect.table.table import Table

app = typer.Typer(add_completion=False)

_DIGITS = re.compile(r"\d+(-\d+)*")


@app.command()
def tabulate(
    data: Annotated[Path, typer.Argument(help="Records: a CSV or Parquet file.")],
    by: Annotated[
        list[str],
        typer.Option(
            help="Code column, with its hierarchy if any: region=nuts.hrc, nace=1-1-2 (digits). Repeat for each."
        ),
    ],
    value: Annotated[
        list[str] | None, typer.Option(help="Column to add up; none: records are counted. Repeatable.")
    ] = None,
    contributor: Annotated[str | None, typer.Option(help="Column that identifies the respondent.")] = None,
    holding: Annotated[str | None, typer.Option(help="Column that identifies the respondent's group.")] = None,
    weight: Annotated[str | None, typer.Option(help="Column of sampling weights.")] = None,
    request: Annotated[str | None, typer.Option(help="True/false column: who asked for protection.")] = None,
    top: Annotated[int, typer.Option(help="Largest contributions to keep per cell.")] = 3,
    total: Annotated[str | None, typer.Option(help="Name of the totals.")] = None,
    missing: Annotated[str, typer.Option(help="Records without a code: error, drop, or the code to use.")] = "error",
    unknown: Annotated[
        str, typer.Option(help="Records with an unknown code: error, drop, or the code to use.")
    ] = "error",
    negative: Annotated[str, typer.Option(help="Negative amounts: error, absolute or allow.")] = "error",
    nan: Annotated[str, typer.Option(help="Records without an amount: error, drop or zero.")] = "error",
    rule: Annotated[str | None, typer.Option(help='Mark sensitive cells, e.g. "p%(10)|freq(3)".')] = None,
    memory: Annotated[str, typer.Option(help="Memory for the embedded DuckDB before it uses the disk.")] = "2GB",
    out: Annotated[
        Path | None, typer.Option(help="Write all cells (.csv or .parquet): unprotected, confidential.")
    ] = None,
    json: Json = False,
) -> None:
    """Make a table from records: every cell and total of the hierarchies with its number of contributors and largest contributions."""
    from tabprotect.table.tabulate import tabulate as make

    if not data.exists():
        raise InputError("no such file", file=data)
    values: Any = None if not value else value[0] if len(value) == 1 else value
    with progress_line("tabulating") as listen:
        table = make(
            data,
            by=_hierarchies(by),
            value=values,
            contributor=contributor,
            holding=holding,
            weight=weight,
            request=request,
            top=top,
            total=total,
            missing=missing,
            unknown=unknown,
            negative=negative,
            nan=nan,
            memory=memory,
            progress=listen,
            name=data.stem,
        )
    if rule is not None:
        from tabprotect.sensitivity import parse

        table = table.mark(parse(rule))
    if out is not None:
        from tabprotect.io.frames import write_cells

        write_cells(table, out)
    _tell(table, out, json)


def _hierarchies(by: list[str]) -> dict[str, Any]:
    """Columns with hierarchy files, or digits such as 1-1-2."""
    found = parse_by(by)
    return {
        column: Hierarchy.from_digits([int(w) for w in spec.split("-")])
        if spec and _DIGITS.fullmatch(spec) and not Path(spec).exists()
        else spec
        for column, spec in found.items()
    }


def _tell(table: Table, out: Path | None, json: bool) -> None:
    empty = int((table.freq == 0).sum()) if table.freq is not None else 0
    facts: dict[str, Any] = {
        "cells": table.n_cells,
        "relations": table.n_relations,
        "empty": empty,
        "primary": int(table.primary.sum()),
        "dimensions": {d.name: len(d) for d in table.dims},
        "counts": table.counts,
        "out": None if out is None else str(out),
    }
    if json:
        print_json(facts)
        return
    sizes = " × ".join(f"{name} ({size:,})" for name, size in facts["dimensions"].items())
    typer.echo(
        f"{sizes}: {table.n_cells:,} cells ({empty:,} empty), {table.n_relations:,} relations, {facts['primary']:,} primary"
    )
    if out is not None:
        typer.echo(f"wrote {out} (unprotected and confidential: not for publication)")
