"""What was done to a file, in a form that can be saved and done again to next year's file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.microdata.frames import Frame, keep_rows, read, with_columns
from tabprotect.types import BoolArray, IntArray

VERBS = (
    "recode",
    "top_code",
    "bottom_code",
    "microaggregate",
    "add_noise",
    "suppress_records",
    "suppress_cells",
    "drop_columns",
)


@dataclass(frozen=True)
class Recipe:
    """A list of steps, each a verb of ``tp.microdata`` with its options.

    >>> import pandas as pd, tabprotect as tp
    >>> done = tp.microdata.recode(pd.DataFrame({"age": [23, 41]}), {"age": 10})
    >>> again = tp.microdata.Recipe.from_json(done.recipe.to_json())
    >>> again.apply(pd.DataFrame({"age": [25, 58]})).data["age"].tolist()
    ['20-29', '50-59']
    """

    steps: tuple[tuple[str, Mapping[str, Any]], ...] = ()

    def __add__(self, other: Recipe) -> Recipe:
        return Recipe(self.steps + other.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def apply(self, data: Any) -> Deidentified:
        """Do the steps to another file of the same shape."""
        import tabprotect.microdata as microdata

        done = Deidentified.start(data)
        for verb, options in self.steps:
            done = getattr(microdata, verb)(done, **options)
        return done

    def to_json(self) -> str:
        """The recipe as JSON."""
        steps = [{"verb": verb, **options} for verb, options in self.steps]
        return json.dumps(
            {"tabprotect": "recipe", "version": 1, "steps": steps}, indent=1, ensure_ascii=False, default=_plain
        )

    @classmethod
    def from_json(cls, text: str) -> Recipe:
        """Read a recipe; unknown verbs are refused."""
        try:
            found = json.loads(text)
            steps = [dict(s) for s in found["steps"]]
            named = [(str(s.pop("verb")), s) for s in steps]
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(f"not a recipe: {error}") from None
        for verb, _ in named:
            if verb not in VERBS:
                raise InputError(f"unknown verb {verb!r} in the recipe; known are {', '.join(VERBS)}")
        return cls(tuple(named))

    def save(self, path: str | Path) -> None:
        """Write the recipe to a file (to a temporary name first)."""
        target = Path(path)
        scratch = target.with_name(f".{target.name}.{os.getpid()}")
        scratch.write_text(self.to_json() + "\n", encoding="utf-8")
        scratch.replace(target)

    @classmethod
    def load(cls, path: str | Path) -> Recipe:
        """Read a recipe from a file."""
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"cannot read the recipe: {error.strerror}", file=path) from None

    def describe(self) -> list[str]:
        """One line per step."""
        return [f"{verb}({', '.join(f'{k}={_short(v)}' for k, v in options.items())})" for verb, options in self.steps]


def _plain(x: Any) -> Any:
    if hasattr(x, "to_plain"):
        return x.to_plain()
    if isinstance(x, np.ndarray | np.generic):
        return x.tolist()
    return str(x)


def _short(x: Any) -> str:
    text = repr(x)
    return text if len(text) < 80 else text[:77] + "…"


@dataclass(frozen=True)
class Deidentified:
    """De-identified data, and how they came about.

    ``data`` is in the frame library of the input; ``kept`` the positions of the surviving records in the original file; ``details`` numbers about the
    last step; ``meaning`` what generalised values stand for, for the dissimilarity.
    """

    data: Any = field(repr=False)
    recipe: Recipe
    kept: IntArray = field(repr=False)
    original_records: int
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)
    meaning: Mapping[str, Mapping[Any, frozenset[Any]]] = field(default_factory=dict, repr=False)

    @classmethod
    def start(cls, data: Any) -> Deidentified:
        """Data before the first step; data that already went through steps continue from there."""
        if isinstance(data, Deidentified):
            return data
        frame = read(data)
        return cls(frame.to_native(), Recipe(), np.arange(len(frame)), len(frame))

    @property
    def frame(self) -> Frame:
        return read(self.data)

    @property
    def survival(self) -> float:
        """Released records / original records."""
        return len(self.kept) / self.original_records if self.original_records else 1.0

    def step(
        self,
        verb: str,
        options: Mapping[str, Any],
        *,
        columns: Mapping[str, Any] | None = None,
        keep: BoolArray | None = None,
        details: Mapping[str, Any] | None = None,
        meaning: Mapping[str, Mapping[Any, frozenset[Any]]] | None = None,
    ) -> Deidentified:
        """The data after one more step."""
        frame = with_columns(self.frame, columns or {})
        kept = self.kept
        if keep is not None:
            frame, kept = keep_rows(frame, keep), kept[keep]
        recipe = self.recipe + Recipe(((verb, dict(options)),))
        return Deidentified(
            frame.to_native(),
            recipe,
            kept,
            self.original_records,
            dict(details or {}),
            {**self.meaning, **(meaning or {})},
        )

    def summary(self) -> str:
        """What was done, and how many records survived."""
        lines = [f"{len(self.kept):,} of {self.original_records:,} records ({self.survival:.2%})"]
        lines += [f"{i}. {line}" for i, line in enumerate(self.recipe.describe(), 1)]
        lines += [
            f"   {k}: {v:.6g}" if isinstance(v, float) else f"   {k}: {v}"
            for k, v in self.details.items()
            if isinstance(v, int | float)
        ]
        return "\n".join(lines)
