"""Recoding, top and bottom coding, dropping columns: the simple verbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from tabprotect.errors import InputError
from tabprotect.microdata.encode import Encoded, encode
from tabprotect.microdata.frames import checked
from tabprotect.microdata.recipe import Deidentified, Recipe
from tabprotect.microdata.recoding import Recoding
from tabprotect.types import FloatArray


def recode(data: Any, recodings: Mapping[str, Any]) -> Deidentified:
    """Replace the values of columns by coarser ones.

    recodings: per column a number (bands of that width), a list of edges, a mapping of values, a function, or ``"*"`` for nothing at all.
    Missing values stay missing (``"*"`` hides even that they are); values that a mapping does not list become ``*``.

    >>> import pandas as pd, tabprotect as tp
    >>> df = pd.DataFrame({"age": [23, 41, 67], "size": [1, 3, 7]})
    >>> tp.microdata.recode(df, {"age": 10, "size": [2, 4, 6]}).data.values.tolist()
    [['20-29', '<2'], ['40-49', '2-3'], ['60-69', '≥6']]
    """
    done = Deidentified.start(data)
    frame = done.frame
    columns, resolved, meaning = {}, {}, {}
    for name in checked(frame.columns, recodings):
        column = encode(frame, name)
        recoding = Recoding.of(recodings[name], column)
        labels = recoding.labels(column)
        columns[name] = recoded_column(column, labels, recoding.text if recoding.kind == "all" else None)
        resolved[name] = recoding.to_plain()
        meaning[name] = sets_of(column, labels, done.meaning.get(name))
    return done.step("recode", {"recodings": resolved}, columns=columns, meaning=meaning)


def recoded_column(column: Encoded, labels: Sequence[Any], missing: Any = None) -> npt.NDArray[Any]:
    """The column with new labels, and what missing values become."""
    table = np.empty(len(labels) + 1, dtype=object)
    table[:-1] = labels
    table[-1] = missing
    return table[column.codes]


def sets_of(
    column: Encoded, labels: Sequence[Any], before: Mapping[Any, frozenset[Any]] | None = None
) -> dict[Any, frozenset[Any]]:
    """Which original values each new label stands for; through an earlier recoding if there was one."""
    found: dict[Any, set[Any]] = {}
    for value, label in zip(column.labels.tolist(), labels, strict=True):
        found.setdefault(label, set()).update({value} if before is None else before.get(value, {value}))
    return {label: frozenset(values) for label, values in found.items()}


def top_code(
    data: Any, columns: Mapping[str, float] | Sequence[str] | str, share: float | None = None, replace: str = "limit"
) -> Deidentified:
    """Cap large values.

    columns: a limit per column, or just the columns with ``share``, the part of records to cap (its limit is found here and recorded).
    replace: capped values become the ``"limit"`` or the ``"mean"`` of the capped ones (which keeps the column's mean).

    >>> import pandas as pd, tabprotect as tp
    >>> tp.microdata.top_code(pd.DataFrame({"pay": [10, 20, 500]}), {"pay": 100}).data["pay"].tolist()
    [10.0, 20.0, 100.0]
    """
    return _code(data, columns, share, replace, top=True)


def bottom_code(
    data: Any, columns: Mapping[str, float] | Sequence[str] | str, share: float | None = None, replace: str = "limit"
) -> Deidentified:
    """Lift small values; see ``top_code``.

    >>> import pandas as pd, tabprotect as tp
    >>> tp.microdata.bottom_code(pd.DataFrame({"pay": [10, 20, 500]}), {"pay": 15}).data["pay"].tolist()
    [15.0, 20.0, 500.0]
    """
    return _code(data, columns, share, replace, top=False)


def _code(data: Any, columns: Any, share: float | None, replace: str, *, top: bool) -> Deidentified:
    if replace not in {"limit", "mean"}:
        raise InputError(f"replace={replace!r}: choose 'limit' or 'mean'")
    done = Deidentified.start(data)
    frame = done.frame
    names = [columns] if isinstance(columns, str) else list(columns)
    limits: dict[str, float] = {}
    coded: dict[str, FloatArray] = {}
    changed = 0
    for name in checked(frame.columns, names):
        x = numbers(frame, name)
        if isinstance(columns, Mapping):
            limits[name] = float(columns[name])
        elif share is not None and 0 < share < 1:
            limits[name] = float(np.nanquantile(x, 1 - share if top else share, method="lower" if top else "higher"))
        else:
            raise InputError("give a limit per column, or share= between 0 and 1")
        beyond = x > limits[name] if top else x < limits[name]
        changed += int(beyond.sum())
        coded[name] = np.where(beyond, x[beyond].mean() if replace == "mean" and beyond.any() else limits[name], x)
    options = {"columns": limits, "replace": replace}
    return done.step("top_code" if top else "bottom_code", options, columns=coded, details={"values changed": changed})


def drop_columns(data: Any, columns: Sequence[str] | str) -> Deidentified:
    """Remove direct identifiers such as names and numbers.

    >>> import pandas as pd, tabprotect as tp
    >>> tp.microdata.drop_columns(pd.DataFrame({"name": ["Ada"], "age": [36]}), "name").data.columns.tolist()
    ['age']
    """
    done = Deidentified.start(data)
    names = checked(done.frame.columns, [columns] if isinstance(columns, str) else columns)
    recipe = done.recipe + Recipe((("drop_columns", {"columns": names}),))
    left = done.frame.drop(names).to_native()
    return Deidentified(left, recipe, done.kept, done.original_records, {}, done.meaning)


def numbers(frame: nw.DataFrame[Any], name: str) -> FloatArray:
    """A numeric column as floats, NaN where missing."""
    series = frame.get_column(name)
    if not series.dtype.is_numeric():
        raise InputError(f"column {name!r} is not numeric")
    return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
