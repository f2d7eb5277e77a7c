"""The benchmark runner: families are seeded, results round-trip, comparisons are ratios, peers are judged by the attacker."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import tabprotect as tp
from tabprotect.bench import analysis, runner
from tabprotect.bench.cases import Case, family_cases, folder_cases
from tabprotect.bench.families import FAMILIES, magnitude, make

SMALL = {
    "uniform": "8,8", "magnitude2d": "8,8", "1h2d": "3x3,5", "hierarchical": "2x3,3x2", "cube3d": "4,4,4",
    "counts": "6,6", "linked": "4,4,4", "rounding": "5,5",
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
def test_families_are_additive_seeded_and_have_primaries(family: str) -> None:
    table = make(family, SMALL[family], 3)
    table.check_additive()
    again, other = make(family, SMALL[family], 3), make(family, SMALL[family], 4)
    assert np.array_equal(table.values, again.values)
    assert not np.array_equal(table.values, other.values)
    assert table.primary.any()
    assert (table.lpl[table.primary] > 0).all()


def test_magnitude_tables_are_those_of_the_open_instances(shared: Path, tmp_path: Path) -> None:
    import subprocess

    out = tmp_path / "c6.jj"
    tool = shared / "tools" / "make_table.py"
    subprocess.run(
        [sys.executable, str(tool), str(out), "--seed", "204", "--mean", "30", "--dims", "6", "6", "6"],
        check=True,
        capture_output=True,
    )
    theirs, ours = tp.read_jj(out), magnitude(204, "6,6,6", mean=30)
    for column in ("values", "status", "lpl", "upl", "ub"):
        assert np.array_equal(getattr(theirs, column), getattr(ours, column)), column
    assert abs(theirs.relations - ours.relations).sum() == 0


def test_a_run_is_audited_and_round_trips(tmp_path: Path) -> None:
    frame = runner.run(family_cases(["cube3d", "rounding"], [1], ["3,3,3"]), ["auto"], time_limit=10)
    assert frame["safe"].all()
    assert (frame["gap"] >= 0).all()
    for name in ("r.json", "r.parquet"):
        back, about = runner.load(runner.save(frame, tmp_path / name, "test"))
        assert back["objective"].tolist() == frame["objective"].tolist()
        assert about["command"] == "test"
        assert "numpy" in about["versions"]
    with pytest.raises(tp.errors.InputError, match=r"json or \.parquet"):
        runner.save(frame, tmp_path / "r.txt")
    with pytest.raises(tp.errors.InputError, match="cannot be read"):
        runner.load(tmp_path / "missing.json")


def test_tables_plots_and_comparison() -> None:
    frame = runner.run(family_cases(["magnitude2d"], [1, 2], ["5,5", "6,6"]), ["exact", "heuristic"], time_limit=5)
    table = analysis.gap_table(frame)
    assert (table["above best"] >= -1e-12).all()
    assert (table.groupby("case")["above best"].min() == 0).all()
    worse = frame.assign(wall=frame["wall"] * 2, objective=frame["objective"] * 1.5)
    ratios = analysis.compare_results(frame, worse)
    assert np.allclose(ratios["time ratio"], 2)
    assert np.allclose(ratios["cost ratio"], 1.5)
    assert len(analysis.performance_profile(frame).axes[0].lines) == 2


def test_plots_and_page_are_rebuilt_from_results(tmp_path: Path) -> None:
    from tests.report.test_html import Outline

    frame = runner.run(family_cases(["magnitude2d"], [1], ["4,4", "6,6"]), ["exact", "heuristic"], time_limit=5)
    runner.save(frame, tmp_path / "r.parquet")
    again = runner.load(tmp_path / "r.parquet")[0]
    for file in analysis.save_plots(again, tmp_path / "plots"):
        assert file.read_text().startswith("<svg")
    page = analysis.write_html(again, tmp_path / "bench.html").read_text()
    assert page.count("<svg") == 2
    assert page.count("<figure") == page.count('aria-label="Share') + page.count('aria-label="Median') == 2
    for case in frame["case"].unique():
        assert page.count(f"<td>{case}</td>") == 2
    assert Outline.of(page[: page.index("<figure")] + "</main></body></html>").tags


def test_the_command_runs_compares_and_rebuilds(tmp_path: Path) -> None:
    import json
    import subprocess

    def call(*words: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tabprotect", "bench", *map(str, words)], capture_output=True, text=True, check=False
        )

    ran = call(
        "cube3d", "--sizes", "3,3,3", "--seeds", "1,2", "--out", tmp_path / "a.json", "--report", tmp_path / "b.html"
    )
    assert ran.returncode == 0, ran.stderr
    assert "cube3d-3,3,3-2" in ran.stdout
    assert "Benchmark" in (tmp_path / "b.html").read_text()
    again = call("--results", tmp_path / "a.json", "--plots", tmp_path / "plots", "--json")
    assert {p.name for p in (tmp_path / "plots").iterdir()} == {"growth.svg", "profile.svg"}
    assert len(json.loads(again.stdout)) == 2
    same = call("--compare", tmp_path / "a.json", "--compare", tmp_path / "a.json", "--json")
    assert [row["cost ratio"] for row in json.loads(same.stdout)] == [1.0, 1.0]
    assert call("--compare", tmp_path / "a.json").returncode == 2
    assert call("cube3d", "--seeds", "one").returncode == 2
    assert call().returncode == 2


def test_folders_and_failures(tmp_path: Path) -> None:
    tp.write_jj(magnitude(1, "4,4"), tmp_path / "a.jj")
    (tmp_path / "optima.csv").write_text("name,objective,optimum,proved_by\na,value,123,brute force\n")
    (case,) = folder_cases(tmp_path)
    assert case.best == 123
    assert case.make().n_cells == 25
    stuck = tp.Table.from_relations([9.0, 4.0, 5.0], [[-1, 1, 1]], status=["z", "u", "z"]).with_levels(
        [1], lpl=1, upl=1
    )
    frame = runner.run([Case("stuck", "own", lambda: stuck)], ["auto"])
    assert frame["status"].tolist() == ["Infeasible"]
    with pytest.raises(tp.errors.InputError, match=r"no \.jj file"):
        list(folder_cases(tmp_path.parent / "nowhere"))
    with pytest.raises(tp.errors.InputError, match="unknown family"):
        list(family_cases(["nothing"], [1]))
