"""Pages of differentially private releases: what was released and promised, nothing of the true counts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

import tabprotect as tp
from tabprotect.report.dp import write_release, write_test
from tests.report.test_html import Outline

SECRET = 7_654_321


def body(page: str) -> str:
    """The page without its pictures, whose elements the outline does not know."""
    import re

    return re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL)


def test_histogram(tmp_path: Path) -> None:
    counts = pd.Series([SECRET, 20, 3], index=["<young>", "middle", "old"])
    noisy = tp.dp.release(counts, epsilon=0.01)
    page = write_release(noisy, tmp_path / "r.html").read_text()
    Outline.of(body(page))
    assert "Differentially private with ε = 0.01" in page
    assert "&lt;young&gt;" in page
    for value in noisy.values:
        assert f"<td>{value:,g}</td>" in page
    assert str(SECRET) not in page or noisy.values[0] == SECRET
    assert page.count("<figure") == page.count("<svg") == 1


def test_table(tmp_path: Path) -> None:
    released = tp.dp.release(tp.examples.d272(), epsilon=2.0)
    page = write_release(released, tmp_path / "t.html").read_text()
    Outline.of(body(page))
    for level in released.levels["level"]:
        assert f"<td>{level}</td>" in page
    assert "Error to expect" in page
    assert page.count("<svg") == 1


def test_verdicts(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    noise = tp.dp.Noise.of_epsilon(0.5)
    a, b = (np.maximum(rng.multinomial(5000, np.ones(8) / 8) + noise.simulate(8, rng), 0) for _ in range(2))
    c = a[::-1] * np.linspace(0.2, 2, 8)
    same = tp.dp.homogeneity_test(a, b, 0.5, 0.5, seed=1)
    other = tp.dp.homogeneity_test(a, c, 0.5, 0.5, seed=1)
    page = write_test(same, [a, b], ["one", "two"], tmp_path / "same.html").read_text()
    Outline.of(body(page))
    assert "explain the differences" in page
    assert page.count("<svg") == 2
    assert "differ by more" in write_test(other, [a, c], ["one", "three"], tmp_path / "other.html").read_text()


def test_whole_numbers_are_written_as_such() -> None:
    assert tp.dp.release([5, 6, 7], epsilon=1.0).publish()["value"].dtype == np.int64
    assert tp.dp.release([5, 6, 7], epsilon=1.0, law="laplace").publish()["value"].dtype == np.float64
    assert tp.dp.release(tp.examples.d272(), epsilon=2.0).publish()["value"].dtype == np.int64


def test_classes_are_named_on_the_page_of_a_test(tmp_path: Path) -> None:
    one, two = (tp.dp.release(pd.Series([500, 300, 200], index=["young", "middle", "old"]), epsilon=1.0) for _ in "12")
    found = tp.dp.homogeneity_test(one, two, seed=1)
    assert "middle" in write_test(found, [one, two], ["a", "b"], tmp_path / "t.html").read_text()
