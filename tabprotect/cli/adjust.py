"""``tabprotect adjust``: controlled tabular adjustment."""

from __future__ import annotations

from typing import Annotated

import typer

from tabprotect.cli.common import print_json, progress_line
from tabprotect.cli.options import By, Freq, Json, Meta, Out, Report, Rule, Seed, TableFile, TimeLimit, Total, Value
from tabprotect.cli.output import changed, outcome, write_outputs
from tabprotect.cli.tables import load_table
from tabprotect.errors import InputError

app = typer.Typer(add_completion=False)


@app.command()
def adjust(
    table: TableFile,
    norm: Annotated[str, typer.Option(help="l1, l2 or linf.")] = "l1",
    weights: Annotated[str, typer.Option(help="inverse (1/value) or unit.")] = "inverse",
    direction: Annotated[str, typer.Option(help="free, balanced, up or down.")] = "free",
    totals: Annotated[str, typer.Option(help="free, fixed, or a share such as 0.01.")] = "free",
    integer: Annotated[bool | None, typer.Option(help="Whole numbers (default: for count tables).")] = None,
    audit: Annotated[str, typer.Option(help="levels, or attack: also try to infer the sensitive cells.")] = "levels",
    by: By = None,
    value: Value = None,
    freq: Freq = None,
    total: Total = None,
    rule: Rule = None,
    meta: Meta = None,
    time_limit: TimeLimit = 60.0,
    gap: Annotated[float, typer.Option(help="Stop when the cost is proved within this share of the best.")] = 1e-6,
    seed: Seed = 0,
    out: Out = None,
    report: Report = None,
    json: Json = False,
) -> None:
    """Move sensitive cells by at least their protection levels, all others as little as possible, so that all sums hold.

    Example: tabprotect adjust cells.csv --by region,nace --value turnover --freq n --rule "freq(3)" --out adjusted.csv
    """
    from tabprotect.adjustment import adjust as verb

    source = load_table(table, by=by, value=value, freq=freq, total=total, meta=meta, rule=rule)
    if not source.primary.any() and rule is None:
        raise InputError('the table has no sensitive cell and no rule was given: add --rule, e.g. --rule "freq(3)"')
    with progress_line("adjusting") as listener:
        res = verb(
            source,
            norm=norm,
            weights=weights,
            direction=direction,
            totals=_totals(totals),
            integer=integer,
            audit=audit,
            time_limit=time_limit,
            gap=gap,
            seed=seed,
            progress=listener,
        )
    written = write_outputs(res, out, report=report)
    info = res.info
    if json:
        extra = {"up": info["up"], "down": info["down"], "largest_share_other": info["largest_share_other"]}
        print_json(outcome(res) | changed(res) | extra | {"files": written})
        return
    typer.echo(res.summary())
    typer.echo(
        f"{info['up']:,} sensitive cells moved up and {info['down']:,} down; {info['changed']:,} cells changed, other cells by at most "
        f"{info['largest_share_other']:.2%}"
    )
    for file in written:
        typer.echo(f"wrote {file}")


def _totals(text: str) -> str | float:
    if text in ("free", "fixed"):
        return text
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--totals must be free, fixed or a share such as 0.01, not {text!r}") from None
