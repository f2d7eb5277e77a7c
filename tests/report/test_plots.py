"""The pictures: right numbers, no hidden value unless asked for."""

from __future__ import annotations

import io

import numpy as np
import pandas as pd
import pytest

import tabprotect as tp
from tabprotect.report import plots
from tests.report.report_cases import ALL, SECRET, TRACES, flat


def as_svg(figure) -> str:
    buffer = io.StringIO()
    import matplotlib

    with matplotlib.rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


@pytest.mark.parametrize("name", ALL)
def test_pattern_shows_kinds_and_no_hidden_value(name: str) -> None:
    res = ALL[name]()
    figure = res.plot()
    image = figure.axes[0].images[0].get_array()
    assert int((image == 4).sum()) == int(res.table.primary.sum())
    assert int((image == 3).sum()) == int(res.secondary.sum())
    drawn = as_svg(figure)
    assert not any(trace in drawn for trace in TRACES)
    texts = [t.get_text() for t in figure.axes[0].texts]
    assert texts.count("x") == int(res.suppressed.sum())
    assert len(texts) == res.table.n_cells


@pytest.mark.parametrize("name", ALL)
def test_intervals_are_the_attacker_s(name: str) -> None:
    found = tp.attack(ALL[name]())
    axes = found.plot().axes[0]
    bars = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
    expected = sorted(zip(found.lower.tolist(), found.upper.tolist(), strict=True))
    assert np.allclose(sorted(bars), expected)
    assert not any(trace in as_svg(found.plot()) for trace in TRACES)


def test_true_values_only_when_asked_for() -> None:
    found = tp.attack(flat())
    axes = found.plot(confidential=True).axes[0]
    assert "CONFIDENTIAL" in axes.get_title()
    assert any(SECRET in np.atleast_1d(line.get_xdata()) for line in axes.lines)
    assert all(SECRET not in np.atleast_1d(line.get_xdata()) for line in found.plot().axes[0].lines)


def test_needs_lie_inside_the_intervals() -> None:
    found = tp.attack(flat())
    k = int(np.flatnonzero(found.source.primary[found.cells])[0])
    low, high, _ = found.source.needed_levels()
    cell = found.cells[k]
    assert found.lower[k] <= SECRET - low[cell]
    assert found.upper[k] >= SECRET + high[cell]
    needs = [line for line in plots.intervals(found, confidential=True).axes[0].lines if line.get_linewidth() == 2]
    assert any(np.allclose(line.get_xdata(), [SECRET - low[cell], SECRET + high[cell]]) for line in needs)


def test_unknown_truth_cannot_be_drawn() -> None:
    frame = pd.DataFrame({"r": ["Total", "a", "b", "c"], "value": [9.0, np.nan, np.nan, 5.0]})
    found = tp.attack(frame, by=["r"])
    with pytest.raises(tp.errors.InputError, match="true values"):
        found.plot(confidential=True)
    assert found.plot().axes


def test_nothing_hidden_and_open_ends() -> None:
    table = tp.examples.d272()
    none = tp.attack(table, suppressed=np.zeros(table.n_cells, bool))
    assert "no cell is hidden" in none.plot().axes[0].texts[0].get_text()
    open_ended = tp.attack(pd.DataFrame({"r": ["Total", "a", "b"], "value": [np.nan, np.nan, 4.0]}), by=["r"])
    assert np.isinf(open_ended.upper).all()
    assert np.isfinite(open_ended.plot().axes[0].get_xlim()).all()


def test_growth_draws_medians_and_names_missing_columns() -> None:
    runs = pd.DataFrame(
        {"cells": [10, 10, 10, 100], "wall": [1.0, 2.0, 9.0, 5.0], "family": ["f"] * 4, "method": ["exact"] * 4}
    )
    line = plots.growth(runs).axes[0].lines[0]
    assert line.get_ydata().tolist() == [2.0, 5.0]
    with pytest.raises(tp.errors.InputError, match="seconds"):
        plots.growth(runs, y="seconds")
