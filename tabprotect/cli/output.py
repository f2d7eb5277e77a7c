"""What commands write and print of a protected table; no value of a hidden cell is among it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tabprotect.errors import InputError
from tabprotect.protected import Protected


def outcome(res: Protected) -> dict[str, Any]:
    """The result as plain data."""
    return {
        "kind": res.kind,
        "method": res.method,
        "status": res.status,
        "objective": res.objective,
        "bound": res.bound,
        "gap": res.gap,
        "runtime": res.runtime,
        "cells": res.table.n_cells,
        "primary": int(res.table.primary.sum()),
    }


def suppressed(res: Protected) -> dict[str, Any]:
    """What only suppression has to tell."""
    return {
        "secondary": int(res.secondary.sum()),
        "suppressed": res.suppressed.nonzero()[0],
        "fingerprint": None if res.certificate is None else res.certificate.fingerprint,
        "why": res.info.get("why"),
    }


def changed(res: Protected) -> dict[str, Any]:
    """What rounding and adjustment have to tell."""
    return {key: res.info[key] for key in ("changed", "largest_change", "additivity", "how")}


def write_outputs(
    res: Protected,
    out: Path | None,
    symbol: str = "",
    report: Path | None = None,
    certificate: Path | None = None,
    *,
    confidential: bool = False,
) -> list[str]:
    """Write what was asked for; returns the names. ``confidential`` adds the true values to the report."""
    if out is not None:
        write_published(res, out, symbol)
    if report is not None:
        res.to_html(report, confidential=confidential)
    if certificate is not None:
        res.certificate.save(certificate)
    return [str(file) for file in (out, report, certificate) if file is not None]


def write_published(res: Protected, out: Path, symbol: str) -> None:
    """The table as published, in the format that the name of the file says."""
    from tabprotect.files import replacing

    suffix = out.suffix.lower()
    if suffix == ".jj":
        raise InputError("a JJ file holds the true values of all cells, so it cannot be published: use .csv, .parquet or .xlsx; "
                         "for the office's own tools there is: tabprotect solve in.jj out.jj")  # fmt: skip
    if suffix in (".parquet", ".pq"):
        with replacing(out) as target:
            res.publish().to_parquet(target, index=False)
    elif suffix == ".xlsx":
        from tabprotect.report.style import Symbols

        res.to_excel(out, symbols=Symbols(symbol, symbol))
    elif suffix in (".csv", ".txt", ""):
        with replacing(out) as target:
            res.publish(symbol=symbol).to_csv(target, index=False)
    else:
        raise InputError(f"cannot write {out.suffix} files: use .csv, .parquet or .xlsx")
