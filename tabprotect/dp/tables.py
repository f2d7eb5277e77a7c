"""Releasing whole tables: noise on every level, then the nearest table that adds up."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tabprotect.dp.budget import Budget, check_delta, exact
from tabprotect.dp.levels import Levels, table_levels
from tabprotect.dp.mechanism import Mechanism, check_counts, gaussian_of_rho
from tabprotect.dp.noise import LAWS, check_choice, check_epsilon, sensitivity
from tabprotect.dp.release import check_contributions, promise, whole
from tabprotect.errors import InputError
from tabprotect.linalg.integers import to_integers
from tabprotect.linalg.projection import project
from tabprotect.linalg.totals import Totals
from tabprotect.solve.stop import Listener, Stop
from tabprotect.table.linked import LinkedTable
from tabprotect.table.table import Table
from tabprotect.types import FloatArray

if TYPE_CHECKING:
    import pandas as pd

# cells without noise of their own follow from the others: their weight in the projection is this share of the
# smallest other
_FOLLOW = 1e-6


@dataclass(frozen=True, eq=False, repr=False)
class TableRelease:
    """A noisy table that adds up, and what is promised of it. It holds nothing of the true values and may be
    published as it is.

    ``table`` is the released table (codes and relations of the original, released values), ``noisy`` the unbiased
    values before they were made consistent (NaN where no noise was spent), ``levels`` one row per level: share of the
    budget, noise and its standard deviation.
    """

    table: Table
    noisy: FloatArray
    epsilon: float
    delta: float
    proved: float
    neighbours: str
    contributions: int
    law: str
    levels: pd.DataFrame
    consistent: bool
    whole: str | None
    groups: Levels = field(repr=False)

    @property
    def values(self) -> FloatArray:
        """Released values in cell order."""
        return self.table.values

    @property
    def mechanism(self) -> str:
        """The mechanism in words."""
        kind = {"laplace": "Laplace", "discrete-laplace": "discrete Laplace", "gaussian": "discrete Gaussian"}[self.law]
        return f"{kind} noise by OpenDP on {int((self.levels['share'] > 0).sum())} levels"

    def publish(self) -> pd.DataFrame:
        """Codes and released values."""
        import pandas as pd

        if isinstance(self.table, LinkedTable):
            names = dict.fromkeys(d.name for own in self.table.tables for d in own.dims)
            return self.table.cells[["table", *names]].assign(value=whole(self.values))
        columns: dict[str, Any] = {
            d.name: pd.Categorical.from_codes(self.table.codes[:, k], categories=list(d.codes))
            for k, d in enumerate(self.table.dims)
        }
        if not columns:
            columns["cell"] = np.arange(self.table.n_cells)
        return pd.DataFrame({**columns, "value": whole(self.values)})

    def expected_error(self, replicates: int = 20, seed: Any = None) -> pd.DataFrame:
        """Root mean square error to expect at each level: noise alone, and after projection and rounding.

        Computed from the release only (the released table stands in for the truth and is released again with
        simulated noise), so it costs no budget and may be published.
        """
        return error_by_level(self, self.values, self._again(replicates, seed))

    def error(self, truth: Table, *, confidential: bool = False) -> pd.DataFrame:
        """Root mean square error of this release at each level against the true table. For use inside the office: say
        ``confidential=True``.
        """
        if not confidential:
            raise InputError(
                "the error against the true table is confidential: pass confidential=True and do not publish it"
            )
        return error_by_level(self, truth.values, [(self.noisy, self.values)])

    def _again(self, replicates: int, seed: Any) -> list[tuple[FloatArray, FloatArray]]:
        from tabprotect.dp.noise import Noise

        rng = np.random.default_rng(seed)
        used = self.levels["share"].to_numpy() > 0
        found = []
        for _ in range(replicates):
            noisy = np.full(self.table.n_cells, np.nan)
            for g in np.flatnonzero(used):
                cells = self.groups.group == g
                noise = Noise(self.law, float(self.levels["scale"].iloc[g]))  # type: ignore[arg-type]
                noisy[cells] = self.values[cells] + noise.simulate(int(cells.sum()), rng)
            variance = (self.levels["sd"].to_numpy() ** 2)[self.groups.group]
            found.append((noisy, postprocess(self.table, noisy, variance, self.consistent, self.whole is not None)[0]))
        return found

    def to_dict(self) -> dict[str, Any]:
        """The promise and the levels as plain numbers, for JSON."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "proved_epsilon": self.proved,
            "neighbours": self.neighbours,
            "contributions": self.contributions,
            "law": self.law,
            "mechanism": self.mechanism,
            "consistent": self.consistent,
            "integers": self.whole,
            "cells": self.table.n_cells,
            "levels": self.levels.to_dict(orient="records"),
        }

    def summary(self) -> str:
        """What was done and what it promises."""
        steps = [self.mechanism]
        if self.consistent:
            steps.append("projected onto the tables that add up and are not negative")
        if self.whole:
            steps.append(f"whole numbers by {self.whole}")
        return (
            promise(self.epsilon, self.delta, self.neighbours, self.contributions)
            + f"\n{self.table.n_cells:,} cells: {', '.join(steps)}\n"
            + self.levels.to_string(index=False, float_format=lambda v: f"{v:.4g}")
        )

    def __repr__(self) -> str:
        return f"<TableRelease: {self.table.n_cells:,} cells, ε = {self.epsilon:g}, {self.neighbours}, {self.law}>"


def release_table(
    table: Table,
    epsilon: float = 1.0,
    *,
    neighbours: str = "replace",
    law: str = "discrete-laplace",
    delta: float = 0.0,
    split: Any = "optimal",
    levels: Any = None,
    consistent: bool = True,
    integers: bool = True,
    contributions: int = 1,
    budget: Budget | None = None,
    progress: Listener | None = None,
) -> TableRelease:
    """Release a table of counts: noise on the cells of every level, then the nearest consistent table, in whole
    numbers.

    Parameters
    ----------
    table
        A table of counts (``table.counts``), hierarchical or linked. Which cells it has is published as it is: use
        the whole classification, not only the codes that occur.
    neighbours, law, delta, budget, contributions
        As in `release`.
    split
        How the levels share the budget: ``"optimal"`` (least total variance), ``"uniform"``, ``"leaves"`` (only
        levels with inner cells; totals are summed up) or a mapping from level to share. A level is named by its depth
        in each dimension: ``"0.1"``.
    levels
        One label per cell, for tables without dimensions; every person must be counted at most once in each level. Not
        needed for linked tables: their levels are those of each table ("name:0.1").
    consistent
        Project onto A·x = 0, x ≥ 0 with the inverse noise variances as weights; otherwise only clamp at 0.
    integers
        Then round to whole numbers that add up.

    >>> from tabprotect.table.examples import d272
    >>> noisy = release_table(d272(), epsilon=2.0)
    >>> bool((noisy.values >= 0).all()), float(np.abs(noisy.table.residuals()).max())
    (True, 0.0)

    References: Hay, Rastogi, Miklau & Suciu, "Boosting the accuracy of differentially private histograms through
    consistency", PVLDB 3 (2010); Cormode et al., "Differentially private spatial decompositions", ICDE 2012, for the
    split over levels.
    """
    stop = Stop(listener=progress)
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    times, moved = check_contributions(contributions), sensitivity(neighbours)
    check_choice(law, LAWS, "law")
    counts = _counts(table)
    groups = table_levels(table, levels)
    leaf = _leaves(table)
    shares = groups.shares(split, 1 / 2 if law == "gaussian" else 1 / 3, leaf)
    if not consistent and (shares[groups.group] == 0).any():
        raise InputError("a level without budget needs consistent=True: its cells follow from the others")
    mechanisms, proved = _mechanisms(groups, shares, epsilon, delta, law, times, moved)
    if budget is not None:
        budget.spend(epsilon, delta, what=f"table of {table.n_cells} cells")
    noisy, variance = _noisy(counts, groups, mechanisms, stop)
    stop.tell("making it consistent")
    values, rounded = postprocess(table, noisy, variance, consistent, integers)
    frame = _frame(groups, shares, mechanisms)
    return TableRelease(
        _released(table, values), noisy, epsilon, delta, proved, neighbours, times, law, frame, consistent, rounded,
        groups,
    )  # fmt: skip


def _noisy(
    counts: FloatArray, groups: Levels, mechanisms: list[Mechanism | None], stop: Stop
) -> tuple[FloatArray, FloatArray]:
    """Every level with its own noise, and the variances; NaN where a level got no budget."""
    noisy, variance = np.full(counts.size, np.nan), np.full(counts.size, np.nan)
    for g, mechanism in enumerate(mechanisms):
        stop.tell(f"noise on level {groups.names[g]}", done=g, total=len(mechanisms))
        if mechanism is not None:
            cells = groups.group == g
            noisy[cells] = mechanism.add(counts[cells])
            variance[cells] = mechanism.noise.variance
    return noisy, variance


def _released(table: Table, values: FloatArray) -> Table:
    """A table of the released values that holds nothing else of the true one than its codes and relations."""
    shape: dict[str, Any] = {"rhs": table.rhs, "dims": table.dims, "codes": table.codes}
    if not isinstance(table, LinkedTable):
        return Table(values, table.relations, counts=True, name=table.name, **shape)
    parts = tuple(_released(own, values[place]) for own, place in zip(table.tables, table.places, strict=True))
    links: dict[str, Any] = {"tables": parts, "names": table.names, "places": table.places}
    return LinkedTable(values, table.relations, counts=True, name=table.name, **shape, **links)


def _counts(table: Table) -> FloatArray:
    if not table.counts:
        hint = "" if table.freq is None else "; its frequencies are: table.replace(values=table.freq, counts=True)"
        raise InputError(
            "only tables of counts can be released this way, and this one is not marked as one "
            f"(counts=True, when every person adds one to the cells it is in){hint}"
        )
    if np.any(table.rhs):
        raise InputError("a table with right-hand sides other than 0 cannot be released: they would publish true sums")
    return check_counts(table.values, "table")


def _leaves(table: Table) -> FloatArray:
    totals = Totals.of(table.relations)
    return np.ones(table.n_cells) if totals is None else totals.leaf.astype(float)


def _mechanisms(
    groups: Levels, shares: FloatArray, epsilon: float, delta: float, law: str, times: int, moved: int
) -> tuple[list[Mechanism | None], float]:
    """One mechanism per level, and the ε that OpenDP's maps add up to (never more than what was asked for)."""

    def norms(g: int) -> tuple[int, float]:
        cells = int(groups.cells_per_person[g]) * moved
        return times * cells, times * float(np.sqrt(cells))

    whole = Mechanism.for_epsilon(epsilon, l1=1, l2=1.0, law=law, delta=delta)
    total = epsilon if whole.rho is None else whole.rho
    safe = 1.0 - 1e-12  # so that rounded shares never add up to more than the whole
    found: list[Mechanism | None] = []
    spent = exact(0.0)
    for g, share in enumerate(shares):
        if share == 0.0:
            found.append(None)
            continue
        l1, l2 = norms(g)
        part = total * float(share) * safe
        made = gaussian_of_rho(part, l1=l1, l2=l2) if law == "gaussian" else Mechanism.for_epsilon(part, l1=l1, law=law)
        spent += exact(made.epsilon if made.rho is None else made.rho)
        found.append(made)
    if spent > exact(total):
        raise InputError("the levels together would spend more than the budget; nothing was released")
    return found, float(spent) if whole.rho is None else whole.epsilon


def postprocess(
    table: Table, noisy: FloatArray, variance: FloatArray, consistent: bool, integers: bool
) -> tuple[FloatArray, str | None]:
    """Consistent (or only clamped) values, and how they became whole; needs nothing but the noisy values."""
    if not consistent:
        clamped = np.maximum(noisy, 0.0)
        return (np.rint(clamped), "rounding") if integers else (clamped, None)
    known = np.isfinite(noisy)
    # noise of variance zero (a huge ε) still needs a finite weight
    weights = np.where(known, 1.0 / np.maximum(np.where(known, variance, 1.0), 1e-9), np.nan)
    start = np.where(known, noisy, 0.0)
    if not known.all():
        totals = Totals.of(table.relations)
        weights = np.where(known, weights, _FOLLOW * float(np.nanmin(weights)))
        start = np.where(known, noisy, start if totals is None else totals.add_up(start))
    values = project(table.relations, start, weights=weights).x
    if not integers:
        return values, None
    found = to_integers(table.relations, values)
    return found.x, found.method


def _frame(groups: Levels, shares: FloatArray, mechanisms: list[Mechanism | None]) -> pd.DataFrame:
    import pandas as pd

    def column(get: Any) -> list[float]:
        return [np.nan if m is None else float(get(m)) for m in mechanisms]

    return pd.DataFrame(
        {
            "level": groups.names,
            "cells": groups.sizes,
            "cells_per_person": groups.cells_per_person,
            "share": shares,
            "epsilon": column(lambda m: m.epsilon),
            "rho": column(lambda m: np.nan if m.rho is None else m.rho),
            "scale": column(lambda m: m.noise.scale),
            "sd": column(lambda m: np.sqrt(m.noise.variance)),
        }
    )


def error_by_level(
    release: TableRelease, truth: FloatArray, versions: list[tuple[FloatArray, FloatArray]]
) -> pd.DataFrame:
    """Root mean square errors by level of (noisy, final) versions of a table."""
    import pandas as pd

    groups = release.groups
    noisy = np.mean([(n - truth) ** 2 for n, _ in versions], axis=0)
    final = np.mean([(f - truth) ** 2 for _, f in versions], axis=0)
    sizes = np.maximum(groups.sizes, 1)
    return pd.DataFrame(
        {
            "level": groups.names,
            "cells": groups.sizes,
            "noise": np.sqrt(np.bincount(groups.group, weights=noisy, minlength=len(sizes)) / sizes),
            "released": np.sqrt(np.bincount(groups.group, weights=final, minlength=len(sizes)) / sizes),
        }
    )
