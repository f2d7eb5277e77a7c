"""``tabprotect solve``: a solver back end for other tools, JJ file in, JJ file out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tabprotect.cli.common import print_json, progress_line
from tabprotect.cli.options import Json, Seed, TimeLimit
from tabprotect.cli.output import outcome, suppressed

app = typer.Typer(add_completion=False)


@app.command()
def solve(
    source: Annotated[Path, typer.Argument(help="JJ file with the marked table.")],
    target: Annotated[Path, typer.Argument(help="JJ file to write: as the source, complements marked 'm'.")],
    method: Annotated[
        str, typer.Option(help="auto, exact, network, heuristic, modular, hypercube or circuit.")
    ] = "auto",
    objective: Annotated[str, typer.Option(help="value (the costs of the file), count or frequency.")] = "value",
    time_limit: TimeLimit = 60.0,
    gap: Annotated[float, typer.Option(help="Stop at this gap.")] = 0.0,
    seed: Seed = 0,
    certificate: Annotated[Path | None, typer.Option(help="Write the certificate too.")] = None,
    json: Json = False,
) -> None:
    """Solve the suppression problem of a JJ file and write it back with the complementary cells marked 'm'."""
    from tabprotect.io.jj import read_jj, write_jj
    from tabprotect.suppression import suppress

    table = read_jj(source)
    with progress_line("solving") as listener:
        res = suppress(
            table, objective=objective, method=method, time_limit=time_limit, seed=seed, gap=gap, progress=listener
        )
    write_jj(table.with_status(res.secondary, "m"), target)
    if certificate is not None:
        res.certificate.save(certificate)
    if json:
        print_json(outcome(res) | suppressed(res))
    else:
        typer.echo(res.summary())
