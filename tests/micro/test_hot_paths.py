"""Micro-benchmarks of hot paths: ``pytest tests/micro --benchmark-only`` (skipped in the ordinary run, which only checks that they work).

Compare two states of the code on one machine with ``--benchmark-autosave`` and ``--benchmark-compare``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tabprotect as tp
from tabprotect.attacker.audit import audit_pattern
from tabprotect.attacker.bounds import ComponentLP
from tabprotect.attacker.network import network_bounds
from tabprotect.attacker.ranges import Needs
from tabprotect.attacker.system import components
from tabprotect.bench.families import dimensions, magnitude, magnitude_fast
from tabprotect.table.cube import cube_relations, fill_margins
from tabprotect.table.graph import network_of


@pytest.fixture(scope="module")
def flat() -> tp.Table:
    return magnitude_fast(1, "60,60", mean=10)


@pytest.fixture(scope="module")
def cube() -> tp.Table:
    return magnitude(1, "6,6,6", mean=8)


def test_relations_of_a_cube(benchmark: Any) -> None:
    dims = dimensions("10x10,10x5,8")
    assert benchmark(cube_relations, dims).nnz > 0


def test_margins(benchmark: Any) -> None:
    dims = dimensions("10x10,10x5,8")
    inner = np.ones([len(d.hierarchy.leaves) for d in dims])
    assert benchmark(fill_margins, inner, dims).max() == inner.size


def test_network_detection(benchmark: Any, flat: tp.Table) -> None:
    assert benchmark(network_of, flat.relations) is not None


def test_flow_bounds_of_all_cells(benchmark: Any, flat: tp.Table) -> None:
    hidden = flat.primary | (np.arange(flat.n_cells) % 9 == 0)
    network = network_of(flat.relations)
    assert network is not None
    found = benchmark(network_bounds, network, flat.values, flat.values * 0.5, hidden=hidden)
    assert (found.increase >= 0).all()


def test_one_linear_program_after_another(benchmark: Any, cube: tp.Table) -> None:
    hidden = cube.primary | (np.arange(cube.n_cells) % 4 == 0)
    piece = max(components(cube.relations, hidden, cube.values, cube.values), key=lambda c: c.n)
    lp = ComponentLP(piece)

    def ask() -> float:
        return sum(float(lp.push({j: 1.0})[j]) for j in range(0, piece.n, 7))  # type: ignore[index]

    assert benchmark(ask) > 0


def test_audit_with_witnesses(benchmark: Any, flat: tp.Table) -> None:
    res = tp.suppress(flat, method="network", time_limit=5)
    needs = Needs(*flat.needed_levels())
    room = np.maximum(flat.values - flat.lb, 0), np.maximum(flat.ub - flat.values, 0)
    assert not benchmark(audit_pattern, flat.relations, res.suppressed, *room, needs).missing


def test_certificate_check(benchmark: Any, flat: tp.Table) -> None:
    certificate = tp.suppress(flat, method="network", time_limit=5).certificate
    assert benchmark(tp.verify, certificate).ok


def test_marking(benchmark: Any) -> None:
    table = tp.examples.d272()
    assert benchmark(table.mark, tp.rules.Threshold(2)).primary.sum() == 4
