"""From what the caller says about a column to the hierarchy of that dimension."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tabprotect.errors import InputError
from tabprotect.table.columns import code_text
from tabprotect.table.hierarchy import Hierarchy
from tabprotect.table.hierarchy_io import Digits


def read_by(by: Any) -> dict[str, Any]:
    """``by`` as a mapping from column to what is said about it (None: a flat dimension of the codes found)."""
    if isinstance(by, str):
        by = [by]
    if isinstance(by, Mapping):
        columns = {str(k): v for k, v in by.items()}
    elif isinstance(by, Sequence):
        columns = dict.fromkeys(map(str, by))
        if len(columns) < len(by):
            raise InputError(f"a column is named twice in by: {list(by)}")
    else:
        raise InputError(f"by must be a list of columns or a mapping to hierarchies, not {type(by).__name__}")
    if not columns:
        raise InputError("by names no columns: at least one dimension is needed")
    return columns


def total_labels(total: Any, columns: Iterable[str]) -> dict[str, str | None]:
    """The label of the total of each column, from one label for all or a mapping."""
    names = list(columns)
    if total is None or isinstance(total, str):
        return dict.fromkeys(names, total or "Total")
    if not isinstance(total, Mapping):
        raise InputError(f"total must be a label or a mapping from column to label, not {type(total).__name__}")
    unknown = [c for c in total if c not in names]
    if unknown:
        raise InputError(f"total names column {unknown[0]!r}, which is not in by")
    return {c: total.get(c, "Total") for c in names}


def as_hierarchy(spec: Any, found: Sequence[str], total: str | None, name: str) -> Hierarchy:
    """The hierarchy of column ``name``: given, read from a file, or made of the codes found in the data."""
    try:
        if isinstance(spec, Hierarchy):
            return spec
        if isinstance(spec, Digits):
            label = total if total is not None and spec.total == "Total" else spec.total
            return Digits(spec.widths, label).resolve(c for c in found if c != label)
        if isinstance(spec, str | Path):
            return Hierarchy.from_hrc(spec, total=total or "Total")
        if isinstance(spec, Mapping):
            return Hierarchy.from_tree(spec, total=total or "Total")
        if spec is None:
            return Hierarchy.flat([c for c in found if c != total], total=total)
        if isinstance(spec, Iterable):
            return Hierarchy.flat([c for c in map(code_text, spec) if c is not None and c != total], total=total)
    except InputError as error:
        raise InputError(f"dimension {name!r}: {error}") from None
    raise InputError(f"dimension {name!r}: a Hierarchy, a list of codes or a .hrc path is expected, got {spec!r}")
