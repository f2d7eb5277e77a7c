"""``tabprotect demo``: the main job on the built-in example."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(add_completion=False)


@app.command()
def demo(
    folder: Annotated[
        Path, typer.Argument(help="Where to write the publication, the report and the certificate.")
    ] = Path("out"),
) -> None:
    """Protect the built-in example, attack it, and write the publication, the report and the certificate."""
    from tabprotect.attacker import attack, verify
    from tabprotect.cli.output import write_outputs
    from tabprotect.sensitivity import Threshold
    from tabprotect.suppression import suppress
    from tabprotect.table.examples import d272

    folder.mkdir(parents=True, exist_ok=True)
    table = d272().mark(Threshold(2))
    typer.echo(f"the table: {table}")
    leak = attack(table)
    typer.echo(f"\nhide only the sensitive cells, and an attacker finds:\n{leak.summary()}")
    res = suppress(table)
    typer.echo(f"\nhide further cells at least cost:\n{res.summary()}")
    found = attack(res)
    typer.echo(
        f"\nattack it again:\n{found.summary()}\n{found.intervals[['size', 'industry', 'lower', 'upper']].to_string(index=False)}"
    )
    written = write_outputs(res, folder / "published.csv", "x", folder / "report.html", folder / "certificate.json")
    typer.echo("\ncertificate: " + verify(folder / "certificate.json").summary())
    for file in written:
        typer.echo(f"wrote {file}")
