"""Releasing counts: the corrected perturbed histogram."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from tabprotect.dp.budget import Budget
from tabprotect.dp.mechanism import Mechanism, check_counts
from tabprotect.dp.noise import Noise, sensitivity
from tabprotect.errors import InputError
from tabprotect.table.table import Table
from tabprotect.types import FloatArray

if TYPE_CHECKING:
    import pandas as pd

    from tabprotect.dp.tables import TableRelease


@dataclass(frozen=True, eq=False)
class Release:
    """A noisy histogram and what is promised of it. It holds nothing of the true counts and may be published as it is.

    ``epsilon`` and ``delta`` are what was asked for (and booked), ``proved`` OpenDP's privacy map, never more than
    ``epsilon``.
    """

    values: FloatArray
    noise: Noise
    epsilon: float
    delta: float
    proved: float
    neighbours: str
    contributions: int
    clamped: bool
    mechanism: str
    labels: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        values = self.values.view()
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    @property
    def law(self) -> str:
        """Law of the noise."""
        return self.noise.law

    @property
    def scale(self) -> float:
        """Scale of the noise."""
        return self.noise.scale

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers, for JSON; `Release.from_dict` reads it back."""
        return {
            "values": self.values.tolist(),
            **({} if self.labels is None else {"labels": [str(x) for x in self.labels]}),
            "epsilon": self.epsilon,
            "delta": self.delta,
            "proved_epsilon": self.proved,
            "neighbours": self.neighbours,
            "contributions": self.contributions,
            "law": self.law,
            "scale": self.scale,
            "clamped": self.clamped,
            "mechanism": self.mechanism,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Release:
        """Read back what `to_dict` wrote."""
        try:
            return cls(
                np.asarray(data["values"], dtype=np.float64),
                Noise(data["law"], float(data["scale"])),
                float(data["epsilon"]),
                float(data["delta"]),
                float(data["proved_epsilon"]),
                data["neighbours"],
                int(data["contributions"]),
                bool(data["clamped"]),
                data["mechanism"],
                data.get("labels"),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"not a release written by tabprotect: {error!r}") from error

    def publish(self) -> pd.DataFrame:
        """The noisy counts as a frame."""
        import pandas as pd

        flat = self.values.reshape(-1)
        index = np.arange(flat.size) if self.labels is None else self.labels
        return pd.DataFrame({"class": index, "value": whole(flat)})

    def summary(self) -> str:
        """What was done and what it promises."""
        return promise(self.epsilon, self.delta, self.neighbours, self.contributions) + (
            f"\n{self.values.size:,} counts, {self.mechanism}"
            f" (standard deviation {np.sqrt(self.noise.variance):.4g}), "
            + ("negative values set to 0" if self.clamped else "not clamped")
        )


def whole(values: FloatArray) -> Any:
    """Values that are all whole numbers as integers, so that files say 12 and not 12.0."""
    exact = values.size > 0 and bool((np.abs(values) < 2**53).all() and (values == np.rint(values)).all())
    return values.astype(np.int64) if exact else values


def promise(epsilon: float, delta: float, neighbours: str, contributions: int) -> str:
    """What is promised, and to whom."""
    who = {
        "replace": "the value of one person is replaced by any other (their number is not hidden)",
        "add-remove": "one person is added or removed",
    }[neighbours]
    counted = "" if contributions == 1 else f", each counted up to {contributions} times"
    extra = "" if delta == 0 else f", δ = {delta:g}"
    return f"differentially private with ε = {epsilon:g}{extra}: no probability changes by more than e^ε when {who}{counted}"


def check_contributions(contributions: Any) -> int:
    """A whole number from 1 on."""
    if isinstance(contributions, bool) or int(contributions) != contributions or contributions < 1:
        raise InputError(f"contributions must be a whole number from 1 on, got {contributions!r}")
    return int(contributions)


@overload
def release(counts: Table, epsilon: float = ..., **options: Any) -> TableRelease: ...
@overload
def release(counts: Any, epsilon: float = ..., **options: Any) -> Release: ...
def release(counts: Any, epsilon: float = 1.0, **options: Any) -> Release | TableRelease:
    """Release counts, or a whole table of counts, with ε-differential privacy.

    A list, array or Series is released as one histogram (`release_histogram`), a `Table` with noise on all its levels
    and made consistent (`release_table`); the options are those of the two functions.

    Parameters
    ----------
    counts
        Non-negative whole numbers, or a table of counts.
    epsilon
        The privacy loss; smaller is safer and noisier.
    neighbours
        ``"replace"`` (the source's: one person's value changes, noise scale 2/ε) or ``"add-remove"`` (scale 1/ε).
    law
        ``"discrete-laplace"`` (default, whole numbers), ``"laplace"`` (floats, the source's law) or ``"gaussian"``
        (needs ``delta``).
    budget
        A `Budget` to charge; it refuses to be overspent.

    >>> noisy = release([120, 80, 3, 0], epsilon=0.5)
    >>> noisy.law, noisy.epsilon, noisy.neighbours, bool((noisy.values >= 0).all())
    ('discrete-laplace', 0.5, 'replace', True)

    References: Dwork, McSherry, Nissim & Smith, "Calibrating noise to sensitivity in private data analysis", TCC
    2006; Son, Park & Jung, "A parametric bootstrap test for comparing differentially private histograms" (2021) for
    the corrected perturbed histogram.
    """
    if isinstance(counts, Table):
        from tabprotect.dp.tables import release_table

        return release_table(counts, epsilon, **options)
    return release_histogram(counts, epsilon, **options)


def release_histogram(
    counts: Any,
    epsilon: float = 1.0,
    *,
    neighbours: str = "replace",
    law: str = "discrete-laplace",
    delta: float = 0.0,
    clamp: bool = True,
    contributions: int = 1,
    budget: Budget | None = None,
) -> Release:
    """The corrected perturbed histogram max(0, C + Z), Z of the law and scale that ε asks for.

    Parameters
    ----------
    counts
        Whole numbers from 0 on, one per class; every person is in one class (or in up to ``contributions``). The list
        of classes is published as it is: it must not depend on the data.
    neighbours, law, delta, budget
        As in `release`.
    clamp
        Set negative values to 0 (post-processing, free of charge); False keeps the unbiased values.
    contributions
        How often one person may be counted; the caller has to make sure of it.

    >>> release_histogram([5, 0, 9], 1.0, law="laplace", neighbours="add-remove").scale
    1.0
    """
    array = check_counts(counts)
    times = check_contributions(contributions)
    moved = sensitivity(neighbours)
    mechanism = Mechanism.for_epsilon(epsilon, l1=times * moved, l2=times * float(np.sqrt(moved)), law=law, delta=delta)
    if budget is not None:
        budget.spend(epsilon, delta, what=f"histogram of {array.size} counts")
    noisy = mechanism.add(array.reshape(-1)).reshape(array.shape)
    return Release(
        np.maximum(noisy, 0.0) if clamp else noisy,
        mechanism.noise,
        float(epsilon),
        float(delta),
        mechanism.epsilon,
        neighbours,
        times,
        clamp,
        mechanism.describe(),
        list(counts.index) if hasattr(counts, "index") and hasattr(counts, "to_numpy") else None,
    )
