"""τ-ARGUS a-priori (history) files: what is decided of single cells beforehand."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from tabprotect.errors import InputError
from tabprotect.files import read_text
from tabprotect.sensitivity.manual import Manual

Codes = tuple[str, ...]
_STATUS = {"S": "safe", "U": "unsafe", "P": "protect"}


def read_apriori(
    path: str | Path,
    *,
    separator: str | None = None,
    dims: int | None = None,
    missing: str = "error",
    encoding: str = "utf-8",
) -> Manual:
    """Read an a-priori file (``.hst``) as a rule: ``table.mark(rule | read_apriori("x.hst"))``.

    Each line has the codes of a cell and then ``S`` (safe), ``U`` (unsafe), ``P`` (must be published), ``C cost`` or ``PL lower [upper]``. The
    separator is found among ``; , tab`` unless given; ``dims`` is the number of codes in each line, found from the file unless given. ``missing="ignore"`` leaves
    out cells that the table does not have.
    """
    text = read_text(path, encoding)
    if separator is None:
        first = next(line for line in text.split("\n") if line.strip())
        separator = max(";,\t", key=first.count)
    status: dict[str, list[Codes]] = {"safe": [], "unsafe": [], "protect": []}
    cost: dict[Codes, float] = {}
    levels: dict[Codes, tuple[float, float]] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            words = [w.strip() for w in next(csv.reader([line.rstrip("\r")], delimiter=separator))]
            codes, order, numbers = _split(words, dims)
        except (InputError, csv.Error, TypeError) as error:
            message = str(error) if isinstance(error, InputError) else "cannot be read as separated fields"
            raise InputError(message, file=path, line=number) from None
        dims = len(codes)
        if order in _STATUS:
            status[_STATUS[order]].append(codes)
        elif order == "C":
            cost[codes] = numbers[0]
        else:
            levels[codes] = (numbers[0], numbers[-1])
    return Manual(
        unsafe=status["unsafe"],
        safe=status["safe"],
        protect=status["protect"],
        cost=cost or None,
        levels=levels or None,
        missing=missing,
    )


def _split(words: list[str], dims: int | None) -> tuple[Codes, str, list[float]]:
    """Codes, order and numbers of one line; the order is looked for from the right, because codes may look like orders."""
    places = [dims] if dims is not None else range(len(words) - 1, 0, -1)
    for k in places:
        if k is None or not 1 <= k < len(words):
            break
        order, rest = words[k].upper(), words[k + 1 :]
        allowed = {"S": (0,), "U": (0,), "P": (0,), "C": (1,), "PL": (1, 2)}.get(order, ())
        if len(rest) in allowed:
            return tuple(words[:k]), order, [_amount(w) for w in rest]
    many = "the codes of a cell" if dims is None else f"{dims} codes"
    raise InputError(f"{many}, then S, U, P, 'C cost' or 'PL lower upper' are expected")


def _amount(text: str) -> float:
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value >= 0) or "_" in text:
        raise InputError("costs and levels must be finite numbers of zero or more")
    return value
