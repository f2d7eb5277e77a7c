"""Files of τ-ARGUS: tables (``.tab`` with ``.rda`` and ``.hrc``), microdata and a-priori information."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.files import read_text, write_text
from tabprotect.io.apriori import read_apriori
from tabprotect.io.jj import numerals
from tabprotect.io.microdata import parse_numbers, read_microdata
from tabprotect.io.rda import Metadata, read_rda
from tabprotect.sensitivity.locate import locate_each
from tabprotect.table.contributions import Contributions
from tabprotect.table.table import Table
from tabprotect.types import FloatArray

__all__ = ["read_apriori", "read_argus", "read_microdata", "write_argus"]

# cell status of the intermediate format: safe, unsafe by various rules, protected, secondary, empty
_BY_NUMBER = dict(zip(map(str, range(1, 15)), "ssuuuuuuuzmmzz", strict=True))
_BY_LETTER = {"S": "s", "U": "u", "P": "z", "M": "m", "E": "z", "": ""}


def read_argus(
    path: str | Path, rda: str | Path | None = None, *, encoding: str = "utf-8", repair: bool = False
) -> Table:
    """Read a τ-ARGUS table: one record per cell in ``path``, described by ``rda`` (the same name with ``.rda`` unless given).

    Known columns: dimensions with their total codes and hierarchies, the response, frequency, largest contributions (MAXSCORE), shadow variable (the
    total that contributions are compared with), cost, protection levels and status. Numbers may have a decimal comma where the separator is not a
    comma. Totals that are not in the file are computed; those that are must add up, unless ``repair``.
    """
    meta = read_rda(Path(path).with_suffix(".rda") if rda is None else rda, tabular=True, encoding=encoding)
    rows, lines = _records(path, meta, encoding)
    dims = meta.of("dimension")
    if not dims:
        raise InputError("has no dimension (<RECODEABLE>)", file=meta.path)
    texts = {v.name: [row[k].strip() for row in rows] for k, v in enumerate(meta.variables)}
    frame: dict[str, Any] = {v.name: texts[v.name] for v in dims}
    for v in meta.variables:
        if v.role in ("value", "frequency", "top", "shadow", "cost", "lpl", "upl"):
            blank = np.nan if v.role == "cost" else 0.0
            frame[v.name] = parse_numbers(
                texts[v.name], v.name, path, lines, comma=meta.separator != ",", missing={"": blank}
            )
    options = _options(meta)
    if "status" in options:
        frame[options["status"]] = _statuses(texts[options["status"]], meta, path, lines)
    by, total = {}, {}
    for v in dims:
        total[v.name] = v.setting("TOTCODE")
        by[v.name] = meta.hierarchy(v, total[v.name], encoding)
    try:
        table = Table.from_frame(frame, by, total=total, repair=repair, name=Path(path).stem, **options)
    except InputError as error:
        raise _at_line(error, path, lines) from None
    return _with_shadow(table, meta, frame)


def _records(path: str | Path, meta: Metadata, encoding: str) -> tuple[list[list[str]], list[int]]:
    """The fields of every record and the line it stands in."""
    separator = meta.separator or ","
    rows, lines = [], []
    for number, line in enumerate(read_text(path, encoding).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = next(csv.reader([line.rstrip("\r")], delimiter=separator))
        except csv.Error:
            raise InputError("cannot be read as separated fields", file=path, line=number) from None
        if len(row) != len(meta.variables):
            raise InputError(f"{len(meta.variables)} fields are expected, {len(row)} found", file=path, line=number)
        rows.append(row)
        lines.append(number)
    return rows, lines


def _options(meta: Metadata) -> dict[str, Any]:
    """The columns of the file by what ``from_frame`` calls them."""
    options: dict[str, Any] = {}
    for role, name in (
        ("value", "value"),
        ("frequency", "freq"),
        ("cost", "cost"),
        ("lpl", "lpl"),
        ("upl", "upl"),
        ("status", "status"),
    ):
        found = meta.of(role)
        if len(found) > 1:
            raise InputError(
                f"there are {len(found)} variables for the {name}: keep one", file=meta.path, line=found[1].line
            )
        if found:
            options[name] = found[0].name
    if "value" not in options and "freq" not in options:
        raise InputError("has neither a response (<NUMERIC>) nor a frequency", file=meta.path)
    top = [v.name for v in meta.of("top")]
    if top and "freq" not in options:
        raise InputError("largest contributions (<MAXSCORE>) need a <FREQUENCY>", file=meta.path)
    return options | ({"top": top} if top else {})


def _statuses(texts: Sequence[str], meta: Metadata, path: str | Path, lines: Sequence[int]) -> list[str]:
    own = {
        meta.words.get(tag, letter).upper(): s
        for tag, letter, s in (("SAFE", "S", "s"), ("UNSAFE", "U", "u"), ("PROTECT", "P", "z"))
    }
    known = {**_BY_NUMBER, **_BY_LETTER, **own}
    for text, line in zip(texts, lines, strict=True):
        if text.upper() not in known:
            raise InputError(f"unknown status {text[:20]!r}", file=path, line=line)
    return [known[t.upper()] for t in texts]


def _at_line(error: InputError, path: str | Path, lines: Sequence[int]) -> InputError:
    """The same error with the line of the row it names."""
    match = re.match(r"row (\d+) \(from 0\): (.*)", str(error), re.DOTALL)
    if match is None:
        return InputError(str(error), file=path)
    return InputError(match[2], file=path, line=lines[int(match[1])])


def _with_shadow(table: Table, meta: Metadata, frame: dict[str, Any]) -> Table:
    """Contributions are compared with the shadow variable where there is one."""
    shadow, known = meta.of("shadow"), table.contributions
    if not shadow or known is None:
        return table
    cells = locate_each(table, list(zip(*(frame[d.name] for d in table.dims), strict=True)), missing="ignore")
    total = np.array(known.total, float)
    total[cells[cells >= 0]] = frame[shadow[0].name][cells >= 0]
    return table.replace(contributions=Contributions(known.count, known.top, total))


def write_argus(table: Table, path: str | Path, *, separator: str = ";", encoding: str = "utf-8") -> Path:
    """Write a table for τ-ARGUS: the cells to ``path``, beside it the metadata ``.rda`` and one ``.hrc`` file per hierarchical dimension.

    Values, frequencies, largest contributions, costs, levels and status go with it; bounds, sliding levels and reasons have no place in the format. Cells
    without own cost get their value. The file holds the true values.
    """
    if not table.dims:
        raise InputError("a table without dimensions cannot be written for τ-ARGUS: use write_jj")
    if len(separator) != 1 or separator in '".' or separator.isalnum():
        raise InputError(
            f"the separator must be one sign other than a quote, a point, letters and digits, not {separator!r}"
        )
    target = Path(path)
    meta = [f'<SEPARATOR> "{separator}"', '<SAFE> "S"', '<UNSAFE> "U"', '<PROTECT> "P"']
    fields: list[list[str]] = []
    for k, dim in enumerate(table.dims):
        _check_codes(dim.name, dim.codes, separator)
        meta += [_variable_name(dim.name), "  <RECODEABLE>"]
        if dim.hierarchy.sums:
            meta.append(f'  <TOTCODE> "{dim.codes[dim.hierarchy.roots[0]]}"')
        if dim.hierarchy.level.max() > 1:
            tree = target.with_name(f"{target.stem}_{re.sub(r'[^0-9A-Za-z_-]', '_', dim.name)}.hrc")
            dim.hierarchy.to_hrc(tree, encoding=encoding)
            meta += ["  <HIERARCHICAL>", f'  <HIERCODELIST> "{tree.name}"', '  <HIERLEADSTRING> "@"']
        quoted = [f'"{c}"' for c in dim.codes]
        fields.append([quoted[c] for c in table.codes[:, k].tolist()])
    for name, tag, column in _numeric_columns(table):
        meta += [name, f"  {tag}"]
        texts = numerals(np.asarray(column, float))
        if tag != "<FREQUENCY>":
            meta.append(f"  <DECIMALS> {max((len(t.partition('.')[2]) for t in texts if 'e' not in t), default=0)}")
        fields.append(texts)
    meta += ["Status", "  <STATUS>"]
    letter = {"s": "S", "u": "U", "z": "P", "m": "M"}
    fields.append([letter[s] for s in table.status.tolist()])
    write_text(target.with_suffix(".rda"), "\n".join(meta) + "\n", encoding)
    out = io.StringIO()
    out.writelines(separator.join(row) + "\n" for row in zip(*fields, strict=True))
    return write_text(target, out.getvalue(), encoding)


def _numeric_columns(table: Table) -> list[tuple[str, str, FloatArray]]:
    columns: list[tuple[str, str, Any]] = [("Value", "<NUMERIC>", table.values)]
    known = table.contributions
    if table.freq is not None:
        columns.append(("Freq", "<FREQUENCY>", table.freq))
        if known is not None and known.weights is None:
            columns += [(f"Top{k + 1}", "<MAXSCORE>", known.top[:, k]) for k in range(known.top.shape[1])]
            if not np.array_equal(known.total, table.values):
                columns.append(("Shadow", "<NUMERIC> <SHADOW>", known.total))
    if not np.isnan(table.cost).all():
        columns.append(("Cost", "<NUMERIC> <COST>", table.weights("value")))
    if table.primary.any():
        columns += [("Lpl", "<NUMERIC> <LOWERPL>", table.lpl), ("Upl", "<NUMERIC> <UPPERPL>", table.upl)]
    return columns


def _variable_name(name: str) -> str:
    if not re.fullmatch(r'[^\s"<>][^"<>\n\r]*', name) or name != name.strip():
        raise InputError(f"dimension {name!r} cannot be named so in a metadata file")
    return f'"{name}"' if re.search(r"\s", name) else name


def _check_codes(name: str, codes: Sequence[str], separator: str) -> None:
    for code in codes:
        if code != code.strip() or any(sign in code for sign in '"\n\r') or not code:
            raise InputError(f"code {code!r} of dimension {name!r} cannot be written for τ-ARGUS")
