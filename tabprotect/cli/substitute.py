"""``tabprotect substitute``: randomise records, reconstruct tables from them, plan, and rerun the source's studies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from tabprotect.cli.common import exit_code, print_json
from tabprotect.errors import InputError

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Random substitution and reconstruction.")

JSON = typer.Option("--json", help="Machine-readable output.")
GAMMA = typer.Option("--gamma", help="Amplification factor, above 1.")
EPSILON = typer.Option("--epsilon", help="Local differential privacy per record, ln gamma.")
RHO1 = typer.Option("--rho1", help="Prior probability of the ρ1→ρ2 guarantee.")
RHO2 = typer.Option("--rho2", help="Posterior that a property of prior ρ1 must not exceed.")


@app.command()
def randomize(
    data: Annotated[Path, typer.Argument(help="Records: CSV or Parquet.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Randomised records, CSV or Parquet.")],
    column: Annotated[list[str] | None, typer.Option("--column", "-c", help="Column to randomise (repeat).")] = None,
    domain: Annotated[
        list[str] | None, typer.Option("--domain", "-d", help="Domain of a column: name=a,b,c (repeat).")
    ] = None,
    gamma: Annotated[float | None, GAMMA] = None,
    epsilon: Annotated[float | None, EPSILON] = None,
    rho1: Annotated[float | None, RHO1] = None,
    rho2: Annotated[float | None, RHO2] = None,
    separate: Annotated[
        bool, typer.Option("--separate", help="Each column on its own; together they amplify by gamma.")
    ] = False,
    scheme: Annotated[
        Path | None, typer.Option("--scheme", help="Use this scheme file instead of columns and gamma.")
    ] = None,
    save_scheme: Annotated[
        Path | None, typer.Option("--save-scheme", help="Write the scheme, needed to reconstruct.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Reproducible, for studies only; secure without it.")
    ] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Replace values at random; the result may be published with the scheme."""
    from tabprotect.substitution.scheme import Scheme

    with exit_code():
        frame = _read(data)
        if scheme is not None:
            if column or domain or any(value is not None for value in (gamma, epsilon, rho1, rho2)) or separate:
                raise InputError("--scheme already says columns, domains and gamma: give it alone")
            plan = Scheme.load(scheme)
        else:
            amplification = _amplification(gamma, epsilon, rho1, rho2)
            if amplification is None:
                raise InputError("give --gamma, --epsilon or --rho1 with --rho2 (or a --scheme)")
            plan = Scheme.gamma_diagonal(_domains(frame, column or [], domain or []), amplification, joint=not separate)
        done = plan.randomize(frame, seed=seed)
        if save_scheme is not None:
            plan.save(save_scheme)
        _write(done.data, out)
        if as_json:
            numbers = {
                "gamma": done.privacy.gamma,
                "epsilon": done.privacy.epsilon,
                "expected_changed": done.expected_changed,
            }
            print_json(
                {"records": len(frame), "columns": list(done.columns), "secure": not done.reproducible, **numbers}
            )
        else:
            typer.echo(f"{len(frame):,} records -> {out}\n{done.summary()}")


@app.command()
def reconstruct(
    data: Annotated[Path, typer.Argument(help="Randomised records: CSV or Parquet.")],
    scheme: Annotated[Path, typer.Option("--scheme", help="The scheme they were randomised with.")],
    method: Annotated[str, typer.Option("--method", help="unbiased, clipped, floor, nnls, ml or em.")] = "unbiased",
    level: Annotated[float, typer.Option("--level", help="Confidence level of the intervals.")] = 0.95,
    sampling: Annotated[
        bool, typer.Option("--sampling", help="Estimate the population the records are a sample of.")
    ] = False,
    interval: Annotated[str, typer.Option("--interval", help="normal, or exact (gamma-diagonal).")] = "normal",
    by: Annotated[
        list[str] | None, typer.Option("--by", "-b", help="Only the joint table of these columns (repeat).")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the estimates, CSV or Parquet.")] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Estimate the original counts, with standard errors and intervals."""
    from tabprotect.substitution.scheme import Scheme

    with exit_code():
        plan = Scheme.load(scheme)
        if by:
            plan = plan.marginal(by)
        found = plan.reconstruct(_read(data), method=method, level=level, sampling=sampling, interval=interval)
        if out is not None:
            _write(found, out)
        if as_json:
            print_json({"method": method, "level": level, "rows": found.to_dict("records")})
        elif out is None:
            typer.echo(found.to_string(index=False))
        else:
            typer.echo(f"{len(found):,} estimates -> {out}")


@app.command()
def plan(
    size: Annotated[list[int], typer.Option("--n", "-n", help="Values of the domain (repeat for several attributes).")],
    records: Annotated[int | None, typer.Option("--records", "-s", help="Number of records.")] = None,
    error: Annotated[float | None, typer.Option("--error", "-e", help="Wanted error.")] = None,
    gamma: Annotated[float | None, GAMMA] = None,
    epsilon: Annotated[float | None, EPSILON] = None,
    rho1: Annotated[float | None, RHO1] = None,
    rho2: Annotated[float | None, RHO2] = None,
    measure: Annotated[str, typer.Option("--measure", help="relative, cell or l1.")] = "relative",
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Give two of privacy, records and error; get the third."""
    from tabprotect.substitution.plan import plan as make_plan

    with exit_code():
        amplification = _amplification(gamma, epsilon, rho1, rho2)
        found = make_plan(size, records=records, error=error, gamma=amplification, measure=measure)
        if as_json:
            print_json(found.to_dict())
        else:
            typer.echo(found.summary())


@app.command()
def study(
    name: Annotated[
        str, typer.Argument(help="distributions, standard-errors, errors, changed, posteriors or all.")
    ] = "all",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer settings and repetitions.")] = False,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the simulation.")] = 0,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for tables (CSV) and figures (PNG).")] = None,
    as_json: Annotated[bool, JSON] = False,
) -> None:
    """Rerun the source's studies: tables and figures."""
    from tabprotect.substitution import study as studies

    with exit_code():
        results = [studies.run(each, quick=quick, seed=seed) for each in (studies.STUDIES if name == "all" else [name])]
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            for each in results:
                each.frame.to_csv(out / f"{each.name}.csv", index=False)
                each.figure().savefig(out / f"{each.name}.png", dpi=150)
        if as_json:
            print_json({each.name: each.frame.to_dict("records") for each in results})
        else:
            for each in results:
                typer.echo(
                    each.summary() if out is None else f"{each.title}: {each.note} -> {out / each.name}.csv, .png"
                )


def _amplification(gamma: float | None, epsilon: float | None, rho1: float | None, rho2: float | None) -> float | None:
    from tabprotect.substitution.plan import as_gamma

    if (rho1 is None) != (rho2 is None):
        raise InputError("--rho1 and --rho2 belong together")
    return as_gamma(gamma, epsilon, None if rho1 is None or rho2 is None else (rho1, rho2))


def _domains(frame: Any, columns: list[str], stated: list[str]) -> dict[str, list[Any]]:
    from tabprotect.substitution.scheme import find_domains

    given: dict[str, list[Any]] = {}
    for text in stated:
        name, sign, values = text.partition("=")
        if not sign or not values:
            raise InputError(f"--domain {text!r}: write name=a,b,c")
        given[name] = values.split(",")
    names = list(dict.fromkeys([*columns, *given]))
    if not names:
        raise InputError("name at least one --column to randomise")
    return {name: given[name] if name in given else find_domains(frame, [name])[name] for name in names}


def _read(path: Path) -> Any:
    import pandas as pd

    try:
        if path.suffix.lower() in (".parquet", ".pq"):
            return pd.read_parquet(path)
        return pd.read_csv(path, dtype=str, keep_default_na=False)  # codes such as 01 stay what they are
    except (OSError, ValueError) as error:
        raise InputError(f"cannot be read: {error}", file=path) from error


def _write(frame: Any, path: Path) -> None:
    draft = path.with_name(path.name + ".part")
    if path.suffix.lower() in (".parquet", ".pq"):
        frame.to_parquet(draft, index=False)
    else:
        frame.to_csv(draft, index=False)
    os.replace(draft, path)
