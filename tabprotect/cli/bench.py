"""``tabprotect bench``: standard instances, methods and peers; results with machine and versions; comparison of two result files."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tabprotect.cli.common import print_json, progress_line
from tabprotect.cli.options import Json
from tabprotect.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

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
    report: Annotated[Path | None, typer.Option(help="Write an HTML page with the table and both plots.")] = None,
    results: Annotated[
        Path | None, typer.Option(help="Rebuild tables and plots from this result file instead of running.")
    ] = None,
    compare: Annotated[
        list[Path] | None, typer.Option(help="Two result files (give the option twice): ratios new/old.")
    ] = None,
    json: Json = False,
) -> None:
    """Run benchmarks: tabprotect bench cube3d --sizes "6,6,6 8,8,8" --seeds 1,2 --methods exact,heuristic --out results.json"""
    from tabprotect.bench import analysis, runner

    if families == ["list"]:
        _list_families()
        return
    if compare:
        shown = _compared(compare)
        print_json(shown.to_dict("records")) if json else typer.echo(_text(shown))
        return
    if results is not None:
        frame = runner.load(results)[0]
    else:
        cases = _cases(families, instances, sizes, seeds)
        frame = _run(cases, methods, time_limit, repeat, solver, peers)
    if out is not None:
        runner.save(frame, out, command="tabprotect " + shlex.join(sys.argv[1:]))
    if plots is not None:
        analysis.save_plots(frame, plots)
    if report is not None:
        analysis.write_html(frame, report)
    print_json(frame.to_dict("records")) if json else typer.echo(_text(analysis.gap_table(frame)))
    if "safe" in frame and (frame["safe"] == False).any():  # noqa: E712
        raise typer.Exit(1)


def _list_families() -> None:
    from tabprotect.bench.families import FAMILIES

    for family in FAMILIES.values():
        typer.echo(f"{family.name:14} {family.about} (sizes {' '.join(family.sizes)})")


def _compared(files: list[Path]) -> pd.DataFrame:
    from tabprotect.bench import analysis, runner

    if len(files) != 2:
        raise InputError("--compare is given twice: the old results and the new ones")
    return analysis.compare_results(runner.load(files[0])[0], runner.load(files[1])[0])


def _cases(families: list[str] | None, instances: Path | None, sizes: str | None, seeds: str) -> list[Any]:
    from tabprotect.bench.cases import family_cases, folder_cases

    if not families and instances is None:
        raise InputError("name a family ('tabprotect bench list' shows them) or a folder with --instances")
    try:
        numbers = [int(s) for s in seeds.split(",")]
    except ValueError:
        raise InputError(f"seeds must be whole numbers separated by commas, got {seeds!r}") from None
    cases = list(family_cases(families or [], numbers, sizes.split() if sizes else []))
    return cases + (list(folder_cases(instances)) if instances is not None else [])


def _run(cases: list[Any], methods: str, time_limit: float, repeat: int, solver: str | None, peers: bool) -> Any:
    from tabprotect.bench import runner
    from tabprotect.bench.peers import ExternalSolver, available

    others = available(solver) if peers else [ExternalSolver(solver)] if solver else []
    names = [m.strip() for m in methods.split(",") if m.strip()]
    with progress_line("benchmark") as listener:
        return runner.run(cases, names, time_limit=time_limit, repeat=repeat, peers=others, progress=listener)


def _text(frame: pd.DataFrame) -> str:
    return frame.to_string(index=False, float_format=lambda v: f"{v:,.4g}")
