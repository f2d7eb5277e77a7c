"""``tabprotect reproduce``: recompute the source documents, table by table and figure by figure."""

from __future__ import annotations

import datetime
import platform
import shlex
import sys
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tabprotect.cli.common import print_json, progress_line
from tabprotect.errors import InputError

if TYPE_CHECKING:
    from tabprotect.sources import Reproduction

app = typer.Typer(add_completion=False)
LIBRARIES = ("numpy", "scipy", "highspy", "numba")


@app.command()
def reproduce(
    sources: Annotated[
        list[str], typer.Argument(help="tables, similarity, dissimilarity, dp-test, substitution, or all.")
    ],
    quick: Annotated[bool, typer.Option("--quick", help="Small simulations: about a minute for all.")] = False,
    studies: Annotated[
        Path | None, typer.Option(help="dp-test: read the long studies from 'tabprotect dp study all --out FOLDER'.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for pages (Markdown), CSV files and figures.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the claims as JSON.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit code 1 if a claim is not reproduced.")] = False,
) -> None:
    """Printed value, our value and agreement: tabprotect reproduce all --quick --out docs/sources"""
    from tabprotect.sources import SOURCES
    from tabprotect.sources import reproduce as recompute
    from tabprotect.sources.page import save

    names = list(SOURCES) if "all" in sources else list(dict.fromkeys(sources))
    unknown = [name for name in names if name not in SOURCES]
    if unknown:
        raise InputError(f"unknown source {unknown[0]!r}: use {', '.join(SOURCES)}, or all")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    found = []
    for name in names:
        with progress_line(name) as listener:
            options = {"studies": studies} if studies is not None and name == "dp-test" else {}
            one = recompute(name, quick=quick, progress=listener, **options)
        found.append(one)
        if out is not None:
            words = ["tabprotect", "reproduce", name, *["--quick"] * quick, "--out", str(out)]
            words += [] if not options else ["--studies", str(studies)]
            save(one, out, command=shlex.join(words), versions=_versions())
        if not json:
            _show(one)
    if json:
        print_json([one.to_dict() for one in found])
    if strict and any(one.counts["no"] for one in found):
        raise typer.Exit(1)


def _versions() -> dict[str, str]:
    """Date and versions, as they stand in the pages."""
    from tabprotect import __version__

    return {
        "date": datetime.date.today().isoformat(),
        "tabprotect": __version__,
        "Python": platform.python_version(),
        **{name: version(name) for name in LIBRARIES},
    }


def _show(one: Reproduction) -> None:
    """A coloured table on a terminal, tab-separated lines in a pipe."""
    from rich.console import Console
    from rich.table import Table

    if not sys.stdout.isatty():
        for claim in one.claims:
            typer.echo("\t".join((one.source, claim.item, claim.printed, claim.ours, claim.agrees, claim.remark)))
        typer.echo(one.summary().split("\n")[0])
        return
    table = Table(title=one.title, caption=one.summary().split("\n")[0])
    for name in ("what", "printed", "ours", "agrees", "remark"):
        table.add_column(name)
    for claim in one.claims:
        colour = {"yes": "green", "no": "red", "explained": "yellow"}[claim.agrees]
        table.add_row(claim.item, claim.printed, claim.ours, f"[{colour}]{claim.agrees}[/]", claim.remark)
    Console().print(table)
