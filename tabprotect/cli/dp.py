"""``tabprotect dp``: differentially private counts and tables, tests on them, and the studies behind them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from tabprotect.cli.common import exit_code, print_json, progress_line
from tabprotect.errors import InputError

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Differentially private counts and tests on them.")

JSON = typer.Option("--json", help="Machine-readable output.")
LAW = typer.Option(help="discrete-laplace, laplace or gaussian (needs --delta).")
NEIGHBOURS = typer.Option(help="replace (one person's value changes) or add-remove.")


@app.command()
def release(
    data: Annotated[Path, typer.Argument(help="Counts: CSV or Parquet with --count; a table of counts with --by.")],
    epsilon: Annotated[float, typer.Option("--epsilon", "-e", help="Privacy loss.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Release: .csv, or .json with the promise.")] = None,
    count: Annotated[str | None, typer.Option(help="Histogram: column of the counts.")] = None,
    by: Annotated[
        list[str] | None, typer.Option(help="Table: code column, with its hierarchy: region=nuts.hrc.")
    ] = None,
    value: Annotated[str | None, typer.Option(help="Table: column of the counts; none: records are counted.")] = None,
    total: Annotated[str | None, typer.Option(help="Table: label of the totals in the file.")] = None,
    neighbours: Annotated[str, NEIGHBOURS] = "replace",
    law: Annotated[str, LAW] = "discrete-laplace",
    delta: Annotated[float, typer.Option(help="δ of the Gaussian law.")] = 0.0,
    contributions: Annotated[int, typer.Option(help="How often one person may be counted.")] = 1,
    split: Annotated[str, typer.Option(help="Table: budget over levels: optimal, uniform or leaves.")] = "optimal",
    consistent: Annotated[bool, typer.Option(help="Table: make it add up.")] = True,
    integers: Annotated[bool, typer.Option(help="Table: whole numbers.")] = True,
    budget: Annotated[Path | None, typer.Option(help="Budget file to charge (see 'dp budget').")] = None,
    report: Annotated[Path | None, typer.Option(help="HTML page with the promise, the values and plots.")] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Release counts, or a table of counts, with differential privacy.

    Example: tabprotect dp release ages.csv --count n --epsilon 0.5 --out ages.json
    """
    from tabprotect.dp import release as publish

    with exit_code():
        purse = _budget(budget)
        options: dict[str, Any] = {
            "neighbours": neighbours,
            "law": law,
            "delta": delta,
            "contributions": contributions,
            "budget": purse,
        }
        if (count is None) == (by is None):
            raise InputError("say either --count COLUMN (a histogram) or --by COLUMN ... (a table)")
        with progress_line("releasing") as listener:
            if by is not None:
                source = _table(data, by, value, total)
                options |= {"split": split, "consistent": consistent, "integers": integers, "progress": listener}
                found: Any = publish(source, epsilon, **options)
            else:
                found = publish(_column(data, str(count)), epsilon, **options)
        if purse is not None and budget is not None:
            purse.save(budget)  # before anything is shown: a release that is not booked is not made
        _write_release(found, out, report)
        if as_json:
            print_json(found.to_dict())
            return
        typer.echo(found.summary())
        if out is None:
            typer.echo(found.publish().to_string(index=False))
        for file in filter(None, (out, report)):
            typer.echo(f"wrote {file}")


@app.command("test")
def homogeneity(
    histograms: Annotated[list[Path], typer.Argument(help="Releases (.json), or noisy counts (.csv) with --epsilon.")],
    epsilon: Annotated[list[float] | None, typer.Option("--epsilon", "-e", help="ε of each CSV file, or one.")] = None,
    column: Annotated[str, typer.Option(help="Column of the noisy counts.")] = "value",
    against: Annotated[
        Path | None, typer.Option(help="CSV of a known distribution (column p): goodness of fit.")
    ] = None,
    replicates: Annotated[int, typer.Option(help="Bootstrap replicates.")] = 999,
    law: Annotated[str, typer.Option(help="Law of the noise of CSV files.")] = "laplace",
    neighbours: Annotated[str, NEIGHBOURS] = "replace",
    expected: Annotated[str, typer.Option(help="Expected counts from: sums or sizes.")] = "sums",
    seed: Annotated[int | None, typer.Option(help="Seed of the bootstrap.")] = None,
    report: Annotated[Path | None, typer.Option(help="HTML page with the verdict and plots.")] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Test whether noisy histograms come from the same distribution, knowing the noise.

    Example: tabprotect dp test men.json women.json
    """
    from tabprotect.dp import goodness_of_fit, homogeneity_test_many

    with exit_code():
        given = [_histogram(path, column) for path in histograms]
        levels: list[Any] = list(epsilon or [])
        if len(levels) <= 1:
            levels = (levels or [None]) * len(given)
        common: dict[str, Any] = {"replicates": replicates, "law": law, "neighbours": neighbours, "seed": seed}
        if against is not None:
            if len(given) != 1:
                raise InputError("--against tests one histogram at a time")
            found = goodness_of_fit(given[0], _column(against, "p", whole=False), levels[0], **common)
        else:
            found = homogeneity_test_many(given, levels, expected=expected, **common)
        if report is not None:
            from tabprotect.report.dp import write_test

            write_test(found, given, [path.stem for path in histograms], report)
        print_json(found.to_dict()) if as_json else typer.echo(found.summary())


@app.command()
def budget(
    file: Annotated[Path, typer.Argument(help="Budget file (JSON).")],
    epsilon: Annotated[float | None, typer.Option("--epsilon", "-e", help="Make a new budget of this ε.")] = None,
    delta: Annotated[float, typer.Option(help="δ of the new budget.")] = 0.0,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Make a budget file, or show what is left of one."""
    from tabprotect.dp import Budget

    with exit_code():
        if epsilon is not None:
            if file.exists():
                raise InputError("the budget exists; a new one would forget what was spent", file=file)
            Budget(epsilon, delta).save(file)
        found = Budget.load(file)
        left = found.left
        if as_json:
            print_json({"epsilon": found.epsilon, "delta": found.delta, "left": left, "releases": len(found.ledger)})
            return
        for entry in found.ledger:
            typer.echo(f"ε {entry.epsilon:g}  δ {entry.delta:g}  {entry.what}")
        typer.echo(f"left: ε {left[0]:g} of {found.epsilon:g}, δ {left[1]:g} of {found.delta:g}")


@app.command()
def study(
    name: Annotated[str, typer.Argument(help="null, errors, power, unequal, utility, or all.")] = "all",
    quick: Annotated[bool, typer.Option(help="A small slice, about a minute for all.")] = False,
    repetitions: Annotated[int | None, typer.Option(help="Repetitions of every setting (1,000).")] = None,
    populations: Annotated[
        Path | None, typer.Option(help="CSV of real age distributions: age, one column each.")
    ] = None,
    workers: Annotated[int, typer.Option(help="Processes.")] = 1,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for tables (CSV) and figures (PNG).")] = None,
    report: Annotated[Path | None, typer.Option(help="HTML report with all tables and figures.")] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Rerun the studies: what noise does to the classical test, errors and power of the bootstrap test, power as
    utility.
    """
    from tabprotect.dp.study import STUDIES, write_html

    with exit_code():
        names = list(STUDIES) if name == "all" else [name]
        unknown = [n for n in names if n not in STUDIES]
        if unknown:
            raise InputError(f"no study {unknown[0]!r}: use {', '.join(STUDIES)} or all")
        finished = []
        with _pool(workers) as pool, progress_line("study") as listener:
            for each in names:
                options: dict[str, Any] = {"quick": quick, "executor": pool, "progress": listener}
                if repetitions is not None:
                    options["repetitions"] = repetitions
                if populations is not None and each in ("power", "unequal", "utility"):
                    options["populations"] = populations
                finished.append(STUDIES[each](**options))
        files = [str(f) for s in finished for f in (s.save(out) if out is not None else [])]
        if report is not None:
            files.append(str(write_html(finished, report)))
        if as_json:
            rows = {
                s.name: {"seconds": s.seconds, "cpu": s.cpu, "rows": s.table.to_dict(orient="records")}
                for s in finished
            }
            print_json({"studies": rows, "files": files})
        else:
            for s in finished:
                typer.echo(s.summary() + "\n")
            for f in files:
                typer.echo(f"wrote {f}")


@contextmanager
def _pool(workers: int) -> Iterator[Any]:
    if workers <= 1:
        yield None
        return
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        yield pool


def _budget(path: Path | None) -> Any:
    from tabprotect.dp import Budget

    return None if path is None else Budget.load(path)


def _frame(path: Path) -> Any:
    import pandas as pd

    if not path.is_file():
        raise InputError("no such file", file=path)
    return pd.read_parquet(path) if path.suffix.lower() in (".parquet", ".pq") else pd.read_csv(path)


def _column(path: Path, name: str, whole: bool = True) -> Any:
    """A column as a series, labelled by the first other column."""
    frame = _frame(path)
    if name not in frame:
        raise InputError(f"no column {name!r}; there are {', '.join(map(str, frame.columns))}", file=path)
    others = [c for c in frame.columns if c != name]
    return frame.set_index(others[0])[name] if others and whole else frame[name]


def _table(path: Path, by: list[str], value: str | None, total: str | None) -> Any:
    from tabprotect.cli.tables import load_table, parse_by

    if value is not None:
        # with --value the cells are given as counts; load_table would take them for magnitudes
        return load_table(path, by=by, value=value, total=total).replace(counts=True)
    from tabprotect.table.tabulate import tabulate

    return tabulate(path, by=parse_by(by))


def _histogram(path: Path, column: str) -> Any:
    from tabprotect.dp import Release

    if path.suffix.lower() != ".json":
        return _column(path, column)
    if not path.is_file():
        raise InputError("no such file", file=path)
    try:
        return Release.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (json.JSONDecodeError, InputError) as error:
        raise InputError(f"not a release: {error}", file=path) from error


def _write_release(found: Any, out: Path | None, report: Path | None) -> None:
    if report is not None:
        from tabprotect.report.dp import write_release

        write_release(found, report)
    if out is None:
        return
    from tabprotect.files import replacing, write_text

    if out.suffix.lower() == ".json":
        data = found.to_dict()
        if "values" not in data:
            data["values"] = found.values.tolist()
        write_text(out, json.dumps(data, indent=1, ensure_ascii=False, default=float) + "\n")
        return
    with replacing(out) as temporary:
        found.publish().to_csv(temporary, index=False)
