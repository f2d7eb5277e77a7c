"""Certificates: valid ones pass, any tampering is found, and no solver is needed to check."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabprotect as tp
from tests.attacker.tables import random_cube, random_mask
from tests.attacker.test_attack import d272


def certificate() -> tp.Certificate:
    table, cells = d272()
    found = tp.attack(table, cells, goal="verdict")
    assert found.safe
    assert found.certificate is not None
    return found.certificate


def test_round_trip_and_first_line(tmp_path: Path) -> None:
    made = certificate()
    for name in ("c.json", "c.json.gz"):
        path = made.save(tmp_path / name)
        assert tp.verify(path).ok
        assert tp.Certificate.load(path).fingerprint == made.fingerprint
    assert (tmp_path / "c.json").read_text().startswith("# CONFIDENTIAL")
    assert "4 sensitive cells" in tp.verify(tmp_path / "c.json").summary()


def test_a_changed_file_is_rejected(tmp_path: Path) -> None:
    path = certificate().save(tmp_path / "c.json")
    text = path.read_text()
    path.write_text(text.replace('"467"', '"468"', 1))
    with pytest.raises(tp.errors.InputError, match="fingerprint"):
        tp.verify(path)
    path.write_text(text[: len(text) // 2])
    with pytest.raises(tp.errors.InputError, match="damaged"):
        tp.verify(path)
    path.write_text("nothing of the kind")
    with pytest.raises(tp.errors.InputError, match="not a tabprotect certificate"):
        tp.verify(path)
    with pytest.raises(tp.errors.InputError, match="cannot read"):
        tp.verify(tmp_path / "missing.json")


def _tampered(change: object) -> tp.Certificate:
    body = copy.deepcopy(certificate().body)
    change(body)  # type: ignore[operator]
    return tp.Certificate(body)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda b: b["values"].__setitem__(5, "73"), "does not hold in the table"),
        (lambda b: b["suppressed"].remove(b["moves"][0]["cells"][0]), "published"),
        (lambda b: b["moves"][0]["nums"].__setitem__(0, b["moves"][0]["nums"][0] + 1), "violates relation"),
        (lambda b: b["needs"].__setitem__(0, [b["needs"][0][0], "1", "100", "0"]), "upper protection level"),
        (lambda b: b["needs"].pop(), "no protection level"),
        (lambda b: b["ub"].__setitem__(slice(None), b["values"]), "bounds"),
        (lambda b: b.__setitem__("witness", []), "level not reached"),
        (lambda b: b.__setitem__("format", "other"), "unknown format"),
        (lambda b: b.pop("moves"), "malformed"),
        (lambda b: b["witness"].__setitem__(0, [b["witness"][0][0], 99, -99]), "bounds"),
    ],
)
def test_every_kind_of_tampering_is_found(change: object, message: str) -> None:
    outcome = tp.verify(_tampered(change))
    assert not outcome.ok
    assert message in " ".join(outcome.problems)
    assert "NOT valid" in outcome.summary()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_every_safe_verdict_has_a_valid_certificate(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = random_cube(rng, *[(4, 5), (3, 3, 3), ("2x2", "2x2", 2), (3, 3, 2, 2)][seed % 4], most=15)
    hidden = random_mask(rng, table, 0.5)
    primary = np.flatnonzero(hidden)[::3]
    level = rng.integers(1, 4, len(primary))
    table = table.with_status(primary, "u").with_levels(
        primary, lpl=np.minimum(level, table.values[primary]), upl=level
    )
    found = tp.attack(table, hidden, goal="verdict")
    assert found.safe == tp.attack(table, hidden).safe
    if found.safe:
        assert tp.verify(found.certificate).ok


def test_checking_loads_no_solver(tmp_path: Path) -> None:
    path = certificate().save(tmp_path / "c.json")
    code = (
        "import sys; from tabprotect.attacker.certificate import verify; assert verify(sys.argv[1]).ok; "
        "print([m for m in ('highspy','ortools','pyscipopt') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_hidden_values_are_not_in_the_repr() -> None:
    made = certificate()
    assert json.dumps(made.body["values"])[1:-1] not in repr(made)
    assert "alternatives" in repr(made)
