"""Several rules together, a-priori information, rules as text."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import tabprotect as tp
from tabprotect.sensitivity import Contributions, Dominance, Manual, PPercent, Request, Threshold, ZeroValue, parse
from tabprotect.sensitivity.locate import locate, locate_each

D = ("50-99", "D2729")


def magnitudes() -> tp.Table:
    top = np.array([[90.0, 5.0], [50.0, 48.0], [10.0, 9.0]])
    known = Contributions(np.array([4, 3, 9]), top, np.array([100.0, 100.0, 60.0]))
    return tp.Table([100.0, 100.0, 60.0], np.zeros((0, 3)), freq=[4, 3, 9], contributions=known)


def test_all_reasons_and_the_largest_levels_are_kept() -> None:
    table = magnitudes().mark(PPercent(10) | Dominance(1, 80, boundary=">") | Threshold(3, range=20))
    assert table.reason.tolist() == ["p%(10); nk(1,80)", "p%(10); threshold(3)", ""]
    assert table.upl.tolist() == [12.5, 20.0, 0.0]
    assert table.primary.tolist() == [True, True, False]


def test_marking_twice_is_marking_with_both() -> None:
    once = magnitudes().mark(PPercent(10) | Threshold(3, range=20))
    twice = magnitudes().mark(PPercent(10)).mark(Threshold(3, range=20))
    for column in ("status", "upl", "lpl", "reason"):
        assert getattr(once, column).tolist() == getattr(twice, column).tolist()
    again = twice.mark(PPercent(10))
    assert again.reason.tolist() == twice.reason.tolist()
    fresh = twice.mark(Dominance(1, 80), keep=False)
    assert fresh.primary.tolist() == [True, False, False]


def test_or_is_associative_and_flat() -> None:
    a, b, c = PPercent(10), Threshold(2), Dominance(1, 80)
    assert ((a | b) | c).rules == (a | (b | c)).rules == (a, b, c)
    with pytest.raises(TypeError):
        a | "p%(10)"


def test_a_rule_for_some_cells_only() -> None:
    table = tp.examples.d272()
    marked = table.mark(Threshold(2).only(industry="D2729") | Threshold(5).only(industry=["D2722"]))
    assert sorted(marked.values[marked.primary].tolist()) == [1, 1, 4, 5]
    manual = table.mark(Manual(unsafe=[D, ("5-9", "D2721")]).only(industry="D2729"))
    assert manual.primary.sum() == 1


# -- a-priori information ---------------------------------------------------------------------------------------------------
def test_manual_has_the_last_word() -> None:
    table = tp.examples.d272()
    primaries = np.flatnonzero(table.mark(Threshold(2)).primary)
    rule = Threshold(2) | Manual(
        safe=primaries[:1],
        unsafe=[D],
        protect=[("5-9", "D2721")],
        cost={D: 7, ("5-9", "D2722"): 0.5},
        levels={D: (1, 3)},
    )
    for marked in (table.mark(rule), table.mark(Manual(safe=primaries[:1]) | Threshold(2) | rule)):
        i = table.cell(size=D[0], industry=D[1])
        assert not marked.primary[primaries[0]]
        assert marked.status[primaries[0]] == "s"
        assert marked.reason[primaries[0]] == ""
        assert marked.upl[primaries[0]] == 0
        assert (marked.status[i], marked.reason[i], marked.lpl[i], marked.upl[i], marked.cost[i]) == (
            "u",
            "manual",
            1,
            3,
            7,
        )
        assert marked.status[table.cell(size="5-9", industry="D2721")] == "z"
        assert marked.cost[table.cell(size="5-9", industry="D2722")] == 0.5
        assert np.isnan(marked.cost).sum() == table.n_cells - 2


def test_own_levels_replace_those_of_the_rule() -> None:
    table = tp.examples.d272()
    p = int(np.flatnonzero(table.mark(Threshold(2)).primary)[0])
    marked = table.mark(Threshold(2) | Manual(levels={p: 0.5}))
    assert (marked.lpl[p], marked.upl[p]) == (0.5, 0.5)
    assert marked.reason[p] == "threshold(2)"


def test_columns_of_costs_and_levels() -> None:
    table = tp.examples.d272()
    cost = np.full(table.n_cells, np.nan)
    cost[3] = 9
    assert table.mark(Manual(cost=cost)).cost[3] == 9
    with pytest.raises(tp.errors.InputError, match="not negative"):
        table.mark(Manual(cost={3: -1}))
    with pytest.raises(tp.errors.InputError, match="one entry for each"):
        table.mark(Manual(cost=[1.0, 2.0]))
    with pytest.raises(tp.errors.InputError, match="a pair"):
        table.mark(Manual(levels={3: (1, 2, 3)}))


def test_contradictions_are_errors() -> None:
    table = tp.examples.d272()
    with pytest.raises(tp.errors.InputError, match="two different statuses"):
        table.mark(Manual(safe=[D], unsafe=[D]))
    with pytest.raises(tp.errors.InputError, match="contradicts itself"):
        table.mark(Manual(safe=[D]) | Manual(unsafe=[D]))
    sensitive = ("500+", "D2721")
    with pytest.raises(tp.errors.InputError, match="sensitive but may not be suppressed"):
        table.mark(Threshold(2) | Manual(protect=[sensitive]))
    with pytest.raises(tp.errors.InputError, match=r"size=500\+, industry=D2721"):
        table.protect([table.cell(size="500+", industry="D2721")]).mark(Threshold(2))


def test_errors_do_not_tell_values() -> None:
    table = tp.Table([123457.0, 1.0], np.zeros((0, 2)), freq=[1, 5], status=["z", "s"])
    with pytest.raises(tp.errors.InputError) as caught:
        table.mark(Threshold(2))
    assert "123457" not in str(caught.value)


def test_request() -> None:
    asked = np.array([[True, False], [False, True], [False, False]])
    table = magnitudes()
    table = table.replace(contributions=Contributions(**{**vars(table.contributions), "asked": asked}))
    assert table.mark(Request()).primary.tolist() == [True, True, False]
    assert table.mark(Request(share=60)).primary.tolist() == [True, False, False]
    assert table.mark(Request(share=90)).primary.tolist() == [False, False, False]  # not more than 90 %
    assert table.mark(Request(range=25)).upl.tolist() == [25.0, 25.0, 0.0]
    with pytest.raises(tp.errors.InputError, match="who asked"):
        magnitudes().mark(Request())
    with pytest.raises(tp.errors.InputError, match="share"):
        Request(share=101)


# -- naming cells -------------------------------------------------------------------------------------------------------------
def test_locate() -> None:
    table = tp.examples.d272()
    i = table.cell(size=D[0], industry=D[1])
    mask = np.zeros(table.n_cells, bool)
    mask[i] = True
    for cells in (i, [i], np.array([i]), mask, mask.tolist(), D, [D], [list(D)], {"size": D[0], "industry": D[1]}):
        assert locate(table, cells).tolist() == [i]
    assert len(locate(table, {"size": "5-9"})) == 4
    assert locate(table, []).tolist() == []
    assert locate(table, [("5-9", "nowhere"), D], missing="ignore").tolist() == [i]
    assert locate_each(table, [("5-9", "nowhere"), D], missing="ignore").tolist() == [-1, i]
    for wrong in (
        [D[0]],
        [("5-9", "nowhere")],
        [99],
        [-1],
        [1.5],
        [True],
        {"place": "x"},
        1.5,
        [("5-9", "D2721", "x")],
    ):
        with pytest.raises(tp.errors.InputError):
            locate(table, wrong)
    bare = tp.Table([1.0], np.zeros((0, 1)))
    with pytest.raises(tp.errors.InputError, match="no dimensions"):
        locate(bare, [("a",)])


def test_locate_in_a_table_in_any_order_of_cells() -> None:
    table = tp.examples.d272()
    order = np.random.default_rng(1).permutation(table.n_cells)[:20]
    part = tp.Table(table.values[order], np.zeros((0, 20)), dims=table.dims, codes=table.codes[order])
    for k in range(20):
        names = tuple(d.codes[c] for d, c in zip(part.dims, part.codes[k], strict=True))
        assert locate(part, [names]).tolist() == [k]


# -- text -----------------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("p%(10)", PPercent(10)),
        ("P(20,3)", PPercent(20, n=3)),
        ("pq(10, 50)", tp.rules.PriorPosterior(10, 50)),
        ("NK(3,70)", Dominance(3, 70)),
        ("nk(1, 80.5, boundary=>)", Dominance(1, 80.5, boundary=">")),
        ("FREQ(3,30)", Threshold(2, range=30)),
        ("freq(3)", Threshold(2)),
        ("threshold(2, zeros=true)", Threshold(2, zeros=True)),
        ("p%(10, unit=holding)", PPercent(10, unit="holding")),
        ("zero", ZeroValue()),
        ("request(60)", Request(60)),
    ],
)
def test_parse(text: str, rule: object) -> None:
    assert parse(text) == rule
    assert parse(f" {text} ") == rule


@given(p=st.floats(0.01, 500), n=st.integers(1, 5), k=st.floats(0.01, 100), base=st.integers(1, 99))
def test_names_parse_back(p: float, n: int, k: float, base: int) -> None:
    for rule in (
        PPercent(round(p, 2), n=n),
        Dominance(n, round(k, 2)),
        Threshold(base),
        PPercent(10) | Threshold(base),
    ):
        assert parse(rule.name) == rule


@pytest.mark.parametrize(
    "text", ["", "  ", "p%(10", "k(3)", "p%(10)||freq(3)", "p%()", "p%(ten)", "nk(1)", "p%(10, m=2)", "p%(0)", 7]
)
def test_parse_says_what_is_wrong(text: str) -> None:
    with pytest.raises(tp.errors.InputError):
        parse(text)


def test_a_million_cells_at_once() -> None:
    """Vectorised: the same answer in bulk as cell by cell, for many cells."""
    rng = np.random.default_rng(3)
    n = 1_000_000
    top = -np.sort(-np.ceil(rng.lognormal(3, 1.3, (n, 2))), axis=1)
    total = top.sum(axis=1) + rng.integers(0, 40, n)
    table = tp.Table(
        total, sp.csr_array((0, n)), freq=np.full(n, 3), contributions=Contributions(np.full(n, 3), top, total)
    )
    marked = table.mark(PPercent(10) | Dominance(1, 80))
    rest = total - top[:, 0] - top[:, 1]
    assert marked.primary.tolist() == ((100 * rest < 10 * top[:, 0]) | (100 * top[:, 0] >= 80 * total)).tolist()
