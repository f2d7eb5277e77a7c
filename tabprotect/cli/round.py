"""``tabprotect round``: controlled, nearest, 50/50, unbiased or small-count rounding of a table."""

from __future__ import annotations

from typing import Annotated

import typer

from tabprotect.cli.common import print_json, progress_line
from tabprotect.cli.options import By, Freq, Json, Meta, Out, Report, Rule, Seed, TableFile, TimeLimit, Total, Value
from tabprotect.cli.output import changed, outcome, write_outputs
from tabprotect.cli.tables import load_table

app = typer.Typer(add_completion=False)


@app.command()
def round_(
    table: TableFile,
    base: Annotated[float, typer.Option(help="Any positive number.")] = 5.0,
    method: Annotated[str, typer.Option(help="controlled, nearest, fifty, unbiased or small.")] = "controlled",
    additive: Annotated[
        bool | None, typer.Option(help="Whether sums must hold (default: for all but nearest and fifty).")
    ] = None,
    zero_restricted: Annotated[bool, typer.Option(help="Multiples of the base stay.")] = True,
    audit: Annotated[
        str, typer.Option(help="raise: no output if a sensitive cell can be inferred; report; none.")
    ] = "raise",
    by: By = None,
    value: Value = None,
    freq: Freq = None,
    total: Total = None,
    rule: Rule = None,
    meta: Meta = None,
    time_limit: TimeLimit = 60.0,
    seed: Seed = 0,
    out: Out = None,
    report: Report = None,
    json: Json = False,
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
    written = write_outputs(res, out, report=report)
    if json:
        found = {"exposed": [], "recovered": []} | {
            k: res.info[k] for k in ("widened", "exposed", "recovered") if k in res.info
        }
        print_json(outcome(res) | changed(res) | found | {"files": written})
        return
    typer.echo(res.summary())
    off = res.info["additivity"]
    typer.echo(
        f"{res.info['changed']:,} cells changed, the largest change {res.info['largest_change']:g}; {off['broken']:,} sums no longer hold"
        + (f" (by up to {off['largest']:g})" if off["broken"] else "")
    )
    if res.info.get("exposed"):
        typer.echo(f"{len(res.info['exposed']):,} sensitive cells miss their protection levels")
    for file in written:
        typer.echo(f"wrote {file}")
