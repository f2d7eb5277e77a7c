"""What all sensitivity rules share: joining with ``|``, restriction to some cells, and levels turned into marks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tabprotect.errors import InputError
from tabprotect.table.table import Apriori, Marks, Table
from tabprotect.types import BoolArray, FloatArray


class SensitivityRule(ABC):
    """A rule that decides which cells are sensitive; rules are joined with ``|`` and used by ``table.mark(rule)``."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The rule in the words of `parse`; it is the reason written beside a cell."""

    @abstractmethod
    def assess(self, table: Table) -> Marks:
        """Sensitive cells of the table, their protection levels and the reasons."""

    def __or__(self, other: SensitivityRule) -> AnyOf:
        if not isinstance(other, SensitivityRule):
            return NotImplemented
        return AnyOf((*_parts(self), *_parts(other)))

    def only(self, **codes: str | Iterable[str]) -> Only:
        """The same rule, for the cells with the given codes only (the columns of a mixed table, for example)."""
        return Only(self, tuple((k, v if isinstance(v, str) else tuple(v)) for k, v in codes.items()))

    def __str__(self) -> str:
        return self.name


def _parts(rule: SensitivityRule) -> tuple[SensitivityRule, ...]:
    return rule.rules if isinstance(rule, AnyOf) else (rule,)


@dataclass(frozen=True)
class AnyOf(SensitivityRule):
    """Sensitive when any of the rules says so: the largest of their levels, the reasons of all that fired.

    >>> from tabprotect.sensitivity import MinFrequency, PPercent
    >>> print(PPercent(10) | MinFrequency(3))
    p%(10)|threshold(2)
    """

    rules: tuple[SensitivityRule, ...]

    @property
    def name(self) -> str:
        return "|".join(r.name for r in self.rules)

    def assess(self, table: Table) -> Marks:
        if not self.rules:
            return none_sensitive(table)
        return join([r.assess(table) for r in self.rules], table)


@dataclass(frozen=True)
class Only(SensitivityRule):
    """A rule restricted to the cells with certain codes; made by ``rule.only(dimension=codes)``."""

    rule: SensitivityRule
    codes: tuple[tuple[str, str | tuple[str, ...]], ...]

    @property
    def name(self) -> str:
        return self.rule.name

    def assess(self, table: Table) -> Marks:
        marks = self.rule.assess(table)
        keep = np.zeros(table.n_cells, bool)
        keep[table.find(**dict(self.codes))] = True
        known = marks.apriori
        if known is not None:
            known = Apriori(
                np.where(keep, known.status, ""),
                *(np.where(keep, a, np.nan) for a in (known.cost, known.lpl, known.upl)),
            )
        lpl, upl, spl = (np.where(keep, level, 0.0) for level in (marks.lpl, marks.upl, marks.spl))
        return Marks(marks.primary & keep, lpl, upl, spl, np.where(keep, marks.reason, ""), known)


def none_sensitive(table: Table) -> Marks:
    """Marks of a rule that finds nothing."""
    n = table.n_cells
    return Marks(np.zeros(n, bool), np.zeros(n), np.zeros(n), np.zeros(n), np.zeros(n, "U1"))


def reasons(primary: BoolArray, name: str) -> npt.NDArray[np.str_]:
    """The rule's name beside the sensitive cells, nothing elsewhere."""
    text = np.zeros(len(primary), f"U{max(len(name), 1)}")
    text[primary] = name
    return text


def two_sided(table: Table, primary: BoolArray, up: FloatArray, name: str, down: FloatArray | None = None) -> Marks:
    """Marks with the given distances above (and below: the same unless ``down`` is given) the values.

    Both are at least one unit of the table's last decimal, as in τ-ARGUS: a level of zero would protect nothing. Nobody believes a value
    below its known lower bound of zero or more, so that the lower level of such a cell ends at its value.
    """
    unit = 10.0**-table.decimals
    upl = np.where(primary, np.maximum(up, unit), 0.0)
    lpl = upl if down is None else np.where(primary, np.maximum(down, unit), 0.0)
    lpl = np.where(table.lb >= 0, np.minimum(lpl, np.maximum(table.values, 0.0)), lpl)
    return Marks(primary, lpl, upl, np.zeros(table.n_cells), reasons(primary, name))


def percent_of_value(table: Table, percent: float) -> FloatArray:
    """A safety range: so many percent of the value (τ-ARGUS's way for rules that imply no level of their own)."""
    return percent / 100.0 * np.abs(table.values)


def join(marks: list[Marks], table: Table) -> Marks:
    """Several rules' marks as one."""
    primary = np.logical_or.reduce([m.primary for m in marks])
    lpl, upl, spl = (np.maximum.reduce([getattr(m, name) for m in marks]) for name in ("lpl", "upl", "spl"))
    return Marks(primary, lpl, upl, spl, _join_reasons(marks, primary), _join_apriori(marks, table))


def _join_reasons(marks: list[Marks], primary: BoolArray) -> npt.NDArray[np.str_]:
    """Reasons joined by '; '; only sensitive cells are touched, and each distinct combination is spelled once."""
    cells = np.flatnonzero(primary)
    spelled = [""]
    combination = np.zeros(len(cells), np.int64)
    for m in marks:
        words, word = _distinct(m.reason[cells])
        pairs, combination = np.unique(combination * len(words) + word, return_inverse=True)
        spelled = [_append(spelled[pair // len(words)], words[pair % len(words)]) for pair in pairs.tolist()]
    text = np.zeros(len(primary), f"U{max([1, *map(len, spelled)])}")
    if len(cells):
        text[cells] = np.array(spelled)[combination]
    return text


def _append(text: str, word: str) -> str:
    return text if not word or word in text.split("; ") else f"{text}; {word}" if text else word


def _distinct(texts: npt.NDArray[np.str_]) -> tuple[list[str], npt.NDArray[np.int64]]:
    """Distinct texts and the number of each entry's; linear, since a rule writes only a few different reasons."""
    words, number = [""], np.zeros(len(texts), np.int64)
    open_ = np.flatnonzero(texts != "")
    while len(open_):
        word = texts[open_[0]]
        same = texts[open_] == word
        number[open_[same]] = len(words)
        words.append(str(word))
        open_ = open_[~same]
    return words, number


def _join_apriori(marks: list[Marks], table: Table) -> Apriori | None:
    """A-priori information of several sources; they may add to each other but not contradict."""
    known = [m.apriori for m in marks if m.apriori is not None]
    if not known:
        return None
    first = known[0]
    for other in known[1:]:
        both = (first.status != "") & (other.status != "") & (first.status != other.status)
        if both.any():
            raise InputError(f"a-priori information contradicts itself for cell {table.label(int(both.argmax()))}")
        status = np.where(first.status == "", other.status, first.status)
        later = (np.where(np.isnan(b), a, b) for a, b in zip(_numbers(first), _numbers(other), strict=True))
        first = Apriori(status, *later)
    return first


def _numbers(known: Apriori) -> tuple[FloatArray, FloatArray, FloatArray]:
    return known.cost, known.lpl, known.upl


def check_number(value: object, what: str, *, above: float = 0.0, at_most: float = np.inf) -> None:
    """Raise unless ``above < value ≤ at_most``."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not above < value <= at_most:
        limit = "" if at_most == np.inf else f" and at most {at_most:g}"
        raise InputError(f"{what} must be a number above {above:g}{limit}, not {value!r}")


def check_whole(value: object, what: str, least: int = 1) -> None:
    """Raise unless the value is a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{what} must be a whole number of at least {least}, not {value!r}")
