"""``tabprotect bench``: standard instances, methods and peers; results with machine and versions; comparison of two result files."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from tabprotect.cli.common import print_json, progress_line
from tabprotect.errors import InputError

app = typer.Typer(add_completion=False)


@app.command()
def bench(
    families: Annotated[list[str] | None, typer.Argument(help="Families to run; 'list' names them.")] = None,
    instances: Annotated[
        Path | None, typer.Option(help="A folder of JJ files instead of (or besides) families.")
    ] = None,
    methods: Annotated[str, typer.Option(help="Methods, separated by commas.")] = "auto",
    sizes: Annotated[
        str | None, typer.Option(help="Sizes instead of the family's own, separated by blanks: '6,6,6 8,8,8'.")
    ] = None,
    seeds: Annotated[str, typer.Option(help="Seeds, separated by commas.")] = "1",
    time_limit: Annotated[float, typer.Option(help="Seconds for each run.")] = 60.0,
    repeat: Annotated[int, typer.Option(help="Repetitions.")] = 1,
    peers: Annotated[bool, typer.Option(help="Also run the peers found on this machine (R packages).")] = False,
    solver: Annotated[
        str | None, typer.Option(help="An external JJ solver: 'program {input} {output} {seconds}'.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Write results (.json or .parquet).")] = None,
    plots: Annotated[
        Path | None, typer.Option(help="Folder for the performance profile and the growth curves (SVG).")
    ] = None,
    compare: Annotated[
        list[Path] | None, typer.Option(help="Two result files (give the option twice): ratios new/old.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the rows as JSON.")] = False,
) -> None:
    """Run benchmarks: tabprotect bench cube3d --sizes "6,6,6 8,8,8" --seeds 1,2 --methods exact,heuristic --out results.json"""
    from tabprotect.bench import analysis, runner
    from tabprotect.bench.cases import family_cases, folder_cases
    from tabprotect.bench.families import FAMILIES
    from tabprotect.bench.peers import available

    if families == ["list"]:
        for family in FAMILIES.values():
            typer.echo(f"{family.name:14} {family.about} (sizes {' '.join(family.sizes)})")
        return
    if compare:
        if len(compare) != 2:
            raise InputError("--compare is given twice: the old results and the new ones")
        shown = analysis.compare_results(runner.load(compare[0])[0], runner.load(compare[1])[0])
        typer.echo(shown.to_string(index=False, float_format=lambda v: f"{v:.4g}"))
        return
    if not families and instances is None:
        raise InputError("name a family ('tabprotect bench list' shows them) or a folder with --instances")
    try:
        numbers = [int(s) for s in seeds.split(",")]
    except ValueError:
        raise InputError(f"seeds must be whole numbers separated by commas, got {seeds!r}") from None
    cases = list(family_cases(families or [], numbers, sizes.split() if sizes else []))
    if instances is not None:
        cases += list(folder_cases(instances))
    others = available(solver) if peers or solver else []
    with progress_line("benchmark") as listener:
        frame = runner.run(
            cases,
            [m.strip() for m in methods.split(",")],
            time_limit=time_limit,
            repeat=repeat,
            peers=others,
            progress=listener,
        )
    if out is not None:
        runner.save(frame, out, command="tabprotect " + shlex.join(sys.argv[1:]))
    if plots is not None:
        plots.mkdir(parents=True, exist_ok=True)
        analysis.performance_profile(frame).savefig(plots / "profile.svg")
        analysis.growth(frame).savefig(plots / "growth.svg")
    if json:
        print_json(frame.to_dict("records"))
    else:
        typer.echo(analysis.gap_table(frame).to_string(index=False, float_format=lambda v: f"{v:,.4g}"))
    if "safe" in frame and (frame["safe"] == False).any():  # noqa: E712
        raise typer.Exit(1)
