"""What is run: cases from families, folders of JJ files and the own named instances."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tabprotect.bench.families import FAMILIES
from tabprotect.errors import InputError
from tabprotect.io.jj import read_jj
from tabprotect.table.table import Table


@dataclass(frozen=True)
class Case:
    """A table made when asked for, with the best-known value and bound of its objective if there are any."""

    name: str
    family: str
    make: Callable[[], Table]
    task: str = "suppress"
    best: float | None = None
    bound: float | None = None
    source: str = ""


def family_cases(names: Sequence[str], seeds: Sequence[int], sizes: Sequence[str] = ()) -> Iterator[Case]:
    """All sizes and seeds of some families."""
    for name in names:
        if name not in FAMILIES:
            raise InputError(f"unknown family {name!r}: use {', '.join(FAMILIES)}")
        family = FAMILIES[name]
        for size in sizes or family.sizes:
            for seed in seeds:

                def make(seed: int = seed, size: str = size, family: object = family) -> Table:
                    return family.make(seed, size)  # type: ignore[attr-defined]

                yield Case(f"{name}-{size}-{seed}", name, make, family.task)


def folder_cases(folder: Path) -> Iterator[Case]:
    """Every JJ file of a folder; best-known values from its ``optima.csv`` if there is one."""
    files = sorted(folder.glob("*.jj"))
    if not files:
        raise InputError("no .jj file in this folder", file=folder)
    known = _optima(folder / "optima.csv")
    for path in files:
        best, bound, source = known.get(path.stem, (None, None, ""))
        yield Case(path.stem, folder.name, lambda path=path: read_jj(path), "suppress", best, bound, source)  # type: ignore[misc]


def _optima(path: Path) -> dict[str, tuple[float | None, float | None, str]]:
    if not path.exists():
        return {}
    found: dict[str, tuple[float | None, float | None, str]] = {}
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            if row.get("objective", "value") != "value" or not row.get("optimum"):
                continue
            best = float(row["optimum"])
            found[row["name"]] = (best, float(row.get("bound") or best), row.get("proved_by", ""))
    return found
