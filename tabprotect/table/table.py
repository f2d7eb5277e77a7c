"""The table: cells, and the sparse relations among them."""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from tabprotect.errors import InputError
from tabprotect.table.contributions import Contributions
from tabprotect.table.hierarchy import Dimension
from tabprotect.types import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

SAFE, UNSAFE, PROTECTED, SECONDARY = "s", "u", "z", "m"
"""Cell status, in the letters of the JJ format: safe, primary unsafe, may not be suppressed, already secondary."""


class Rule(Protocol):
    """Anything with ``assess``: a sensitivity rule (see ``tabprotect.sensitivity``)."""

    def assess(self, table: Table) -> Marks: ...


@dataclass(frozen=True)
class Apriori:
    """What is decided of single cells beforehand, whatever the rules say; empty text or NaN where nothing is.

    ``status`` is s (safe), u (unsafe) or z (must be published); ``cost``, ``lpl`` and ``upl`` replace those of the table and of the rules.
    """

    status: npt.NDArray[np.str_]
    cost: FloatArray
    lpl: FloatArray
    upl: FloatArray


@dataclass(frozen=True)
class Marks:
    """What a rule says of every cell: sensitive or not, the protection levels needed, and why."""

    primary: BoolArray
    lpl: FloatArray
    upl: FloatArray
    spl: FloatArray
    reason: npt.NDArray[np.str_]
    apriori: Apriori | None = None


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """A table as a constraint graph: cell values ``a`` with ``relations @ a = rhs`` and ``lb ≤ a ≤ ub``.

    Cells may be addressed by the codes of any number of dimensions, or have none (arbitrary relations, as in a JJ file). ``lb`` and
    ``ub`` are what an outsider knows of a cell beforehand; ``lpl``, ``upl`` and ``spl`` how far the outsider's interval of a primary cell must
    reach below and above its value, and how wide it must be. ``cost`` is the price of suppressing a cell, NaN where none was given (then
    its value is the price). ``counts`` says that all values are counts; in a mixed table ``count_cells`` says it cell by cell (None: all
    alike). Tables are immutable: every verb returns a new one.

    >>> import numpy as np
    >>> t = Table.from_relations([3.0, 1.0, 2.0], [[-1, 1, 1]])
    >>> t
    <Table: 3 cells, 1 relation, 0 primary>
    """

    values: FloatArray
    relations: Any
    rhs: FloatArray = field(default_factory=lambda: np.zeros(0))
    freq: IntArray | None = None
    cost: FloatArray = field(default_factory=lambda: np.zeros(0))
    status: npt.NDArray[np.str_] = field(default_factory=lambda: np.zeros(0, "U1"))
    lb: FloatArray = field(default_factory=lambda: np.zeros(0))
    ub: FloatArray = field(default_factory=lambda: np.zeros(0))
    lpl: FloatArray = field(default_factory=lambda: np.zeros(0))
    upl: FloatArray = field(default_factory=lambda: np.zeros(0))
    spl: FloatArray = field(default_factory=lambda: np.zeros(0))
    reason: npt.NDArray[np.str_] = field(default_factory=lambda: np.zeros(0, "U1"))
    dims: tuple[Dimension, ...] = ()
    codes: npt.NDArray[np.int32] = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    counts: bool = False
    contributions: Contributions | None = None
    name: str = ""
    count_cells: BoolArray | None = None

    def __post_init__(self) -> None:
        n = len(self.values)
        fill: dict[str, Any] = {
            "values": np.asarray(self.values, float),
            "relations": sp.csr_array(self.relations),
            "rhs": np.zeros(self.relations.shape[0]) if len(self.rhs) == 0 else np.asarray(self.rhs, float),
            "cost": np.full(n, np.nan) if len(self.cost) == 0 else np.asarray(self.cost, float),
            "status": np.full(n, SAFE, "U1") if len(self.status) == 0 else np.asarray(self.status, "U1"),
            "lb": _default_lb(self.values) if len(self.lb) == 0 else np.asarray(self.lb, float),
            "ub": np.full(n, np.inf) if len(self.ub) == 0 else np.asarray(self.ub, float),
            "codes": np.zeros((n, 0), np.int32) if len(self.codes) == 0 else np.asarray(self.codes, np.int32),
            "reason": np.zeros(n, "U1") if len(self.reason) == 0 else np.asarray(self.reason, str),
        }
        for level in ("lpl", "upl", "spl"):
            given = getattr(self, level)
            fill[level] = np.zeros(n) if len(given) == 0 else np.asarray(given, float)
        if self.freq is not None:
            fill["freq"] = np.asarray(self.freq, np.int64)
        if self.count_cells is not None:
            fill["count_cells"] = np.asarray(self.count_cells, bool)
        for name, array in fill.items():
            if name == "relations":
                if array.shape[1] != n:
                    raise InputError(f"relations have {array.shape[1]} columns for {n} cells")
            elif name == "rhs":
                if len(array) != fill["relations"].shape[0]:
                    raise InputError(f"rhs has {len(array)} entries for {fill['relations'].shape[0]} relations")
            elif len(array) != n:
                raise InputError(f"{name} has {len(array)} entries for {n} cells")
            if isinstance(array, np.ndarray):
                array = array.view()
                array.flags.writeable = False
            object.__setattr__(self, name, array)
        for name in ("values", "lb", "ub", "lpl", "upl", "spl"):
            if np.isnan(fill[name]).any():
                raise InputError(f"{name} of cell {self.label(int(np.isnan(fill[name]).argmax()))} is not a number")
        if not np.isfinite(fill["values"]).all():
            raise InputError(f"value of cell {self.label(int((~np.isfinite(fill['values'])).argmax()))} is infinite")

    # -- constructors -------------------------------------------------------------------------------------------------------
    @classmethod
    def from_relations(cls, values: Any, relations: Any, *, check: bool = True, **columns: Any) -> Table:
        """A table without dimensions: values, a matrix with one row per relation (dense or sparse), and any other columns."""
        matrix = (
            sp.csr_array(np.atleast_2d(np.asarray(relations, float)))
            if not sp.issparse(relations)
            else sp.csr_array(relations)
        )
        table = cls(np.asarray(values, float), matrix, **columns)
        if check:
            table.check_additive()
        return table

    @classmethod
    def from_frame(cls, cells: Any, by: Any, value: Any = None, freq: str | None = None, **options: Any) -> Table:
        """A table from a frame of cells: inner cells only (margins are computed) or with its totals.

        See `tabprotect.table.build.from_frame` for the options.
        """
        from tabprotect.table.build import from_frame

        return from_frame(cells, by, value, freq, **options)

    # -- size and structure -------------------------------------------------------------------------------------------------
    @property
    def n_cells(self) -> int:
        return len(self.values)

    @property
    def n_relations(self) -> int:
        return int(self.relations.shape[0])

    @property
    def primary(self) -> BoolArray:
        """Which cells are sensitive."""
        return self.status == UNSAFE

    def suppressible(self, zeros: bool = False) -> BoolArray:
        """Which cells may be hidden as complements: not protected, and not zero unless ``zeros`` allows it."""
        free = (self.status == SAFE) | (self.status == SECONDARY)
        return free if zeros else free & (self.values != 0)

    def weights(self, objective: str | Sequence[float] | FloatArray = "value") -> FloatArray:
        """Price of hiding each cell: ``value`` (own cost where given, else the size of the value), ``count`` (1), ``frequency``, or an array."""
        if not isinstance(objective, str):
            w = np.asarray(objective, float)
            if w.shape != self.values.shape:
                raise InputError(f"one cost per cell is needed: got {w.size} for {self.n_cells} cells")
        elif objective in ("value", "cost"):
            w = np.where(np.isnan(self.cost), np.abs(self.values), self.cost)
        elif objective == "count":
            w = np.ones(self.n_cells)
        elif objective == "frequency":
            if self.freq is None and not self.counts:
                raise InputError("objective 'frequency' needs the number of contributors of each cell (freq)")
            w = np.abs(self.values) if self.freq is None else self.freq.astype(float)
        else:
            raise InputError(f"unknown objective {objective!r}: use 'value', 'count', 'frequency' or one cost per cell")
        if not (np.isfinite(w).all() and (w >= 0).all()):
            raise InputError("costs must be finite and not negative")
        return w

    @cached_property
    def decimals(self) -> int:
        """Number of decimals of the values, at most 9: the unit of the table is ``10**-decimals``."""
        for d in range(9):
            scaled = self.values * 10.0**d
            if np.all(np.abs(scaled - np.rint(scaled)) <= 1e-9 * np.maximum(1.0, np.abs(scaled))):
                return d
        return 9

    def needed_levels(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """LPL, UPL, SPL that a published table must honour, zero for cells that are not primary.

        A primary cell without any level must at least not be recovered exactly: its interval has to be one unit wide.
        """
        p = self.primary
        # twelve digits: 0.1 × 3 asks for 0.3, not for 0.30000000000000004
        lpl, upl, spl = (np.where(p, _twelve_digits(level), 0.0) for level in (self.lpl, self.upl, self.spl))
        bare = p & (lpl == 0) & (upl == 0) & (spl == 0)
        return lpl, upl, np.where(bare, 10.0**-self.decimals, spl)

    @cached_property
    def cells(self) -> pd.DataFrame:
        """All cells as a frame: codes, value, freq, cost, status, bounds, levels and reason."""
        import pandas as pd

        columns: dict[str, Any] = {}
        for k, dim in enumerate(self.dims):
            columns[dim.name] = pd.Categorical.from_codes(self.codes[:, k], categories=list(dim.codes))
        columns["value"] = self.values
        if self.freq is not None:
            columns["freq"] = self.freq
        for name in ("cost", "status", "lb", "ub", "lpl", "upl", "spl", "reason"):
            columns[name] = getattr(self, name)
        return pd.DataFrame(columns)

    def label(self, i: int) -> str:
        """How to name cell ``i`` to a person."""
        if not self.dims or len(self.codes) == 0:
            return f"#{i}"
        return ", ".join(f"{d.name}={d.codes[c]}" for d, c in zip(self.dims, self.codes[i], strict=True))

    def cell(self, **codes: str) -> int:
        """Index of the cell with the given code in every dimension."""
        return int(self.find(**codes)[0])

    def find(self, **codes: str | Iterable[str]) -> IntArray:
        """Indices of the cells with the given code (or one of several codes) in the named dimensions."""
        names = [d.name for d in self.dims]
        mask = np.ones(self.n_cells, bool)
        for name, wanted in codes.items():
            if name not in names:
                raise InputError(f"no dimension {name!r}; the table has {', '.join(names) or 'none'}")
            k = names.index(name)
            position = self.dims[k].hierarchy.position
            chosen = [wanted] if isinstance(wanted, str) else list(wanted)
            for code in chosen:
                if code not in position:
                    raise InputError(f"no code {code!r} in dimension {name!r}")
            mask &= np.isin(self.codes[:, k], [position[c] for c in chosen])
        found = np.flatnonzero(mask)
        if len(found) == 0:
            raise InputError(f"no cell with {codes}")
        return found

    def graph(self) -> nx.MultiGraph:
        """The constraint graph as networkx: cell nodes, relation nodes, an edge per coefficient."""
        from tabprotect.table.graph import to_networkx

        return to_networkx(self)

    # -- additivity ---------------------------------------------------------------------------------------------------------
    def residuals(self) -> FloatArray:
        """relations @ values − rhs."""
        return self.relations @ self.values - self.rhs

    def check_additive(self, rtol: float = 1e-9) -> None:
        """Raise InputError with the worst relations if the table does not add up."""
        difference = np.abs(self.residuals())
        scale = np.abs(self.relations) @ np.abs(self.values) + np.abs(self.rhs)
        wrong = np.flatnonzero(difference > rtol * np.maximum(scale, 1e-300))
        if len(wrong) == 0:
            return
        worst = wrong[np.argsort(-difference[wrong], kind="stable")][:5]
        lines = [f"{self.describe_relation(int(r))}: off by {self.residuals()[r]:g}" for r in worst]
        raise InputError(
            f"the table does not add up in {len(wrong)} of {self.n_relations} relations; the worst:\n  "
            + "\n  ".join(lines)
        )

    def describe_relation(self, r: int) -> str:
        """How to name relation ``r`` to a person: its total and the number of its parts."""
        row = self.relations[[r], :].tocoo()
        columns = row.coords[1]
        order = np.argsort(row.data, kind="stable")
        first = self.label(int(columns[order[0]])) if len(columns) else "(empty)"
        return f"relation {r}: {first} = sum of {len(columns) - 1} parts"

    # -- verbs --------------------------------------------------------------------------------------------------------------
    def replace(self, **changes: Any) -> Table:
        """A copy with some columns replaced."""
        unknown = set(changes) - {f.name for f in fields(self)}
        if unknown:
            raise InputError(f"a table has no column {', '.join(sorted(unknown))}")
        return replace(self, **changes)

    def mark(self, rule: Rule, *, keep: bool = True) -> Table:
        """Mark the sensitive cells by a rule, with the protection levels and reasons that follow from it.

        Cells already primary stay so when ``keep`` (with the larger of the levels). A-priori information of the rule has the last word. A cell that is
        sensitive and not empty but must be published (status 'z') is a contradiction that only a person can solve: an InputError.
        """
        marks = rule.assess(self)
        old = self.primary if keep else np.zeros(self.n_cells, bool)
        now = marks.primary | old
        status = np.where(self.status == UNSAFE, SAFE, self.status)
        levels = {
            name: np.where(
                marks.primary,
                np.maximum(getattr(marks, name), np.where(old, getattr(self, name), 0)),
                np.where(old, getattr(self, name), 0),
            )
            for name in ("lpl", "upl", "spl")
        }
        changes: dict[str, FloatArray] = {}
        if (known := marks.apriori) is not None:
            now &= known.status != SAFE
            said = (known.status != "") & ~(
                (known.status == SAFE) & (status == PROTECTED)
            )  # safe may still be protected
            status = np.where(said, np.where(known.status == UNSAFE, SAFE, known.status), status)
            changes["cost"] = np.where(np.isnan(known.cost), self.cost, known.cost)
            for name in ("lpl", "upl"):
                own = getattr(known, name)
                levels[name] = np.where(np.isnan(own), levels[name], own)
        self._check_publishable(now & (status == PROTECTED) & (self.values != 0))
        changes |= {name: np.where(now, level, 0.0) for name, level in levels.items()}
        reason = _merge_reasons(self.reason, now & old, marks.reason, now & marks.primary)
        status = np.where(now, UNSAFE, status).astype("U1")
        return self.replace(status=status, reason=reason, **changes)

    def _check_publishable(self, wrong: BoolArray) -> None:
        """Raise for cells that are sensitive and must be published."""
        if not wrong.any():
            return
        names = "; ".join(self.label(int(i)) for i in np.flatnonzero(wrong)[:5])
        raise InputError(
            f"{int(wrong.sum())} cells are sensitive but may not be suppressed (status 'z'): {names}. "
            "Declare them safe, e.g. rule | Manual(safe=cells), or let them be suppressed"
        )

    def with_status(self, cells: Any, status: str, reason: str = "") -> Table:
        """Set the status of some cells (indices or mask): 's' safe, 'u' unsafe, 'z' may not be suppressed, 'm' secondary."""
        if status not in (SAFE, UNSAFE, PROTECTED, SECONDARY):
            raise InputError(f"unknown status {status!r}: use s, u, z or m")
        new, why = self.status.copy(), self.reason.astype(object)
        new[cells], why[cells] = status, reason
        return self.replace(status=new, reason=why.astype(str))

    def protect(self, cells: Any) -> Table:
        """These cells (indices or mask) must be published."""
        return self.with_status(cells, PROTECTED, "protected")

    def with_bounds(self, lb: Any = None, ub: Any = None, share: float | None = None) -> Table:
        """What outsiders know beforehand: absolute bounds, or ± a share of each value."""
        if share is not None:
            room = share * np.abs(self.values)
            return self.replace(lb=self.values - room, ub=self.values + room)
        low = self.lb if lb is None else np.broadcast_to(np.asarray(lb, float), self.values.shape)
        high = self.ub if ub is None else np.broadcast_to(np.asarray(ub, float), self.values.shape)
        return self.replace(lb=low.copy(), ub=high.copy())

    def with_levels(self, cells: Any, lpl: Any = None, upl: Any = None, spl: Any = None) -> Table:
        """Set protection levels of some cells (indices or mask)."""
        changes: dict[str, FloatArray] = {}
        given: Mapping[str, Any] = {"lpl": lpl, "upl": upl, "spl": spl}
        for name, level in given.items():
            if level is not None:
                array = getattr(self, name).copy()
                array[cells] = level
                if (array < 0).any():
                    raise InputError(f"{name} must not be negative")
                changes[name] = array
        return self.replace(**changes)

    def with_cost(self, cells: Any, cost: Any) -> Table:
        """Set the suppression cost of some cells (indices or mask)."""
        array = self.cost.copy()
        array[cells] = cost
        return self.replace(cost=array)

    # -- looks --------------------------------------------------------------------------------------------------------------
    def _repr_html_(self) -> str:
        from tabprotect.report.html import table_fragment

        return table_fragment(self)

    def __repr__(self) -> str:
        n, m = self.n_cells, self.n_relations
        dims = "".join(f" {d.name}({len(d)})" for d in self.dims)
        return (
            f"<Table{':' + dims + ',' if dims else ':'} {n:,} cell{'s' * (n != 1)}, {m:,} relation{'s' * (m != 1)}, "
            f"{int(self.primary.sum()):,} primary>"
        )


def _twelve_digits(x: FloatArray) -> FloatArray:
    """Numbers cut to twelve significant digits, unless the nearest such number is as near as rounding errors are."""
    whole = x == np.rint(x)
    if whole.all():
        return x
    context = decimal.Context(prec=12, rounding=decimal.ROUND_DOWN)

    def cut(v: float) -> float:
        nearest = float(f"{v:.12g}")
        return nearest if nearest <= v or nearest - v < 1e-15 * abs(v) else float(context.create_decimal(repr(v)))

    return np.array([v if w else cut(v) for v, w in zip(x.tolist(), whole, strict=True)])


def _default_lb(values: FloatArray) -> FloatArray:
    """Zero where the table has no negative value (everybody knows that), else no bound."""
    v = np.asarray(values, float)
    return np.zeros(len(v)) if not (v < 0).any() else np.full(len(v), -np.inf)


def _merge_reasons(old: Any, had: BoolArray, new: Any, has: BoolArray) -> npt.NDArray[np.str_]:
    """Old and new reasons of the cells that have them, the new one only where the old does not contain it already."""
    if not had.any():
        return new if has.all() or not (new[~has] != "").any() else np.where(has, new, "")
    first, both = np.flatnonzero(has & ~had), np.flatnonzero(had & has)
    joined = np.where(old[both] == "", new[both], np.char.add(np.char.add(old[both], "; "), new[both]))
    joined = np.where(np.char.find(old[both], new[both]) < 0, joined, old[both])
    merged = np.zeros(len(old), f"U{max(1, *(a.dtype.itemsize // 4 for a in (old, new, joined)))}")
    kept = np.flatnonzero(had)
    merged[kept], merged[first], merged[both] = old[kept], new[first], joined
    return merged
