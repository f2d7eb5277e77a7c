"""``tabprotect round``: controlled, nearest, 50/50, unbiased or small-count rounding of a table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tabprotect.cli.common import print_json, progress_line
from tabprotect.cli.protect import write_published
from tabprotect.cli.tables import load_table
from tabprotect.protected import Protected

app = typer.Typer(add_completion=False)


@app.command()
def round_(
    table: Annotated[Path, typer.Argument(help="Cells (CSV, Parquet), JJ, or τ-ARGUS .tab.")],
    base: Annotated[float, typer.Option(help="Any positive number.")] = 5.0,
    method: Annotated[str, typer.Option(help="controlled, nearest, fifty, unbiased or small.")] = "controlled",
    additive: Annotated[
        bool | None, typer.Option(help="Whether sums must hold (default: for all but nearest and fifty).")
    ] = None,
    zero_restricted: Annotated[bool, typer.Option(help="Multiples of the base stay.")] = True,
    audit: Annotated[
        str, typer.Option(help="raise: no output if a sensitive cell can be inferred; report; none.")
    ] = "raise",
    by: Annotated[list[str] | None, typer.Option(help="Code column, with its hierarchy if any. Repeat.")] = None,
    value: Annotated[str | None, typer.Option(help="Value column; none: a count table.")] = None,
    freq: Annotated[str | None, typer.Option(help="Column with the number of contributors.")] = None,
    total: Annotated[str | None, typer.Option(help="Label of totals in the file.")] = None,
    rule: Annotated[str | None, typer.Option(help='Sensitivity rules, e.g. "threshold(2)".')] = None,
    meta: Annotated[Path | None, typer.Option(help="τ-ARGUS metadata (.rda) of a .tab file.")] = None,
    time_limit: Annotated[float, typer.Option(help="Seconds.")] = 60.0,
    seed: int = 0,
    out: Annotated[Path | None, typer.Option(help="Write the rounded table (.csv, .parquet or .xlsx).")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Round every cell to a multiple of the base, so that all sums hold.

    Example: tabprotect round counts.csv --by region,sex --base 3 --rule "threshold(2)" --out rounded.csv
    """
    from tabprotect.rounding import round_table

    source = load_table(table, by=by, value=value, freq=freq, total=total, meta=meta, rule=rule)
    with progress_line("rounding") as listener:
        res = round_table(
            source,
            base,
            method=method,
            additive=additive,
            zero_restricted=zero_restricted,
            audit=audit,
            time_limit=time_limit,
            seed=seed,
            progress=listener,
        )
    if out is not None:
        write_published(res, out, "")
    outcome = changed(res) | {
        "widened": res.info["widened"],
        "exposed": res.info.get("exposed", []),
        "recovered": res.info.get("recovered", []),
        "files": [] if out is None else [str(out)],
    }
    if json:
        print_json(outcome)
        return
    typer.echo(res.summary())
    off = res.info["additivity"]
    typer.echo(
        f"{res.info['changed']:,} cells changed, the largest change {res.info['largest_change']:g}; {off['broken']:,} sums no longer hold"
        + (f" (by up to {off['largest']:g})" if off["broken"] else "")
    )
    if res.info.get("exposed"):
        typer.echo(f"{len(res.info['exposed']):,} sensitive cells miss their protection levels")
    if out is not None:
        typer.echo(f"wrote {out}")


def changed(res: Protected) -> dict[str, Any]:
    """What both commands tell; no true value among it."""
    return {
        "kind": res.kind,
        "method": res.method,
        "status": res.status,
        "objective": res.objective,
        "bound": res.bound,
        "gap": res.gap,
        "runtime": res.runtime,
        "cells": res.table.n_cells,
        "primary": int(res.table.primary.sum()),
        "changed": res.info["changed"],
        "largest_change": res.info["largest_change"],
        "additivity": res.info["additivity"],
        "how": res.info["how"],
    }
