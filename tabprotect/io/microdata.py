"""τ-ARGUS microdata: records at fixed positions or separated, described by an ``.rda`` file."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.files import read_text
from tabprotect.io.rda import Metadata, Variable, read_rda
from tabprotect.types import FloatArray

if TYPE_CHECKING:
    import pandas as pd


def read_microdata(path: str | Path, rda: str | Path | None = None, *, encoding: str = "utf-8") -> pd.DataFrame:
    """Read τ-ARGUS microdata (``.asc``) as a frame; the metadata is the file of the same name with ``.rda`` unless given.

    Codes and holdings are text, missing ones None; numbers and weights are floats, missing ones NaN; a request variable is true where one of its request
    codes stands. ``frame.attrs["by"]`` maps every code variable to its hierarchy, as ``tabulate`` takes it; ``frame.attrs["roles"]`` tells the role
    of every variable.
    """
    import pandas as pd

    meta = read_rda(Path(path).with_suffix(".rda") if rda is None else rda, tabular=False, encoding=encoding)
    columns: list[list[str]] = [[] for _ in meta.variables]
    lines: list[int] = []
    for number, fields in _records(path, meta, encoding):
        for column, text in zip(columns, fields, strict=True):
            column.append(text)
        lines.append(number)
    data: dict[str, Any] = {}
    for variable, texts in zip(meta.variables, columns, strict=True):
        data[variable.name] = _typed(variable, texts, path, lines, comma=meta.separator != ",")
    frame = pd.DataFrame(data)
    frame.attrs["by"] = {v.name: meta.hierarchy(v, v.setting("TOTCODE"), encoding) for v in meta.of("dimension")}
    frame.attrs["roles"] = {v.name: v.role for v in meta.variables}
    return frame


def _records(path: str | Path, meta: Metadata, encoding: str) -> Iterator[tuple[int, list[str]]]:
    """(line, fields) of every record."""
    places = [
        (v.start - 1, v.start - 1 + v.width) for v in meta.variables if v.start is not None and v.width is not None
    ]
    shortest = max((start for start, _ in places), default=0)
    for number, line in enumerate(read_text(path, encoding).split("\n"), start=1):
        if not line.strip():
            continue
        line = line.rstrip("\r")
        if meta.separator is None:
            if len(line) <= shortest:
                raise InputError(
                    f"the record ends at position {len(line)}, before its last variable", file=path, line=number
                )
            yield number, [line[a:b].strip() for a, b in places]
            continue
        try:
            fields = next(csv.reader([line], delimiter=meta.separator))
        except csv.Error:
            raise InputError("cannot be read as separated fields", file=path, line=number) from None
        if len(fields) != len(meta.variables):
            raise InputError(f"{len(meta.variables)} fields are expected, {len(fields)} found", file=path, line=number)
        yield number, [f.strip() for f in fields]


def _typed(variable: Variable, texts: Sequence[str], path: str | Path, lines: Sequence[int], *, comma: bool) -> Any:
    missing = {"", *variable.missing}
    if variable.role == "request":
        return np.array([t in variable.asked for t in texts], bool)
    if "value" in variable.roles or variable.role == "weight":
        return parse_numbers(texts, variable.name, path, lines, comma=comma, missing=dict.fromkeys(missing, np.nan))
    return [None if t in missing else t for t in texts]


def parse_numbers(
    texts: Sequence[str],
    name: str,
    path: str | Path,
    lines: Sequence[int],
    *,
    comma: bool,
    missing: Mapping[str, float],
) -> FloatArray:
    """Texts as numbers; ``comma`` allows a decimal comma. What is no finite number is an InputError with its line."""
    values = np.zeros(len(texts))
    for i, text in enumerate(texts):
        if text in missing:
            values[i] = missing[text]
            continue
        try:
            values[i] = float(text.replace(",", ".") if comma else text)
        except ValueError:
            values[i] = np.inf
        if not np.isfinite(values[i]) or "_" in text:
            raise InputError(f"variable {name!r} must be a finite number", file=path, line=lines[i])
    return values
