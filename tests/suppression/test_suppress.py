"""The verb ``suppress``: every method on one suite of tables, every result attacked again by other code."""

from __future__ import annotations

import functools
import itertools
import signal
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tabprotect as tp
from tabprotect.bench.families import magnitude
from tabprotect.suppression import METHODS, circuits, explain
from tests.attacker.tables import random_cube

ALL = [m for m in METHODS if m not in ("none", "auto")]


def marked(seed: int, *shape: int | str, share: float = 0.08, most: int = 30) -> tp.Table:
    """A random cube with a few primaries whose levels fit."""
    rng = np.random.default_rng(seed)
    table = random_cube(rng, *shape, most=most)
    inner = np.flatnonzero(table.values > 0)
    primary = rng.choice(inner, max(1, int(share * len(inner))), replace=False)
    level = np.maximum(1, np.floor(0.2 * table.values[primary]))
    status = np.where(table.values == 0, "z", "s")
    return table.replace(status=status).with_status(primary, "u", "test").with_levels(primary, lpl=level, upl=level)


SUITE = {
    "2-D": lambda: marked(1, 6, 7),
    "hierarchy × flat": lambda: marked(2, "3x3", 5),
    "3-D": lambda: marked(3, 3, 3, 3),
    "two hierarchies": lambda: marked(4, "2x3", "2x2"),
    "hierarchical 3-D": lambda: marked(5, "2x2", 2, 2),
}


LIMIT = 4.0


@functools.cache
def proved(name: str) -> tp.Protected:
    """The proved optimum of a table of the suite."""
    return tp.suppress(SUITE[name](), method="exact", time_limit=120)


def applicable(method: str, name: str) -> bool:
    return method != "network" or name in ("2-D", "hierarchy × flat")


CASES = [(m, n) for m, n in itertools.product(ALL, SUITE) if applicable(m, n)]


@pytest.mark.parametrize(("method", "name"), CASES, ids=[f"{m}-{n}" for m, n in CASES])
def test_every_method_is_safe_and_no_better_than_the_optimum(method: str, name: str) -> None:
    table = SUITE[name]()
    best = proved(name)
    assert best.status == "optimal"
    assert best.gap == 0.0
    res = tp.suppress(table, method=method, time_limit=LIMIT)
    assert res.method == method
    assert res.suppressed[table.primary].all()
    assert not res.suppressed[table.status == "z"].any()
    assert not res.suppressed[table.values == 0].any()
    assert tp.attack(res).safe
    assert tp.verify(res.certificate).ok
    assert res.bound <= best.objective + 1e-6
    assert res.objective >= best.objective - 1e-6
    assert np.array_equal(np.isnan(res.values), res.suppressed)
    assert np.array_equal(res.values[~res.suppressed], table.values[~res.suppressed])
    if res.runtime < LIMIT:
        again = tp.suppress(table, method=method, time_limit=LIMIT)
        assert np.array_equal(again.suppressed, res.suppressed)


def optimum(table: tp.Table, weights: np.ndarray) -> float:
    """Cheapest safe pattern by trying all subsets in order of cost."""
    cells = np.flatnonzero(table.suppressible() & ~table.primary)
    best = np.inf
    for bits in range(1 << len(cells)):
        chosen = cells[[bool(bits >> k & 1) for k in range(len(cells))]]
        hidden = table.primary.copy()
        hidden[chosen] = True
        cost = float(weights[hidden].sum())
        if cost < best and tp.attack(table, hidden, goal="verdict").safe:
            best = cost
    return best


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10**6))
def test_exact_is_optimal_by_enumeration(seed: int) -> None:
    table = marked(seed, *[(2, 3), (3, 2), (2, 2)][seed % 3], share=0.15, most=9)
    if table.suppressible().sum() - table.primary.sum() > 10:
        keep = np.flatnonzero(table.suppressible() & ~table.primary)
        table = table.protect(keep[10:])
    for objective in ("value", "count"):
        weights = table.weights(objective)
        best = optimum(table, weights)
        if best == np.inf:
            with pytest.raises(tp.errors.Infeasible):
                tp.suppress(table, objective=objective, method="exact")
        else:
            res = tp.suppress(table, objective=objective, method="exact")
            assert res.objective == pytest.approx(best)
            assert res.status == "optimal"


def test_the_source_example() -> None:
    table = tp.examples.d272().mark(tp.rules.Threshold(2))
    by_value, by_count = tp.suppress(table), tp.suppress(table, objective="count")
    assert by_value.objective == 40
    assert by_value.status == "optimal"
    assert int(by_value.suppressed.sum()) == 10
    assert by_count.objective == 10
    assert by_count.status == "optimal"
    assert tp.suppress(table, method="circuit").objective == 40


def test_circuits_as_listed_in_the_source() -> None:
    table = tp.examples.d272()
    a81 = table.cell(size="500+", industry="D2721")
    listed = circuits(table, a81)
    through_2 = listed[[any(table.codes[c, 1] == 2 for c in cells) for cells in listed.cells]]
    assert sorted(through_2.value) == [13, 13, 31, 62, 154, 222, 225]
    assert sorted(through_2.value[through_2.has_zero]) == [13]
    through_3 = listed[[any(table.codes[c, 1] == 3 for c in cells) for cells in listed.cells]]
    # the source prints 8 for the circuit through row 5, which is 2 + 4 + 1 + 0
    assert sorted(through_3.value) == [3, 4, 7, 16, 70, 96, 97]
    assert through_3.has_zero.all()


def test_the_baseline_leaks_and_refuses_to_be_published(tmp_path) -> None:  # type: ignore[no-untyped-def]
    table = tp.examples.d272().mark(tp.rules.Threshold(2))
    res = tp.suppress(table, method="none")
    assert res.status == "unsafe"
    assert res.objective == 6
    assert not tp.attack(res).safe
    for write in (res.publish, lambda: res.to_html(tmp_path / "r.html"), lambda: res.to_excel(tmp_path / "r.xlsx")):
        with pytest.raises(tp.errors.Unsafe, match="baseline"):
            write()
    assert not list(tmp_path.iterdir())


def test_infeasible_names_the_cells_and_what_would_have_to_give() -> None:
    table = tp.Table.from_relations([9.0, 4.0, 5.0], [[-1, 1, 1]], status=["z", "u", "z"]).with_levels(
        [1], lpl=1, upl=1
    )
    with pytest.raises(tp.errors.Infeasible, match=r"#1.*would work if these cells") as caught:
        tp.suppress(table)
    assert caught.value.cells == (1,)
    assert len(caught.value.missing) == 1
    narrow = table.replace(status=["s", "u", "s"], ub=table.values + 0.5)
    with pytest.raises(tp.errors.Infeasible, match="attacker's own bounds"):
        tp.suppress(narrow)


def test_cells_that_must_be_published_or_stay_hidden() -> None:
    table = marked(7, 5, 6)
    free = tp.suppress(table, time_limit=5)
    secondary = np.flatnonzero(free.secondary)
    assert len(secondary) > 0
    res = tp.suppress(table.protect(secondary[:1]), time_limit=5)
    assert not res.suppressed[secondary[0]]
    other = int(np.flatnonzero(table.suppressible() & ~free.suppressed)[0])
    kept = tp.suppress(table, keep=[other], time_limit=5)
    assert kept.suppressed[other]
    with pytest.raises(tp.errors.InputError, match="may not be suppressed"):
        tp.suppress(table.protect([other]), keep=[other])


def test_an_earlier_pattern_is_kept_as_far_as_it_helps() -> None:
    table = marked(8, 8, 8)
    first = tp.suppress(table, time_limit=5)
    same = tp.suppress(table, previous=first, time_limit=5)
    assert np.array_equal(same.suppressed, first.suppressed)
    changed = marked(8, 8, 8, share=0.12)
    fresh = tp.suppress(changed, time_limit=5)
    sticky = tp.suppress(changed, previous=first, time_limit=5)
    assert (sticky.suppressed & first.suppressed).sum() >= (fresh.suppressed & first.suppressed).sum()
    with pytest.raises(tp.errors.InputError, match="earlier pattern"):
        tp.suppress(table, previous=np.ones(3, bool))


def test_zeros_are_complements_only_on_request() -> None:
    values = np.array([[0.0, 4.0], [5.0, 3.0]])
    frame = {"r": ["a", "a", "b", "b"], "c": ["x", "y", "x", "y"], "v": values.ravel(), "status": ["s", "u", "s", "s"]}
    table = tp.Table.from_frame(frame, by=["r", "c"], value="v")
    primary = np.flatnonzero(table.primary)
    table = table.with_levels(primary, lpl=1).protect(np.flatnonzero(table.codes.min(axis=1) == 0))
    with pytest.raises(tp.errors.Infeasible):
        tp.suppress(table)
    res = tp.suppress(table, zeros=True)
    assert res.suppressed[table.cell(r="a", c="x")]


def test_respondents_alone_in_a_cell_learn_nothing() -> None:
    for seed in range(3):
        table = marked(20 + seed, 6, 6, share=0.15, most=12)
        table = table.replace(freq=np.where(table.primary, 1, np.maximum(table.values.astype(int), 1)))
        plain = tp.suppress(table, time_limit=5)
        res = tp.suppress(table, singletons=True, time_limit=5)
        assert tp.attack(res, singletons=True, goal="verdict").safe
        assert res.objective >= plain.objective
    with pytest.raises(tp.errors.InputError, match="number of contributors"):
        tp.suppress(table.replace(freq=None), singletons=True)


def test_why_a_cell_was_hidden() -> None:
    table = tp.examples.d272().mark(tp.rules.Threshold(2))
    res = tp.suppress(table)
    why = explain(res)
    assert why.cell.tolist() == np.flatnonzero(res.secondary).tolist()
    for row in why.itertuples():
        without = res.suppressed.copy()
        without[row.cell] = False
        assert row.needed_by == tp.attack(table, without).exposed
    with pytest.raises(tp.errors.InputError, match="not a complement"):
        explain(res, int(np.flatnonzero(table.primary)[0]))


def test_negative_values_and_decimals() -> None:
    rng = np.random.default_rng(0)
    values = np.round(rng.normal(0, 100, 20), 2)
    frame = {"r": np.repeat(list("abcd"), 5), "c": np.tile(list("vwxyz"), 4), "v": values}
    table = tp.Table.from_frame(frame, by=["r", "c"], value="v")
    cell = table.cell(r="a", c="v")
    table = table.with_status([cell], "u").with_levels([cell], lpl=12.34, upl=5.67)
    res = tp.suppress(table)
    assert res.status == "optimal"
    assert tp.attack(res).safe
    assert tp.verify(res.certificate).ok


def test_nothing_sensitive_nothing_hidden() -> None:
    res = tp.suppress(tp.examples.d272())
    assert not res.suppressed.any()
    assert res.objective == 0
    assert res.status == "optimal"


def test_bad_arguments() -> None:
    table = tp.examples.d272().mark(tp.rules.Threshold(2))
    for wrong, message in (
        ({"method": "magic"}, "unknown method"),
        ({"objective": "beauty"}, "unknown objective"),
        ({"objective": [1.0, 2.0]}, "one cost per cell"),
        ({"time_limit": 0}, "time_limit"),
    ):
        with pytest.raises(tp.errors.InputError, match=message):
            tp.suppress(table, **wrong)
    cube = marked(3, 3, 3, 3)
    with pytest.raises(tp.errors.InputError, match="flow network"):
        tp.suppress(cube, method="network")


def test_hidden_values_are_nowhere() -> None:
    table = tp.examples.d272().mark(tp.rules.Threshold(2))
    secret = 7777.25
    cell = int(np.flatnonzero(table.primary)[0])
    values = table.values.copy()
    relations = table.relations
    # a value that occurs nowhere else, kept additive through its row and column totals and the grand total
    for i in np.flatnonzero(((table.codes == table.codes[cell]) | (table.codes == 0)).all(axis=1)):
        values[i] += secret - table.values[cell]
    table = table.replace(values=values, freq=None, counts=False)
    assert np.abs(relations @ values).max() < 1e-9
    seen: list[object] = []
    res = tp.suppress(table, progress=seen.append)
    assert res.suppressed[cell]
    text = "".join(
        [
            repr(res),
            res.summary(),
            res.publish().to_csv(),
            repr(tp.attack(res)),
            repr(res.certificate),
            *map(repr, seen),
            res._repr_html_(),
        ]
    )
    assert "7777" not in text


def test_interrupting_returns_the_best_safe_pattern() -> None:
    table = marked(30, 7, 7, 7, share=0.05)
    threading.Timer(2.0, lambda: signal.raise_signal(signal.SIGINT)).start()
    res = tp.suppress(table, method="exact", time_limit=120)
    assert tp.attack(res, goal="verdict").safe


def test_gap_asked_for_ends_the_search() -> None:
    table = magnitude(1304, "6,6,6", mean=30)
    res = tp.suppress(table, gap=0.2, time_limit=30)
    assert res.gap <= 0.2
    assert res.info.get("nodes", 0) <= 1  # the root is enough for that
    assert tp.attack(res, goal="verdict").safe
