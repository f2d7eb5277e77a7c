"""A privacy budget that refuses to be overspent."""

from __future__ import annotations

import json
import threading
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from pathlib import Path

from tabprotect.dp.noise import check_epsilon
from tabprotect.errors import BudgetExceeded, InputError
from tabprotect.files import write_text


@dataclass(frozen=True)
class Spending:
    """One entry of the ledger."""

    epsilon: float
    delta: float
    what: str


def exact(value: float) -> Fraction:
    """The decimal number that was written, not its binary neighbour: ten times 0.1 is 1.

    >>> sum(exact(0.1) for _ in range(10)) == 1
    True
    """
    return Fraction(repr(float(value)))


@dataclass
class Budget:
    """Total ε (and δ) that all releases about one population may use; sequential composition, exact arithmetic,
    thread-safe.

    >>> budget = Budget(1.0)
    >>> budget.spend(0.6, what="ages")
    >>> budget.left
    (0.4, 0.0)
    >>> budget.spend(0.5)
    Traceback (most recent call last):
    ...
    tabprotect.errors.BudgetExceeded: ε 0.5 asked for, 0.4 of 1 left; nothing was released
    """

    epsilon: float
    delta: float = 0.0
    ledger: list[Spending] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.epsilon, self.delta = check_epsilon(self.epsilon), check_delta(self.delta)

    @property
    def spent(self) -> tuple[float, float]:
        """ε and δ used so far."""
        return float(sum(exact(s.epsilon) for s in self.ledger)), float(sum(exact(s.delta) for s in self.ledger))

    @property
    def left(self) -> tuple[float, float]:
        """ε and δ still to spend."""
        used_epsilon = sum((exact(s.epsilon) for s in self.ledger), Fraction(0))
        used_delta = sum((exact(s.delta) for s in self.ledger), Fraction(0))
        return float(exact(self.epsilon) - used_epsilon), float(exact(self.delta) - used_delta)

    def save(self, path: str | Path) -> None:
        """Write total and ledger as JSON, so that later releases know of this one."""
        write_text(
            path,
            json.dumps(
                {"epsilon": self.epsilon, "delta": self.delta, "ledger": [asdict(s) for s in self.ledger]},
                indent=1,
                ensure_ascii=False,
            )
            + "\n",
        )

    @classmethod
    def load(cls, path: str | Path) -> Budget:
        """Read what `save` wrote."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
            ledger = [Spending(float(s["epsilon"]), float(s["delta"]), str(s["what"])) for s in data["ledger"]]
            return cls(data["epsilon"], data["delta"], ledger)
        except OSError as error:
            raise InputError("no budget file there: make one with 'tabprotect dp budget'", file=path) from error
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a budget file: {error!r}", file=path) from error

    def spend(self, epsilon: float, delta: float = 0.0, what: str = "") -> None:
        """Book a release, or raise ``BudgetExceeded`` and book nothing."""
        epsilon, delta = check_epsilon(epsilon), check_delta(delta)
        with self._lock:
            for name, asked, total, used in (
                ("ε", epsilon, self.epsilon, [s.epsilon for s in self.ledger]),
                ("δ", delta, self.delta, [s.delta for s in self.ledger]),
            ):
                left = exact(total) - sum((exact(u) for u in used), Fraction(0))
                if exact(asked) > left:
                    raise BudgetExceeded(
                        f"{name} {asked:g} asked for, {float(left):g} of {total:g} left; nothing was released"
                    )
            self.ledger.append(Spending(epsilon, delta, what))


def check_delta(delta: float) -> float:
    """δ in [0, 1), or an InputError."""
    value = float(delta)
    if not 0.0 <= value < 1.0:
        raise InputError(f"delta must be at least 0 and below 1, got {value:g}")
    return value
