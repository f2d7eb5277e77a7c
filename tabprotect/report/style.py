"""How hidden cells are shown."""

from __future__ import annotations

from dataclasses import dataclass

from tabprotect.protected import Protected
from tabprotect.types import BoolArray


@dataclass(frozen=True)
class Symbols:
    """The office's symbols: for primary and for secondary cells, and for empty ones."""

    primary: str = "x"
    secondary: str = "x"
    empty: str = "–"


def empty(res: Protected) -> BoolArray:
    """Which cells may be shown as empty: of a rounded or adjusted table none, for the symbol would tell its true zeros from those that were made."""
    return (res.table.status == "z") & (res.kind == "suppress")
