"""What to measure, and the class tables and sums that come of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from tabprotect.errors import InputError
from tabprotect.microdata.classes import ClassTable, Sensitive, class_table
from tabprotect.microdata.encode import Encoded, encode
from tabprotect.microdata.frames import Frame
from tabprotect.microdata.keyed import Keyed, Missing, class_frequencies, keyed, population_frequencies
from tabprotect.microdata.tally import Tally, tally
from tabprotect.microdata.wildcard import Matches, match_table

Attribute = str | None  # a sensitive column; None: the keys alone


class Measured(NamedTuple):
    """Records with their class tables and sums, and the sums of the population."""

    records: Keyed
    tables: dict[Attribute, ClassTable]
    attributes: dict[Attribute, Sensitive | None]
    matches: Matches | None
    tallies: dict[Attribute, Tally]
    population: dict[Attribute, Tally]


@dataclass(frozen=True)
class Plan:
    """What to measure; small enough to send to a worker."""

    keys: tuple[str, ...]
    sensitive: tuple[str, ...]
    tolerance: float | None
    missing: Missing
    distance: str
    l: int

    def attribute(self, column: Encoded, counts: Mapping[Any, int] | None = None) -> Sensitive:
        """Prepare a sensitive column."""
        if self.tolerance is not None and not column.numeric:
            raise InputError(
                f"tolerance needs a numeric sensitive attribute, and {column.name!r} is not; leave tolerance out"
            )
        return Sensitive.of(column, {"auto": None, "equal": False, "ordered": True}[self.distance], counts)

    def tables(
        self, frame: Frame, records: Keyed, counts: Mapping[str, Mapping[Any, int]] | None = None
    ) -> tuple[dict[Attribute, ClassTable], dict[Attribute, Sensitive | None], Matches | None]:
        """The class table for each sensitive attribute."""
        tables: dict[Attribute, ClassTable] = {}
        attributes: dict[Attribute, Sensitive | None] = {}
        found: Matches | None = None
        for name in self.sensitive or (None,):
            attribute = None
            if name is not None:
                column = encode(frame, name)
                if records.rows is not None:
                    column = Encoded(name, column.codes[records.rows], column.labels, column.numeric, column.ordered)
                attribute = self.attribute(column, None if counts is None else counts[name])
            if self.missing == "wildcard" and any(c.has_missing for c in records.columns):
                tables[name], found = match_table(records.columns, attribute, l=self.l)
            else:
                tables[name] = class_table(records.key, records.span, attribute, l=self.l)
            attributes[name] = attribute
        return tables, attributes, found

    def tallies(self, frame: Frame, counts: Mapping[str, Mapping[Any, int]]) -> dict[Attribute, Tally]:
        """The sums of one part of a file, given the distribution of the sensitive attributes in all of it."""
        tables, attributes, _ = self.tables(frame, keyed(frame, self.keys, self.missing), counts)
        return {name: tally(tables[name], attributes[name], self.tolerance) for name in tables}

    def measure(self, frame: Frame, population: tuple[Frame, Any] | None = None) -> Measured:
        """Measure a file in memory."""
        records = keyed(frame, self.keys, self.missing)
        if population is not None:
            return self.with_population(frame, records, *population)
        tables, attributes, found = self.tables(frame, records)
        sums = {name: tally(tables[name], attributes[name], self.tolerance) for name in tables}
        return Measured(records, tables, attributes, found, sums, {})

    def with_population(self, frame: Frame, records: Keyed, people: Frame, weight: Any) -> Measured:
        if self.missing == "wildcard":
            raise InputError("missing='wildcard' is not defined with a population; use 'class' or 'drop'")
        crowd = keyed(people, self.keys, self.missing)
        if weight is not None and crowd.rows is not None:
            weight = weight[crowd.rows]
        mine, theirs, span, count = population_frequencies(records, crowd, weight)
        records = Keyed(records.columns, records.rows, mine, span)
        tables, attributes, found = self.tables(frame, records)
        sums: dict[Attribute, Tally] = {}
        whole: dict[Attribute, Tally] = {}
        for name, table in tables.items():
            frequency = class_frequencies(table.key, theirs, count)
            short = int((frequency < table.size).sum())
            if short:
                raise InputError(f"{short:,} classes have more records in the sample than in the population")
            sums[name] = tally(table, attributes[name], self.tolerance, frequency)
            whole[name] = self._population_tally(
                people, Keyed(crowd.columns, crowd.rows, theirs, span), name, count, weight
            )
        return Measured(records, tables, attributes, found, sums, whole)

    def _population_tally(self, people: Frame, crowd: Keyed, name: str | None, count: Any, weight: Any) -> Tally:
        """The sums of the population itself, for P1, P2, P3; the sensitive attribute may be unknown there."""
        if weight is None and name is not None and name in people.columns:
            tables, attributes, _ = replace(self, sensitive=(name,)).tables(people, crowd)
            return tally(tables[name], attributes[name], self.tolerance)
        nan = float("nan")  # unknown without the sensitive attribute
        classes = np.unique(crowd.key)
        frequency = class_frequencies(classes, crowd.key, count)
        return Tally(
            n=float(count.sum()), classes=float(len(classes)), n1=float((frequency == 1).sum()), a2=nan, a3=nan
        )
