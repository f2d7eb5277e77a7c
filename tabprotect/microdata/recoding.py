"""Recodings: how values of a column become coarser values, as data that can be saved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from tabprotect.errors import InputError
from tabprotect.microdata.encode import Encoded

ALL = "*"


@dataclass(frozen=True)
class Recoding:
    """One recoding of a column.

    kind ``bands``: ranges of equal ``width`` counted from ``origin``, open below ``low`` and above ``high`` if given; ``cuts``: ranges between the given
    edges, open at both ends; ``map``: value by value, what is not listed becomes ``*``; ``all``: everything becomes ``label``.

    >>> Recoding("bands", width=5).label(23), Recoding("cuts", edges=(2, 4, 6)).label(5), Recoding("all").label(1)
    ('20-24', '4-5', '*')
    """

    kind: Literal["bands", "cuts", "map", "all"]
    width: float = 1
    origin: float = 0
    low: float | None = None
    high: float | None = None
    edges: tuple[float, ...] = ()
    pairs: tuple[tuple[Any, Any], ...] = ()
    text: str = ALL

    def label(self, value: Any) -> Any:
        """The coarser value of one value."""
        if self.kind == "all":
            return self.text
        if self.kind == "map":
            return dict(self.pairs).get(_key(value), ALL)
        whole = float(value) == int(value)
        if self.kind == "cuts":
            at = int(np.searchsorted(self.edges, value, side="right"))
            if at == 0:
                return f"<{_number(self.edges[0])}"
            if at == len(self.edges):
                return f"≥{_number(self.edges[-1])}"
            return _range(self.edges[at - 1], self.edges[at], whole)
        if self.low is not None and value < self.low:
            return f"<{_number(self.low)}"
        if self.high is not None and value >= self.high:
            return f"≥{_number(self.high)}"
        start = np.floor((value - self.origin) / self.width) * self.width + self.origin
        return _range(start, start + self.width, whole)

    def labels(self, column: Encoded) -> list[Any]:
        """The coarser value of every distinct value of a column."""
        if self.kind in {"bands", "cuts"} and not column.numeric:
            raise InputError(
                f"bands need numbers, and column {column.name!r} is not numeric; give a mapping of its values"
            )
        if self.kind == "map":
            table = dict(self.pairs)
            return [table.get(_key(v), ALL) for v in column.labels.tolist()]
        if self.kind in {"bands", "cuts"} and any(float(v) != int(v) for v in column.labels.tolist()):
            return [
                self.label(float(v) + 0.0) if float(v) != int(v) else _fraction_label(self, v)
                for v in column.labels.tolist()
            ]
        return [self.label(v) for v in column.labels.tolist()]

    def to_plain(self) -> dict[str, Any]:
        """Plain data for a recipe."""
        plain: dict[str, Any] = {"kind": self.kind}
        if self.kind == "bands":
            plain |= {"width": self.width, "origin": self.origin, "low": self.low, "high": self.high}
        elif self.kind == "cuts":
            plain["edges"] = list(self.edges)
        elif self.kind == "map":
            plain["pairs"] = [list(p) for p in self.pairs]
        else:
            plain["text"] = self.text
        return plain

    @classmethod
    def of(cls, spec: Any, column: Encoded | None = None) -> Recoding:
        """From what users write: a number (bands of that width), increasing edges, a mapping, a function, ``"*"``, or plain data."""
        if isinstance(spec, Recoding):
            return spec
        if isinstance(spec, Mapping) and spec.get("kind") in {"bands", "cuts", "map", "all"}:
            plain = dict(spec)
            if "edges" in plain:
                plain["edges"] = tuple(plain["edges"])
            if "pairs" in plain:
                plain["pairs"] = tuple((p[0], p[1]) for p in plain["pairs"])
            return cls(**plain)
        if isinstance(spec, Mapping):
            return cls("map", pairs=tuple((_key(k), v) for k, v in spec.items()))
        if isinstance(spec, bool) or spec is None:
            raise InputError(f"cannot recode by {spec!r}")
        if isinstance(spec, str):
            return cls("all", text=spec)
        if isinstance(spec, int | float | np.integer | np.floating):
            if not spec > 0:
                raise InputError(f"bands of width {spec}: the width must be positive")
            return cls("bands", width=spec if isinstance(spec, int | float) else spec.item())
        if callable(spec):
            return cls("map", pairs=tuple(_tabulated(spec, column)))
        if isinstance(spec, Sequence | np.ndarray):
            edges = tuple(float(e) if float(e) != int(e) else int(e) for e in spec)
            if not edges or any(a >= b for a, b in pairwise(edges)):
                raise InputError(f"edges must increase, got {list(spec)}")
            return cls("cuts", edges=edges)
        raise InputError(f"cannot recode by {type(spec).__name__}; give a width, edges, a mapping or a function")


def _fraction_label(recoding: Recoding, value: float) -> Any:
    """In a column with fractions whole numbers get half-open ranges too, so that a band has one name."""
    near = np.nextafter(float(value), np.inf)
    return recoding.label(near)


def _tabulated(function: Callable[[Any], Any], column: Encoded | None) -> list[tuple[Any, Any]]:
    if column is None:
        raise InputError("a function can only be tabulated on a column")
    return [(_key(v), function(v)) for v in column.labels.tolist()]


def _key(value: Any) -> Any:
    """Whole floats and integers are one key: a column with missing values arrives as floats."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _number(x: float) -> str:
    return f"{int(x)}" if float(x) == int(x) else f"{x:g}"


def _range(a: float, b: float, whole: bool) -> str:
    if whole and float(a) == int(a) and float(b) == int(b):
        return _number(a) if b - a == 1 else f"{int(a)}-{int(b) - 1}"
    return f"[{_number(a)}, {_number(b)})"
