"""Dissimilarity of released data to the original, relative to the domain of each attribute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.microdata.encode import Encoded, encode
from tabprotect.microdata.frames import Frame, checked, read
from tabprotect.microdata.recipe import Deidentified
from tabprotect.microdata.recoding import ALL
from tabprotect.microdata.verbs import numbers
from tabprotect.types import FloatArray, IntArray

CONVENTIONS = ("normalised", "printed")


@dataclass(frozen=True)
class Dissimilarity:
    """RCol per record and attribute, RRec per record, RTab for the table, all in [0, 1]; and the survival rate.

    ``columns`` mean RCol of each attribute; ``groups`` of each group of attributes.
    """

    RTab: float
    RRec: FloatArray = field(repr=False)
    columns: Mapping[str, float]
    groups: Mapping[str, float]
    survival: float
    convention: str
    cells: Mapping[str, FloatArray] = field(repr=False)

    @property
    def RCol(self) -> Mapping[str, FloatArray]:
        """Per attribute, the dissimilarity of each released record."""
        return self.cells

    def summary(self) -> str:
        """Table, groups and attributes, farthest first."""
        lines = [f"RTab = {self.RTab:.4f} ({self.convention}), {self.survival:.2%} of the records survive"]
        lines += [f"{g}: {v:.4f}" for g, v in self.groups.items()]
        lines += [f"  {c}: {v:.4f}" for c, v in sorted(self.columns.items(), key=lambda x: -x[1])]
        return "\n".join(lines)


def dissimilarity(
    original: Any,
    released: Any,
    *,
    columns: Sequence[str] | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
    meaning: Mapping[str, Mapping[Any, Any]] | None = None,
    numeric: Sequence[str] | None = None,
    convention: str = "normalised",
    trim: float = 0.0,
    kept: Sequence[int] | None = None,
    id: str | None = None,
) -> Dissimilarity:
    """How far released records are from the originals, relative to the domain of each attribute.

    released: a frame, or the result of a verb of ``tp.microdata``, which knows what its values stand for and which records survived.
    columns: attributes to compare (default: those that both files have); ``groups`` names groups of them.
    meaning: per attribute, the original values that each released value stands for; where it is not given, a released value that occurs in the original
    stands for itself, ``*`` and missing for every value, and any other value for the originals it was released for.
    numeric: attributes compared as numbers (default: numeric in both files).
    convention: ``"printed"`` as in the source: ``(|set|−1)/|distinct|`` if the original is in the set, else 0; ``"normalised"``: ``(|set|−1)/(|distinct|−1)``, and 1 for an
    original outside the set, so that a wrong value is no perfect one.
    trim: leave out this share of the values at each end when taking the range of a number, so that outliers do not hide changes; RCol is cut at 1.
    kept: positions of the surviving records in the original; or ``id``, a column with a number for each record in both files.

    >>> import pandas as pd, tabprotect as tp
    >>> a = pd.DataFrame({"age": [20, 25, 40, 60], "town": list("abca")})
    >>> b = pd.DataFrame({"age": [25, 25, 50, 50], "town": ["a", "b|c", "b|c", "a"]})
    >>> round(tp.microdata.dissimilarity(a, b, convention="printed").RTab, 4)
    0.1615

    Reference: Kang, Oh, Yong and Lee (2017).
    """
    if convention not in CONVENTIONS:
        raise InputError(f"convention={convention!r}: choose 'printed' or 'normalised'")
    if not 0 <= trim < 0.5:
        raise InputError(f"trim={trim}: a share in [0, 0.5)")
    known: dict[str, Mapping[Any, Any]] = {}
    if isinstance(released, Deidentified):
        known |= released.meaning
        kept = released.kept.tolist() if kept is None and id is None else kept
        released = released.data
    known |= meaning or {}
    a, b = read(getattr(original, "data", original)), read(released)
    rows = _alignment(a, b, kept, id)
    names = [c for c in b.columns if c in a.columns and c != id] if columns is None else checked(b.columns, columns)
    if not checked(a.columns, names):
        raise InputError("the files have no column in common")
    counted = {c for c in names if _numeric(a, c) and _numeric(b, c)} if numeric is None else checked(names, numeric)
    cells = {}
    for c in names:
        if c in counted and c not in known:
            cells[c] = number_distance(numbers(a, c), rows, numbers(b, c), trim)
        else:
            cells[c] = set_distance(encode(a, c), rows, encode(b, c), known.get(c), convention)
    parts = {g: checked(names, members) for g, members in (groups or {}).items()}
    return _averaged(cells, parts, len(b) / len(a) if len(a) else 1.0, convention)


def _averaged(
    cells: Mapping[str, FloatArray], groups: Mapping[str, list[str]], survival: float, convention: str
) -> Dissimilarity:
    record = np.mean(list(cells.values()), axis=0)
    means = {c: float(v.mean()) if len(v) else 0.0 for c, v in cells.items()}
    parts = {g: float(np.mean([means[c] for c in members])) if members else 0.0 for g, members in groups.items()}
    return Dissimilarity(
        float(record.mean()) if len(record) else 0.0, record, means, parts, survival, convention, cells
    )


def _numeric(frame: Frame, name: str) -> bool:
    return frame.get_column(name).dtype.is_numeric()


def _alignment(a: Frame, b: Frame, kept: Sequence[int] | None, id: str | None) -> IntArray:
    """Position in the original of each released record."""
    if kept is not None:
        rows = np.asarray(kept, dtype=np.int64)
        if len(rows) != len(b) or (len(rows) and (rows.min() < 0 or rows.max() >= len(a))):
            raise InputError(f"kept must give one position in the original for each of the {len(b)} released records")
        return rows
    if id is not None:
        checked(a.columns, [id])
        checked(b.columns, [id])
        where = {v: i for i, v in enumerate(a.get_column(id).to_list())}
        if len(where) < len(a):
            raise InputError(f"column {id!r} does not identify the original records: it has repeated values")
        lost = [v for v in b.get_column(id).to_list() if v not in where]
        if lost:
            raise InputError(f"{len(lost)} released records have an {id!r} that is not in the original")
        return np.array([where[v] for v in b.get_column(id).to_list()], dtype=np.int64)
    if len(a) != len(b):
        raise InputError(
            f"{len(a)} original and {len(b)} released records: say which survived with kept= (positions) or id= (a column)"
        )
    return np.arange(len(a))


def number_distance(x: FloatArray, rows: IntArray, y: FloatArray, trim: float) -> FloatArray:
    """|original − released| / range, cut at 1; a blank is as far as can be, a constant column has range 1 in its own units."""
    known = x[~np.isnan(x)]
    if not len(known):
        return np.zeros(len(rows))
    low, high = np.quantile(known, [trim, 1 - trim]) if trim else (known.min(), known.max())
    if high <= low:
        low, high = known.min(), known.max()
    gap = np.abs(x[rows] - y)
    scaled = np.minimum(gap / (high - low), 1.0) if high > low else (gap > 0).astype(np.float64)
    lost = np.isnan(gap)
    return np.where(lost, np.where(np.isnan(x[rows]) & np.isnan(y), 0.0, 1.0), scaled)


def set_distance(
    a: Encoded, rows: IntArray, b: Encoded, meaning: Mapping[Any, Any] | None, convention: str
) -> FloatArray:
    """(|values it could be| − 1) / domain, per released record; worked out once per distinct pair of values."""
    domain = a.size
    before, after = a.codes[rows].astype(np.int64), b.codes.astype(np.int64)
    pair, inverse = np.unique((before + 1) * (b.size + 1) + (after + 1), return_inverse=True)
    first, second = pair // (b.size + 1) - 1, pair % (b.size + 1) - 1
    sets = _sets(a, b, first, second, meaning)
    values = a.labels.tolist()
    found = np.zeros(len(pair))
    for i, (x, y) in enumerate(zip(first.tolist(), second.tolist(), strict=True)):
        everything = y < 0 or sets[y] is None
        if x < 0 or y < 0:
            # a value that was missing and stays so is unchanged; a blanked value could be anything; a filled blank is a wrong value
            inside, count = (True, 1 if x < 0 else domain) if y < 0 else (False, 1)
        else:
            chosen = sets[y]
            count = domain if everything or chosen is None else len(chosen)
            inside = everything or chosen is None or values[x] in chosen
        if convention == "printed":
            found[i] = (count - 1) / max(domain, 1) if inside else 0.0
        else:
            found[i] = (count - 1) / max(domain - 1, 1) if inside else 1.0
    return found[inverse]


def _sets(
    a: Encoded, b: Encoded, first: IntArray, second: IntArray, meaning: Mapping[Any, Any] | None
) -> list[frozenset[Any] | None]:
    """What each released value stands for; None: every value."""
    originals = set(a.labels.tolist())
    values = a.labels.tolist()
    seen: dict[int, set[Any]] = {}
    for x, y in zip(first.tolist(), second.tolist(), strict=True):
        if x >= 0 and y >= 0:
            seen.setdefault(y, set()).add(values[x])
    found: list[frozenset[Any] | None] = []
    for code, label in enumerate(b.labels.tolist()):
        if meaning is not None and label in meaning:
            members = meaning[label]
            found.append(
                frozenset([members])
                if isinstance(members, str) or not hasattr(members, "__iter__")
                else frozenset(members) & originals
            )
        elif label in originals:
            found.append(frozenset([label]))
        elif label == ALL:
            found.append(None)
        else:
            found.append(frozenset(seen.get(code, set())))
    return found
