"""The shipped instances are what their generator makes, and their optima hold."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import tabprotect as tp
from instances import make

FOLDER = Path(make.__file__).parent


def rows() -> list[dict[str, str]]:
    with (FOLDER / "optima.csv").open() as file:
        return list(csv.DictReader(file))


def test_files_are_made_by_the_generator(tmp_path: Path) -> None:
    made = make.tables()
    assert {p.stem for p in FOLDER.glob("*.jj")} == set(made)
    for name, table in made.items():
        assert tp.write_jj(table, tmp_path / "t.jj").read_bytes() == (FOLDER / f"{name}.jj").read_bytes(), name


def test_the_list_of_optima_describes_the_files() -> None:
    listed = rows()
    assert {(r["name"], r["objective"]) for r in listed} == {
        (p.stem, o) for p in FOLDER.glob("*.jj") for o in ("value", "count")
    }
    for r in listed:
        table = tp.read_jj(FOLDER / f"{r['name']}.jj")
        assert (table.n_cells, int(table.primary.sum())) == (int(r["cells"]), int(r["primary"]))
        assert float(r["optimum"]) >= table.weights(r["objective"])[table.primary].sum()


def test_d272_is_the_source_table() -> None:
    table = tp.read_jj(FOLDER / "d272.jj")
    np.testing.assert_array_equal(table.values, tp.examples.d272().values)
    optimum = {(r["name"], r["objective"]): float(r["optimum"]) for r in rows()}
    for name in ("d272", "d272_report"):
        assert (optimum[name, "value"], optimum[name, "count"]) == (40, 10)


@pytest.mark.parametrize("name", ["d272_report", "flat3x3", "chained"])
def test_small_optima_are_proved_again(name: str) -> None:
    table = tp.read_jj(FOLDER / f"{name}.jj")
    for r in rows():
        if r["name"] == name:
            cost, pattern = make.compact(table, r["objective"])
            assert cost == pytest.approx(float(r["optimum"]))
            assert (pattern >= table.primary).all()
            tried = make.brute_force(table, r["objective"])
            assert tried is None or tried == pytest.approx(cost)
