"""The budget is exact and cannot be overspent, not even by many threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tabprotect.dp import Budget
from tabprotect.errors import BudgetExceeded, InputError


def test_ten_tenths() -> None:
    budget = Budget(1.0)
    for _ in range(10):
        budget.spend(0.1)
    assert budget.left == (0.0, 0.0)
    assert budget.spent == (1.0, 0.0)
    with pytest.raises(BudgetExceeded):
        budget.spend(1e-12)
    assert len(budget.ledger) == 10


def test_delta_is_a_budget_too() -> None:
    budget = Budget(5.0, delta=1e-6)
    budget.spend(1.0, 1e-6, what="a")
    with pytest.raises(BudgetExceeded, match="δ"):
        budget.spend(1.0, 1e-9)
    assert [s.what for s in budget.ledger] == ["a"]


def test_threads() -> None:
    budget = Budget(1.0)

    def one(_: int) -> bool:
        try:
            budget.spend(0.01)
        except BudgetExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(300))) == 100


@pytest.mark.parametrize("bad", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_epsilon(bad: float) -> None:
    with pytest.raises(InputError):
        Budget(bad)
    with pytest.raises(InputError):
        Budget(1.0).spend(bad)


def test_bad_delta() -> None:
    with pytest.raises(InputError, match="delta"):
        Budget(1.0, delta=1.0)
