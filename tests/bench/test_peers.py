"""Peers through Rscript, against a stand-in: R itself is not needed, the files that the scripts read and write are what is tested."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

import tabprotect as tp
from tabprotect.bench import runner
from tabprotect.bench.cases import Case
from tabprotect.bench.families import magnitude
from tabprotect.bench.peers import ExternalSolver, GaussSuppression, SdcTable, available

# rebuilds the table from nothing but the files, as R would, protects it and writes the pattern
STAND_IN = """#!{python}
import csv, sys
from pathlib import Path
import numpy as np, pandas as pd
import tabprotect as tp
if sys.argv[1] == "-e":
    sys.exit(0 if sys.argv[2] in {packages!r} else 1)
script, folder = Path(sys.argv[1]).read_text(), Path(sys.argv[2])
cells = pd.read_csv(folder / "cells.csv", dtype={{"status": str}})
dims = [c for c in cells if c[0] == "d" and c[1:].isdigit()]
by = {{}}
for d in dims:
    rows = list(csv.reader((folder / f"{{d}}.csv").open()))
    assert rows[0] == ["levels", "codes"]
    chain, pairs = [], []
    for at, code in rows[1:]:
        chain = chain[: len(at) - 1] + [code]
        pairs += [(chain[-2], code)] if len(chain) > 1 else []
    by[d] = tp.Hierarchy.from_pairs(pairs)
table = tp.Table.from_frame(cells[cells["inner"] == 1], by=by, value="value")
at = [int(table.cell(**row)) for row in cells[dims].to_dict("records")]
assert np.allclose(table.values[at], cells["value"])
if "sdcTable" in script:
    method, minutes = sys.argv[3], int(sys.argv[4])
    assert method in ("SIMPLEHEURISTIC", "HITAS", "OPT") and minutes >= 1
else:
    x = np.loadtxt(folder / "x.csv", delimiter=",", ndmin=2)
    assert np.allclose(x.T @ cells["value"][cells["inner"] == 1].to_numpy(), cells["value"])
status = np.empty(table.n_cells, "U1"); status[at] = cells["status"]
low = np.zeros(table.n_cells); low[at] = cells["lpl"]
high = np.zeros(table.n_cells); high[at] = cells["upl"]
top = np.zeros(table.n_cells); top[at] = cells["ub"]
marked = table.with_status(np.flatnonzero(status == "u"), "u").with_status(np.flatnonzero(status == "z"), "z")
u = np.flatnonzero(status == "u")
hidden = tp.suppress(marked.with_levels(u, lpl=low[u], upl=high[u]).with_bounds(ub=top), time_limit=None).suppressed
np.savetxt(folder / "out.txt", hidden[at].astype(int), fmt="%d")
"""


@pytest.fixture
def rscript(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "Rscript"
    program.parent.mkdir()
    packages = ["library(GaussSuppression)", "library(sdcTable)"]
    program.write_text(STAND_IN.format(python=sys.executable, packages=packages))
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program


@pytest.mark.parametrize(
    "peer", [GaussSuppression(), SdcTable("SIMPLEHEURISTIC"), SdcTable("OPT")], ids=lambda p: p.name
)
@pytest.mark.parametrize("size", ["6,6", "2x3,4", "3,3,3"])
def test_r_gets_the_whole_table_and_its_pattern_is_judged(rscript: Path, peer: object, size: str) -> None:
    table = magnitude(1, size, mean=4)
    found = peer.run(table, 30)  # type: ignore[attr-defined]
    assert found["status"] == "safe", found
    assert found["objective"] == tp.suppress(table, time_limit=None).objective


def test_codes_of_the_user_cannot_be_misread(rscript: Path) -> None:
    import pandas as pd

    codes = ["a,b", 'c"d', " e", "NA"]
    frame = pd.DataFrame([(r, c, 10.0 * i + j + 5) for i, r in enumerate(codes) for j, c in enumerate(codes)])
    table = tp.Table.from_frame(frame.set_axis(["r", "c", "v"], axis=1), by=["r", "c"], value="v")
    cell = [int(table.cell(r="a,b", c="NA"))]
    assert SdcTable().run(table.with_status(cell, "u").with_levels(cell, lpl=1, upl=1), 30)["status"] == "safe"


def test_what_is_there_is_found(rscript: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["GaussSuppression", "sdcTable SIMPLEHEURISTIC", "sdcTable HITAS", "sdcTable OPT"]
    assert [p.name for p in available()] == names
    rscript.write_text(rscript.read_text().replace("'library(sdcTable)'", "''"))
    assert [p.name for p in available("solver {input} {output}")] == ["external", "GaussSuppression"]
    monkeypatch.setenv("PATH", "/nowhere")
    assert available() == []


def test_a_pattern_that_leaks_or_has_the_wrong_length_is_called_so(rscript: Path) -> None:
    table = magnitude(1, "6,6")
    text = rscript.read_text()
    rscript.write_text(text.replace("hidden[at].astype(int)", '(cells["status"] == "u").to_numpy().astype(int)'))
    assert SdcTable().run(table, 30)["status"] == "UNSAFE"
    rscript.write_text(text.replace("hidden[at].astype(int)", "hidden[:-1].astype(int)"))
    assert "no result" in SdcTable().run(table, 30)["status"]
    rscript.write_text(text.replace("script, folder", 'sys.exit("out of memory")\nscript, folder', 1))
    failed = SdcTable().run(table, 30)
    assert failed["status"] == "no result (exit code 1)"
    assert "out of memory" in failed["error"]


def test_tables_that_the_packages_cannot_take_leave_a_row(rscript: Path) -> None:
    bare = tp.Table.from_relations([9.0, 4.0, 5.0], [[-1, 1, 1]], status=["s", "u", "s"]).with_levels([1], lpl=1, upl=1)
    frame = runner.run([Case("bare", "own", lambda: bare)], [], peers=[GaussSuppression(), SdcTable()])
    assert frame["status"].tolist() == ["not run", "not run"]
    assert frame["error"].str.contains("dimensions").all()
    area = tp.Hierarchy.from_tree({"North": ["a", "b"], "South": ["c", "d"]})
    kind = tp.Hierarchy.from_tree({"Urban": ["a", "c"], "Rural": ["b", "d"]})
    import pandas as pd

    two = tp.Table.from_frame(
        pd.DataFrame({"x": list("abcd"), "v": [1.0, 2.0, 3.0, 4.0]}),
        by={"x": tp.Hierarchy.combine(area, kind)},
        value="v",
    )
    assert "at least two parts of its own" in SdcTable().run(two, 30)["error"]


def test_an_external_solver_is_audited(tmp_path: Path) -> None:
    table = magnitude(1, "6,6")
    good = ExternalSolver(f"{sys.executable} -m tabprotect solve {{input}} {{output}} --time-limit {{seconds}}")
    found = good.run(table, 10)
    assert found["status"] == "safe"
    assert found["objective"] == tp.suppress(table).objective
    copies = tmp_path / "copy.py"
    copies.write_text("import shutil, sys; shutil.copy(sys.argv[1], sys.argv[2])")
    assert ExternalSolver(f"{sys.executable} {copies} {{input}} {{output}}").run(table, 10)["status"] == "UNSAFE"
    assert "no result" in ExternalSolver(f"{sys.executable} --version").run(table, 10)["status"]
    assert ExternalSolver("/no/such/program").run(table, 10)["status"] == "FileNotFoundError"
