"""Noisy tables: additive, non-negative, whole; the promise adds up over the levels; nothing true is kept."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tabprotect as tp
from tabprotect.dp import Budget, release
from tabprotect.dp.budget import exact
from tabprotect.dp.levels import cells_per_person, table_levels
from tabprotect.errors import BudgetExceeded, InputError
from tabprotect.table.cube import cube_codes, cube_relations, fill_margins
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.table.table import Table


def counts_table(*hierarchies: Hierarchy, seed: int = 0, mean: float = 20.0) -> Table:
    dims = tuple(Dimension(f"d{k}", h) for k, h in enumerate(hierarchies))
    shape = [len(h.leaves) for h in hierarchies]
    inner = np.random.default_rng(seed).poisson(mean, shape).astype(float)
    return Table(fill_margins(inner, dims), cube_relations(dims), dims=dims, codes=cube_codes(dims), counts=True)


DEEP = Hierarchy.from_tree({"A": {"A1": ["A11", "A12"], "A2": None}, "B": ["B1", "B2", "B3"]})
TABLES = {
    "flat": counts_table(Hierarchy.flat("abcd"), Hierarchy.flat("xyz")),
    "deep": counts_table(DEEP, Hierarchy.flat("xyz")),
    "deep by deep": counts_table(DEEP, DEEP),
    "three-way": counts_table(DEEP, Hierarchy.flat("xy"), Hierarchy.flat("uvw")),
    "sparse": counts_table(DEEP, Hierarchy.flat("xyz"), mean=0.3),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("split", ["optimal", "uniform", "leaves"])
@pytest.mark.parametrize("law", ["discrete-laplace", "gaussian", "laplace"])
def test_consistent_whole_and_private(name: str, split: str, law: str) -> None:
    table = TABLES[name]
    delta = 1e-6 if law == "gaussian" else 0.0
    found = release(table, 1.0, split=split, law=law, delta=delta)
    assert not (table.relations @ found.values).any()
    assert found.values.min() >= 0
    assert (found.values == np.rint(found.values)).all()
    assert exact(found.proved) <= 1
    spent = found.levels["rho" if law == "gaussian" else "epsilon"].sum()
    if law != "gaussian":
        assert spent == pytest.approx(1.0)
    assert found.levels["share"].sum() == pytest.approx(1.0)
    assert found.whole in ("flow", "milp", "cumulative")


def test_noise_of_each_level_follows_its_share() -> None:
    found = release(TABLES["deep"], 2.0, split={"0.0": 1, "3.1": 3}, neighbours="add-remove")
    used = found.levels[found.levels["share"] > 0].set_index("level")
    assert used.index.tolist() == ["0.0", "3.1"]
    assert used["epsilon"].tolist() == pytest.approx([0.5, 1.5])
    assert used["scale"].tolist() == pytest.approx([2.0, 2 / 3])
    assert np.isnan(found.noisy).sum() == TABLES["deep"].n_cells - 1 - 6


def test_optimal_split_has_the_least_total_variance() -> None:
    levels = table_levels(TABLES["deep by deep"])
    best = levels.shares("optimal", 1 / 3, None)
    rng = np.random.default_rng(0)

    def variance(shares: np.ndarray) -> float:
        return float(np.sum(levels.sizes * (levels.cells_per_person / shares) ** 2))

    for _ in range(50):
        other = best * rng.uniform(0.8, 1.25, best.size)
        assert variance(best) <= variance(other / other.sum()) + 1e-9


def test_huge_epsilon_gives_the_table_back() -> None:
    for name, table in TABLES.items():
        assert release(table, 1e6).values.tolist() == table.values.tolist(), name


def test_projection_helps() -> None:
    """At every level the consistent table is nearer to the truth than the noisy one, on average."""
    table = TABLES["deep by deep"]
    noisy, final = np.zeros(table.n_cells), np.zeros(table.n_cells)
    for _ in range(25):
        found = release(table, 1.0, integers=False)
        noisy += (found.noisy - table.values) ** 2
        final += (found.values - table.values) ** 2
    assert final.sum() < 0.6 * noisy.sum()


def test_error_by_level() -> None:
    table = TABLES["deep"]
    found = release(table, 1.0)
    expected = found.expected_error(60, seed=1)
    assert expected["level"].tolist() == found.levels["level"].tolist()
    np.testing.assert_allclose(expected["noise"], found.levels["sd"], rtol=0.4)
    assert (expected["released"] <= expected["noise"] * 1.15).all()
    np.testing.assert_array_equal(expected, found.expected_error(60, seed=1))
    with pytest.raises(InputError, match="confidential"):
        found.error(table)
    true_error = found.error(table, confidential=True)
    rms = np.sqrt(np.mean((found.values - table.values)[found.groups.group == 0] ** 2))
    assert true_error["released"][0] == pytest.approx(rms)


def test_nothing_true_is_kept() -> None:
    table = tp.examples.d272()
    found = release(table, 0.1)
    assert found.table.freq is None
    assert found.table.contributions is None
    assert np.isnan(found.table.cost).all()
    assert not np.shares_memory(found.values, table.values)
    # a release that is as wrong as this one must not hold the true values anywhere
    for value in vars(found).values():
        if isinstance(value, np.ndarray):
            assert not np.array_equal(value, table.values)


def test_publish_and_looks() -> None:
    found = release(TABLES["deep"], 1.0)
    frame = found.publish()
    assert list(frame.columns) == ["d0", "d1", "value"]
    assert frame["value"].tolist() == found.values.tolist()
    assert "ε = 1" in found.summary()
    assert "44 cells" in repr(found) or str(found.table.n_cells) in repr(found)
    assert found.to_dict()["levels"][0]["level"] == "0.0"


def test_only_clamped() -> None:
    found = release(TABLES["sparse"], 0.5, consistent=False)
    assert found.values.min() >= 0
    assert not found.consistent
    with pytest.raises(InputError, match="consistent"):
        release(TABLES["sparse"], 0.5, consistent=False, split="leaves")


def test_budget() -> None:
    budget = Budget(1.5)
    release(TABLES["flat"], 1.0, budget=budget)
    with pytest.raises(BudgetExceeded):
        release(TABLES["flat"], 1.0, budget=budget)
    assert len(budget.ledger) == 1


def test_given_levels_for_tables_without_dimensions() -> None:
    table = Table.from_relations([6.0, 1, 2, 3], [[-1, 1, 1, 1]], counts=True)
    with pytest.raises(InputError, match="levels"):
        release(table, 1.0)
    found = release(table, 1.0, levels=["total", "inner", "inner", "inner"], split="uniform")
    assert found.levels["scale"].tolist() == pytest.approx([4.0, 4.0])
    assert found.values[0] == found.values[1:].sum()
    assert found.publish().columns.tolist() == ["cell", "value"]
    with pytest.raises(InputError, match="one label per cell"):
        release(table, 1.0, levels=["a"])


def test_several_breakdowns_cost_more() -> None:
    h = Hierarchy.from_tree({"young": ["a", "b"], "old": ["c", "d"]}).with_breakdown(
        Hierarchy.from_tree({"here": ["a", "c"], "there": ["b", "d"]})
    )
    assert cells_per_person(h).tolist() == [1, 2, 1]
    found = release(counts_table(h), 1.0, split="uniform")
    assert found.levels["cells_per_person"].tolist() == [1, 2, 1]
    assert found.levels["scale"].tolist() == pytest.approx([6.0, 12.0, 6.0])
    assert not found.table.residuals().any()


def test_cells_per_person_by_brute_force() -> None:
    """Put one person into every inner cell in turn and count how many cells of each level notice."""
    h = Hierarchy.from_tree({"young": ["a", "b"], "old": ["c", "d"]}).with_breakdown(
        Hierarchy.from_tree({"here": ["a", "c"], "there": ["b", "d"]})
    )
    table = counts_table(h, DEEP)
    levels = table_levels(table)
    shape = [len(x.hierarchy.leaves) for x in table.dims]
    most = np.zeros(len(levels.names))
    for k in range(np.prod(shape)):
        person = np.zeros(shape)
        person.flat[k] = 1
        moved = fill_margins(person, table.dims)
        most = np.maximum(most, np.bincount(levels.group, weights=np.asarray(moved).ravel(), minlength=most.size))
    np.testing.assert_array_equal(most, levels.cells_per_person)


def test_columns_that_do_not_add_up_may_each_count_everybody() -> None:
    assert cells_per_person(Hierarchy.flat("abc", total=None)).tolist() == [3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"law": "none"}, "law"),
        ({"law": "gaussian"}, "delta"),
        ({"neighbours": "x"}, "neighbours"),
        ({"split": "best"}, "split"),
        ({"split": {"9.9": 1}}, "no level"),
        ({"split": {"0.0": -1}}, "shares"),
        ({"contributions": 0}, "contributions"),
    ],
)
def test_bad_options(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        release(TABLES["flat"], **options)


def test_magnitudes_are_refused() -> None:
    table = TABLES["flat"].replace(counts=False)
    with pytest.raises(InputError, match="only tables of counts"):
        release(table, 1.0)
    with pytest.raises(InputError, match="frequencies"):
        release(tp.examples.d272().replace(counts=False), 1.0)
    with pytest.raises(InputError, match="right-hand"):
        release(Table.from_relations([1.0, 2], [[1, 1]], rhs=[3.0], counts=True), 1.0, levels=["a", "b"])
    with pytest.raises(InputError, match="whole number"):
        release(Table.from_relations([1.5, 1.5], [[1, -1]], counts=True), 1.0, levels=["a", "b"])


def test_progress_is_told() -> None:
    news = []
    release(TABLES["flat"], 1.0, progress=news.append)
    assert [n.phase for n in news][-1] == "making it consistent"
    assert len(news) == 5


def linked() -> tp.Table:
    by_sex = pd.DataFrame({"r": list("aabb"), "s": list("mfmf"), "n": [50, 60, 70, 80]})
    by_age = pd.DataFrame({"r": list("aaabbb"), "g": list("xyz") * 2, "n": [30, 40, 40, 50, 50, 50]})
    tables = {
        "sex": tp.Table.from_frame(by_sex, by=["r", "s"], freq="n"),
        "age": tp.Table.from_frame(by_age, by=["r", "g"], freq="n"),
    }
    return tp.link(tables)


def test_linked_tables_agree_after_the_release() -> None:
    table = linked()
    found = tp.dp.release(table, epsilon=1.0)
    assert found.proved <= 1.0
    assert (found.values >= 0).all()
    assert np.abs(table.relations @ found.values).max() == 0
    assert set(found.levels["level"]) == {"sex:0.0", "sex:0.1", "sex:1.0", "sex:1.1", "age:0.1", "age:1.1"}
    assert found.levels["cells"].sum() == table.n_cells
    published = found.publish()
    assert list(published.columns) == ["table", "r", "s", "g", "value"]
    for name, own in zip(found.table.names, found.table.tables, strict=True):
        assert np.abs(own.residuals()).max() == 0
        assert own.freq is None, name
        assert not np.array_equal(own.values, table.part(name).values)
    total = published.query("r == 'Total' and s == 'Total' and g == 'Total'")
    assert len(total) == 1


def test_a_person_in_a_linked_table_costs_every_level_once() -> None:
    """Adding a person moves one cell of each level of each table; the noise scales add up to no more than ε."""
    from tabprotect.dp.levels import table_levels

    table = linked()
    groups = table_levels(table)
    more = tp.link(
        {
            name: own.replace(values=own.values + _counts_one(own), freq=None)
            for name, own in zip(table.names, table.tables, strict=True)
        }
    )
    moved = np.bincount(groups.group, weights=np.abs(more.values - table.values))
    assert (moved <= groups.cells_per_person).all()
    found = tp.dp.release(table, epsilon=1.0, neighbours="add-remove")
    assert (found.levels["cells_per_person"] / found.levels["scale"]).sum() <= 1.0 + 1e-9


def _counts_one(table: tp.Table) -> np.ndarray:
    """What one more person in region a (a man, of age x) adds to every cell."""
    who = {"r": {"a", "Total"}, "s": {"m", "Total"}, "g": {"x", "Total"}}
    return np.prod(
        [[str(d.codes[c]) in who[d.name] for c in table.codes[:, k]] for k, d in enumerate(table.dims)], axis=0
    ).astype(float)
