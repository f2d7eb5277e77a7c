"""``tabprotect risk``: measure the disclosure risk of a microdata file, protect it, repeat a recipe, run the studies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tabprotect.cli.common import print_json, progress_line
from tabprotect.errors import InputError


class MeasureByDefault(TyperGroup):
    """``risk data.parquet …`` means ``risk measure data.parquet …``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["measure", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=MeasureByDefault,
    no_args_is_help=True,
    help="Disclosure risk of a microdata file: risk FILE --keys a,b (short for: risk measure FILE --keys a,b).",
)

File = Annotated[str, typer.Argument(help="CSV or Parquet file.")]
Keys = Annotated[str, typer.Option("--keys", "-k", help="Identifying columns, separated by commas.")]
SensitiveColumns = Annotated[str, typer.Option("--sensitive", "-s", help="Sensitive columns, separated by commas.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Report = Annotated[Path | None, typer.Option("--report", help="Write a one-file HTML report.")]


def names(text: str) -> list[str]:
    """Column names of a comma-separated option."""
    return [c.strip() for c in text.split(",") if c.strip()]


@app.command()
def measure(
    file: File,
    keys: Keys,
    sensitive: SensitiveColumns = "",
    fraction: Annotated[float | None, typer.Option(help="Sampling fraction n/N, for the estimates of θ.")] = None,
    tolerance: Annotated[
        float | None, typer.Option(help="Sensitive values within this range are similar (θ3).")
    ] = None,
    population: Annotated[str | None, typer.Option(help="File of the population, for the true θ.")] = None,
    missing: Annotated[str, typer.Option(help="Missing keys: class, wildcard or drop.")] = "class",
    released: Annotated[str | None, typer.Option(help="Released version of the file, to compare with.")] = None,
    id: Annotated[str | None, typer.Option(help="Column that identifies records in both files.")] = None,
    key_sets: Annotated[int, typer.Option(help="Look at all combinations of keys up to this size.")] = 0,
    parts: Annotated[int | None, typer.Option(help="Measure in this many parts, for files larger than memory.")] = None,
    require_k: Annotated[int | None, typer.Option(help="Exit with code 1 if k is smaller.")] = None,
    require_l: Annotated[int | None, typer.Option(help="Exit with code 1 if l is smaller.")] = None,
    require_t: Annotated[float | None, typer.Option(help="Exit with code 1 if t is larger.")] = None,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Measure the risk of a file: uniques, k, l, t, θ and its estimates."""
    import tabprotect as tp

    options: dict[str, Any] = {"keys": names(keys), "sensitive": names(sensitive) or None, "fraction": fraction}
    options |= {"tolerance": tolerance, "missing": missing}
    found = tp.microdata.risk(file, **options, population=population, parts=parts)
    after = None if released is None else tp.microdata.risk(released, **options)
    far = None
    if released is not None:
        far = tp.microdata.dissimilarity(file, released, id=id)
    sets = tp.microdata.key_sets(file, keys=names(keys), max_size=key_sets) if key_sets else None
    if report is not None:
        from tabprotect.microdata.report import html_report, save_report

        save_report(
            report, html_report(found, after, distance=far, keys=sets, title=f"Disclosure risk of {Path(file).name}")
        )
    if as_json:
        data = found.to_dict()
        if after is not None and far is not None:
            data |= {
                "released": after.to_dict(),
                "dissimilarity": {"RTab": far.RTab, "survival": far.survival, **far.columns},
            }
        if sets is not None:
            data["key_sets"] = [
                {"keys": list(s), "uniques": int(u), "minimal": int(m)}
                for s, u, m in zip(sets.sets, sets.uniques, sets.minimal, strict=True)
            ]
        print_json(data)
    else:
        for text in [found.summary(), *(x.summary() for x in (sets, after, far) if x is not None)]:
            typer.echo(text)
    last = after or found
    broken = (
        (require_k is not None and last.k < require_k)
        or (require_l is not None and (last.l is None or last.l < require_l))
        or (require_t is not None and (last.t is None or last.t > require_t))
    )
    raise typer.Exit(1 if broken else 0)


@app.command()
def protect(
    file: File,
    out: Annotated[Path, typer.Argument(help="Protected file, CSV or Parquet.")],
    keys: Keys,
    sensitive: SensitiveColumns = "",
    k: Annotated[int, typer.Option("-n", "--k", help="Smallest class.")] = 5,
    l: Annotated[int | None, typer.Option("--l", help="Fewest distinct sensitive values of a class.")] = None,
    t: Annotated[float | None, typer.Option("--t", help="Largest distance of a class from the file.")] = None,
    levels: Annotated[
        list[str] | None,
        typer.Option(
            "--levels", help="Levels of a key: age=5,10,20 (band widths) or region=levels.csv (one column per level)."
        ),
    ] = None,
    microaggregate: Annotated[
        bool, typer.Option("--microaggregate", help="Microaggregate the keys instead of recoding them.")
    ] = False,
    suppression: Annotated[float, typer.Option(help="Share of records that may be suppressed.")] = 0.01,
    local: Annotated[bool, typer.Option("--local", help="Blank single values where that is enough.")] = False,
    time_limit: Annotated[float, typer.Option(help="Seconds for the search.")] = 60.0,
    recipe: Annotated[Path | None, typer.Option(help="Write what was done as a recipe (JSON).")] = None,
    report: Report = None,
    as_json: Json = False,
) -> None:
    """Make a file k-anonymous (l-diverse, t-close) by the least recoding, or by microaggregation of its keys."""
    import tabprotect as tp
    from tabprotect.microdata.frames import read, write

    columns, hidden = names(keys), names(sensitive)
    data = read(file).to_native()
    hierarchies = {c: [] for c in columns} | dict(parse_levels(text, columns) for text in levels or [])
    with progress_line("protecting") as listen:
        if microaggregate:
            done = tp.microdata.microaggregate(data, columns=columns, k=k, progress=listen)
            if l is not None or t is not None:
                done = tp.microdata.suppress_records(done, keys=columns, k=k, l=l, t=t, sensitive=hidden)
        else:
            done = tp.microdata.generalize(
                data, hierarchies=hierarchies, k=k, l=l, t=t, sensitive=hidden or None, suppression=suppression, local=local,
                time_limit=time_limit, progress=listen,
            )  # fmt: skip
    before = tp.microdata.risk(data, keys=columns, sensitive=hidden or None)
    after = tp.microdata.risk(done.data, keys=columns, sensitive=hidden or None)
    far = tp.microdata.dissimilarity(data, done, groups={"keys": columns})
    write(done.data, out)
    if recipe is not None:
        done.recipe.save(recipe)
    if report is not None:
        from tabprotect.microdata.report import html_report, save_report

        points = tp.microdata.trade_off(
            data, keys=columns, hierarchies=hierarchies, ks=sorted({2, 3, 5, 10, k}), time_limit=5
        )
        title = f"Protection of {Path(file).name}"
        save_report(report, html_report(before, after, recipe=done.recipe, distance=far, trade_off=points, title=title))
    if as_json:
        plain = {c: v for c, v in done.details.items() if c != "labels"}
        print_json(
            {"before": before.to_dict(), "after": after.to_dict(), "survival": far.survival, "RTab": far.RTab, **plain}
        )
    else:
        typer.echo(f"{done.summary()}\nbefore: {before.summary()}\nafter: {after.summary()}\n{far.summary()}")


def parse_levels(text: str, columns: list[str]) -> tuple[str, Any]:
    """``age=5,10`` or ``region=levels.csv``."""
    name, _, value = text.partition("=")
    if name not in columns or not value:
        raise InputError(f"--levels {text}: write KEY=5,10 or KEY=levels.csv, with KEY one of {', '.join(columns)}")
    try:
        return name, [float(x) if "." in x else int(x) for x in value.split(",")]
    except ValueError:
        from tabprotect.microdata.frames import read

        return name, read(value).to_pandas()


@app.command()
def apply(
    file: File,
    out: Annotated[Path, typer.Argument(help="Protected file, CSV or Parquet.")],
    recipe: Annotated[Path, typer.Option(help="Recipe written by risk protect.")],
    as_json: Json = False,
) -> None:
    """Do the steps of a recipe to another file of the same shape."""
    import tabprotect as tp
    from tabprotect.microdata.frames import write

    done = tp.microdata.Recipe.load(recipe).apply(file)
    write(done.data, out)
    if as_json:
        print_json({"records": len(done.kept), "survival": done.survival, "steps": done.recipe.describe()})
    else:
        typer.echo(done.summary())


@app.command()
def study(
    name: Annotated[
        str, typer.Argument(help="theta (36 settings of θ) or anonymity (k-anonymity against microaggregation).")
    ],
    out: Annotated[Path | None, typer.Option(help="Folder for the table (CSV) and the figure (SVG).")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A small slice.")] = False,
    samples: Annotated[int, typer.Option(help="Samples per setting (theta).")] = 1000,
    records: Annotated[int, typer.Option(help="Records (anonymity).")] = 20_000,
    seed: Annotated[int, typer.Option()] = 0,
    as_json: Json = False,
) -> None:
    """Recompute the study of a source document: its table, its figure, its claims. Exit code 1 if a claim does not hold."""
    from tabprotect.microdata.study import anonymity_study, theta_study

    if name not in {"theta", "anonymity"}:
        raise InputError(f"unknown study {name!r}; there are theta and anonymity")
    with progress_line(f"study {name}") as listen:
        done: Any
        if name == "theta":
            done = theta_study(samples=samples, seed=seed, quick=quick, progress=listen)
        else:
            done = anonymity_study(records=records, seed=seed, quick=quick, progress=listen)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        done.table.to_csv(out / f"{name}.csv", index=False)
        done.figure().savefig(out / f"{name}.svg")
    claims = done.claims()
    if as_json:
        print_json({"table": done.table.to_dict("records"), "claims": claims})
    else:
        typer.echo(done.table.to_string(index=False, float_format=lambda v: f"{v:.4f}"))
        for claim, holds in claims.items():
            typer.echo(f"{'holds' if holds else 'FAILS'}: {claim}")
    raise typer.Exit(0 if all(claims.values()) else 1)
