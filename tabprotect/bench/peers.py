"""Other programs on the same tables, only where the user has them; nothing of them is shipped."""

from __future__ import annotations

import csv
import math
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tabprotect.attacker import attack
from tabprotect.bench.rscripts import GAUSS, SDCTABLE
from tabprotect.errors import InputError
from tabprotect.io.jj import read_jj, write_jj
from tabprotect.table.hierarchy import Hierarchy
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, IntArray


@dataclass(frozen=True)
class ExternalSolver:
    """An external program that reads a JJ file and writes one with complements marked 'm': a command with {input}, {output} and {seconds}."""

    command: str
    name: str = "external"

    def run(self, table: Table, time_limit: float) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder) / "in.jj", Path(folder) / "out.jj"
            write_jj(table, source)
            words = [w.format(input=source, output=target, seconds=int(time_limit)) for w in self.command.split()]
            return _judged(table, words, time_limit, lambda: np.isin(read_jj(target).status, ["u", "m"]))


@dataclass(frozen=True)
class GaussSuppression:
    """The R package GaussSuppression through Rscript, in its plain mode."""

    name: str = "GaussSuppression"

    def run(self, table: Table, time_limit: float) -> dict[str, Any]:
        try:
            trees = [_levels(d.hierarchy) for d in table.dims]
            inner = _inner_matrix(table)
        except InputError as error:
            return _unfit(error)
        with tempfile.TemporaryDirectory() as folder:
            np.savetxt(Path(folder) / "x.csv", inner.T, fmt="%d", delimiter=",")
            return _by_r(table, trees, Path(folder), GAUSS, [], time_limit)


@dataclass(frozen=True)
class SdcTable:
    """The R package sdcTable through Rscript: method SIMPLEHEURISTIC, HITAS or OPT (its limit is in whole minutes)."""

    method: str = "SIMPLEHEURISTIC"

    @property
    def name(self) -> str:
        return f"sdcTable {self.method}"

    def run(self, table: Table, time_limit: float) -> dict[str, Any]:
        try:
            trees = [_levels(d.hierarchy) for d in table.dims]
            if not trees:
                raise InputError("this peer needs a table with dimensions")
        except InputError as error:
            return _unfit(error)
        with tempfile.TemporaryDirectory() as folder:
            minutes = str(max(1, math.ceil(time_limit / 60)))
            return _by_r(table, trees, Path(folder), SDCTABLE, [self.method, minutes], time_limit)


def _by_r(
    table: Table, trees: list[IntArray], folder: Path, script: str, options: list[str], time_limit: float
) -> dict[str, Any]:
    """Write the table for a script of `rscripts`, run it, and judge what it hides.

    Codes are written as ``c0, c1, …``, so that no code of the user's can be misread.
    """
    (folder / "run.R").write_text(script)
    leaf = np.ones(table.n_cells, bool)
    for k, d in enumerate(table.dims):
        leaf &= np.isin(table.codes[:, k], d.hierarchy.leaves)
        rows = [["levels", "codes"], *(["@" * (int(level) + 1), f"c{i}"] for i, level in enumerate(trees[k]))]
        _write_csv(folder / f"d{k + 1}.csv", rows)
    status = np.where(table.primary, "u", np.where(table.status == "z", "z", "s"))
    top = np.where(np.isfinite(table.ub), table.ub, 2 * np.abs(table.values).max(initial=1.0))
    numbers = [table.values, table.lpl, table.upl, top]
    head = [*(f"d{k + 1}" for k in range(len(table.dims))), "inner", "status", "value", "lpl", "upl", "ub"]
    cells = [
        [*(f"c{c}" for c in table.codes[i]), int(leaf[i]), status[i], *(f"{float(v[i]):.17g}" for v in numbers)]
        for i in range(table.n_cells)
    ]
    _write_csv(folder / "cells.csv", [head, *cells])
    words = ["Rscript", str(folder / "run.R"), str(folder), *options]
    return _judged(table, words, time_limit, lambda: np.loadtxt(folder / "out.txt").astype(bool))


def _write_csv(path: Path, rows: list[list[Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


def _levels(hierarchy: Hierarchy) -> IntArray:
    """Depth of every code in a tree that is listed from top to bottom, as the R packages want it."""
    parents = np.full(len(hierarchy), -1)
    for total, parts in hierarchy.sums:
        if len(parts) < 2 or (parents[list(parts)] >= 0).any():
            raise InputError("this peer needs trees in which every total has at least two parts of its own")
        parents[list(parts)] = total
    level = np.asarray(hierarchy.level)
    above = [max((j for j in range(i) if level[j] == level[i] - 1), default=-1) for i in range(len(level))]
    if not np.array_equal(above, parents):
        raise InputError("this peer needs hierarchies that are listed from top to bottom")
    return level


def _inner_matrix(table: Table) -> Any:
    """Cells × inner cells: which inner cells each cell sums."""
    if not table.dims:
        raise InputError("this peer needs a table with dimensions")
    out = np.ones((table.n_cells, 1))
    for k, dim in enumerate(table.dims):
        member = dim.hierarchy.membership.toarray()[table.codes[:, k]]
        out = (out[:, :, None] * member[:, None, :]).reshape(table.n_cells, -1)
    return out


def _unfit(error: InputError) -> dict[str, Any]:
    """A table that a peer cannot take leaves a row that says so, not an end of the run."""
    return {"status": "not run", "error": str(error)}


def _judged(table: Table, words: list[str], time_limit: float, read: Callable[[], BoolArray]) -> dict[str, Any]:
    """Run a program and let the attacker judge the pattern that it wrote."""
    start = time.perf_counter()
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=time_limit * 2 + 30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"status": type(error).__name__, "wall": time.perf_counter() - start}
    wall = time.perf_counter() - start
    try:
        hidden = read()
        if hidden.shape != (table.n_cells,):
            raise InputError(f"{hidden.size} cells instead of {table.n_cells}")
    except (OSError, ValueError, InputError):
        return {"status": f"no result (exit code {done.returncode})", "error": done.stderr[-200:], "wall": wall}
    cost = float(table.weights()[hidden].sum())
    safe = attack(table, hidden, goal="verdict").safe
    secondary = cost - float(table.weights()[table.primary].sum())
    return {
        "status": "safe" if safe else "UNSAFE",
        "objective": cost,
        "secondary": secondary,
        "wall": wall,
        "safe": safe,
    }


def available(command: str | None = None) -> list[Any]:
    """The peers this machine has: R packages if Rscript finds them, and an external solver if a command is given."""
    found: list[Any] = [] if command is None else [ExternalSolver(command)]
    if not shutil.which("Rscript"):
        return found
    packages: dict[str, list[Any]] = {
        "GaussSuppression": [GaussSuppression()],
        "sdcTable": [SdcTable("SIMPLEHEURISTIC"), SdcTable("HITAS"), SdcTable("OPT")],
    }
    for package, peers in packages.items():
        check = subprocess.run(["Rscript", "-e", f"library({package})"], capture_output=True, check=False)
        if check.returncode == 0:
            found += peers
    return found
