"""Whole numbers near consistent points."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tabprotect.errors import Infeasible, InputError
from tabprotect.linalg.integers import network, to_integers
from tabprotect.linalg.totals import Totals


def flat(n: int) -> sp.csr_array:
    return sp.csr_array(np.r_[-1.0, np.ones(n)][None, :])


DEEP = sp.csr_array([[-1.0, 1, 1, 0, 0, 0, 0], [0, -1, 0, 1, 1, 0, 0], [0, 0, -1, 0, 0, 1, 1]])


def product(*dims: sp.csr_array) -> sp.csr_array:
    blocks = []
    for k in range(len(dims)):
        block = sp.identity(1)
        for j, r in enumerate(dims):
            block = sp.kron(block, r if j == k else sp.identity(r.shape[1]), format="csr")
        blocks.append(block)
    return sp.csr_array(sp.vstack(blocks))


NETWORKS = {
    "flat": flat(5),
    "deep": DEEP,
    "two-way": product(flat(3), flat(4)),
    "deep by flat": product(DEEP, flat(3)),
    "flat by deep": product(flat(3), DEEP),
}
OTHERS = {"deep by deep": product(DEEP, DEEP), "three-way": product(flat(2), flat(3), flat(2))}
ALL = {**NETWORKS, **OTHERS}


def random_point(a: sp.csr_array, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    leaves = np.where(rng.random(a.shape[1]) < 0.3, 0.0, rng.exponential(3.0, a.shape[1]))
    return Totals.of(a).add_up(leaves)


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(sorted(ALL)), st.integers(0, 10**6))
def test_every_way_keeps_the_relations(name: str, seed: int) -> None:
    a = ALL[name]
    x = random_point(a, seed)
    for method in ("auto", "cumulative", *(["flow"] if name in NETWORKS else [])):
        z = to_integers(a, x, method=method).x
        assert not (a @ z).any()
        assert (z == np.rint(z)).all()
        assert z.min() >= 0
        leaf = Totals.of(a).leaf
        if method != "auto":
            assert np.abs(z - x)[leaf].max() < 1
        if method == "flow":
            assert np.abs(z - x).max() < 1  # zero-restricted controlled rounding: totals too


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ["flat", "deep", "two-way"])
def test_flow_is_optimal(name: str, seed: int) -> None:
    """Against all ways of rounding the leaves up or down."""
    a = NETWORKS["two-way"] if name == "two-way" else NETWORKS[name]
    if name == "two-way":
        a = product(flat(2), flat(3))
    x = random_point(a, seed)
    totals = Totals.of(a)
    leaves = np.flatnonzero(totals.leaf)
    best = np.inf
    for ups in itertools.product([0, 1], repeat=len(leaves)):
        z = np.zeros(x.size)
        z[leaves] = np.floor(x[leaves]) + np.array(ups) * (x[leaves] > np.floor(x[leaves]))
        z = totals.add_up(z)
        if np.abs(z - x).max() < 1:
            best = min(best, np.abs(z - x).sum())
    assert np.abs(to_integers(a, x, method="flow").x - x).sum() == pytest.approx(best, abs=1e-4)


@pytest.mark.parametrize("name", OTHERS)
def test_milp_is_no_worse_than_cumulative(name: str) -> None:
    a = OTHERS[name]
    x = random_point(a, 5)
    exact, fast = to_integers(a, x, method="milp"), to_integers(a, x, method="cumulative")
    assert exact.method == "milp"
    assert np.abs(exact.x - x).sum() <= np.abs(fast.x - x).sum() + 1e-6
    assert exact.moved == pytest.approx(np.abs(exact.x - x).max())


def test_whole_points_stay() -> None:
    a = ALL["deep by deep"]
    x = np.rint(Totals.of(a).add_up(np.arange(a.shape[1], dtype=float)))
    for method in ("auto", "milp", "cumulative"):
        assert to_integers(a, x + 1e-10, method=method).x.tolist() == x.tolist()


def test_network_detection() -> None:
    assert network(flat(3)) is not None
    assert network(product(flat(2), flat(2), flat(2))) is None
    assert network(sp.csr_array([[2.0, -1]])) is None
    # a triangle of equal signs cannot be oriented
    assert network(sp.csr_array([[1.0, 1, 0], [1, 0, 1], [0, 1, 1]])) is None
    tail, head = network(product(flat(2), flat(2))[:5])
    assert (tail != head).all()


def test_no_relations() -> None:
    assert to_integers(sp.csr_array((0, 2)), [1.4, 2.7]).x.sum() == 4


def test_bad_input() -> None:
    with pytest.raises(InputError, match="method"):
        to_integers(flat(2), [3, 1, 2], method="magic")
    with pytest.raises(InputError, match="one finite value"):
        to_integers(flat(2), [3, 1])
    with pytest.raises(InputError, match="negative"):
        to_integers(flat(2), [0, 1, -1])
    with pytest.raises(Infeasible):
        to_integers(OTHERS["three-way"], random_point(OTHERS["three-way"], 0), method="flow")
