"""Families of test tables as seeded generators."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from tabprotect.errors import InputError
from tabprotect.table.cube import cube_codes, cube_relations, fill_margins, fill_top
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, FloatArray


@dataclass(frozen=True)
class Family:
    """A generator ``make(seed, size)``, its usual sizes, and what a case is for (suppress, round or adjust)."""

    name: str
    about: str
    make: Callable[[int, str], Table]
    sizes: tuple[str, ...]
    task: str = "suppress"


def hierarchy(spec: str) -> Hierarchy:
    """``"6x5"`` is six groups of five; ``"30"`` is flat.

    >>> len(hierarchy("6x5"))
    37
    """
    widths = [int(w) for w in spec.split("x")]

    def grow(name: str, depth: int) -> dict[str, object]:
        if depth == len(widths):
            return {}
        return {f"{name}.{i + 1}": grow(f"{name}.{i + 1}", depth + 1) for i in range(widths[depth])}

    return Hierarchy.from_tree(grow("T", 0), total="T")


def dimensions(size: str) -> tuple[Dimension, ...]:
    """``"6x5,30"`` as two dimensions."""
    return tuple(Dimension("abcdefgh"[k], hierarchy(spec)) for k, spec in enumerate(size.split(",")))


def magnitude(seed: int, size: str, *, mean: float = 40.0, p: float = 10.0) -> Table:
    """Contribution-based magnitudes with p% primaries: each inner cell has a negative-binomial number of contributors (shape 1.3) with
    log-normal(3, 1.3) values rounded up; a cell is primary when the rest after its two largest contributions is below p% of the largest.

    >>> int(magnitude(204, "6,6,6", mean=30).primary.sum())
    6
    """
    rng = np.random.default_rng(seed)
    dims = dimensions(size)
    shape = [len(d.hierarchy.leaves) for d in dims]
    total, count, top = np.zeros(shape), np.zeros(shape), np.zeros((*shape, 2))
    for leaf in itertools.product(*map(range, shape)):
        n = int(rng.negative_binomial(1.3, 1.3 / (1.3 + mean)))
        if n == 0:
            continue
        values = np.sort(np.ceil(rng.lognormal(3, 1.3, n)))[::-1]
        total[leaf], count[leaf] = values.sum(), n
        top[leaf][: min(n, 2)] = values[:2]
    return _with_p_percent(dims, total, count, top, p, f"magnitude-{size}-{seed}")


def magnitude_fast(seed: int, size: str, *, mean: float = 40.0, p: float = 10.0) -> Table:
    """The same law as `magnitude`, drawn all at once: for tables of a million cells (other numbers for the same seed)."""
    rng = np.random.default_rng(seed)
    dims = dimensions(size)
    shape = [len(d.hierarchy.leaves) for d in dims]
    count = rng.negative_binomial(1.3, 1.3 / (1.3 + mean), shape).ravel()
    owner = np.repeat(np.arange(len(count)), count)
    values = np.ceil(rng.lognormal(3, 1.3, len(owner)))
    total = np.bincount(owner, values, len(count)).astype(float)
    values = values[np.lexsort((-values, owner))]
    start = np.cumsum(count) - count
    top = np.zeros((len(count), 2))
    for k in range(2):
        top[count > k, k] = values[start[count > k] + k]
    parts = total.reshape(shape), count.astype(float).reshape(shape), top.reshape(*shape, 2)
    return _with_p_percent(dims, *parts, p, f"magnitude-fast-{size}-{seed}")


def _with_p_percent(
    dims: tuple[Dimension, ...], total: FloatArray, count: FloatArray, top: FloatArray, p: float, name: str
) -> Table:
    """The table over inner cells' totals, numbers and two largest contributions, with p% primaries and whole levels."""
    values, freq, largest = fill_margins(total, dims), fill_margins(count, dims), fill_top(top, dims)
    rest = values - largest.sum(axis=1)
    primary = (freq > 0) & (rest < p / 100 * largest[:, 0])
    level = np.where(primary, np.ceil(p / 100 * largest[:, 0] - rest), 0.0)
    return Table(
        values,
        cube_relations(dims),
        freq=freq.astype(np.int64),
        status=np.where(primary, "u", np.where(freq > 0, "s", "z")),
        ub=np.full(len(values), 2 * values.max()),
        lpl=level,
        upl=level,
        reason=np.where(primary, f"p%({p:g})", ""),
        dims=dims,
        codes=cube_codes(dims),
        name=name,
    )


def uniform(seed: int, size: str, *, share: float = 0.01, level: float = 0.15) -> Table:
    """Uniform values 0–499 with about 1 % of the inner cells primary and levels of 15 % (the first class of Fischetti and Salazar, 1999)."""
    rng = np.random.default_rng(seed)
    dims = dimensions(size)
    inner = rng.integers(0, 500, [len(d.hierarchy.leaves) for d in dims]).astype(float)
    values = fill_margins(inner, dims)
    codes = cube_codes(dims)
    leaf = np.ones(len(values), bool)
    for k, d in enumerate(dims):
        leaf &= np.isin(codes[:, k], d.hierarchy.leaves)
    eligible = np.flatnonzero(leaf & (values > 0))
    primary = rng.choice(eligible, max(1, round(share * int(leaf.sum()))), replace=False)
    need = np.zeros(len(values))
    need[primary] = np.maximum(1, np.ceil(level * values[primary]))
    status = np.where(values == 0, "z", "s")
    status[primary] = "u"
    return Table(
        values,
        cube_relations(dims),
        status=status,
        ub=np.full(len(values), 2 * values.max()),
        lpl=np.minimum(need, values),
        upl=need,
        dims=dims,
        codes=codes,
        name=f"uniform-{size}-{seed}",
    )


def counts(seed: int, size: str, *, mean: float = 6.0) -> Table:
    """Counts with small cells: Poisson around log-normal rates, threshold 2."""
    from tabprotect.sensitivity import Threshold

    rng = np.random.default_rng(seed)
    dims = dimensions(size)
    rates = mean * rng.lognormal(-0.5, 1.0, [len(d.hierarchy.leaves) for d in dims])
    values = fill_margins(rng.poisson(rates).astype(float), dims)
    table = Table(
        values,
        cube_relations(dims),
        freq=values.astype(np.int64),
        status=np.where(values == 0, "z", "s"),
        dims=dims,
        codes=cube_codes(dims),
        counts=True,
        name=f"counts-{size}-{seed}",
    )
    return table.mark(Threshold(2))


def linked_pair(seed: int, size: str) -> Table:
    """Two tables that share one dimension and its totals (a × b and a × c), as one system."""
    from tabprotect.table.linked import link

    a, b, c = size.split(",")
    whole = magnitude(seed, f"{a},{b},{c}", mean=1.0)
    keep_b = whole.codes[:, 2] == 0
    keep_c = whole.codes[:, 1] == 0
    return link([_margin(whole, keep_b, (0, 1)), _margin(whole, keep_c, (0, 2))]).replace(name=f"linked-{size}-{seed}")


def _margin(table: Table, keep: BoolArray, dims: Sequence[int]) -> Table:
    """The table over some of the dimensions: the cells whose other codes are totals."""
    cells = np.flatnonzero(keep)
    kept = tuple(table.dims[k] for k in dims)
    return Table(
        table.values[cells],
        cube_relations(kept),
        freq=None if table.freq is None else table.freq[cells],
        status=table.status[cells],
        lb=table.lb[cells],
        ub=table.ub[cells],
        lpl=table.lpl[cells],
        upl=table.upl[cells],
        reason=table.reason[cells],
        dims=kept,
        codes=table.codes[cells][:, list(dims)],
    )


FAMILIES: dict[str, Family] = {
    f.name: f
    for f in (
        Family("uniform", "uniform 2-D of Fischetti–Salazar type, 1 % primary", uniform, ("50,50", "100,100")),
        Family("magnitude2d", "2-D magnitudes with p% primaries", magnitude, ("50,50", "100,100", "200,200")),
        Family("1h2d", "one hierarchical dimension × flat", magnitude, ("6x5,30", "8x8,40")),
        Family(
            "hierarchical", "two and three hierarchical dimensions", magnitude, ("6x5,5x4", "4x5,10,6", "3x4x4,5x3,4")
        ),
        Family("cube3d", "3-D cubes", magnitude, ("6,6,6", "8,8,8", "10,10,10", "15,15,15", "20,20,20")),
        Family("counts", "count tables with small cells", counts, ("20,20", "10,10,10")),
        Family("linked", "pairs of linked tables", linked_pair, ("8,8,8", "4x4,10,10")),
        Family("rounding", "cubes to be rounded", counts, ("30,30", "10,10,10"), task="round"),
    )
}


def make(family: str, size: str, seed: int) -> Table:
    """One case of a family."""
    if family not in FAMILIES:
        raise InputError(f"unknown family {family!r}: use {', '.join(FAMILIES)}")
    return FAMILIES[family].make(seed, size)
