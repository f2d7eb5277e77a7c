"""How hidden cells are shown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Symbols:
    """The office's symbols: for primary and for secondary cells, and for empty ones."""

    primary: str = "x"
    secondary: str = "x"
    empty: str = "–"
