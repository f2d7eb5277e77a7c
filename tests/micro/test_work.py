"""Work of the hot paths, counted and not timed: no more than half above what is committed in ``benchmarks/results/work.json``.

After a change that is meant to do more work: ``python -m benchmarks.work``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.common import RESULTS
from benchmarks.work import CASES, counted, measure

GROWTH = 1.5


@pytest.fixture(scope="module")
def now() -> dict[str, dict[str, Any]]:
    return {row["case"]: row for row in measure()}


def committed() -> dict[str, dict[str, Any]]:
    return {row["case"]: row for row in json.loads(Path(RESULTS / "work.json").read_text())["rows"]}


@pytest.mark.parametrize("case", list(committed()))
def test_no_more_work_than_before(case: str, now: dict[str, dict[str, Any]]) -> None:
    for unit, before in committed()[case].items():
        if unit != "case":
            assert now[case][unit] <= GROWTH * before + 5, f"{case}: {unit} grew from {before} to {now[case][unit]}"


@pytest.mark.parametrize("case", CASES)
def test_counts_are_the_same_in_every_run(case: str, now: dict[str, dict[str, Any]]) -> None:
    with counted() as work:
        CASES[case]()
    assert {"case": case, **work} == now[case]
