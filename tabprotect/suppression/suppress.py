"""``suppress``: complementary cell suppression that is optimal where it can be and safe always."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

import numpy as np

from tabprotect.attacker.audit import Audit, audit_pattern, make_certificate
from tabprotect.attacker.ranges import Needs
from tabprotect.errors import Infeasible, InputError, Unsafe
from tabprotect.protected import Protected
from tabprotect.solve.stop import Listener, Stop, interruptible
from tabprotect.suppression.explain import what_would_give
from tabprotect.suppression.problem import Pattern, Problem
from tabprotect.table.table import Table
from tabprotect.types import BoolArray

Method = Callable[..., Pattern]
METHODS = ("auto", "exact", "network", "heuristic", "modular", "hypercube", "circuit", "none")
EXACT_CELLS = 12_000
"""Above so many cells ``auto`` does not try to prove optimality on tables that are not networks."""
LARGE_CELLS = 60_000
"""Above so many cells of a table with dimensions ``auto`` starts from boxes rather than from LPs over the whole table."""
NETWORK_EXACT_CELLS = 150_000


def suppress(
    table: Table,
    objective: Any = "value",
    method: str = "auto",
    time_limit: float | None = 60.0,
    seed: int = 0,
    *,
    zeros: bool = False,
    singletons: bool = False,
    keep: Any = None,
    previous: Any = None,
    gap: float = 0.0,
    threads: int | None = None,
    executor: Executor | None = None,
    progress: Listener | None = None,
) -> Protected:
    """Hide further cells so that no primary cell can be inferred beyond its protection levels, at least cost.

    Parameters
    ----------
    objective
        ``value`` (the sum of the hidden values, or of the cells' own costs where given), ``count`` (the number of hidden cells), ``frequency``, or one cost per cell.
    method
        ``exact`` (branch-and-cut), ``network`` (flows, for two-dimensional and other network tables), ``heuristic`` (any table), ``modular`` (subtable by subtable),
        ``hypercube``, ``circuit`` (the 2008 report's procedure), ``none`` (hide only the primary cells: a baseline that leaks and cannot be published), or ``auto``.
    time_limit
        Seconds; the best safe pattern found by then is returned with its gap. Ctrl-C does the same at once. If no safe pattern was found, `Unsafe` is raised.
    seed
        Same seed and number of threads, same answer, as long as it is not the time that ends the search or a part of it.
    zeros
        Allow cells of value zero as complements.
    singletons
        Protect also against respondents who are alone in a hidden cell and know it (contributors of one holding together).
    keep
        Cells (mask or indices) that stay hidden whatever happens.
    previous
        An earlier pattern (a `Protected` or a mask): its secondary cells cost next to nothing, so that the pattern changes as little as possible.
    gap
        Stop when the gap is proved to be at most this.
    threads
        A number keeps all work of ``exact`` in this process, with so many threads in its tree. Where nothing is said it uses the cores there are: on network tables up to eight threads
        for the tree, on others lower bounds in a process of their own beside the search for patterns, which is faster, but what comes first depends on the clock.
    executor
        Where the parts of the audit run in parallel.
    progress
        Called with news of cost, bound and gap.

    References
    ----------
    M. Fischetti and J.J. Salazar González, Models and algorithms for optimizing cell suppression in tabular data with linear constraints, JASA 95
    (2000) 916–928.

    >>> import tabprotect as tp
    >>> res = tp.suppress(tp.examples.d272().mark(tp.rules.Threshold(2)))
    >>> res.objective, int(res.suppressed.sum()), res.status
    (40.0, 10, 'optimal')
    """
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}: use {', '.join(METHODS)}")
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"time_limit must be positive, got {time_limit}")
    if threads is not None and threads < 1:
        raise InputError(f"threads must be 1 or more, got {threads}")
    warm_up()
    stop = Stop(time_limit, gap, progress)
    weights = table.weights(objective)
    problem = Problem.from_table(table, _sticky(weights, previous), zeros=zeros, keep=_keep_mask(table, keep))
    if method == "none":
        return _baseline(table, problem, weights, stop)
    _check_rooms(table, problem)
    with interruptible(stop):
        name, why, solve = _choose(problem, method, threads)
        if problem.requirements:
            try:
                pattern = solve(problem, _search_time(problem, stop), seed)
            except Infeasible as error:
                raise what_would_give(table, problem, error, stop) from None
        else:
            pattern = Pattern(problem.fixed.copy(), problem.fixed_cost, True)
        if singletons:
            from tabprotect.suppression.singletons import protect_singletons

            pattern = protect_singletons(table, problem, pattern, stop, seed)
    # the audit is not cut short by the limit: without it there is no result at all
    return _audited(table, problem, pattern, weights, name, why, stop, executor)


def _search_time(problem: Problem, stop: Stop) -> Stop:
    """The limit less what the audit of a table of this size takes: exact fractions over thousands of cells, or a million of whole moves."""
    n = int((problem.fixed | problem.candidates).sum())
    if stop.time_limit is None or n <= 2000 or _is_network(problem):
        return stop
    return stop.part(1.0 - min(0.25, n / 1000 / stop.time_limit))


@functools.cache
def warm_up() -> None:
    """Compile (once per machine, then cached) or load the kernels, so that it does not count against anybody's time limit."""
    from tabprotect.suppression.exchange import Rows, wander
    from tabprotect.suppression.flats import Wish, cheapest_flat, echelon, needed_moves
    from tabprotect.suppression.network_exact import solve as network_exact

    room = np.ones((1, 2))
    wish = Wish(np.array([0]), np.array([1.0]), np.array([True]), -room, room)
    basis, price, idle = np.array([[1.0, -1.0]]), np.array([0.0, 1.0]), np.array([False, False])
    echelon(basis, 1)
    cheapest_flat(basis, price, idle, wish, 2.0, 10)
    needed_moves(basis, wish)
    rows = Rows(np.array([0, 2]), np.array([0, 1]), np.array([1.0, 1.0]))
    wander(basis, rows, rows, price, idle, wish, heat=(1.0, 1.0), steps=1, widest=3, nodes=10, seed=0)
    frame = {"r": list("aaabbbccc"), "c": list("xyz") * 3, "v": [4.0, 6.0, 5.0, 7.0, 3.0, 8.0, 9.0, 5.0, 6.0]}
    table = Table.from_frame(frame, by=["r", "c"], value="v").with_status([5], "u").with_levels([5], lpl=1, upl=1)
    problem = Problem.from_table(table)
    pattern = network_exact(problem, Stop(), 0)
    audit_pattern(problem.relations, pattern.suppressed, problem.down, problem.up, Needs(*table.needed_levels()))


def _choose(problem: Problem, method: str, threads: int | None) -> tuple[str, str, Method]:
    """Name, reason and function of the method."""
    if method != "auto":
        return method, "asked for", _named(method, problem, threads)
    n = int((problem.fixed | problem.candidates).sum())
    if _is_network(problem):
        if n <= NETWORK_EXACT_CELLS:
            return (
                "exact",
                f"a network table of {n:,} cells: branch-and-cut with flow separation",
                _named("exact", problem, threads),
            )
        return (
            "network",
            f"a network table of {n:,} cells, too large to prove optimality",
            _named("network", problem, threads),
        )
    if n <= EXACT_CELLS:
        return (
            "exact",
            f"a general table of {n:,} cells: branch-and-cut from a heuristic start",
            _named("exact", problem, threads),
        )
    if n > LARGE_CELLS and problem.dims is not None:
        return (
            "hypercube",
            f"a large table of {n:,} cells with codes: boxes, then improvement",
            _named("hypercube", problem, threads),
        )
    return (
        "heuristic",
        f"a general table of {n:,} cells, too large to prove optimality",
        _named("heuristic", problem, threads),
    )


def _is_network(problem: Problem) -> bool:
    from tabprotect.table.graph import network_of

    usable = np.flatnonzero(problem.fixed | problem.candidates)
    # a cell of a flat or one-sided hierarchical table is in at most three relations; detection is slow on tables that are far from networks
    if np.diff(problem.columns.indptr)[usable].max(initial=0) > 4:
        return False
    return network_of(problem.relations, usable) is not None


def _named(method: str, problem: Problem, threads: int | None) -> Method:
    if method == "exact":
        if _is_network(problem):
            from tabprotect.suppression.network_exact import solve as network_exact

            return functools.partial(network_exact, threads=threads)
        from tabprotect.suppression.exact import solve as exact

        return functools.partial(exact, threads=threads)
    if method == "network":
        if not _is_network(problem):
            raise InputError(
                "method 'network' needs a table that is a flow network (two dimensions, at most one of them hierarchical); use 'heuristic' or 'exact'"
            )
        from tabprotect.suppression.network import solve as network

        return network
    if method == "heuristic":
        from tabprotect.suppression.heuristic import solve as heuristic

        return heuristic
    if method == "modular":
        from tabprotect.suppression.modular import solve as modular

        return modular
    if method == "hypercube":
        from tabprotect.suppression.hypercube import solve as hypercube

        return hypercube
    from tabprotect.suppression.circuit import solve as circuit

    return circuit


def _keep_mask(table: Table, keep: Any) -> BoolArray | None:
    if keep is None:
        return None
    array = np.asarray(keep)
    if array.dtype == bool and array.shape == (table.n_cells,):
        return array
    mask = np.zeros(table.n_cells, bool)
    try:
        mask[array.astype(np.int64)] = True
    except (IndexError, ValueError):
        raise InputError("keep must be a mask or indices of cells") from None
    return mask


def _sticky(weights: Any, previous: Any) -> Any:
    """Costs under which an earlier pattern is kept as far as it helps: what was hidden then costs a thousandth."""
    if previous is None:
        return weights
    mask = np.asarray(previous.suppressed if isinstance(previous, Protected) else previous)
    if mask.dtype != bool or mask.shape != weights.shape:
        raise InputError(f"the earlier pattern must be a Protected or a mask of {len(weights)} cells")
    return np.where(mask, weights * 1e-3, weights)


def _check_rooms(table: Table, problem: Problem) -> None:
    """A level beyond what the attacker knows of the cell itself can never be reached: say so before any work."""
    cells, missing = [], []
    for r in problem.requirements:
        room = {1: problem.up[r.cell], -1: problem.down[r.cell], 0: problem.up[r.cell] + problem.down[r.cell]}[r.sense]
        if room < r.level:
            cells.append(r.cell)
            missing.append(float(r.level - room))
    if cells:
        names = "; ".join(table.label(c) for c in cells[:5])
        raise Infeasible(
            f"{len(set(cells))} primary cell(s) need more protection than the attacker's own bounds (lb, ub) leave: {names}; "
            f"widen the bounds or lower the levels (largest shortage {max(missing):g})",
            cells=cells,
            missing=missing,
        )


def _baseline(table: Table, problem: Problem, weights: Any, stop: Stop) -> Protected:
    """SODC: suppress only the disclosive cells. Safe only by luck; the result says so and refuses to be published otherwise."""
    needs = Needs(*table.needed_levels())
    audit = audit_pattern(problem.relations, problem.fixed, problem.down, problem.up, needs)
    safe = not audit.missing
    certificate = make_certificate(table, problem.fixed, table.lb, table.ub, needs, audit) if safe else None
    cost = float(weights[problem.fixed].sum())
    values = np.where(problem.fixed, np.nan, table.values)
    info = {"why": "asked for", "exposed": tuple(sorted(audit.missing))}
    return Protected(
        table,
        "suppress",
        "none",
        values,
        problem.fixed,
        "optimal" if safe else "unsafe",
        cost,
        cost,
        stop.seconds,
        certificate,
        info,
    )


def _audited(
    table: Table,
    problem: Problem,
    pattern: Pattern,
    weights: Any,
    name: str,
    why: str,
    stop: Stop,
    executor: Executor | None,
) -> Protected:
    needs = Needs(*table.needed_levels())
    suppressed = pattern.suppressed | problem.fixed
    if (suppressed & ~problem.fixed & ~problem.candidates).any():
        raise Unsafe(
            f"method {name} hid a cell that must be published: this is a defect of tabprotect, please report it"
        )
    audit = audit_pattern(
        problem.relations, suppressed, problem.down, problem.up, needs, moves=pattern.moves, executor=executor
    )
    if audit.missing:
        suppressed, audit = _repair(problem, suppressed, needs, audit, stop)
    if audit.missing:
        names = "; ".join(f"{table.label(c)} ({what})" for c, what in list(audit.missing.items())[:5])
        raise Unsafe(
            f"no pattern could be proved safe within the limit; {len(audit.missing)} cell(s) still exposed: {names}",
            cells=tuple(audit.missing),
            bound=pattern.bound,
        )
    certificate = make_certificate(table, suppressed, table.lb, table.ub, needs, audit)
    objective = float(weights[suppressed].sum())
    sticky = bool((problem.weights != weights).any())
    bound = float(weights[problem.fixed].sum()) if sticky else min(pattern.bound, objective)
    optimal = pattern.optimal and not sticky and objective <= bound * (1 + 1e-9) + 1e-9
    info = {"why": why, **pattern.info}
    values = np.where(suppressed, np.nan, table.values)
    status = "optimal" if optimal else "feasible"
    return Protected(
        table, "suppress", name, values, suppressed, status, objective, bound, stop.seconds, certificate, info
    )


def _repair(problem: Problem, suppressed: BoolArray, needs: Needs, audit: Audit, stop: Stop) -> tuple[BoolArray, Audit]:
    """A pattern that fails the audit (rounding in a solver) is completed by protecting the failing cells once more on top of it."""
    from dataclasses import replace

    from tabprotect.suppression.heuristic import solve as heuristic

    failing = set(audit.missing)
    again = replace(
        problem,
        fixed=suppressed,
        candidates=problem.candidates & ~suppressed,
        requirements=tuple(r for r in problem.requirements if r.cell in failing),
    )
    wider = heuristic(again, Stop(max(2.0, min(stop.left, 30.0)), listener=stop.listener), 0)
    hidden = suppressed | wider.suppressed
    return hidden, audit_pattern(problem.relations, hidden, problem.down, problem.up, needs, moves=wider.moves)
