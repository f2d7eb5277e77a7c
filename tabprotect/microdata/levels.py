"""Generalisation hierarchies of columns: from what users have to levels of recodings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tabprotect.errors import InputError
from tabprotect.microdata.encode import Encoded
from tabprotect.microdata.recoding import ALL, Recoding
from tabprotect.table.hierarchy import Hierarchy
from tabprotect.types import FloatArray


@dataclass(frozen=True)
class Levels:
    """The levels of one column: 0 is the column itself, the last one tells nothing.

    ``codes[v]`` maps the column's codes to those of level v, ``cost[v]`` is each value's loss there: (values it could be − 1)/(values − 1).
    """

    column: Encoded
    recodings: tuple[Recoding | None, ...]
    codes: tuple[npt.NDArray[np.int32], ...]
    sizes: tuple[int, ...]
    cost: tuple[FloatArray, ...]

    def __len__(self) -> int:
        return len(self.recodings)

    @classmethod
    def of(cls, column: Encoded, spec: Any) -> Levels:
        """Build the levels; one that splits what the level before it has merged is refused."""
        steps: list[Recoding | None] = [None, *(Recoding.of(s, column) for s in _steps(spec)), Recoding("all")]
        recodings: list[Recoding | None] = []
        codes: list[npt.NDArray[np.int32]] = []
        sizes: list[int] = []
        cost: list[FloatArray] = []
        for step in steps:
            labels = list(range(column.size)) if step is None else step.labels(column)
            names = {v: i for i, v in enumerate(dict.fromkeys(labels))}
            new = np.array([names[v] for v in labels], np.int32)
            if codes and len(set(zip(codes[-1][:-1].tolist(), new.tolist(), strict=True))) > len(
                set(codes[-1][:-1].tolist())
            ):
                raise InputError(
                    f"{column.name!r}: level {len(codes)} splits values that level {len(codes) - 1} has merged"
                )
            recodings.append(step)
            # missing stays a value of its own until nothing is told at all
            hidden = step is not None and step.kind == "all"
            codes.append(np.append(new, np.int32(0 if hidden else len(names))))
            sizes.append(max(len(names), 1) + (not hidden))
            members = np.bincount(new, minlength=len(names))[new] if column.size else np.zeros(0)
            cost.append(np.append((members - 1) / max(column.size - 1, 1), float(hidden)))
        return cls(column, tuple(recodings), tuple(codes), tuple(sizes), tuple(cost))


def _steps(spec: Any) -> Sequence[Any]:
    if isinstance(spec, Hierarchy):
        return _ancestors(spec)
    if isinstance(spec, Recoding | Mapping | int | float) or callable(spec):
        return [spec]
    if spec is None or isinstance(spec, str):
        return []
    if hasattr(spec, "columns") and hasattr(spec, "iloc"):  # a frame: one row per value, one column per level
        raw = spec.iloc[:, 0].tolist()
        return [dict(zip(raw, spec.iloc[:, j].tolist(), strict=True)) for j in range(1, spec.shape[1])]
    if isinstance(spec, Sequence):
        return spec
    raise InputError(
        f"cannot make levels from {type(spec).__name__}; give a list of widths, edges, mappings, or a Hierarchy"
    )


def _ancestors(tree: Hierarchy) -> list[dict[Any, Any]]:
    """One mapping per depth, from the deepest but one up to the first below the total."""
    leaves = tree.leaves.tolist()
    depth, parent = tree.level.tolist(), tree.parent.tolist()
    found = []
    for target in range(max((depth[v] for v in leaves), default=0) - 1, 0, -1):
        table: dict[Any, Any] = {}
        for leaf in leaves:
            node = leaf
            while depth[node] > target:
                node = parent[node]
            table[tree.codes[leaf]] = tree.codes[node]
        found.append(_with_numbers(table))
    return found


def _with_numbers(table: dict[Any, Any]) -> dict[Any, Any]:
    """Hierarchies know codes as text; a numeric column of the same codes is recoded too."""
    more = {int(k): v for k, v in table.items() if isinstance(k, str) and k.isdigit() and str(int(k)) == k}
    return {**table, **more}


__all__ = ["ALL", "Levels"]
