"""τ-ARGUS metadata (``.rda``, a text file): the variables of a microdata or table file and what they are for."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path, PureWindowsPath
from typing import Any

from tabprotect.errors import InputError
from tabprotect.files import read_text
from tabprotect.table.hierarchy import Hierarchy

_WORD = re.compile(r'"([^"]*)"|(\S+)')
_ROLES = {
    "RECODEABLE": "dimension",
    "RECODABLE": "dimension",
    "NUMERIC": "value",
    "WEIGHT": "weight",
    "HOLDING": "holding",
    "REQUEST": "request",
    "FREQUENCY": "frequency",
    "MAXSCORE": "top",
    "STATUS": "status",
    "SHADOW": "shadow",
    "COST": "cost",
    "COSTVAR": "cost",
    "LOWERPL": "lpl",
    "UPPERPL": "upl",
}
_SETTINGS = ("TOTCODE", "DECIMALS", "CODELIST", "HIERCODELIST", "HIERLEADSTRING", "HIERLEVELS")
_IGNORED = ("HIERARCHICAL", "DISTANCE", "TRUNCABLE", "IDCODE", "HOUSEHOLD", "PRIORITY", "SUPPRESSWEIGHT")
_HEAD = ("SEPARATOR", "SAFE", "UNSAFE", "PROTECT")


@dataclass(frozen=True)
class Variable:
    """One variable: its place in the record, its role, and the description of its codes."""

    name: str
    line: int
    start: int | None = None
    width: int | None = None
    missing: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    settings: dict[str, tuple[str, ...]] = field(default_factory=dict)
    asked: tuple[str, ...] = ()

    def setting(self, tag: str) -> str | None:
        words = self.settings.get(tag, ())
        return words[0] if words else None

    @property
    def role(self) -> str:
        """``<NUMERIC> <COST>`` is a cost, ``<NUMERIC>`` alone a value."""
        special = [r for r in self.roles if r != "value"]
        return special[-1] if special else (self.roles[0] if self.roles else "")


@dataclass(frozen=True)
class Metadata:
    """All variables of a file, its separator (None: fixed positions) and its words for a cell's status."""

    path: Path
    variables: tuple[Variable, ...]
    separator: str | None = None
    words: dict[str, str] = field(default_factory=dict)

    def of(self, role: str) -> list[Variable]:
        return [v for v in self.variables if v.role == role]

    def hierarchy(self, variable: Variable, total: str | None, encoding: str) -> Any:
        """The hierarchy of a dimension: from its file, from digits, or None (flat, from the data)."""
        name = variable.setting("HIERCODELIST")
        try:
            if name is not None:
                lead = variable.setting("HIERLEADSTRING") or "@"
                return Hierarchy.from_hrc(
                    self._beside(name, variable), lead=lead, total=total or "Total", encoding=encoding
                )
            if "HIERLEVELS" in variable.settings:
                widths = [w for w in map(int, variable.settings["HIERLEVELS"]) if w]
                return Hierarchy.from_digits(widths, total=total or "Total")
        except ValueError as error:
            if isinstance(error, InputError) and error.file is not None:
                raise
            raise InputError(f"variable {variable.name!r}: {error}", file=self.path, line=variable.line) from None
        return None

    def _beside(self, name: str, variable: Variable) -> Path:
        """A file named in the metadata: as it is, or beside the metadata (names often carry another machine's folders)."""
        for candidate in (self.path.parent / name, self.path.parent / PureWindowsPath(name).name):
            if candidate.is_file():
                return candidate
        raise InputError(
            f"the hierarchy file {name!r} of {variable.name!r} is not there", file=self.path, line=variable.line
        )


def read_rda(path: str | Path, *, tabular: bool, encoding: str = "utf-8") -> Metadata:
    """Read the metadata of a table (``tabular``) or of microdata."""
    variables: list[Variable] = []
    words: dict[str, str] = {}
    for number, line in enumerate(read_text(path, encoding).split("\n"), start=1):
        tokens = [quoted if quoted or not plain else plain for quoted, plain in _WORD.findall(line.rstrip("\r"))]
        if not tokens:
            continue
        tag = _tag(line, tokens[0], bool(variables))
        try:
            if tag is None:
                variables.append(_variable(tokens, number, tabular, "SEPARATOR" in words))
            elif tag in _HEAD and not variables:
                words[tag] = tokens[1] if len(tokens) > 1 else ""
            elif not variables:
                raise InputError(f"<{tag}> stands before the first variable")
            else:
                variables[-1] = _tagged(variables[-1], tag, tokens[1:])
        except InputError as error:
            raise InputError(str(error), file=path, line=number) from None
    if not variables:
        raise InputError("describes no variables", file=path)
    seen: set[str] = set()
    for variable in variables:
        if variable.name in seen:
            raise InputError(f"variable {variable.name!r} is described twice", file=path, line=variable.line)
        seen.add(variable.name)
    separator = words.pop("SEPARATOR", None)
    if separator is not None and len(separator) != 1:
        raise InputError(f"the separator must be one sign, not {separator!r}", file=path)
    return Metadata(Path(path), tuple(variables), separator, words)


def _tag(line: str, word: str, inside: bool) -> str | None:
    """The tag of a line, without its brackets; indented tags are also known without brackets."""
    if word.startswith("<") and word.endswith(">"):
        return word[1:-1].upper()
    bare = word.upper()
    known = bare in _ROLES or bare in _SETTINGS or bare in _IGNORED
    return bare if inside and known and line[0].isspace() else None


def _variable(tokens: list[str], number: int, tabular: bool, free: bool) -> Variable:
    """``name start width missing…`` at fixed positions, ``name width missing…`` in free format, ``name`` in a table."""
    name, rest = tokens[0], tokens[1:]
    if tabular:
        return Variable(name, number)
    needed = 1 if free else 2
    if len(rest) < needed or not all(w.isdecimal() and w.isascii() and 0 < int(w) < 10**6 for w in rest[:needed]):
        raise InputError(f"variable {name!r} needs {'its width' if free else 'its first position and its width'}")
    start = None if free else int(rest[0])
    return Variable(name, number, start, int(rest[needed - 1]), tuple(rest[needed:]))


def _tagged(variable: Variable, tag: str, words: list[str]) -> Variable:
    if tag in _ROLES:
        more = [_ROLES[w[1:-1].upper()] for w in words if w.startswith("<") and w[1:-1].upper() in _ROLES]
        asked = tuple(words) if tag == "REQUEST" else variable.asked
        return replace(variable, roles=(*variable.roles, _ROLES[tag], *more), asked=asked)
    if tag in _SETTINGS:
        if tag in ("DECIMALS", "HIERLEVELS") and not (
            words and all(w.isdecimal() and w.isascii() and len(w) < 5 for w in words)
        ):
            raise InputError(f"<{tag}> needs whole numbers")
        return replace(variable, settings={**variable.settings, tag: tuple(words)})
    if tag in _IGNORED:
        return variable
    raise InputError(f"unknown tag <{tag}>")
