"""The studies: their populations, their claims on a slice, any executor, files."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tabprotect.dp import Noise
from tabprotect.dp.study import STUDIES, error_rates, null_distribution, power, unequal, utility, write_html
from tabprotect.dp.study.populations import ages, classes, shape
from tabprotect.dp.study.simulate import Setting, rejection_rates, run_all
from tabprotect.errors import InputError


def test_shapes() -> None:
    np.testing.assert_allclose(shape("uniform", 5), 0.2)
    np.testing.assert_allclose(shape("increasing", 3), np.array([1, 2, 3]) / 6)
    normal = shape("normal", 7)
    np.testing.assert_allclose(normal, normal[::-1])
    assert normal[3] / normal[0] == pytest.approx(np.exp(4.5))
    with pytest.raises(InputError, match="shape"):
        shape("bimodal", 3)


def test_age_stand_in_is_reproducible() -> None:
    a, b = ages(), ages()
    for name in a:
        np.testing.assert_array_equal(a[name], b[name])
        assert a[name].sum() == pytest.approx(1)
        assert (a[name] > 0).all()
        for m in (86, 18, 9):
            assert classes(a[name], m).size == m
            assert classes(a[name], m).sum() == pytest.approx(1)
    with pytest.raises(InputError, match="classes"):
        classes(a["country A"], 10)


def test_ages_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "ages.csv"
    file.write_text("age,x,y\n" + "".join(f"{k},{k + 1},1\n" for k in range(90)) + "90+,5,5\n")
    found = ages(file)
    assert list(found) == ["x", "y"]
    assert found["y"][85] == pytest.approx((5 + 5) / 95)  # 85 … 89 and 90+
    for text, message in [
        ("age,x\n1,2\n", "two populations"),
        ("age,x,y\na,1,2\n", "line 2"),
        ("age,x,y\n1,-1,2\n", "line 2"),
        ("age,x,y\n1,0,2\n", "empty"),
    ]:
        file.write_text(text)
        with pytest.raises(InputError, match=message):
            ages(file)
    with pytest.raises(InputError, match="no such file"):
        ages(tmp_path / "nothing.csv")


def test_real_populations(shared: Path) -> None:
    found = ages(shared / "data" / "ages_2020_kr_us.csv")
    assert [p.size for p in found.values()] == [86, 86]
    study = power(quick=True, repetitions=20, replicates=99, populations=shared / "data" / "ages_2020_kr_us.csv")
    at = study.table.query("truth == 'different' and n == 100_000 and alpha1 >= 0.1")
    assert (at["bootstrap"] == 1).all()


def test_null_distribution_leaves_chi_square() -> None:
    table = null_distribution(quick=True, repetitions=300).table.set_index(["noise", "classes", "shape"])
    clean, noisy = table.loc["none"], table.loc["laplace"]
    assert (abs(clean["above_95"] - 0.05) < 4 * np.sqrt(0.05 * 0.95 / 300)).all()
    assert (noisy["mean"] > clean["mean"]).all()
    assert noisy.loc[(20, "normal"), "above_95"] > 0.4
    assert noisy.loc[(100, "uniform"), "above_95"] > 0.9


def test_error_rates() -> None:
    table = error_rates(quick=True).table
    error = 4 * np.sqrt(0.05 * 0.95 / 100)
    assert (abs(table["bootstrap"] - 0.05) <= error).all()
    assert (abs(table["bootstrap_sizes"] - 0.05) <= error).all()
    assert table["classical"].iloc[-1] == 1.0


def test_power_and_unequal() -> None:
    study = power(quick=True, repetitions=40, replicates=99)
    same, different = (study.table.query(f"truth == '{t}'") for t in ("same", "different"))
    assert same["bootstrap"].mean() < 0.1
    assert (different.query("n == 100_000 and alpha1 == 1")["bootstrap"] == 1).all()
    assert same.query("alpha1 == 0.01")["classical"].min() == 1.0  # the noise alone rejects
    other = unequal(quick=True, repetitions=40, replicates=99).table
    assert other.query("truth == 'same'")["bootstrap"].mean() < 0.12
    assert other.query("truth == 'different' and n == 100_000")["bootstrap"].min() > 0.9


def test_utility_ranks_mechanisms() -> None:
    table = utility(quick=True, repetitions=40, replicates=99).table
    assert table.query("truth == 'same'")["rejections"].mean() < 0.1
    at = table.query("truth == 'different' and n == 2000").set_index("mechanism")["rejections"]
    # the Gaussian law at the same ε (and a small δ) is noisier, and the power shows it
    assert at["laplace, clamp"] >= at["gaussian, clamp"]
    errors = table.query("n == 2000 and truth == 'different'").set_index("mechanism")["l1"]
    assert errors["gaussian, clamp"] > errors["laplace, clamp"]
    assert errors["laplace, project"] < errors["laplace, clamp"]


def test_any_executor_gives_the_same_numbers() -> None:
    alone = unequal(quick=True, repetitions=4, replicates=19)
    news = []
    with ThreadPoolExecutor(2) as pool:
        together = unequal(quick=True, repetitions=4, replicates=19, executor=pool, progress=news.append)
    pd.testing.assert_frame_equal(alone.table, together.table)
    assert news[-1].done == news[-1].total == len(alone.table)


@pytest.mark.slow
@pytest.mark.parametrize("name", STUDIES)
def test_processes_give_the_same_numbers(name: str) -> None:
    """What ``--workers 2`` does: settings are pickled, seeds go with them."""
    options = {"quick": True, "repetitions": 3} | ({} if name == "null" else {"replicates": 19})
    alone = STUDIES[name](**options)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        together = STUDIES[name](executor=pool, **options)
    pd.testing.assert_frame_equal(alone.table, together.table)
    assert together.cpu > 0


def test_a_failing_setting_is_not_lost_in_an_executor() -> None:
    with ThreadPoolExecutor(2) as pool, pytest.raises(ZeroDivisionError):
        run_all(lambda s: 1 / s, [1, 0, 2], pool)


def test_early_stopping_does_not_change_the_decision() -> None:
    p, noise = shape("normal", 12), Noise.of_epsilon(0.3)
    base = Setting(p, p, 800, (noise, noise), 30, 99, (1,))
    short = rejection_rates(base)
    assert 0 <= short[0] <= 0.3
    answers, cpu = run_all(rejection_rates, [base, base])
    assert answers == [short, short]
    assert cpu > 0


def test_reached_from_the_package() -> None:
    import tabprotect as tp

    assert tp.dp.study.STUDIES is STUDIES
    with pytest.raises(AttributeError, match="nothing"):
        _ = tp.dp.nothing


def test_files(tmp_path: Path) -> None:
    study = null_distribution(quick=True, repetitions=20)
    table, figure = study.save(tmp_path / "new")
    assert pd.read_csv(table).shape == study.table.shape
    assert figure.read_bytes().startswith(b"\x89PNG")
    page = write_html([study], tmp_path / "all.html").read_text()
    assert study.title in page
    assert "data:image/png;base64" in page
    assert study.title in study.summary()
    assert "null" in repr(study)
    assert set(STUDIES) == {"null", "errors", "power", "unequal", "utility"}
