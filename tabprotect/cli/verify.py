"""``tabprotect verify``: check a certificate with exact arithmetic and no solver."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from tabprotect.cli.common import print_json

app = typer.Typer(add_completion=False)


@app.command()
def verify(
    certificate: Annotated[Path, typer.Argument(help="The certificate written by protect --certificate.")],
    json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Check a certificate: relations, bounds and levels, with whole-number arithmetic and no solver; exit code 1 if it does not hold."""
    from tabprotect.attacker.certificate import verify as check

    outcome = check(certificate)
    if json:
        print_json(asdict(outcome))
    else:
        typer.echo(outcome.summary())
    if not outcome.ok:
        raise typer.Exit(1)
