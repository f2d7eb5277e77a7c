"""Per-record and per-class views of a measured file, made only when asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tabprotect.microdata.classes import ClassTable, Sensitive
from tabprotect.microdata.frames import Frame, make_frame
from tabprotect.microdata.keyed import Keyed
from tabprotect.microdata.tally import spread
from tabprotect.microdata.wildcard import Matches
from tabprotect.types import IntArray


@dataclass(frozen=True)
class View:
    """A measured file with its class tables."""

    frame: Frame
    keyed: Keyed
    tables: Mapping[str | None, ClassTable]
    attributes: Mapping[str | None, Sensitive | None]
    matches: Matches | None

    def class_of_records(self) -> IntArray:
        """The row of the class table that each record belongs to."""
        if self.matches is not None:
            return self.matches.ids
        return np.searchsorted(self._any.key, self.keyed.key)

    @property
    def _any(self) -> ClassTable:
        return next(iter(self.tables.values()))

    def _columns(self, sensitive: Sequence[str], tolerance: float | None) -> dict[str, Any]:
        """What is known of each class."""
        columns: dict[str, Any] = {"size": self._any.size.astype(np.int64)}
        for name in sensitive:
            table, attribute = self.tables[name], self.attributes[name]
            end = f"_{name}" if len(sensitive) > 1 else ""
            columns[f"distinct{end}"] = table.distinct.astype(np.int64)
            columns[f"entropy_l{end}"] = np.exp(table.entropy)
            columns[f"t{end}"] = table.t
            exposed = table.distinct == 1
            if attribute is not None and attribute.values is not None:
                columns[f"range{end}"] = spread(table, attribute.values)
                if tolerance is not None:
                    exposed = columns[f"range{end}"] <= tolerance
            columns[f"exposed{end}"] = exposed
        return columns

    def classes(self, sensitive: Sequence[str], tolerance: float | None) -> Any:
        """One row per class with its key values."""
        ids = self.class_of_records()
        first = np.zeros(len(self._any), np.int64)
        first[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)
        values = {c.name: c.decoded(c.codes[first]) for c in self.keyed.columns}
        return make_frame(values | self._columns(sensitive, tolerance), self.frame)

    def records(self, sensitive: Sequence[str], tolerance: float | None, first: int | None = None) -> Any:
        """One row per record; ``first`` gives only the riskiest ones, worst first."""
        ids = self.class_of_records()
        columns = self._columns(sensitive, tolerance)
        chosen = np.arange(len(ids))
        if first is not None:
            exposed = [~columns[c][ids] for c in columns if c.startswith("exposed")]
            variety = [columns[c][ids] for c in columns if c.startswith("distinct")]
            chosen = np.lexsort([np.arange(len(ids)), *variety, *exposed, columns["size"][ids]])[:first]
        at = ids[chosen]
        place = chosen if self.keyed.rows is None else self.keyed.rows[chosen]
        found: dict[str, Any] = {"record": place, "class": at} | {name: v[at] for name, v in columns.items()}
        found["match_probability"] = 1.0 / columns["size"][at]
        return make_frame(found, self.frame)
