"""A published table with gaps, made by anyone: codes, values, and hidden cells marked by some symbol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tabprotect.errors import InputError
from tabprotect.table.cube import cube_codes, cube_relations
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.types import BoolArray, FloatArray

HIDDEN = (
    "",
    "x",
    "c",
    ":",
    "*",
    "..",
    "...",
    ".",
    "nan",
    "na",
    "n/a",
    "none",
    "null",
    "(x)",
    "(c)",
    "(d)",
    "d",
    "s",
    "z",
    "suppressed",
    "?",
)
ZERO = ("-", "–", "—")
TOTALS = ("total", "_t", "all", "sum", "insgesamt", "ensemble", "totale", "합계", "계")


@dataclass(frozen=True, eq=False, repr=False)
class Published:
    """What everybody can see: relations among the cells, and their values, NaN where hidden."""

    values: FloatArray
    relations: Any
    rhs: FloatArray
    dims: tuple[Dimension, ...]
    codes: npt.NDArray[np.int32]
    name: str = ""

    @property
    def hidden(self) -> BoolArray:
        return np.isnan(self.values)

    @property
    def n_cells(self) -> int:
        return len(self.values)

    def label(self, i: int) -> str:
        """How to name cell ``i`` to a person."""
        return ", ".join(f"{d.name}={d.codes[c]}" for d, c in zip(self.dims, self.codes[i], strict=True)) or f"#{i}"

    def __repr__(self) -> str:
        return f"<Published: {self.n_cells:,} cells, {int(self.hidden.sum()):,} hidden>"


def read_published(
    data: Any,
    by: Sequence[str] | Mapping[str, Any],
    value: str = "value",
    *,
    total: str | Mapping[str, str] | None = None,
    hidden: Sequence[str] = HIDDEN,
    zero: Sequence[str] = ZERO,
    decimal: str = ".",
    thousands: str | None = None,
) -> Published:
    """Read a published table from a frame or a CSV/Parquet file.

    Parameters
    ----------
    by
        The code columns: a list (one total over parts each), or a mapping to hierarchies.
    total
        The code of the totals, one for all columns or one each; by default a usual one ("Total", "_T", …) is looked for.
    hidden, zero
        What stands in the place of a hidden value and of a zero (compared without case and blanks).
    decimal, thousands
        How numbers are written.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"area": ["Total", "N", "S"], "value": ["10", "x", "c"]})
    >>> read_published(frame, ["area"])
    <Published: 3 cells, 2 hidden>
    """
    frame, name = _load(data)
    columns = list(by)
    for column in [*columns, value]:
        if column not in frame.columns:
            raise InputError(
                f"no column {column!r}; the table has {', '.join(map(str, frame.columns))}", file=name or None
            )
    texts = {c: frame[c].astype(str).str.strip() for c in columns}
    dims = tuple(_dimension(c, texts[c], by[c] if isinstance(by, Mapping) else None, total, name) for c in columns)
    at = np.zeros(len(frame), np.int64)
    for dim in dims:
        position = texts[dim.name].map(dim.hierarchy.position)
        if position.isna().any():
            row = int(np.flatnonzero(position.isna())[0])
            raise InputError(
                f"unknown code {texts[dim.name].iloc[row]!r} in column {dim.name!r}", file=name or None, line=row + 2
            )
        at = at * len(dim) + position.to_numpy(np.int64)
    order = np.argsort(at, kind="stable")
    twice = np.flatnonzero(np.diff(at[order]) == 0)
    if len(twice):
        row = int(order[twice[0] + 1])
        raise InputError(
            f"the cell {', '.join(texts[c].iloc[row] for c in columns)} occurs twice", file=name or None, line=row + 2
        )
    values = np.full(int(np.prod([len(d) for d in dims])), np.nan)
    values[at] = _numbers(frame[value], hidden, zero, decimal, thousands, name)
    relations = cube_relations(dims)
    return Published(values, relations, np.zeros(relations.shape[0]), dims, cube_codes(dims), name)


def _load(data: Any) -> tuple[Any, str]:
    import pandas as pd

    if isinstance(data, str | Path):
        path = Path(data)
        try:
            if path.suffix.lower() in (".parquet", ".pq"):
                return pd.read_parquet(path), str(path)
            return pd.read_csv(
                path, dtype=str, keep_default_na=False, sep=None, engine="python", encoding="utf-8-sig"
            ), str(path)
        except FileNotFoundError:
            raise InputError("no such file", file=path) from None
        except Exception as error:
            raise InputError(f"cannot be read as a table: {error}", file=path) from None
    if isinstance(data, pd.DataFrame):
        return data.reset_index(drop=True), ""
    import narwhals as nw

    try:
        return nw.from_native(data, eager_only=True).to_pandas().reset_index(drop=True), ""
    except TypeError:
        raise InputError(f"a frame or the path of a CSV or Parquet file is needed, got {type(data).__name__}") from None


def _dimension(name: str, codes: Any, given: Any, total: Any, file: str) -> Dimension:
    if isinstance(given, Hierarchy):
        return Dimension(name, given)
    if isinstance(given, str | Path):
        return Dimension(name, Hierarchy.from_hrc(given))
    if given is not None and hasattr(given, "resolve"):
        return Dimension(name, given.resolve(list(dict.fromkeys(codes))))
    distinct = list(dict.fromkeys(codes))
    wanted = total.get(name) if isinstance(total, Mapping) else total
    if wanted is None:
        wanted = next((c for c in distinct if c.lower() in TOTALS), None)
    if wanted is None:
        raise InputError(
            f"column {name!r} has no total among its codes; say which code is the total (total=…)", file=file or None
        )
    if wanted not in distinct:
        raise InputError(f"the total {wanted!r} does not occur in column {name!r}", file=file or None)
    return Dimension(name, Hierarchy.flat([c for c in distinct if c != wanted], total=wanted))


def _numbers(
    column: Any, hidden: Sequence[str], zero: Sequence[str], decimal: str, thousands: str | None, file: str
) -> FloatArray:
    if column.dtype.kind in "iuf":
        return column.to_numpy(float)
    gaps, zeros = {h.lower() for h in hidden}, {z.lower() for z in zero}
    out = np.empty(len(column))
    for row, raw in enumerate(column):
        text = "" if raw is None or raw != raw else str(raw).strip()
        low = text.lower()
        if low in gaps:
            out[row] = np.nan
        elif low in zeros:
            out[row] = 0.0
        else:
            plain = text.replace(thousands, "") if thousands else text
            try:
                out[row] = float(plain.replace(decimal, ".") if decimal != "." else plain)
            except ValueError:
                raise InputError(
                    f"{text!r} is neither a number nor a known symbol for a hidden cell ({', '.join(h for h in hidden[:8] if h)} …)",
                    file=file or None,
                    line=row + 2,
                ) from None
    return out
