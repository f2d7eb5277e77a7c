"""The rules against their definitions, record by record."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabprotect as tp
from tabprotect.sensitivity import (
    Contributions,
    Dominance,
    MinFrequency,
    PPercent,
    PriorPosterior,
    SensitivityRule,
    Threshold,
    ZeroValue,
)

contributions_of_a_cell = st.lists(st.integers(0, 200), min_size=0, max_size=7)


def table_of(
    cells: list[list[float]], *, k: int = 3, counts: bool = False, weights: list[list[float]] | None = None
) -> tp.Table:
    """One independent cell per list of contributions."""
    n = len(cells)
    top, w = np.zeros((n, k)), np.zeros((n, k))
    total, count = np.zeros(n), np.zeros(n, np.int64)
    for i, x in enumerate(cells):
        wi = weights[i] if weights else [1.0] * len(x)
        order = sorted(range(len(x)), key=lambda j: -x[j])
        for place, j in enumerate(order[:k]):
            top[i, place], w[i, place] = x[j], wi[j]
        total[i], count[i] = sum(a * b for a, b in zip(x, wi, strict=True)), len(x)
    known = Contributions(count, top, total, w if weights else None)
    return tp.Table(total, np.zeros((0, n)), freq=count, contributions=known, counts=counts)


def is_sensitive(rule: SensitivityRule, x: list[float]) -> bool:
    return bool(rule.assess(table_of([x], k=8)).primary[0])


# -- definitions ------------------------------------------------------------------------------------------------------------
@given(x=contributions_of_a_cell, p=st.integers(1, 150), n=st.integers(1, 3))
def test_p_percent_is_what_the_runner_up_can_estimate(x: list[int], p: int, n: int) -> None:
    s = sorted(x, reverse=True) + [0] * 5
    expected = 100 * (sum(x) - sum(s[: n + 1])) < p * s[0]
    assert is_sensitive(PPercent(p, n=n), x) == expected


@given(x=contributions_of_a_cell, p=st.integers(1, 50), q=st.integers(51, 100))
def test_prior_posterior_definition(x: list[int], p: int, q: int) -> None:
    s = sorted(x, reverse=True) + [0] * 5
    assert is_sensitive(PriorPosterior(p, q), x) == (p * s[0] - q * (sum(x) - s[0] - s[1]) > 0)


@given(x=contributions_of_a_cell, n=st.integers(1, 4), k=st.integers(1, 100), strict=st.booleans())
def test_dominance_definition(x: list[int], n: int, k: int, strict: bool) -> None:
    head, total = sum(sorted(x, reverse=True)[:n]), sum(x)
    expected = 100 * head > k * total if strict else total > 0 and 100 * head >= k * total
    assert is_sensitive(Dominance(n, k, boundary=">" if strict else ">="), x) == expected


@given(x=contributions_of_a_cell, base=st.integers(1, 6), zeros=st.booleans())
def test_threshold_definition(x: list[int], base: int, zeros: bool) -> None:
    assert is_sensitive(Threshold(base, zeros=zeros), x) == (len(x) <= base and (zeros or len(x) > 0))


@given(x=contributions_of_a_cell, p=st.floats(0.5, 99))
def test_p_percent_is_the_pq_rule_with_q_100(x: list[int], p: float) -> None:
    table = table_of([x])
    one, other = PPercent(p).assess(table), PriorPosterior(p, 100).assess(table)
    assert one.primary.tolist() == other.primary.tolist()
    assert one.upl.tolist() == other.upl.tolist()


@given(x=st.lists(st.floats(0, 1e6), max_size=6), p=st.floats(1, 50), k=st.floats(1, 100))
def test_scaling_all_contributions_changes_no_decision_on_clear_cases(x: list[float], p: float, k: float) -> None:
    s = [*sorted(x, reverse=True), 0.0, 0.0]
    total = sum(x)
    near = 1e-6 * max(total, 1e-9)
    if abs(100 * (total - s[0] - s[1]) - p * s[0]) > near:
        assert is_sensitive(PPercent(p), x) == is_sensitive(PPercent(p), [1024 * v for v in x])
    if abs(100 * s[0] - k * total) > near:
        assert is_sensitive(Dominance(1, k), x) == is_sensitive(Dominance(1, k), [1024 * v for v in x])


# -- levels: after adding the level the cell is no longer sensitive ----------------------------------------------------------
@settings(max_examples=200)
@given(
    x=contributions_of_a_cell,
    rule=st.sampled_from(
        [
            PPercent(10),
            PPercent(70, n=2),
            PriorPosterior(10, 50),
            Dominance(1, 80),
            Dominance(2, 60),
            Dominance(1, 75, boundary=">"),
        ]
    ),
)
def test_level_is_the_least_that_cures_the_cell(x: list[int], rule: SensitivityRule) -> None:
    marks = rule.assess(table_of([x], k=8))
    if not marks.primary[0]:
        assert marks.upl[0] == marks.lpl[0] == 0
        return
    level = marks.upl[0]
    assert level >= 1
    assert marks.lpl[0] == min(level, sum(x))

    def cured(extra: float) -> bool:
        table = table_of([x], k=8)
        known = table.contributions
        # the level is uncertainty of the total: it widens what is left beside the contributors the intruder knows
        wider = Contributions(known.count, known.top, known.total + extra)
        return not rule.assess(table.replace(contributions=wider)).primary[0]

    assert cured(level)
    if level > 1:
        assert not cured(level * 0.999)


@given(x=st.lists(st.integers(1, 3), min_size=1, max_size=6), base=st.integers(1, 6))
def test_level_of_a_count_reaches_the_first_harmless_count(x: list[int], base: int) -> None:
    table = tp.Table([float(len(x))], np.zeros((0, 1)), counts=True)
    marks = Threshold(base).assess(table)
    if marks.primary[0]:
        assert len(x) + marks.upl[0] == base + 1
        assert marks.lpl[0] == min(marks.upl[0], len(x))


def test_levels_of_the_textbook() -> None:
    """One cell per row: x₁ = 100, x₂ = 20, rest 5; levels by the formulas of Hundepool et al. (2012)."""
    table = table_of([[100, 20, 5]])
    assert PPercent(10).assess(table).upl.tolist() == [5.0]
    assert PriorPosterior(10, 50).assess(table).upl.tolist() == [15.0]
    assert Dominance(1, 50, boundary=">").assess(table).upl.tolist() == [75.0]
    assert Dominance(2, 80, boundary=">").assess(table).upl.tolist() == [25.0]
    assert Dominance(2, 80).assess(table).upl.tolist() == pytest.approx([25.0])


def test_the_lower_level_of_a_non_negative_cell_ends_at_its_value() -> None:
    marks = Dominance(1, 25, boundary=">").assess(table_of([[100]]))
    assert (marks.lpl[0], marks.upl[0]) == (100.0, 300.0)


def test_levels_are_at_least_one_unit_of_the_last_decimal() -> None:
    assert PPercent(10).assess(table_of([[101, 50, 10]])).upl.tolist() == [1.0]
    tenths = PPercent(10).assess(table_of([[10.5, 5.0, 1.0]])).upl[0]
    assert tenths == pytest.approx(0.1)
    assert Threshold(2, range=10).assess(table_of([[1]])).upl.tolist() == [1.0]


# -- boundaries --------------------------------------------------------------------------------------------------------------
def test_boundaries() -> None:
    assert not is_sensitive(PPercent(10), [100, 50, 10])  # the rest is exactly p% of the largest
    assert is_sensitive(PPercent(10), [100, 50, 9])
    assert is_sensitive(Dominance(1, 80), [80, 20])
    assert not is_sensitive(Dominance(1, 80, boundary=">"), [80, 20])
    assert not is_sensitive(Dominance(1, 80), [79, 21])
    assert not is_sensitive(Dominance(1, 100, boundary=">"), [50])
    assert is_sensitive(Dominance(1, 100), [50])


def test_decimal_boundaries_do_not_depend_on_binary_rounding() -> None:
    assert not is_sensitive(PPercent(10), [3.0, 1.0, 0.1, 0.2])  # 0.1 + 0.2 > 0.3 in binary
    assert not is_sensitive(PPercent(10), [0.3, 0.2, 0.03])
    assert is_sensitive(Dominance(1, 70), [0.7, 0.1, 0.1, 0.1])
    assert not is_sensitive(Dominance(1, 70, boundary=">"), [0.7, 0.1, 0.1, 0.1])
    assert is_sensitive(PPercent(10), [0.1, 0.2])  # 0.1 + 0.2 − 0.2 − 0.1 is not exactly zero


def test_empty_one_and_two_contributors() -> None:
    table = table_of([[], [0], [7], [7, 0], [7, 3]])
    assert PPercent(10).assess(table).primary.tolist() == [False, False, True, True, True]
    assert Dominance(1, 80).assess(table).primary.tolist() == [False, False, True, True, False]
    assert Dominance(2, 80).assess(table).primary.tolist() == [False, False, True, True, True]
    assert Threshold(1).assess(table).primary.tolist() == [False, True, True, False, False]
    assert Threshold(1, zeros=True).assess(table).primary.tolist() == [True, True, True, False, False]
    assert ZeroValue().assess(table).primary.tolist() == [False, True, False, False, False]


def test_zeros_of_a_count_table() -> None:
    table = tp.examples.d272()
    assert table.mark(Threshold(2)).primary.sum() == 4
    marked = table.mark(Threshold(2, zeros=True))
    assert marked.primary.sum() == 7
    empty = marked.primary & (marked.values == 0)
    assert set(marked.upl[empty]) == {3.0}
    assert set(marked.lpl[empty]) == {0.0}


def test_d272_of_the_report() -> None:
    table = tp.examples.d272().mark(Threshold(2))
    names = {table.label(int(i)): (table.values[i], table.lpl[i], table.upl[i]) for i in np.flatnonzero(table.primary)}
    assert names == {
        "size=100-199, industry=D2729": (1, 1, 2),
        "size=200-299, industry=D2729": (1, 1, 2),
        "size=300-499, industry=D2721": (2, 1, 1),
        "size=500+, industry=D2721": (2, 1, 1),
    }
    assert set(table.reason[table.primary]) == {"threshold(2)"}


def test_min_frequency_is_the_threshold_in_other_words() -> None:
    assert MinFrequency(3) == Threshold(2)
    assert MinFrequency(3, 30).range == 30


# -- counts and magnitudes -----------------------------------------------------------------------------------------------------
def test_threshold_on_a_magnitude_table_needs_only_the_frequencies() -> None:
    table = tp.Table([50.0, 60.0], np.zeros((0, 2)), freq=[1, 9])
    assert Threshold(2).assess(table).upl.tolist() == [5.0, 0.0]
    assert Threshold(2, range=30).assess(table).upl.tolist() == [15.0, 0.0]


def test_threshold_on_a_weighted_count_scales_its_level() -> None:
    table = tp.Table([20.0], np.zeros((0, 1)), freq=[2], counts=True)
    marks = Threshold(2).assess(table)
    assert (marks.upl[0], marks.lpl[0]) == (10.0, 10.0)


def test_negative_values_get_a_range_on_both_sides() -> None:
    table = tp.Table([-50.0, 80.0], np.zeros((0, 2)), freq=[1, 9])
    marks = Threshold(2).assess(table)
    assert (marks.lpl[0], marks.upl[0]) == (5.0, 5.0)


def test_mixed_table_of_counts_and_magnitudes() -> None:
    """The report's tables: establishments and their output side by side."""
    cells = {
        "region": ["N", "S", "W"],
        "firms": [2, 5, 9],
        "output": [120.0, 300.0, 90.0],
        "x1": [100.0, 290.0, 10.0],
        "x2": [20.0, 4.0, 9.0],
    }
    table = tp.Table.from_frame(cells, by=["region"], value=["firms", "output"], freq="firms", top=["x1", "x2"])
    marked = table.mark(Threshold(2) | PPercent(10)).cells.set_index(["region", "variable"])
    assert marked.loc[marked.status == "u", "reason"].to_dict() == {
        ("N", "firms"): "threshold(2)",
        ("N", "output"): "threshold(2); p%(10)",
        ("S", "output"): "p%(10)",
    }
    assert marked.loc[("N", "firms"), "upl"] == 1
    assert marked.loc[("N", "output"), "upl"] == 12  # 10 % of 120 by the threshold, 10 by p%
    assert marked.loc[("S", "output"), "upl"] == 23


# -- sampling weights and holdings ---------------------------------------------------------------------------------------------
def test_weights_repeat_a_contribution_as_in_tau_argus() -> None:
    """100 with weight 4 and 10 with weight 7: total 470; the two largest of the population are 100 and 100, 42.6 percent."""
    table = table_of([[100, 10]], weights=[[4, 7]])
    assert table.values.tolist() == [470.0]
    assert Dominance(2, 42, boundary=">").assess(table).primary.tolist() == [True]
    assert Dominance(2, 43, boundary=">").assess(table).primary.tolist() == [False]
    assert not PPercent(20).assess(table).primary[0]
    unweighted = table_of([[100, 10]])
    assert PPercent(20).assess(unweighted).primary[0]


@given(
    data=st.lists(st.tuples(st.integers(0, 50), st.integers(1, 4)), min_size=1, max_size=4),
    n=st.integers(1, 3),
    k=st.integers(1, 99),
)
def test_whole_weights_are_the_same_as_repeated_records(data: list[tuple[int, int]], n: int, k: int) -> None:
    repeated = [x for x, w in data for _ in range(w)]
    weighted = table_of([[x for x, _ in data]], k=4, weights=[[w for _, w in data]])
    for rule in (Dominance(n, k), PPercent(k, n=n)):
        one, other = rule.assess(weighted), rule.assess(table_of([repeated], k=16))
        assert one.primary.tolist() == other.primary.tolist()
        assert one.upl == pytest.approx(other.upl)


def test_fractional_weights_take_part_of_a_respondent() -> None:
    table = table_of([[100, 50]], weights=[[1.5, 2.0]])
    assert Dominance(2, 70, boundary=">").assess(table).primary.tolist() == [False]  # (150 + 25) / 250 = 70 %
    assert Dominance(2, 69.9, boundary=">").assess(table).primary.tolist() == [True]


def holding_table() -> tp.Table:
    """Four equal firms, three of them one group."""
    groups = Contributions(np.array([2]), np.array([[30.0, 10.0]]), np.array([40.0]))
    firms = Contributions(np.array([4]), np.array([[10.0, 10.0]]), np.array([40.0]), holdings=groups)
    return tp.Table([40.0], np.zeros((0, 1)), contributions=firms)


def test_holdings_count_as_one_respondent() -> None:
    table = holding_table()
    assert not PPercent(10, unit="contributor").assess(table).primary[0]
    assert PPercent(10, unit="holding").assess(table).primary[0]
    both = PPercent(10).assess(table)
    assert both.primary[0]
    assert both.reason[0] == "p%(10) of holdings"
    assert both.upl[0] == pytest.approx(3.0)
    assert not Threshold(2, unit="contributor").assess(table).primary[0]
    assert Threshold(2).assess(table).primary[0]


# -- what is missing ------------------------------------------------------------------------------------------------------------
def test_rules_say_what_they_need() -> None:
    bare = tp.Table([1.0], np.zeros((0, 1)))
    with pytest.raises(tp.errors.InputError, match=r"p%\(10\) needs the 2 largest contributions.*contributor="):
        bare.mark(PPercent(10))
    with pytest.raises(tp.errors.InputError, match="number of contributors"):
        bare.mark(Threshold(2))
    with pytest.raises(tp.errors.InputError, match="holding="):
        table_of([[1, 2]]).mark(PPercent(10, unit="holding"))
    with pytest.raises(tp.errors.InputError, match="holding="):
        table_of([[1, 2]]).mark(Threshold(2, unit="holding"))
    with pytest.raises(tp.errors.InputError, match="3 largest contributions, the table has 2"):
        table_of([[1, 2, 3]], k=2).mark(PPercent(10, n=2))
    assert table_of([[1, 2]], k=2).mark(PPercent(10, n=2)).primary[0]  # nobody is missing: two contributors in all


def test_negative_contributions_are_an_error_with_a_way_out() -> None:
    table = table_of([[5, 4, 3], [5, -4, 3]])
    with pytest.raises(tp.errors.InputError, match="cell #1"):
        table.mark(PPercent(10))
    hidden = Contributions(np.array([3]), np.array([[9.0, 1.0]]), np.array([5.0]))
    with pytest.raises(tp.errors.InputError, match="exceed its total"):
        tp.Table([5.0], np.zeros((0, 1)), contributions=hidden).mark(Dominance(1, 80))


def test_unsorted_columns_of_contributions_are_sorted() -> None:
    known = Contributions(np.array([3]), np.array([[5.0, 100.0]]), np.array([110.0]))
    table = tp.Table([110.0], np.zeros((0, 1)), contributions=known)
    assert PPercent(10).assess(table).upl.tolist() == [5.0]


def test_contributions_of_another_table_are_refused() -> None:
    table = table_of([[1, 2]])
    with pytest.raises(tp.errors.InputError, match="do not belong"):
        tp.Table([1.0, 2.0], np.zeros((0, 2)), contributions=table.contributions).mark(PPercent(10))


@pytest.mark.parametrize(
    "make",
    [
        lambda: PPercent(0),
        lambda: PPercent(-5),
        lambda: PPercent(float("nan")),
        lambda: PPercent("10"),
        lambda: PPercent(10, n=0),
        lambda: PPercent(10, unit="firm"),
        lambda: PriorPosterior(50, 10),
        lambda: Dominance(0, 80),
        lambda: Dominance(1, 101),
        lambda: Dominance(1.5, 80),
        lambda: Dominance(1, 80, boundary="=="),
        lambda: Threshold(0),
        lambda: Threshold(2.5),
        lambda: Threshold(True),
        lambda: MinFrequency(1),
        lambda: Threshold(2, range=-1),
        lambda: ZeroValue(0),
    ],
)
def test_senseless_parameters_are_refused(make: object) -> None:
    with pytest.raises(tp.errors.InputError):
        make()
