"""The own instances with proved optima: exact suppression finds them, heuristics do not beat them."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

import tabprotect as tp

FOLDER = Path(__file__).resolve().parents[2] / "instances"


def _rows() -> list[dict[str, str]]:
    with (FOLDER / "optima.csv").open(newline="", encoding="utf-8") as file:
        return [row for row in csv.DictReader(line for line in file if not line.startswith("#")) if row["optimum"]]


@pytest.mark.parametrize("row", _rows(), ids=lambda r: f"{r['name']}-{r['objective']}")
def test_known_optimum(row: dict[str, str]) -> None:
    table = tp.read_jj(FOLDER / f"{row['name']}.jj")
    optimum = float(row["optimum"])
    res = tp.suppress(table, objective=row["objective"], time_limit=20)
    assert res.bound <= optimum + 1e-6
    assert res.objective >= optimum - 1e-6
    assert tp.verify(res.certificate).ok
    if res.status == "optimal":
        assert res.objective == pytest.approx(optimum)
    heuristic = tp.suppress(table, objective=row["objective"], method="heuristic", time_limit=2)
    assert heuristic.objective >= optimum - 1e-6
