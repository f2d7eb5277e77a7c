"""The verb: round a table."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np

from tabprotect.errors import InputError, Unsafe
from tabprotect.protected import Protected
from tabprotect.rounding.attack import exposed_cells
from tabprotect.rounding.chance import draw, fifty_additive, unbiased_additive
from tabprotect.rounding.ends import plain_network
from tabprotect.rounding.grid import Grid, check_base, make_grid
from tabprotect.rounding.integer import nearest_by_program
from tabprotect.rounding.network import nearest_by_flow
from tabprotect.rounding.small import small_grid
from tabprotect.solve.stop import Listener, Stop, interruptible
from tabprotect.table.graph import network_of
from tabprotect.table.table import Table
from tabprotect.types import BoolArray, FloatArray, IntArray

METHODS = ("controlled", "nearest", "fifty", "unbiased", "small")
# flows with more steps than this would be larger than the table by far
MOST_STEPS = 20_000_000


@dataclass(frozen=True, eq=False)
class _Outcome:
    x: IntArray
    bound: float
    status: str
    how: str
    widened: int = 0
    unbiased: bool | None = None


def round_table(
    table: Table,
    base: float | Sequence[float] | FloatArray = 5,
    *,
    method: str = "controlled",
    additive: bool | None = None,
    zero_restricted: bool = True,
    exact: Any = None,
    weights: str | Sequence[float] | FloatArray | None = None,
    audit: str = "raise",
    time_limit: float | None = 60.0,
    gap: float = 0.0,
    seed: int = 0,
    backend: str = "highs",
    progress: Listener | None = None,
    executor: Executor | None = None,
) -> Protected:
    """Round every cell to a multiple of the base; ``tp.round`` is this function.

    Parameters
    ----------
    base
        Any positive number, or one per cell.
    method
        ``controlled``: every cell to one of the two multiples next to it, so that all relations hold and Σ|r − a| is least. ``nearest``: each cell on its own (a
        half goes up); sums no longer add up, and ``info["additivity"]`` says by how much. ``fifty``: multiples stay, every other cell goes up or down with probability ½.
        ``unbiased``: up with probability residue/base, so that the expectation is the true value. ``small``: only inner counts below the base change, to 0 or the base, and
        totals are recomputed (Langsrud and Heldal).
    additive
        Whether all relations must hold. True by default for ``controlled``, ``unbiased`` and ``small``, False for ``nearest`` and ``fifty``. The additive ``fifty`` is the
        additive table nearest to a 50/50 draw; the additive ``unbiased`` keeps every expectation (``info["unbiased"]`` says whether exactly).
    zero_restricted
        Whether multiples of the base must stay. Otherwise they may go to the multiples next to them.
    exact
        Cells that must stay as they are (mask, indices, or codes).
    weights
        Price of one unit of distance per cell: None (1), ``"inverse"`` (1/a), or an array.
    audit
        ``raise`` (default) raises `Unsafe` when the roundings together let an outsider recover a sensitive count exactly or, in a magnitude table, infer a sensitive cell
        more closely than its protection levels allow; ``report`` returns the table anyway; ``none`` leaves the check out. ``info["exposed"]`` lists the sensitive cells
        whose levels are missed, ``info["recovered"]`` those that are recovered exactly.

    Where no additive table of adjacent multiples exists (possible from three dimensions on), more multiples are allowed step by step;
    ``info["widened"]`` and ``info["jumps"]`` say how many and where.

    >>> import tabprotect as tp
    >>> res = tp.round(tp.examples.d272(), base=5)
    >>> res.status, float(res.objective), res.values[:4].tolist()
    ('optimal', 50.0, [745.0, 215.0, 465.0, 65.0])

    References: L. H. Cox and L. R. Ernst, "Controlled rounding", INFOR 20 (1982); L. H. Cox, JASA 82 (1987), for the unbiased version.
    """
    together = _asked(method, additive, audit)
    stop = Stop(time_limit, gap, progress)
    bases, kept = check_base(table, base), _cells(table, exact)
    table.check_additive()
    price = _weights(table, weights)
    if method == "small":
        grid = small_grid(table, bases, exact=kept, weights=price)
    else:
        tied = table if together else table.replace(relations=np.zeros((0, table.n_cells)), rhs=np.zeros(0))
        grid = make_grid(tied, bases, zero_restricted=zero_restricted, exact=kept, weights=price)
    with interruptible(stop):
        found = _choose(grid, method, together, kept, stop, backend=backend, gap=gap, seed=seed)
    values = grid.values(found.x)
    off = np.abs(table.relations @ values - table.rhs)
    _recheck(table, grid, found, values, off, together)
    info = _details(table, grid, found, values, off, kept, method, zero_restricted)
    if audit != "none":
        info |= _audited(table, values, info, audit, stop, executor)
    return Protected(
        table=table,
        kind="round",
        method=method,
        values=values,
        suppressed=np.zeros(table.n_cells, bool),
        status=found.status,
        objective=grid.cost(found.x),
        bound=found.bound,
        runtime=stop.seconds,
        info=info,
    )


def _asked(method: str, additive: bool | None, audit: str) -> bool:
    """Whether the relations must hold, after a look at the words."""
    if method not in METHODS:
        raise InputError(f"unknown method {method!r}: use one of {', '.join(METHODS)}")
    if audit not in ("raise", "report", "none"):
        raise InputError(f"unknown audit {audit!r}: use 'raise', 'report' or 'none'")
    together = method not in ("nearest", "fifty") if additive is None else additive
    if method in ("controlled", "small") and not together:
        raise InputError(f"method {method!r} is additive by definition; use method='nearest'")
    return together


def _choose(
    grid: Grid, method: str, additive: bool, kept: BoolArray, stop: Stop, *, backend: str, gap: float, seed: int
) -> _Outcome:
    """Flow where the cells that can move form a network, else the integer program; each random method its own way."""
    if not additive:
        floor = grid.cost(grid.nearest())
        if method == "nearest":
            return _Outcome(grid.nearest(), floor, "optimal", "every cell on its own")
        probability = np.full(grid.n, 0.5) if method == "fifty" else grid.target
        return _Outcome(
            draw(grid, probability, seed), floor, "feasible", "independent draws", unbiased=method == "unbiased"
        )
    moving = grid.low < grid.high
    network = None
    if grid.unit and moving.any() and int((grid.high - grid.low).sum()) <= MOST_STEPS:
        network = plain_network(grid.matrix, moving)
        # in a network table no cell is in many relations; looking for a network elsewhere is a waste
        if network is None and np.bincount(grid.matrix.indices, minlength=grid.n).max() <= 4:
            network = network_of(grid.matrix, moving)
    how = "integer program" if network is None else "flow"
    if method in ("controlled", "small") and network is not None:
        x, bound = nearest_by_flow(grid, network, seed=seed)
        return _Outcome(x, bound, "optimal", how)
    floor = grid.cost(grid.nearest())
    if method == "fifty":
        x, widened = fifty_additive(grid, network, stop, backend=backend, seed=seed)
        return _Outcome(x, floor, "feasible", how, widened)
    if method == "unbiased":
        x, exact, widened = unbiased_additive(grid, network, stop, backend=backend, seed=seed)
        return _Outcome(x, floor, "feasible", "cycles" if network is not None else "decomposition", widened, exact)
    if not moving.any() and grid.additive(grid.nearest()):
        return _Outcome(grid.nearest(), floor, "optimal", "nothing to round")
    answer = nearest_by_program(grid, stop, backend=backend, gap=gap, seed=seed, keep=kept)
    return _Outcome(answer.x, answer.bound, "optimal" if answer.optimal else "feasible", how, answer.widened)


def _recheck(table: Table, grid: Grid, found: _Outcome, values: FloatArray, off: FloatArray, additive: bool) -> None:
    """Plain arithmetic on what is to be published: multiples, adjacency, relations. A failure is a fault of a solver or of this package."""
    room = found.widened
    if (found.x < grid.low - room).any() or (found.x > grid.high + room).any():
        raise Unsafe(
            "a cell was rounded beyond the multiples allowed", cells=np.flatnonzero(found.x > grid.high).tolist()
        )
    if not additive:
        return
    if not grid.additive(found.x):
        raise Unsafe("the rounded table does not add up")
    size = np.abs(values).max(initial=1.0)
    if (off > 1e-9 * size * max(1, table.n_relations) ** 0.5 + 1e-9).any():
        raise Unsafe(f"the rounded table does not add up in {table.describe_relation(int(off.argmax()))}")


def _details(
    table: Table,
    grid: Grid,
    found: _Outcome,
    values: FloatArray,
    off: FloatArray,
    kept: BoolArray,
    method: str,
    zero_restricted: bool,
) -> dict[str, Any]:
    """What the result tells beside the values; nothing here is a true value of a cell."""
    change = np.abs(values - table.values)
    beyond = np.flatnonzero((found.x < grid.low) | (found.x > grid.high))
    broken = off > 1e-9 * max(1.0, float(np.abs(values).max(initial=0.0)))
    info: dict[str, Any] = {
        "base": grid.base
        if grid.base.size and grid.base.min() != grid.base.max()
        else float(grid.base[0])
        if grid.n
        else 0.0,
        "method": method,
        "zero_restricted": zero_restricted,
        "exact": kept,
        "how": found.how,
        "why": found.how,
        "changed": int((change > 0).sum()),
        "largest_change": float(change.max(initial=0.0)),
        "additivity": {"broken": int(broken.sum()), "largest": float(off.max(initial=0.0))},
        "widened": found.widened,
        "jumps": {table.label(int(i)): float(abs(found.x[i] - grid.target[i])) for i in beyond},
    }
    if found.unbiased is not None:
        info["unbiased"] = found.unbiased
    if method == "small":
        from tabprotect.linalg.totals import Totals

        totals = Totals.of(table.relations)
        info["inner"] = np.ones(table.n_cells, bool) if totals is None else totals.leaf
    return info


def _audited(
    table: Table, values: FloatArray, info: dict[str, Any], audit: str, stop: Stop, executor: Executor | None
) -> dict[str, list[int]]:
    """The attacker's verdict. Rounding protects counts by leaving several possible ones, so for them only exact recovery is an error."""
    limit = Stop(stop.time_limit, listener=stop.listener)
    exposed, recovered = exposed_cells(table, values, info, limit, executor)
    failed = recovered if table.counts else exposed
    if failed and audit == "raise":
        what = "be recovered exactly" if table.counts else "be inferred more closely than their protection levels allow"
        raise Unsafe(
            f"{len(failed):,} of {int(table.primary.sum()):,} sensitive cells can {what}, e.g. {table.label(failed[0])}: "
            "use a larger base, or audit='report' to get the table with the verdict",
            cells=failed,
        )
    return {"exposed": exposed, "recovered": recovered}


def _cells(table: Table, cells: Any) -> BoolArray:
    mask = np.zeros(table.n_cells, bool)
    if cells is not None:
        from tabprotect.sensitivity.locate import locate

        mask[locate(table, cells)] = True
    return mask


def _weights(table: Table, weights: Any) -> FloatArray | None:
    if weights is None:
        return None
    if isinstance(weights, str):
        if weights == "inverse":
            return 1.0 / np.where(table.values == 0, 1.0, np.abs(table.values))
        raise InputError(f"unknown weights {weights!r}: use None, 'inverse' or one per cell")
    array = np.asarray(weights, float)
    if array.shape != (table.n_cells,) or not np.isfinite(array).all() or (array <= 0).any():
        raise InputError("weights must be one positive number per cell")
    return array
