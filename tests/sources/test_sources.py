"""The reproduction of the sources: claims, pages, command line."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

import tabprotect as tp
from tabprotect.cli.reproduce import app
from tabprotect.microdata.study import anonymity_study, theta_study
from tabprotect.sources import SOURCES, Claim, Reproduction, reproduce
from tabprotect.sources.claim import number, statement
from tabprotect.sources.page import save


@cache
def tables() -> Reproduction:
    return reproduce("tables")


def small(name: str) -> Reproduction:
    """Each source in the smallest setting that still draws all its tables and figures."""
    if name == "tables":
        return tables()
    if name == "similarity":
        return reproduce(name, study=theta_study(samples=20))
    if name == "dissimilarity":
        return reproduce(name, study=anonymity_study(records=1200, ks=(2, 5)))
    if name == "dp-test":
        return reproduce(name, quick=True, repetitions=20, replicates=39)
    return reproduce(name, quick=True)


# -- claims -----------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("printed", "ours", "agrees"),
    [("41.7", 41.6667, "yes"), ("41.7", 41.64, "no"), ("5.4", 5.348, "no"), ("40", 40, "yes"), ("0.5", 0.45, "yes"), ("-0.1", -0.1, "yes")],
)  # fmt: skip
def test_numbers_are_compared_at_their_printed_digits(printed: str, ours: float, agrees: str) -> None:
    assert number("t: x", printed, ours).agrees == agrees


def test_a_misprint_explains_a_difference_and_nothing_else() -> None:
    assert number("t: x", "5.4", 5.348, misprint="rounding").agrees == "explained"
    assert number("t: x", "5.3", 5.348, misprint="rounding").agrees == "yes"
    assert statement("t: x", "a", "b", False, why="because").agrees == "explained"
    assert statement("t: x", "a", "b", False, remark="hm").agrees == "no"
    with pytest.raises(tp.errors.InputError, match="remark"):
        Claim("t: x", "1", "2", "explained")
    with pytest.raises(tp.errors.InputError, match="yes, no, explained"):
        Claim("t: x", "1", "2", "maybe")  # type: ignore[arg-type]


def test_place_and_what() -> None:
    claim = Claim("table 1: circuit", "13", "13", "yes")
    assert (claim.place, claim.what) == ("table 1", "circuit")


# -- sources ----------------------------------------------------------------------------------------------------------------
def test_every_number_of_the_tables_source() -> None:
    found = tables()
    assert found.counts["no"] == 0
    explained = {c.item for c in found.claims if c.agrees == "explained"}
    assert explained == {
        "table 1: circuit (8,3) (5,3) (5,1)",
        "table 5: D272, CCS, share J = I/H",
        "table 5: D272, J − L",
    }
    assert len(found.claims) > 90
    assert [p for p in dict.fromkeys(c.place for c in found.claims) if p.startswith("table")] == [
        f"table {k}" for k in range(1, 6)
    ]


@pytest.mark.parametrize("name", [n for n in SOURCES if n != "tables"])
def test_other_sources_on_small_settings(name: str) -> None:
    found = small(name)
    assert found.source == name
    assert len(found.claims) >= 15
    # what does not depend on a simulation must agree whatever its size
    exact = ("table 1.1", "table 3.1", "section 3", "theorem", "table 2", "equation", "definition", "algorithm")
    assert not [c for c in found.claims if c.place.startswith(exact) and c.agrees == "no"]
    assert set(found.captions) == set(found.figures)
    assert found.frames


def test_similarity_has_all_printed_settings() -> None:
    compared = small("similarity").frames["table-4.3-4.4"]
    assert len(compared) == 36
    assert compared["mape3 printed"].iloc[-1] == 33.46
    assert compared["theta1 printed"].iloc[0] == 0.1790
    assert (compared["mape2 printed"] < compared["mape1 printed"]).all()


def test_a_finding_that_does_not_hold_is_listed() -> None:
    found = reproduce("dissimilarity", study=anonymity_study(records=2000, ks=(2, 10)))
    failed = [c.item for c in found.claims if c.agrees == "no"]
    assert any("wrong values count" in item for item in failed)
    assert all(item in found.summary() for item in failed)


def test_unknown_source() -> None:
    with pytest.raises(tp.errors.InputError, match="dp-test"):
        reproduce("tabels")


# -- pages ------------------------------------------------------------------------------------------------------------------
def test_page_has_every_claim_the_command_and_the_versions(tmp_path: Path) -> None:
    found = tables()
    files = save(found, tmp_path, command="tabprotect reproduce tables", versions={"numpy": "2.0"})
    page = (tmp_path / "tables.md").read_text()
    assert page.startswith("# ")
    assert "tabprotect reproduce tables" in page
    assert "numpy 2.0" in page
    assert page.count("\n| ") == len(found.claims) + len({c.place for c in found.claims})
    claims = pd.read_csv(tmp_path / "tables.csv", keep_default_na=False, dtype=str)
    assert claims["ours"].tolist() == [c.ours for c in found.claims]
    for name in found.figures:
        assert f"figures/tables-{name}.svg" in page
        assert (tmp_path / "figures" / f"tables-{name}.svg").read_bytes().startswith(b"<svg")
    assert sorted(files) == sorted(p for p in tmp_path.rglob("*") if p.is_file())


def test_figures_are_the_same_bytes_each_time(tmp_path: Path) -> None:
    one, two = (save(tables(), tmp_path / name, versions={}) for name in "ab")
    assert [p.read_bytes() for p in one] == [p.read_bytes() for p in two]


# -- command line -----------------------------------------------------------------------------------------------------------
def test_command_prints_writes_and_exits(tmp_path: Path) -> None:
    out = CliRunner().invoke(app, ["tables", "--out", str(tmp_path / "pages")])
    assert out.exit_code == 0
    assert "table 5: D2721, CCS, share J = I/H\t8.8\t8.8\tyes" in out.stdout
    assert "0 not reproduced" in out.stdout
    assert (tmp_path / "pages" / "tables.md").is_file()


def test_command_json() -> None:
    out = CliRunner().invoke(app, ["tables", "--json"])
    (found,) = json.loads(out.stdout)
    assert found["source"] == "tables"
    assert found["counts"]["no"] == 0
    assert {"place", "what", "printed", "ours", "agrees", "remark"} == set(found["claims"][0])


def test_strict_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Reproduction("tables", "t", "r", (Claim("t: x", "1", "2", "no"),))
    monkeypatch.setattr("tabprotect.sources.reproduce", lambda *a, **k: broken)
    assert CliRunner().invoke(app, ["tables"]).exit_code == 0
    assert CliRunner().invoke(app, ["tables", "--strict"]).exit_code == 1


def test_command_refuses_unknown_sources() -> None:
    out = CliRunner().invoke(app, ["nothing"])
    assert isinstance(out.exception, tp.errors.InputError)


@pytest.mark.slow
def test_finished_studies_are_read_and_not_run_again(tmp_path: Path) -> None:
    from tabprotect.dp.study import power, unequal

    made = [f(repetitions=1, replicates=9) for f in (power, unequal)]
    for study in made:
        study.save(tmp_path)
    found = reproduce("dp-test", repetitions=1, replicates=9, studies=tmp_path)
    for study in made:
        pd.testing.assert_frame_equal(found.frames[study.name], study.table)
        assert study.name in found.figures
    made[0].table.head(5).to_csv(tmp_path / "power.csv", index=False)
    with pytest.raises(tp.errors.InputError, match="not the full study"):
        reproduce("dp-test", repetitions=1, replicates=9, studies=tmp_path)
    with pytest.raises(tp.errors.InputError, match="no such file"):
        reproduce("dp-test", repetitions=1, replicates=9, studies=tmp_path / "nowhere")
