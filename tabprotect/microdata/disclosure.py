"""Disclosure risk of microdata: θ1, θ2, θ3 and their estimators, k-anonymity, l-diversity, t-closeness, uniques."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.microdata import external
from tabprotect.microdata.frames import Frame, is_path, is_spark, read
from tabprotect.microdata.keyed import Missing, check_keys, check_missing
from tabprotect.microdata.plan import Plan
from tabprotect.microdata.tally import Tally, ratio
from tabprotect.microdata.views import View

IN_MEMORY = 100_000_000  # records of a file that are measured in one piece; larger files go through parts


@dataclass(frozen=True)
class Risk:
    """The risk of a file; ``tallies`` has the sums behind the measures for each sensitive attribute (None: keys alone).

    With several sensitive attributes, ``l``, ``t`` and the θs are those of the worst attribute; ``of(name)`` gives one.
    """

    n: int
    keys: tuple[str, ...]
    sensitive: tuple[str, ...]
    fraction: float | None
    tolerance: float | None
    missing: Missing
    tallies: Mapping[str | None, Tally] = field(repr=False)
    population: Mapping[str | None, Tally] = field(default_factory=dict, repr=False)
    view: View | None = field(default=None, repr=False)
    dropped: int = 0

    @property
    def _any(self) -> Tally:
        return next(iter(self.tallies.values()))

    @property
    def k(self) -> int:
        """Size of the smallest class (0 for an empty file)."""
        return int(self._any.k) if self.n else 0

    @property
    def classes_count(self) -> int:
        """Number of classes."""
        return int(self._any.classes)

    @property
    def uniques(self) -> int:
        """Records alone in their class."""
        return int(self._any.n1)

    @property
    def histogram(self) -> tuple[int, ...]:
        """Number of classes of size 1, 2, …, 20, and of more."""
        return self._any.histogram

    def _worst(self, name: str, best: Any) -> Any:
        if not self.sensitive or not self.n:
            return None
        return best(getattr(t, name) for t in self.tallies.values())

    @property
    def l(self) -> int | None:  # noqa: E743
        """Distinct l-diversity: the fewest distinct sensitive values in a class."""
        found = self._worst("l", min)
        return None if found is None else int(found)

    @property
    def entropy_l(self) -> float | None:
        """Entropy l-diversity: exp of the smallest entropy of a class."""
        found = self._worst("entropy", min)
        return None if found is None else float(np.exp(found))

    @property
    def recursive_c(self) -> float | None:
        """The file is recursively (c, l)-diverse for every c above this (infinite: for none)."""
        return self._worst("recursive", max)

    @property
    def t(self) -> float | None:
        """t-closeness: the largest distance between a class and the file."""
        return self._worst("t", max)

    def _estimate(self, name: str, tallies: Sequence[Tally]) -> float | None:
        if self.fraction is None:
            return None
        return _largest([getattr(t, name)(self.fraction) for t in tallies])

    @property
    def theta1_hat(self) -> float | None:
        """Estimated chance that a unique match is the right person (needs the sampling fraction)."""
        return self._estimate("theta1_hat", [self._any])

    @property
    def theta2_hat(self) -> float | None:
        """The same, counting classes whose sensitive values all agree."""
        return self._estimate("theta2_hat", list(self.tallies.values())) if self.sensitive else None

    @property
    def theta3_hat(self) -> float | None:
        """The same, counting classes whose sensitive values lie within the tolerance."""
        if self.tolerance is None:
            return None
        return self._estimate("theta3_hat", list(self.tallies.values()))

    def _true(self, part: str, people: str) -> float | None:
        if not self.population:
            return None
        found = [(getattr(t, part), getattr(t, people)) for t in self.tallies.values()]
        return _largest([ratio(a, b) for a, b in found])

    @property
    def theta1(self) -> float | None:
        """True chance that a unique match is the right person (needs the population)."""
        return self._true("n1", "F1")

    @property
    def theta2(self) -> float | None:
        return self._true("a2", "F2") if self.sensitive else None

    @property
    def theta3(self) -> float | None:
        return self._true("a3", "F3") if self.sensitive and self.tolerance is not None else None

    def _share(self, name: str) -> float | None:
        tallies = self.population or self.tallies
        return _largest([ratio(getattr(t, name), t.n) for t in tallies.values()])

    @property
    def P1(self) -> float | None:
        """Share of uniques if the whole population (or, without one, this file) were released."""
        return self._share("n1")

    @property
    def P2(self) -> float | None:
        """Share of records in classes with one sensitive value."""
        return self._share("a2") if self.sensitive else None

    @property
    def P3(self) -> float | None:
        """Share of records in classes whose sensitive values lie within the tolerance."""
        return self._share("a3") if self.sensitive and self.tolerance is not None else None

    def of(self, sensitive: str) -> Risk:
        """The risk for one of the sensitive attributes."""
        if sensitive not in self.tallies:
            raise InputError(f"{sensitive!r} is not one of the sensitive attributes {list(self.sensitive)}")
        population: Mapping[str | None, Tally] = {sensitive: self.population[sensitive]} if self.population else {}
        return Risk(
            self.n, self.keys, (sensitive,), self.fraction, self.tolerance, self.missing,
            {sensitive: self.tallies[sensitive]}, population, self.view, self.dropped,
        )  # fmt: skip

    @property
    def records(self) -> Any:
        """One row per record: its class, class size, diversity, distance, and whether its sensitive value is exposed."""
        return self._view().records(self.sensitive, self.tolerance)

    @property
    def classes(self) -> Any:
        """One row per class: key values, size, diversity, distance, range."""
        return self._view().classes(self.sensitive, self.tolerance)

    def riskiest(self, count: int = 10) -> Any:
        """The records most at risk: smallest class first, then fewest sensitive values; with their position in the file."""
        return self._view().records(self.sensitive, self.tolerance, first=count)

    def _view(self) -> View:
        if self.view is None:
            raise InputError(
                "the file was measured in parts, which leaves no view of its records; pass an in-memory frame"
            )
        return self.view

    def to_dict(self) -> dict[str, Any]:
        """All measures as plain numbers, ready for JSON."""
        names = [
            "theta1",
            "theta2",
            "theta3",
            "theta1_hat",
            "theta2_hat",
            "theta3_hat",
            "P1",
            "P2",
            "P3",
            "k",
            "l",
            "entropy_l",
            "recursive_c",
            "t",
            "uniques",
        ]
        found: dict[str, Any] = {
            "records": self.n, "classes": self.classes_count, "keys": list(self.keys), "sensitive": list(self.sensitive),
            "fraction": self.fraction, "tolerance": self.tolerance, "missing": self.missing, "dropped": self.dropped,
        }  # fmt: skip
        return found | {name: getattr(self, name) for name in names} | {"histogram": list(self.histogram)}

    def summary(self) -> str:
        """A few lines with all measures that apply; no key or sensitive value appears in it."""
        lines = [
            f"{self.n:,} records in {self.classes_count:,} classes of {' × '.join(self.keys)}",
            f"uniques {self.uniques:,} ({self.uniques / max(self.n, 1):.2%}), k = {self.k}",
        ]
        if self.dropped:
            lines[0] += f" ({self.dropped:,} records with missing keys left out)"
        if self.sensitive and self.l is not None:
            lines.append(
                f"sensitive {', '.join(self.sensitive)}: l = {self.l}, entropy l = {self.entropy_l:.3g}, "
                f"recursive c > {self.recursive_c:.3g}, t = {self.t:.3g}"
            )
        for title, names in (
            ("shares", ("P1", "P2", "P3")),
            ("true", ("theta1", "theta2", "theta3")),
            ("estimated", ("theta1_hat", "theta2_hat", "theta3_hat")),
        ):
            found = [
                f"{n.replace('theta', 'θ')} = {getattr(self, n):.4f}" for n in names if getattr(self, n) is not None
            ]
            if found:
                lines.append(f"{title}: " + ", ".join(found))
        return "\n".join(lines)


def _largest(values: list[float]) -> float | None:
    known = [v for v in values if v == v]
    return max(known) if known else None


def risk(
    data: Any,
    *,
    keys: Sequence[str],
    sensitive: str | Sequence[str] | None = None,
    fraction: float | None = None,
    tolerance: float | None = None,
    population: Any = None,
    population_count: str | None = None,
    missing: str = "class",
    distance: str = "auto",
    l: int = 2,
    parts: int | None = None,
    executor: Executor | None = None,
) -> Risk:
    """Measure the disclosure risk of microdata.

    data: a pandas, polars, Arrow or PySpark frame, a DuckDB relation, or a CSV or Parquet path.
    keys: the identifying columns; records that agree in all of them form a class.
    sensitive: one or more columns whose values must not be inferred.
    fraction: the sampling fraction n/N, for the estimators θ̂; taken from the population when that is given.
    tolerance: sensitive values within this range count as similar (θ3); only for numeric attributes.
    population: the frame the sample was drawn from, for the true θ; ``population_count`` names a column with counts if it is aggregated.
    missing: a missing key is a value of its own (``"class"``), matches anything (``"wildcard"``), or its record is left out (``"drop"``).
    distance: of t-closeness: ``"ordered"``, ``"equal"``, or ``"auto"`` (ordered where the attribute has an order).
    l: the l of recursive (c, l)-diversity.
    parts: measure the file in this many parts, split by class, so that it need not fit into memory; ``executor`` runs them.

    >>> import pandas as pd, tabprotect as tp
    >>> df = pd.DataFrame({"sex": list("mmmf"), "school": list("AACA"), "grade": list("CCFB")})
    >>> found = tp.microdata.risk(df, keys=["sex", "school"], sensitive="grade", fraction=0.1)
    >>> found.k, found.l, round(found.theta1_hat, 3), round(found.theta2_hat, 3)
    (1, 1, 0.1, 0.182)

    References: Cho, Kwon and Lee (2012); Skinner and Elliot (2002); Samarati (2001); Machanavajjhala et al. (2006);
    Li, Li and Venkatasubramanian (2007).
    """
    if distance not in {"auto", "equal", "ordered"}:
        raise InputError(f"distance={distance!r}: choose 'auto', 'equal' or 'ordered'")
    if fraction is not None and not 0 < fraction <= 1:
        raise InputError(f"fraction={fraction}: the sampling fraction n/N lies in (0, 1]")
    if tolerance is not None and not tolerance >= 0:
        raise InputError(f"tolerance={tolerance}: a range cannot be negative")
    if l < 1:
        raise InputError(f"l={l}: recursive (c, l)-diversity needs l ≥ 1")
    names = [] if sensitive is None else [sensitive] if isinstance(sensitive, str) else list(dict.fromkeys(sensitive))
    plan = Plan(tuple(check_keys(None, keys)), tuple(names), tolerance, check_missing(missing), distance, l)
    if set(plan.keys) & set(names):
        raise InputError(f"{sorted(set(plan.keys) & set(names))}: a column cannot be both key and sensitive")
    if is_spark(data) or parts is not None or (is_path(data) and external.rows(data) > IN_MEMORY):
        if population is not None or missing == "wildcard":
            raise InputError("a file measured in parts takes neither a population nor missing='wildcard'")
        tallies = external.measure_in_parts(data, plan, parts, executor)
        n = int(next(iter(tallies.values())).n)
        return Risk(n, plan.keys, plan.sensitive, fraction, tolerance, plan.missing, tallies)
    frame = read(data, [*plan.keys, *names])
    people = None if population is None else _read_population(population, plan, population_count)
    found = plan.measure(frame, people)
    if people is not None and fraction is None:
        fraction = found.records.n / max(next(iter(found.population.values())).n, 1.0)
    view = View(frame, found.records, found.tables, found.attributes, found.matches)
    return Risk(
        found.records.n, plan.keys, plan.sensitive, fraction, tolerance, plan.missing,
        found.tallies, found.population, view, len(frame) - found.records.n,
    )  # fmt: skip


def _read_population(population: Any, plan: Plan, count: str | None) -> tuple[Frame, Any]:
    frame = read(population, [*plan.keys, *([count] if count else [])])
    if count is None:
        return frame, None
    weight = frame.get_column(count).to_numpy()
    if weight.dtype.kind not in "iuf" or (weight < 0).any() or (weight != np.floor(weight)).any():
        raise InputError(f"population_count={count!r} must be a column of whole numbers ≥ 0")
    return frame, weight.astype(np.int64)
