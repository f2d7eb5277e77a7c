"""Tables from frames of cells: inner cells only, or with their totals."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tabprotect.errors import InputError
from tabprotect.table.columns import arrow_columns, encode, numbers
from tabprotect.table.contributions import Contributions
from tabprotect.table.cube import check_size, cube_codes, cube_relations, fill_margins, fill_top, units
from tabprotect.table.dimension import as_hierarchy, read_by, total_labels
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.table.mixed import side_by_side
from tabprotect.table.table import PROTECTED, SAFE, SECONDARY, UNSAFE, Table
from tabprotect.types import BoolArray, FloatArray, IntArray

OPTIONAL = ("cost", "status", "lb", "ub", "lpl", "upl", "spl", "reason")


class Repaired(UserWarning):
    """Totals of a non-additive table were recomputed; ``cells`` are their indices, ``before`` and ``after`` the values."""

    def __init__(self, message: str, cells: IntArray, before: FloatArray, after: FloatArray) -> None:
        super().__init__(message)
        self.cells, self.before, self.after = cells, before, after


@dataclass(frozen=True)
class _Placed:
    """The rows of the frame and the cells of the cube they belong to."""

    dims: tuple[Dimension, ...]
    index: IntArray
    columns: Mapping[str, Any]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(len(d) for d in self.dims)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape))

    @property
    def given(self) -> BoolArray:
        given = np.zeros(self.size, bool)
        given[self.index] = True
        return given

    @property
    def inner(self) -> BoolArray:
        """Cells whose codes are leaves in every dimension."""
        return _outer([np.isin(np.arange(len(d)), d.hierarchy.leaves) for d in self.dims])

    def spread(self, values: npt.NDArray[Any], empty: Any) -> npt.NDArray[Any]:
        """A column over all cells of the cube, ``empty`` where the frame has no row."""
        out = np.full(self.size, empty, dtype=values.dtype)
        out[self.index] = values
        return out

    def margins(self, cube: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """All cells recomputed from the inner ones."""
        return fill_margins(cube.reshape(self.shape)[np.ix_(*[d.hierarchy.leaves for d in self.dims])], self.dims)


def from_frame(
    cells: Any,
    by: Any,
    value: str | Sequence[str] | None = None,
    freq: str | None = None,
    *,
    total: str | Mapping[str, str | None] | None = None,
    repair: bool = False,
    counts: bool | Sequence[str] | None = None,
    top: Sequence[str] = (),
    variable: str = "variable",
    name: str = "",
    **columns: str,
) -> Table:
    """A table from a frame of cells: inner cells only (margins are computed exactly) or with its totals (checked).

    Parameters
    ----------
    cells
        pandas, polars, Arrow or any other frame that narwhals reads, a mapping of columns, or the path of a CSV or Parquet file.
    by
        A list of columns (flat dimensions), or a mapping from column to a ``Hierarchy``, a list of codes, nested dicts, the path of
        a ``.hrc`` file, or None (the codes found).
    value
        The column of values; a list of columns makes a mixed table, with one more dimension ``variable`` that has no total. Left out, the
        column ``value`` if there is one, else the table counts: its values are the ``freq`` column.
    freq
        The column with the number of contributors of each cell (default: a column of that name, if any).
    total
        The label of totals in the frame (``"Total"``), or one label per dimension; None for a dimension that is not to be summed.
    repair
        Recompute the totals of a table that does not add up, and warn with ``Repaired`` what was changed, instead of an error.
    counts
        Whether the values are counts, or which of several value columns are; by default those equal to ``freq``.
    top
        Columns with the largest contributions of each cell in descending order. Totals that are not in the frame get theirs from their
        parts, which is right when no respondent contributes to two inner cells.
    columns
        Names of the columns ``cost, status, lb, ub, lpl, upl, spl, reason``; by default those of the same name, if any.

    Combinations without a row are empty cells: value 0 and status ``z``.

    >>> cells = {"region": ["N", "N", "S"], "sex": ["f", "m", "m"], "n": [3, 4, 5]}
    >>> t = Table.from_frame(cells, by=["region", "sex"], freq="n")
    >>> t.values.tolist()
    [12.0, 3.0, 9.0, 7.0, 3.0, 4.0, 5.0, 0.0, 5.0]
    """
    unknown = set(columns) - set(OPTIONAL)
    if unknown:
        raise InputError(f"unknown option {min(unknown)!r} of from_frame; columns are {', '.join(OPTIONAL)}")
    specs = read_by(by)
    frame = arrow_columns(cells, None, text=list(specs))
    values = _value_columns(frame, value, freq)
    freq = freq if freq is not None or "freq" not in frame else "freq"
    needed = [*specs, *values, *top, *([freq] if freq else []), *columns.values()]
    for column in needed:
        if column not in frame:
            raise InputError(f"no column {column!r}; there are {', '.join(map(repr, frame))}")
    placed = _place(frame, specs, total_labels(total, specs))
    parts = [_one_variable(placed, column, freq, top, columns, repair) for column in values]
    kinds = [_is_count(part, column, freq, counts) for part, column in zip(parts, values, strict=True)]
    if len(parts) == 1 and (value is None or isinstance(value, str)):
        return parts[0].replace(counts=kinds[0], name=name)
    return side_by_side(parts, values, kinds, variable, name)


def _value_columns(frame: Mapping[str, Any], value: str | Sequence[str] | None, freq: str | None) -> list[str]:
    if value is None:
        found = freq or next((c for c in ("value", "freq") if c in frame), None)
        if found is None:
            raise InputError(f"name the value or freq column; there are {', '.join(map(repr, frame))}")
        return [found]
    values = [value] if isinstance(value, str) else list(value)
    if not values or len(set(values)) < len(values):
        raise InputError(f"value must name different columns, got {values}")
    return values


def _place(frame: Mapping[str, Any], specs: Mapping[str, Any], totals: Mapping[str, str | None]) -> _Placed:
    """Find the cell of every row."""
    dims, index = [], np.zeros(len(next(iter(frame.values()))), np.int64)
    for column, spec in specs.items():
        if column not in frame:
            raise InputError(f"no column {column!r}; there are {', '.join(map(repr, frame))}")
        number, found = encode(frame[column])
        if (number < 0).any():
            raise InputError(f"row {int((number < 0).argmax())} (from 0): the code of {column!r} is missing")
        hierarchy = as_hierarchy(spec, found, totals[column], column)
        position = np.array([_position(hierarchy, c, totals[column], column) for c in found] or [-1], np.int64)
        if (position < 0).any() and len(found):
            bad = int((position < 0).argmax())
            row = int((number == bad).argmax())
            raise InputError(f"row {row} (from 0): code {found[bad]!r} is not in the hierarchy of {column!r}")
        index = index * len(hierarchy) + (position[number] if len(found) else 0)
        dims.append(Dimension(column, hierarchy))
    check_size(dims)
    order = np.argsort(index, kind="stable")
    twice = np.flatnonzero(np.diff(index[order]) == 0)
    if len(twice):
        first, second = sorted(order[twice[0] : twice[0] + 2].tolist())
        codes = ", ".join(f"{c}={frame[c][second].as_py()}" for c in specs)
        raise InputError(
            f"rows {first} and {second} (from 0) are the same cell ({codes}); {len(twice)} rows repeat a cell"
        )
    return _Placed(tuple(dims), index, frame)


def _position(hierarchy: Hierarchy, code: str, total: str | None, column: str) -> int:
    """Position of a code of the frame; the total label stands for the top code of a hierarchy that does not use the label itself."""
    if code in hierarchy.position:
        if total is not None and code != total and code.lower() == total.lower() and hierarchy.level.max() == 1:
            raise InputError(
                f"code {code!r} of {column!r} differs from the total label {total!r} only in case: pass total={code!r}"
            )
        return hierarchy.position[code]
    if code == total and len(hierarchy.roots) == 1:
        return int(hierarchy.roots[0])
    return -1


def _one_variable(
    placed: _Placed, column: str, freq: str | None, top: Sequence[str], names: Mapping[str, str], repair: bool
) -> Table:
    """The table of one value column."""
    frame, inner, given = placed.columns, placed.inner, placed.given
    raw = placed.spread(numbers(frame[column], column), 0.0)
    scale = units(raw)
    computed = placed.margins(np.rint(raw * scale).astype(np.int64)) / scale if scale else placed.margins(raw)
    values = np.where(given, raw, computed)
    many = None
    if freq is not None:
        people = numbers(frame[freq], freq)
        if (people < 0).any() or (people != np.rint(people)).any():
            row = int(((people < 0) | (people != np.rint(people))).argmax())
            raise InputError(f"row {row} (from 0): column {freq!r} must be a whole number, not {people[row]:g}")
        cube = placed.spread(people.astype(np.int64), 0)
        many = np.where(given, cube, placed.margins(cube))
    filled = (raw != 0) if many is None else (many > 0) | (raw != 0)
    empty = (placed.margins((inner & filled).astype(np.int64)) == 0) & ~(given & filled)
    table = Table(
        values,
        cube_relations(placed.dims),
        freq=many,
        dims=placed.dims,
        codes=cube_codes(placed.dims),
        **_optional(placed, names, empty, -np.inf if (values < 0).any() else 0.0),
    )
    if top:
        table = table.replace(contributions=_contributions(placed, table, top))
    return _additive(placed, table, computed, repair)


def _additive(placed: _Placed, table: Table, computed: FloatArray, repair: bool) -> Table:
    """Check the sums, or recompute the totals."""
    if not repair:
        table.check_additive()
        return table
    total = placed.given & ~placed.inner & (table.values != computed)
    gap = total & (placed.margins((placed.inner & placed.given).astype(np.int64)) == 0)
    if gap.any():
        raise InputError(
            f"{table.label(int(gap.argmax()))} cannot be repaired: none of its inner cells is in the frame"
        )
    changed = np.flatnonzero(total)
    fixed = table.replace(values=np.where(total, computed, table.values))
    fixed.check_additive()
    real = changed[np.abs(table.values - computed)[changed] > 1e-9 * np.maximum(1.0, np.abs(computed[changed]))]
    if len(real):
        shift = np.abs(table.values - computed)[real]
        worst = real[np.argsort(-shift, kind="stable")][:5]
        text = "; ".join(f"{table.label(int(i))} by {computed[i] - table.values[i]:+g}" for i in worst)
        message = (
            f"{len(real)} totals did not add up and were recomputed from their inner cells; the largest changes: {text}"
        )
        warnings.warn(Repaired(message, real, table.values[real], computed[real]), stacklevel=5)
    return fixed


def _optional(placed: _Placed, names: Mapping[str, str], empty: BoolArray, floor: float) -> dict[str, Any]:
    """The columns that a frame of cells may have besides value and freq; ``floor`` is the bound of cells without one."""
    frame = placed.columns
    out: dict[str, Any] = {}
    default = {"cost": np.nan, "lb": floor, "ub": np.inf, "lpl": 0.0, "upl": 0.0, "spl": 0.0}
    for name, blank in default.items():
        column = names.get(name, name)
        if column not in frame:
            continue
        out[name] = placed.spread(numbers(frame[column], column, missing=blank), blank)
        if name in ("lpl", "upl", "spl") and (out[name] < 0).any():
            raise InputError(f"column {column!r} must not be negative: {_row(placed, out[name] < 0)}")
    for name in ("status", "reason"):
        column = names.get(name, name)
        if column in frame:
            number, texts = encode(frame[column])
            words = np.array([*texts, ""], dtype=str)[number]
            if name == "status" and not np.isin(words, [SAFE, UNSAFE, PROTECTED, SECONDARY, ""]).all():
                bad = int((~np.isin(words, [SAFE, UNSAFE, PROTECTED, SECONDARY, ""])).argmax())
                raise InputError(f"row {bad} (from 0): status {str(words[bad])!r} is none of s, u, z, m")
            out[name] = placed.spread(words, "")
    status = out.get("status", np.full(placed.size, "", "U1"))
    out["status"] = np.where(status != "", status, np.where(empty, PROTECTED, SAFE)).astype("U1")
    return out


def _row(placed: _Placed, bad: BoolArray) -> str:
    cell = int(bad.argmax())
    return f"row {int((placed.index == cell).argmax())} (from 0)"


def _contributions(placed: _Placed, table: Table, top: Sequence[str]) -> Contributions:
    """The largest contributions: as given, else merged from the parts."""
    if table.freq is None:
        raise InputError("top needs freq, the number of contributors of each cell")
    given = np.column_stack([placed.spread(numbers(placed.columns[c], c, missing=0.0), 0.0) for c in top])
    if (np.diff(given, axis=1) > 0).any():
        raise InputError(
            f"columns {', '.join(top)} must be in descending order: {_row(placed, (np.diff(given, axis=1) > 0).any(axis=1))}"
        )
    leaves = np.ix_(*[d.hierarchy.leaves for d in placed.dims])
    merged = fill_top(given.reshape(*placed.shape, len(top))[leaves], placed.dims)
    return Contributions(table.freq, np.where(placed.given[:, None], given, merged), table.values)


def _is_count(table: Table, column: str, freq: str | None, counts: bool | Sequence[str] | None) -> bool:
    if isinstance(counts, bool):
        return counts
    if counts is not None:
        return column in counts
    return column == freq or (table.freq is not None and bool((table.values == table.freq).all()))


def _outer(masks: Sequence[BoolArray]) -> BoolArray:
    out = np.ones(1, bool)
    for mask in masks:
        out = np.logical_and.outer(out, mask).ravel()
    return out
