"""How commands get their table: a JJ or τ-ARGUS file, a frame of cells, or microdata that is tabulated first."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tabprotect.errors import InputError
from tabprotect.table.table import Table


def parse_by(by: list[str] | None) -> dict[str, Any]:
    """``["region=nuts.hrc", "sex"]`` as a mapping from column to the hierarchy file or None; ``a,b`` names two columns.

    >>> parse_by(["region=nuts.hrc", "sex,age"])
    {'region': 'nuts.hrc', 'sex': None, 'age': None}
    """
    found: dict[str, Any] = {}
    for item in by or []:
        column, equals, file = item.partition("=")
        if equals:
            found[column.strip()] = file.strip()
        else:
            found |= {c.strip(): None for c in column.split(",") if c.strip()}
    return found


def load_table(
    path: Path,
    *,
    by: list[str] | None = None,
    value: str | None = None,
    freq: str | None = None,
    total: str | None = None,
    contributor: str | None = None,
    holding: str | None = None,
    weight: str | None = None,
    meta: Path | None = None,
    apriori: Path | None = None,
    rule: str | None = None,
    repair: bool = False,
) -> Table:
    """Read or make the table, apply a-priori information, and mark the sensitive cells if a rule is given."""
    if not path.exists():
        raise InputError("no such file", file=path)
    table = _read(path, parse_by(by), value, freq, total, contributor, holding, weight, meta, repair)
    if rule is not None:
        from tabprotect.sensitivity import parse

        table = table.mark(parse(rule))
    if apriori is not None:
        from tabprotect.io.argus import read_apriori

        table = table.mark(read_apriori(apriori))
    return table


def _read(
    path: Path,
    by: dict[str, Any],
    value: str | None,
    freq: str | None,
    total: str | None,
    contributor: str | None,
    holding: str | None,
    weight: str | None,
    meta: Path | None,
    repair: bool,
) -> Table:
    from tabprotect.io.frames import read_cells, sidecar

    if path.suffix.lower() == ".jj":
        from tabprotect.io.jj import read_jj

        return read_jj(path)
    if path.suffix.lower() == ".tab" or meta is not None:
        from tabprotect.io.argus import read_argus

        return read_argus(path, meta) if meta is not None else read_argus(path)
    if not by:
        if not sidecar(path).exists() and path.suffix.lower() not in (".parquet", ".pq"):
            raise InputError("say which columns hold the codes: --by region --by nace=nace.hrc", file=path)
        return read_cells(path)
    if contributor is not None or weight is not None:
        from tabprotect.table.tabulate import tabulate

        return tabulate(path, by=by, value=value, contributor=contributor, holding=holding, weight=weight, total=total)
    return Table.from_frame(path, by=by, value=value, freq=freq, total=total, repair=repair)
