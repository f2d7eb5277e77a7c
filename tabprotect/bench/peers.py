"""Other programs on the same tables, only where the user has them; nothing of them is shipped."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tabprotect.attacker import attack
from tabprotect.errors import InputError
from tabprotect.io.jj import read_jj, write_jj
from tabprotect.table.table import Table
from tabprotect.types import BoolArray

_R_GAUSS = """
args <- commandArgs(trailingOnly = TRUE); suppressMessages(library(GaussSuppression))
d <- read.csv(args[1], colClasses = "character"); d$value <- as.numeric(d$value); d$primary <- d$primary == "1"
x <- Matrix::Matrix(as.matrix(read.csv(args[2], header = FALSE)), sparse = TRUE)
s <- SSBtools::GaussSuppression(x, candidates = order(-d$value), primary = which(d$primary))
out <- rep(0, ncol(x)); out[which(d$primary)] <- 1; out[s] <- 1; write.table(out, args[3], row.names = FALSE, col.names = FALSE)
"""


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
        with tempfile.TemporaryDirectory() as folder:
            base = Path(folder)
            (base / "run.R").write_text(_R_GAUSS)
            lines = [f"{v!r},{int(p)}" for v, p in zip(table.values.tolist(), table.primary, strict=True)]
            (base / "cells.csv").write_text("value,primary\n" + "\n".join(lines) + "\n")
            inner = _inner_matrix(table)
            np.savetxt(base / "x.csv", inner.T, fmt="%d", delimiter=",")
            words = [
                "Rscript",
                str(base / "run.R"),
                str(base / "cells.csv"),
                str(base / "x.csv"),
                str(base / "out.txt"),
            ]
            return _judged(table, words, time_limit, lambda: np.loadtxt(base / "out.txt").astype(bool))


def _inner_matrix(table: Table) -> Any:
    """Cells × inner cells: which inner cells each cell sums."""
    if not table.dims:
        raise InputError("this peer needs a table with dimensions")
    out = np.ones((table.n_cells, 1))
    for k, dim in enumerate(table.dims):
        member = dim.hierarchy.membership.toarray()[table.codes[:, k]]
        out = (out[:, :, None] * member[:, None, :]).reshape(table.n_cells, -1)
    return out


def _judged(table: Table, words: list[str], time_limit: float, read: Any) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=time_limit * 2 + 30, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"status": type(error).__name__, "wall": time.perf_counter() - start}
    wall = time.perf_counter() - start
    try:
        hidden: BoolArray = read()
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
    if shutil.which("Rscript"):
        check = subprocess.run(["Rscript", "-e", "library(GaussSuppression)"], capture_output=True, check=False)
        if check.returncode == 0:
            found.append(GaussSuppression())
    return found
