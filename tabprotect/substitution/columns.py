"""Columns of data frames as codes and back: categoricals of pandas and polars, and any column with a stated domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tabprotect.errors import InputError

Codes = npt.NDArray[np.int64]


def is_column(data: Any) -> bool:
    """Whether the data is a Series (of any library that narwhals knows) or a pandas Categorical."""
    if isinstance(data, np.ndarray | list | tuple | range):
        return False
    return type(data).__name__ == "Categorical" or _narwhals(data) is not None


def categories(column: Any) -> list[Any]:
    """The categories of a categorical column, used or not, in order; ``InputError`` for a column without categories."""
    dtype: Any = getattr(column, "dtype", getattr(column, "type", None))
    if str(dtype) == "Categorical":  # polars: categories are global to the process, so the values found have to do
        return sorted(column.drop_nulls().unique().to_list())
    if getattr(dtype, "categories", None) is not None:  # pandas, polars Enum
        return list(dtype.categories)
    if str(dtype).startswith("dictionary"):  # Arrow, chunked or not
        whole = column.unify_dictionaries() if hasattr(column, "unify_dictionaries") else column
        return list((whole.chunk(0) if hasattr(whole, "chunk") else whole).dictionary.to_pylist())
    name = getattr(column, "name", None) or getattr(column, "_name", None)
    raise InputError(f"column {name!r} is not categorical: state its domain, or make it categorical")


def encode(column: Any, n: int) -> Codes:
    """Codes of a column: its category numbers, or the integers it holds."""
    series = _narwhals(column)
    if series is not None and series.dtype.is_integer():
        return np.asarray(series.to_numpy())
    domain = categories(column)
    if len(domain) != n:
        raise InputError(f"the column has {len(domain)} categories, the matrix is for {n} values")
    return codes_of(column, domain)


def codes_of(column: Any, domain: Sequence[Any]) -> Codes:
    """Position of every value in the domain; missing and unknown values are errors."""
    native = getattr(column, "to_native", lambda: column)()
    if type(native).__name__ == "Categorical" or str(getattr(native, "dtype", "")) == "category":
        own = getattr(native, "cat", native)
        if list(own.categories) == list(domain):
            return _known(np.asarray(own.codes, dtype=np.int64), column)
        native = np.asarray(native, dtype=object)
    import pandas as pd

    values = native if isinstance(native, np.ndarray) else np.asarray(_narwhals(native).to_list(), dtype=object)
    index = pd.Index(list(domain), dtype=object)
    if not index.is_unique:
        raise InputError("the domain lists a value twice")
    return _known(np.asarray(index.get_indexer(values), dtype=np.int64), column)


def decode(codes: Any, like: Any, domain: Sequence[Any] | None = None) -> Any:
    """A column of the same library, name, index and type as ``like`` with the values of the codes."""
    if type(like).__name__ == "Categorical":
        return type(like).from_codes(codes, dtype=like.dtype)
    import narwhals as nw

    values = np.asarray(codes)
    if str(getattr(like, "dtype", "")) == "category":  # pandas: categories of any type, order and index stay
        import pandas as pd

        own = list(like.cat.categories)
        if domain is not None and list(domain) != own:
            values = pd.Index(own, dtype=object).get_indexer(np.asarray(list(domain), dtype=object))[values]
        return pd.Series(pd.Categorical.from_codes(values, dtype=like.dtype), index=like.index, name=like.name)
    series = nw.from_native(like, series_only=True)
    if domain is not None or not series.dtype.is_integer():
        labels = list(categories(like) if domain is None else domain)
        data = [labels[code] for code in values.tolist()]
    else:
        data = values.tolist()
    made = nw.new_series(series.name, data, _plain_type(series), backend=nw.get_native_namespace(like))
    native = made.cast(series.dtype).to_native()
    return native.set_axis(like.index) if hasattr(native, "set_axis") and hasattr(like, "index") else native


def _plain_type(series: Any) -> Any:
    """The type to build first: labels of categoricals are strings until they are cast back."""
    import narwhals as nw

    return nw.String if series.dtype in (nw.Categorical, nw.Enum) else series.dtype


def _known(codes: Codes, column: Any) -> Codes:
    bad = np.flatnonzero(codes < 0)
    if bad.size:
        name = getattr(column, "name", None)
        where = f"column {name!r}, " if name is not None else ""
        raise InputError(
            f"{where}record {int(bad[0])}: the value is missing or not in the domain ({bad.size} such records)"
        )
    return codes


def _narwhals(data: Any) -> Any:
    import narwhals as nw

    try:
        return nw.from_native(data, series_only=True)
    except TypeError:
        return None
