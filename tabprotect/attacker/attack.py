"""``attack``: what an outsider can deduce from a published table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tabprotect.attacker.audit import audit_pattern, make_certificate
from tabprotect.attacker.completion import complete
from tabprotect.attacker.knowledge import Knowledge
from tabprotect.attacker.published import Published, read_published
from tabprotect.attacker.ranges import Needs, ranges
from tabprotect.attacker.releases import join
from tabprotect.attacker.result import Attack
from tabprotect.errors import InputError
from tabprotect.protected import Protected
from tabprotect.solve.stop import Listener, Stop
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, FloatArray, IntArray

VIEWS: dict[str, Callable[[Protected], tuple[FloatArray, FloatArray]]] = {}
"""How other kinds of protected tables look to an attacker: kind -> function giving lower and upper of all cells."""

WIDTH_TOLERANCE = 1e-7
"""A cell is recovered exactly when its interval is narrower than this share of the table's largest value (or of one unit)."""


@dataclass(frozen=True)
class _Target:
    """One system to attack: the truth (or one completion) as base point, which cells are hidden, and what must hold."""

    base: FloatArray
    hidden: BoolArray
    relations: Any
    lb: FloatArray
    ub: FloatArray
    needs: Needs | None
    table: Table | None
    dims: Any
    codes: Any

    def room(self) -> tuple[FloatArray, FloatArray]:
        return np.maximum(self.base - self.lb, 0.0), np.maximum(self.ub - self.base, 0.0)


def attack(
    target: Any,
    suppressed: Any = None,
    *,
    knowledge: Knowledge | None = None,
    goal: str = "bounds",
    also: Sequence[Any] = (),
    by: Any = None,
    value: str = "value",
    total: Any = None,
    time_limit: float | None = None,
    executor: Executor | None = None,
    progress: Listener | None = None,
    **known: Any,
) -> Attack:
    """Exact bounds of every hidden cell, and whether they honour the protection levels.

    Parameters
    ----------
    target
        A `Protected`; a `Table` together with ``suppressed`` (mask or indices; default its primary cells); or any published table with gaps: a frame or the
        path of a CSV/Parquet file, with ``by``, ``value`` and ``total`` as in `read_published`, or a `Published`.
    knowledge
        What the attacker knows besides; its fields can also be given here by name (``lb=1``, ``share=0.5``, ``integer=True``, ``singletons=True``, …).
    goal
        ``bounds``: exact intervals of all hidden cells. ``verdict``: only as far as needed to tell whether every primary cell is safe, with a certificate.
    also
        Other releases: of the same cells (a `Protected`, a mask, or a `Published`), where what any of them shows is known, or other tables that share cells (linked
        tables, another classification), whose relations are added to the system.
    executor
        Any ``concurrent.futures`` executor: components are attacked in parallel.

    References
    ----------
    M. Fischetti and J.J. Salazar González, Models and algorithms for optimizing cell suppression in tabular data with linear constraints, JASA 95
    (2000) 916–928.

    >>> import tabprotect as tp
    >>> table = tp.examples.d272().mark(tp.rules.Threshold(2))
    >>> attack(table, goal="verdict").safe          # hiding only the sensitive cells is not enough
    False
    """
    if goal not in ("bounds", "verdict"):
        raise InputError(f"unknown goal {goal!r}: use 'bounds' or 'verdict'")
    knowledge = replace(knowledge or Knowledge(), **known)
    stop = Stop(time_limit, listener=progress)
    if isinstance(target, Protected) and target.kind in VIEWS:
        return _view(target, stop)
    if isinstance(target, Protected):
        suppressed, target = (target.suppressed if suppressed is None else suppressed), target.table
    if not isinstance(target, Table | Published):
        target = read_published(target, _need_by(by), value, total=total)
    same, others = _sorted_out(target, also)
    if others:
        whole, mask, place = join(target, suppressed, others)
        return _restricted(_run(_job(whole, mask, knowledge, ()), knowledge, goal, stop, executor), place, target)
    return _run(_job(target, suppressed, knowledge, same), knowledge, goal, stop, executor)


def _job(target: Table | Published, suppressed: Any, knowledge: Knowledge, also: Sequence[Any]) -> _Target:
    if isinstance(target, Table):
        return _from_table(target, suppressed, knowledge, also)
    return _from_published(target, knowledge, also)


def _need_by(by: Any) -> Any:
    if by is None:
        raise InputError("say which columns hold the codes: by=['region', …] (or a mapping to hierarchies)")
    return by


def _mask(cells: Any, n: int) -> BoolArray:
    array = np.asarray(cells)
    if array.dtype == bool:
        if array.shape != (n,):
            raise InputError(f"the mask of hidden cells has {array.size} entries for {n} cells")
        return array.copy()
    mask = np.zeros(n, bool)
    try:
        mask[array.astype(np.int64)] = True
    except (IndexError, ValueError):
        raise InputError(f"hidden cells must be a mask or indices below {n}") from None
    return mask


def _sorted_out(target: Table | Published, also: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """Releases of the same cells, and other tables that share some of them."""

    def same(other: Any) -> bool:
        cells = other.table if isinstance(other, Protected) else other
        return cells.n_cells == target.n_cells and [d.codes for d in cells.dims] == [d.codes for d in target.dims]

    structured = [o for o in also if isinstance(o, Protected | Published)]
    return [o for o in also if o not in structured or same(o)], [o for o in structured if not same(o)]


def _hide_less(hidden: BoolArray, also: Sequence[Any]) -> BoolArray:
    """What another release of the same cells shows is not hidden."""
    for other in also:
        if isinstance(other, Protected):
            hidden = hidden & other.suppressed
        elif isinstance(other, Published):
            hidden = hidden & other.hidden
        else:
            hidden = hidden & _mask(other, len(hidden))
    return hidden


def _restricted(found: Attack, place: IntArray, target: Table | Published) -> Attack:
    """What an attack on a joined system says of the cells of one of its tables."""
    position = {int(c): k for k, c in enumerate(found.cells)}
    cells = np.array([i for i, p in enumerate(place) if int(p) in position], dtype=np.int64)
    at = np.array([position[int(place[i])] for i in cells], dtype=np.int64)
    mine = {int(place[i]): int(i) for i in range(len(place))}
    labels = {
        d.name: np.array(d.codes, dtype=object)[target.codes[cells, k]] for k, d in enumerate(target.dims)
    } or None
    exposed = tuple(sorted(mine[c] for c in found.exposed if c in mine))
    shown = None if found.shown is None else found.shown[place]
    return replace(
        found,
        cells=cells,
        lower=found.lower[at],
        upper=found.upper[at],
        proved=found.proved[at],
        fails=found.fails[at],
        recovered=tuple(sorted(mine[c] for c in found.recovered if c in mine)),
        exposed=exposed,
        safe=not exposed,
        certificate=None,
        labels=labels,
        source=target if isinstance(target, Table) else None,
        dims=target.dims,
        codes=target.codes,
        shown=shown,
    )


def _from_table(table: Table, suppressed: Any, knowledge: Knowledge, also: Sequence[Any]) -> _Target:
    hidden = _hide_less(table.primary if suppressed is None else _mask(suppressed, table.n_cells), also)
    lb, ub = knowledge.bounds(table.values, table.lb, table.ub, hidden)
    return _Target(
        table.values, hidden, table.relations, lb, ub, Needs(*table.needed_levels()), table, table.dims, table.codes
    )


def _from_published(published: Published, knowledge: Knowledge, also: Sequence[Any]) -> _Target:
    values = published.values.copy()
    for other in also:
        if not isinstance(other, Published):
            raise InputError("other releases of a table with gaps must be given as Published tables (read_published)")
        values = np.where(np.isnan(values), other.values, values)
    n = len(values)
    negative = bool((values[~np.isnan(values)] < 0).any())
    lb, ub = knowledge.bounds(values, np.full(n, -np.inf if negative else 0.0), np.full(n, np.inf), np.isnan(values))

    def describe(r: int) -> str:
        row = published.relations[[r], :].tocoo()
        return f"{published.label(int(row.coords[1][np.argmin(row.data)]))} = sum of its {row.nnz - 1} parts"

    base = complete(published.relations, published.rhs, values, lb, ub, describe)
    return _Target(base, np.isnan(values), published.relations, lb, ub, None, None, published.dims, published.codes)


def _run(job: _Target, knowledge: Knowledge, goal: str, stop: Stop, executor: Executor | None) -> Attack:
    down, up = job.room()
    n = len(job.base)
    certificate, low, high, proved = None, np.zeros(n), np.zeros(n), np.zeros(n, bool)
    missing: dict[int, str] = {}
    methods: dict[str, int] = {}
    if goal == "bounds" or job.needs is None:
        found = ranges(job.relations, job.hidden, down, up, stop=stop, executor=executor)
        low, high, proved, methods = found.down, found.up, found.proved, found.methods
        if knowledge.integer:
            low, high, proved = _integer(job, low, high, proved, stop)
        if job.needs is not None:
            missing = _missing(job, low, high)
    elif goal == "verdict":
        audit = audit_pattern(
            job.relations, job.hidden, down, up, job.needs, whole=knowledge.integer, stop=stop, executor=executor
        )
        missing = dict(audit.missing)
        for c in audit.up:
            low[c], high[c] = float(audit.down[c]), float(audit.up[c])
        if job.table is not None and not missing:
            certificate = make_certificate(
                job.table, job.hidden, job.lb, job.ub, job.needs, audit, whole=knowledge.integer
            )
    for group in _coalitions(job, knowledge):
        inner_low, inner_high, fails = _insider(job, group, goal, knowledge, stop)
        low, high = np.minimum(low, inner_low), np.minimum(high, inner_high)
        for c, what in fails.items():
            missing[c] = f"{what} against respondents of {len(group)} cell(s)"
    return _result(job, goal, low, high, proved, missing, certificate, methods, stop)


def _missing(job: _Target, low: FloatArray, high: FloatArray) -> dict[int, str]:
    """What fails, with a tolerance that never turns a failure into a pass by more than rounding: 1e-9 of the level."""
    assert job.needs is not None
    fails = {}
    for c in np.flatnonzero(job.needs.any):
        if not job.hidden[c]:
            fails[int(c)] = "published"
            continue
        slack = 1e-9
        names = [
            ("LPL", low[c] < job.needs.down[c] * (1 - slack)),
            ("UPL", high[c] < job.needs.up[c] * (1 - slack)),
            ("SPL", low[c] + high[c] < job.needs.width[c] * (1 - slack)),
        ]
        what = "+".join(name for name, bad in names if bad)
        if what:
            fails[int(c)] = what
    return fails


def _coalitions(job: _Target, knowledge: Knowledge) -> list[list[int]]:
    groups = [sorted(int(c) for c in g if job.hidden[int(c)]) for g in knowledge.coalitions]
    if knowledge.singletons:
        if job.table is None or (job.table.freq is None and job.table.contributions is None):
            raise InputError("singletons=True needs the number of contributors of each cell (freq)")
        groups += singleton_groups(job.table, job.hidden)
    return [g for g in groups if g]


def singleton_groups(table: Table, hidden: BoolArray) -> list[list[int]]:
    """Hidden cells with one contributor, those of the same respondent (or holding) together."""
    contributions = table.contributions
    counts = contributions.count if contributions is not None else table.freq
    if counts is None:
        return []
    alone = np.flatnonzero((counts == 1) & hidden)
    ids = None
    if contributions is not None:
        holdings = contributions.holdings
        ids = holdings.ids if holdings is not None and holdings.ids is not None else contributions.ids
    if ids is None:
        return [[int(c)] for c in alone]
    by_id: dict[int, list[int]] = {}
    for c in alone:
        by_id.setdefault(int(ids[c]) if ids[c] >= 0 else -int(c) - 2, []).append(int(c))
    return list(by_id.values())


def _insider(
    job: _Target, group: list[int], goal: str, knowledge: Knowledge, stop: Stop
) -> tuple[FloatArray, FloatArray, dict[int, str]]:
    """The same attack by respondents who know the cells of ``group``; cells they know are left out of the verdict."""
    hidden = job.hidden.copy()
    hidden[group] = False
    inside = replace(job, hidden=hidden)
    down, up = inside.room()
    needs = job.needs
    n = len(hidden)
    if needs is not None:
        own = np.zeros(n, bool)
        own[group] = True
        needs = Needs(*(np.where(own, 0.0, a) for a in (needs.down, needs.up, needs.width)))
        inside = replace(inside, needs=needs)
    if goal == "verdict" and needs is not None:
        audit = audit_pattern(job.relations, hidden, down, up, needs, whole=knowledge.integer, stop=stop)
        return np.full(n, np.inf), np.full(n, np.inf), dict(audit.missing)
    found = ranges(job.relations, hidden, down, up, stop=stop)
    low, high = found.down.copy(), found.up.copy()
    low[group], high[group] = np.inf, np.inf
    return low, high, _missing(inside, found.down, found.up) if needs is not None else {}


def _integer(
    job: _Target, low: FloatArray, high: FloatArray, proved: BoolArray, stop: Stop
) -> tuple[FloatArray, FloatArray, BoolArray]:
    from tabprotect.attacker.integer import integer_ranges

    return integer_ranges(job.relations, job.hidden, job.base, *job.room(), low, high, proved, stop)


def _result(
    job: _Target,
    goal: str,
    low: FloatArray,
    high: FloatArray,
    proved: BoolArray,
    missing: dict[int, str],
    certificate: Any,
    methods: dict[str, int],
    stop: Stop,
) -> Attack:
    cells = np.flatnonzero(job.hidden)
    base = job.base[cells]
    lower, upper = base - low[cells] + 0.0, base + high[cells]  # + 0.0: no negative zero
    size = np.maximum(np.abs(base), WIDTH_TOLERANCE * float(np.abs(job.base).max(initial=1.0)))
    narrow = (low[cells] + high[cells]) <= WIDTH_TOLERANCE * size
    known = narrow & (proved[cells] if goal == "bounds" or job.needs is None else np.zeros(len(cells), bool))
    recovered = tuple(int(c) for c in cells[known])
    exposed = recovered if job.needs is None else tuple(sorted(missing))
    labels = (
        {d.name: np.array(d.codes, dtype=object)[job.codes[cells, k]] for k, d in enumerate(job.dims)}
        if job.dims
        else None
    )
    fails = np.array([missing.get(int(c), "") for c in cells], dtype=str)
    shown = np.where(job.hidden, np.nan, job.base)
    return Attack(
        cells,
        lower,
        upper,
        proved[cells],
        fails,
        recovered,
        exposed,
        not exposed,
        goal,
        stop.seconds,
        certificate,
        labels,
        {"methods": methods},
        job.table,
        job.dims,
        job.codes,
        shown,
    )


def _view(res: Protected, stop: Stop) -> Attack:
    """A rounded or adjusted table: the method's own view of what can be inferred, judged against the same levels."""
    lower, upper = VIEWS[res.kind](res)
    table = res.table
    hidden = np.ones(table.n_cells, bool)
    job = _Target(
        table.values,
        hidden,
        table.relations,
        lower,
        upper,
        Needs(*table.needed_levels()),
        table,
        table.dims,
        table.codes,
    )
    low, high = table.values - lower, upper - table.values
    return _result(job, "bounds", low, high, hidden, _missing(job, low, high), None, {res.kind: 1}, stop)
