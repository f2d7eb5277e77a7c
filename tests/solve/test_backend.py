"""One kit of problems with known answers, run over every installed back end."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest

from tabprotect.errors import InputError, SolverUnavailable
from tabprotect.solve import backend as backends
from tabprotect.solve.model import LinearModel
from tabprotect.solve.result import SolveResult
from tabprotect.solve.stop import Stop

INSTALLED = backends.installed()


def transport() -> tuple[LinearModel, float]:
    """Two plants, three markets (Dantzig); the classical optimum is 153.675."""
    distance = np.array([2.5, 1.7, 1.8, 2.5, 1.8, 1.4]) * 0.09
    rows = np.zeros((5, 6))
    rows[0, :3] = rows[1, 3:] = 1
    for k in range(3):
        rows[2 + k, [k, 3 + k]] = 1
    model = LinearModel.of(
        rows,
        row_lower=[-np.inf, -np.inf, 325, 300, 275],
        row_upper=[350, 600, np.inf, np.inf, np.inf],
        cost=distance,
        offset=0.0,
    )
    return model, 153.675


def knapsack(n: int = 12, seed: int = 3) -> tuple[LinearModel, float]:
    """Its optimum by trying all subsets."""
    rng = np.random.default_rng(seed)
    weight, value = rng.integers(5, 40, n), rng.integers(5, 60, n)
    room = int(weight.sum() * 0.4)
    picks = np.array(list(itertools.product([0, 1], repeat=n)))
    best = (picks @ value)[(picks @ weight) <= room].max()
    model = LinearModel.of(
        [weight], row_lower=[-np.inf], row_upper=[room], cost=-value.astype(float), upper=1, integer=True, offset=7.0
    )
    return model, 7.0 - float(best)


def distance_to_plane() -> tuple[LinearModel, float]:
    """min ½(x²+2y²) with x+y=3, x ≤ 1.5: x = 1.5, y = 1.5, cost 3.375."""
    model = LinearModel.of([[1, 1]], row_lower=[3], row_upper=[3], cost=[0, 0], upper=[1.5, np.inf], quadratic=[1, 2])
    return model, 3.375


@pytest.mark.parametrize("name", INSTALLED)
def test_linear_optimum_and_feasibility(name: str) -> None:
    model, best = transport()
    result = backends.solve(model, backend=name)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best, abs=1e-6)
    assert result.bound == pytest.approx(best, abs=1e-6)
    assert model.violation(result.x) < 1e-6


@pytest.mark.parametrize("name", [n for n in INSTALLED if "duals" in backends.get(n).extras])
def test_duals_satisfy_strong_duality_and_complementarity(name: str) -> None:
    model, best = transport()
    result = backends.solve(model, backend=name)
    assert np.allclose(model.cost - model.matrix.T @ result.duals, result.reduced, atol=1e-7)
    limit = np.where(result.duals > 0, model.row_lower, model.row_upper)
    limit[np.abs(result.duals) < 1e-9] = 0.0
    assert float(result.duals @ limit) == pytest.approx(best, abs=1e-6)
    assert np.abs(result.reduced * result.x).max() < 1e-6


@pytest.mark.parametrize("name", INSTALLED)
def test_integer_optimum_with_offset(name: str) -> None:
    model, best = knapsack()
    result = backends.solve(model, backend=name)
    assert result.status == "optimal"
    assert result.objective == pytest.approx(best)
    assert result.bound <= best + 1e-6
    assert model.violation(result.x) == 0.0


@pytest.mark.parametrize("name", [n for n in INSTALLED if "start" in backends.get(n).extras])
def test_a_start_is_taken(name: str) -> None:
    model, best = knapsack()
    first = backends.solve(model, backend=name)
    again = backends.solve(model, backend=name, start=first.x)
    assert again.objective == pytest.approx(best)


@pytest.mark.parametrize("name", [n for n in INSTALLED if "qp" in backends.get(n).kinds])
def test_quadratic_optimum(name: str) -> None:
    model, best = distance_to_plane()
    result = backends.solve(model, backend=name)
    assert result.objective == pytest.approx(best, abs=1e-5)
    assert result.x == pytest.approx([1.5, 1.5], abs=1e-3)


@pytest.mark.parametrize("name", INSTALLED)
def test_infeasible_is_said(name: str) -> None:
    model = LinearModel.of([[1, 1]], row_lower=[3], row_upper=[3], cost=[1, 1], upper=1)
    assert backends.solve(model, backend=name).status == "infeasible"


@pytest.mark.parametrize("name", INSTALLED)
def test_unbounded_is_said(name: str) -> None:
    model = LinearModel.of([[1, -1]], row_lower=[0], row_upper=[0], cost=[-1, 0])
    assert backends.solve(model, backend=name).status in ("unbounded", "infeasible")


def market_split() -> LinearModel:
    """Cornuéjols–Dawande: tiny, and hopeless for branch and bound."""
    rng = np.random.default_rng(0)
    rows, columns = 5, 40
    a = rng.integers(0, 100, (rows, columns)).astype(float)
    matrix = np.hstack([a, np.eye(rows), -np.eye(rows)])
    half = np.floor(a.sum(axis=1) / 2)
    return LinearModel.of(
        matrix,
        row_lower=half,
        row_upper=half,
        cost=np.r_[np.zeros(columns), np.ones(2 * rows)],
        upper=np.r_[np.ones(columns), np.full(2 * rows, np.inf)],
        integer=np.r_[np.ones(columns, bool), np.zeros(2 * rows, bool)],
    )


@pytest.mark.parametrize("name", INSTALLED)
def test_the_time_limit_returns_what_is_known(name: str) -> None:
    model = market_split()
    stop = Stop(time_limit=1.0)
    result = backends.solve(model, backend=name, stop=stop)
    assert result.status in ("feasible", "limit")
    if result.found:
        assert model.violation(result.x) < 1e-5
        assert result.bound <= result.objective + 1e-6


@pytest.mark.parametrize("name", [n for n in INSTALLED if "cancel" in backends.get(n).extras])
def test_cancelling_ends_the_search(name: str) -> None:
    stop = Stop(time_limit=120.0)
    timer = threading.Timer(1.0, stop.cancel)
    timer.start()
    result = backends.solve(market_split(), backend=name, stop=stop)
    timer.join()
    assert stop.cancelled
    assert result.status in ("feasible", "limit")


def test_unknown_and_missing_solvers_say_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="unknown solver 'cplex'"):
        backends.get("cplex")
    monkeypatch.setitem(backends._KNOWN, "gone", ("x", "X", "no_such_package", "pip install no-such-package"))
    with pytest.raises(SolverUnavailable, match="pip install no-such-package"):
        backends.get("gone")
    assert "gone" not in backends.installed()


def test_a_solver_can_be_registered_and_its_lies_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    class Liar:
        name = "liar"
        kinds = frozenset({"lp"})
        extras: frozenset[str] = frozenset()

        def solve(self, model: LinearModel, stop: Stop, **_: object) -> SolveResult:
            return SolveResult("optimal", np.zeros(model.n), 0.0, 0.0)

    monkeypatch.setattr(backends, "_EXTRA", {})
    backends.register(Liar())
    model, _ = transport()
    assert backends.solve(model, backend="liar").status == "failed"
    with pytest.raises(InputError, match="not mip"):
        backends.solve(knapsack()[0], backend="liar")


def test_models_are_checked() -> None:
    with pytest.raises(InputError, match="cost has shape"):
        LinearModel.of([[1, 1]], row_lower=[0], row_upper=[0], cost=[1])
    with pytest.raises(InputError, match="convex"):
        LinearModel.of([[1, 1]], row_lower=[0], row_upper=[0], cost=[1, 1], quadratic=[-1, 0])
    with pytest.raises(InputError, match="start has"):
        backends.solve(transport()[0], start=np.zeros(3))


def test_export_writes_a_file(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from tabprotect.solve.pyomo import export

    model, _ = knapsack()
    text = export(model, tmp_path / "model.lp").read_text()
    assert "min" in text
    assert [p.name for p in tmp_path.iterdir()] == ["model.lp"]
