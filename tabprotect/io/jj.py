"""The JJ format: cells with bounds and protection levels, then arbitrary linear relations (J.J. Salazar González).

``0``, the number of cells, one line ``index value cost status lb ub LPL UPL SPL`` per cell, the number of relations, and one line
``rhs k : cell (coefficient) …`` per relation. τ-ARGUS writes ``freq holdingfreq`` of each cell into a side file ``.frq``.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from tabprotect.errors import InputError
from tabprotect.files import read_bytes, read_text, write_text
from tabprotect.table.table import Table
from tabprotect.types import FloatArray, IntArray

_STATUS = "suzm"
_BATCH = 50_000
_COLUMNS = ("index", "value", "cost", "status", "lb", "ub", "LPL", "UPL", "SPL")
# status letters become digits and punctuation becomes space, so that all the rest is numbers
_NUMERIC = bytes.maketrans(b"suzm:()\r\n\t\v\f", b"0123        ")


def read_jj(path: str | Path, *, check: bool = True) -> Table:
    """Read a table from a JJ file, and the frequencies from a ``.frq`` file of the same name if there is one.

    ``check=False`` accepts a table that does not add up.

    >>> import tempfile, tabprotect as tp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tp.write_jj(tp.examples.d272(), f"{folder}/d272.jj") and tp.read_jj(f"{folder}/d272.jj")
    <Table: 36 cells, 13 relations, 0 primary>
    """
    source = _Source(path)
    n = source.size(1, "the number of cells")
    if source.count < 3 + 9 * n:
        raise source.wrong(f"the file ends before its {n} cells are complete", source.count - 1)
    cells = source.numbers[2 : 2 + 9 * n].reshape(n, 9)
    status = source.statuses(n)
    _check_cells(source, cells)
    m = source.size(2 + 9 * n, "the number of relations")
    relations, rhs = _relations(source, n, m, 3 + 9 * n)
    _, value, cost, _, lb, ub, lpl, upl, spl = (np.ascontiguousarray(c) for c in cells.T)
    side = Path(path).with_suffix(".frq")
    freq = _read_frq(side, n) if side.is_file() else None
    columns = {"cost": cost, "status": status, "lb": lb, "ub": ub, "lpl": lpl, "upl": upl, "spl": spl, "freq": freq}
    try:
        return Table.from_relations(value, relations, rhs=rhs, check=check, name=Path(path).stem, **columns)
    except InputError as error:
        raise InputError(f"{error}\n(check=False reads it all the same)", file=path) from None


def _all_numbers(words: bytes) -> FloatArray:
    """All numbers of a text; ValueError if there is anything else in it."""
    if len(words) > 1_000_000:
        import pyarrow as pa
        from pyarrow import csv

        try:  # several times faster, but knows no leading plus and no numbers beyond the range of floats
            table = csv.read_csv(
                pa.BufferReader(words.replace(b" ", b"\n")),
                read_options=csv.ReadOptions(column_names=["x"], block_size=1 << 24),
                parse_options=csv.ParseOptions(delimiter="\x01", quote_char=False),
                convert_options=csv.ConvertOptions(column_types={"x": pa.float64()}, null_values=[]),
            )
            return np.asarray(table["x"].to_numpy())
        except pa.ArrowInvalid:
            pass
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(words.decode("ascii"), sep=" ")
        except DeprecationWarning:
            raise ValueError from None


class _Source:
    """The words of a JJ file as numbers, and where they stand."""

    def __init__(self, path: str | Path) -> None:
        self.path = path
        self.raw = read_bytes(path).removeprefix(b"\xef\xbb\xbf")
        self.plain = self.raw.translate(_NUMERIC)
        blank = np.frombuffer(self.plain, np.uint8) == 32
        self.starts: IntArray = np.flatnonzero(~blank & np.concatenate([[True], blank[:-1]]))
        try:
            self.numbers: FloatArray = _all_numbers(self.plain)
        except ValueError:
            raise self._first_bad_word() from None
        if len(self.numbers) != len(self.starts):
            raise self._first_bad_word()

    @property
    def count(self) -> int:
        return len(self.starts)

    def wrong(self, message: str, word: int) -> InputError:
        """An error at the line of a word."""
        at = int(self.starts[min(max(word, 0), self.count - 1)])
        return InputError(message, file=self.path, line=self.raw.count(b"\n", 0, at) + 1)

    def _first_bad_word(self) -> InputError:
        for k, start in enumerate(self.starts.tolist()):
            word = self.plain[start : self.plain.find(b" ", start) % (len(self.plain) + 1)]
            try:
                float(word)
            except ValueError:
                shown = word[:20].decode("ascii", "backslashreplace")
                return self.wrong(f"{shown!r} is not a number", k)
        return InputError("is not a JJ file", file=self.path)

    def size(self, word: int, what: str) -> int:
        """A word that is a number of things, each of which takes at least one more word."""
        if self.count <= word:
            raise self.wrong(f"the file ends before {what}", self.count - 1)
        size = self.numbers[word]
        if not (size >= 0 and size == np.floor(size)):
            raise self.wrong(f"{what} must be a whole number", word)
        if size > self.count:
            raise self.wrong(f"{what} is larger than the file", word)
        return int(size)

    def statuses(self, n: int) -> npt.NDArray[np.str_]:
        """The status letters, checked to be where they belong and nowhere else."""
        byte = np.frombuffer(self.raw, np.uint8)
        is_letter = np.zeros(256, bool)
        is_letter[list(_STATUS.encode())] = True
        letters = np.flatnonzero(is_letter[byte])
        expected = self.starts[2 + 3 + 9 * np.arange(n)]
        common = min(len(letters), n)
        alone = np.frombuffer(self.plain + b" ", np.uint8)[letters[:common] + 1] == 32
        wrong = np.flatnonzero((letters[:common] != expected[:common]) | ~alone)
        if len(wrong) or len(letters) != n:
            cell = int(wrong[0]) if len(wrong) else min(common, n - 1)
            raise self.wrong(
                f"cell {cell}: {', '.join(_COLUMNS)} are expected, the status one of s, u, z, m", 2 + 9 * cell
            )
        return byte[letters].view("S1").astype("U1")


def _check_cells(source: _Source, cells: FloatArray) -> None:
    n = len(cells)
    rules = [
        (cells[:, 0] != np.arange(n), 0, "cells must be numbered 0, 1, 2, … in order"),
        (~np.isfinite(cells[:, [1, 2, 6, 7, 8]]).all(axis=1), 1, "values, costs and levels must be finite numbers"),
        (np.isnan(cells[:, 4]) | np.isnan(cells[:, 5]), 4, "the bounds must be numbers"),
        ((cells[:, 2] < 0), 2, "the cost must not be negative"),
        ((cells[:, 6:] < 0).any(axis=1), 6, "protection levels must not be negative"),
        (
            (cells[:, 4] > cells[:, 1]) | (cells[:, 1] > cells[:, 5]),
            4,
            "the value must lie between its bounds lb and ub",
        ),
    ]
    for bad, column, message in rules:
        if bad.any():
            cell = int(bad.argmax())
            raise source.wrong(f"cell {cell}: {message}", 2 + 9 * cell + column)


def _relations(source: _Source, n: int, m: int, first: int) -> tuple[Any, FloatArray]:
    """The relations from word ``first`` on; a colon stands after the second word of each."""
    colons = np.flatnonzero(np.frombuffer(source.raw, np.uint8) == ord(":"))
    after = np.searchsorted(source.starts, colons)
    if len(after) != m or (m and after[0] != first + 2) or (m == 0 and source.count != first):
        raise source.wrong(f"{m} relations 'rhs k : cell (coefficient) …' are expected, {len(after)} found", first)
    if m == 0:
        return sp.csr_array((0, n)), np.zeros(0)
    size = source.numbers[after - 1]
    ends = np.append(after[1:] - 2, source.count)
    bad = ~(size >= 0) | (2 * size != ends - after)
    if bad.any():
        r = int(bad.argmax())
        raise source.wrong(f"relation {r}: the number of cells does not fit the cells listed", int(after[r]) - 1)
    rhs = source.numbers[after - 2]
    is_term = np.ones(source.count - first, bool)
    is_term[after - 2 - first] = is_term[after - 1 - first] = False
    terms = source.numbers[first:][is_term].reshape(-1, 2)
    column, data = terms[:, 0], np.ascontiguousarray(terms[:, 1])
    indptr = np.concatenate([[0], np.cumsum(size)]).astype(np.int64)
    row = np.repeat(np.arange(m), np.diff(indptr))
    bad = ~((column >= 0) & (column < n) & (column == np.floor(column)) & np.isfinite(data))
    if bad.any() or not np.isfinite(rhs).all():
        r = int(row[bad.argmax()]) if bad.any() else int((~np.isfinite(rhs)).argmax())
        raise source.wrong(f"relation {r}: cells are 0 to {n - 1} with finite coefficients in brackets", int(after[r]))
    key = np.sort(row * n + column.astype(np.int64))
    twice = np.flatnonzero(key[1:] == key[:-1])
    if len(twice):
        r, cell = divmod(int(key[twice[0]]), n)
        raise source.wrong(f"relation {r}: cell {cell} occurs twice", int(after[r]))
    brackets = source.raw.count(b"("), source.raw.count(b")")
    if brackets != (len(data), len(data)):
        raise source.wrong(f"{len(data)} coefficients in brackets are expected, {brackets[0]} found", first)
    return sp.csr_array((data, column.astype(np.int32), indptr), shape=(m, n)), rhs


def _read_frq(path: Path, n: int) -> IntArray:
    """The first number of each line of a frequency file."""
    lines = read_text(path).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if len(lines) != n:
        raise InputError(f"{n} lines 'freq holdingfreq' are expected, {len(lines)} found", file=path)
    freq = np.zeros(n, np.int64)
    for i, line in enumerate(lines):
        words = line.split()
        if len(words) not in (1, 2) or not all(w.isdecimal() and w.isascii() and len(w) < 19 for w in words):
            raise InputError("'freq holdingfreq', two whole numbers, are expected", file=path, line=i + 1)
        freq[i] = int(words[0])
    return freq


def write_jj(table: Table, path: str | Path, *, frq: bool = False, infinity: float | None = None) -> Path:
    """Write a table as a JJ file; numbers are written shortest and exact, so that reading and writing again gives the same bytes.

    A cell without own cost gets its absolute value, a zero cell 1 (JJ costs are never 0). Missing bounds are written as ``inf``, which C programs
    read; ``infinity`` puts a number instead, for those that do not. ``frq=True`` also writes the frequencies beside it.
    """
    cost = np.where(np.isnan(table.cost), np.maximum(np.abs(table.values), table.values == 0), table.cost)
    lb, ub = table.lb, table.ub
    if infinity is not None:
        lb, ub = np.maximum(lb, -infinity), np.minimum(ub, infinity)
        if (lb > table.values).any() or (ub < table.values + table.upl).any():
            raise InputError(f"infinity={infinity:g} is smaller than some values")
    target = write_text(path, _lines(table, cost, lb, ub))
    if frq:
        write_text(target.with_suffix(".frq"), _frequencies(table))
    return target


def _lines(table: Table, cost: FloatArray, lb: FloatArray, ub: FloatArray) -> Iterator[str]:
    columns = [numerals(c) for c in (np.arange(table.n_cells, dtype=float), table.values, cost)]
    columns.append(table.status.tolist())
    columns += [numerals(c) for c in (lb, ub, table.lpl, table.upl, table.spl)]
    yield f"0\n{table.n_cells}\n"
    for start in range(0, table.n_cells, _BATCH):
        part = zip(*(c[start : start + _BATCH] for c in columns), strict=True)
        yield "\n".join(map(" ".join, part)) + "\n"
    yield f"{table.n_relations}\n"
    matrix = _totals_first(table.relations)
    distinct = np.unique(matrix.data)
    bracket = {c: f" ({t})" for c, t in zip(distinct.tolist(), numerals(distinct), strict=True)}
    ends = matrix.indptr.tolist()
    for rhs, start, end in zip(numerals(table.rhs), ends[:-1], ends[1:], strict=True):
        cells, coefficients = matrix.indices[start:end].tolist(), matrix.data[start:end].tolist()
        terms = [str(i) + bracket[c] for i, c in zip(cells, coefficients, strict=True)]
        yield f"{rhs} {end - start} : {' '.join(terms)}\n"


def _totals_first(matrix: Any) -> Any:
    """Relations with their negative coefficients (the total) in front, the order being kept otherwise."""
    matrix = sp.csr_array(matrix)
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = np.lexsort((matrix.data > 0, row))
    return sp.csr_array((matrix.data[order], matrix.indices[order], matrix.indptr), shape=matrix.shape)


def _frequencies(table: Table) -> str:
    if table.freq is None:
        raise InputError("the table has no frequencies to write into a .frq file")
    known = table.contributions.holdings if table.contributions is not None else None
    groups = table.freq if known is None else known.count
    return "".join(f"{f} {h}\n" for f, h in zip(table.freq.tolist(), groups.tolist(), strict=True))


def numerals(column: FloatArray) -> list[str]:
    """The shortest decimal text of each number that reads back as the same number.

    >>> numerals(np.array([3.0, -0.0, 0.1, np.inf, 1e22]))
    ['3', '0', '0.1', 'inf', '1e+22']
    """
    if len(column) and (column == column[0]).all():
        return _spell(column[:1]) * len(column)  # bounds and levels often are all alike
    return _spell(column)


def _spell(column: FloatArray) -> list[str]:
    whole = (column == np.rint(column)) & (np.abs(column) < 1e15)
    if whole.all():
        return list(map(str, column.astype(np.int64).tolist()))
    return [str(int(v)) if w else repr(v) for v, w in zip(column.tolist(), whole.tolist(), strict=True)]
