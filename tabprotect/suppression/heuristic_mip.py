"""Neighbourhood search by small exact models: the cells some needs share are chosen anew, all other hidden cells stay.

The model is the compact one of the literature (a movement for every need, |y_j| ≤ cap_j z_j) over few needs and few cells, with the cuts
found so far on top; it is what makes a neighbourhood of several needs at once searchable.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.solve.stop import Stop
from tabprotect.solve.work import INTEGER, run, worked
from tabprotect.suppression.cuts import Cut, row_arrays
from tabprotect.suppression.heuristic_local import reroute
from tabprotect.suppression.heuristic_state import Witnessed
from tabprotect.suppression.moves import BOTH, SHORT, Move, Router, clean, measured
from tabprotect.types import BoolArray, FloatArray, IntArray

REACH = 3.0
"""Cells that are chosen anew are moved by at most so many levels: small factors make the model tight."""
ENOUGH, MOST = 0.25, 1.0
"""Work on one neighbourhood from which on the next is smaller, and after which it is given up."""
NODES = 200
"""Nodes of one integer program."""


class Neighbourhood:
    """Secondaries to choose anew, the needs that cannot do without them, and further cells that may be hidden instead."""

    def __init__(self, state: Witnessed, needs: list[int], own: IntArray, choice: IntArray) -> None:
        self.state, self.needs, self.own = state, needs, own
        kept = state.hidden
        kept[own] = False
        self.kept: BoolArray = kept
        self.choice = np.union1d(own, choice[~kept[choice]])
        self.before = float(state.price[own].sum())

    def solve(self, cuts: list[Cut], time_limit: float) -> list[Move] | None:
        """Cheaper moves for the needs, or None."""
        model = _Model(self)
        model.add_cuts(cuts)
        return model.run(time_limit)


class _Model:
    """z of the choice, then for each need one y for each kept or choosable cell."""

    def __init__(self, hood: Neighbourhood) -> None:
        self.hood = hood
        problem = hood.state.problem
        self.cells = np.union1d(np.flatnonzero(hood.kept), hood.choice)
        self.at = np.full(problem.n, -1)
        self.at[hood.choice] = np.arange(len(hood.choice))
        part = sp.csr_array(sp.csc_array(problem.matrix)[:, self.cells])
        self.part = part[np.flatnonzero(np.diff(part.indptr)), :]
        self.extra: list[tuple[IntArray, FloatArray, float]] = []

    def add_cuts(self, cuts: list[Cut]) -> None:
        """Cuts as they read when kept cells are hidden and cells outside the model are not."""
        kept = self.hood.kept
        for cut in cuts:
            cells, c, rhs = row_arrays(cut)
            rhs -= float(c[kept[cells]].sum())
            if rhs <= 1e-9 and cut.head < 0:
                continue
            here = self.at[cells] >= 0
            if cut.head >= 0 and (not here.any() or self.at[cut.head] < 0 or rhs < -1e-9):
                continue
            if here.any():
                self.extra.append((self.at[cells[here]], c[here], rhs))

    def _rows(self) -> tuple[Any, FloatArray, FloatArray, FloatArray, FloatArray]:
        hood, problem = self.hood, self.hood.state.problem
        q, k, m = len(hood.choice), len(self.cells), self.part.shape[0]
        chosen = np.flatnonzero(self.at[self.cells] >= 0)
        lower, upper = [np.zeros(q)], [np.ones(q)]
        blocks: list[list[Any]] = []
        for b, i in enumerate(hood.needs):
            need = hood.state.needs[i]
            both = need.sense == BOTH
            up = measured((problem.room if both else problem.up)[self.cells], need.level)
            down = measured((problem.room if both else problem.down)[self.cells], need.level)
            up[chosen], down[chosen] = np.minimum(up[chosen], REACH), np.minimum(down[chosen], REACH)
            low, high = -down, up.copy()
            p = int(np.flatnonzero(self.cells == need.cell)[0])
            low[p] = high[p] = (1.0 - SHORT) * (-1.0 if need.sense == -1 else 1.0)
            lower.append(low)
            upper.append(high)
            pick = sp.csr_array((np.ones(len(chosen)), (np.arange(len(chosen)), chosen)), shape=(len(chosen), k))
            caps_up = sp.csr_array(
                (up[chosen], (np.arange(len(chosen)), self.at[self.cells[chosen]])), shape=(len(chosen), q)
            )
            caps_down = sp.csr_array(
                (down[chosen], (np.arange(len(chosen)), self.at[self.cells[chosen]])), shape=(len(chosen), q)
            )
            empty: list[Any] = [None] * len(hood.needs)
            for head, body in ((sp.csr_array((m, q)), self.part), (caps_up, -pick), (caps_down, pick)):
                line = [head, *empty]
                line[1 + b] = body
                blocks.append(line)
        matrix = sp.csr_array(sp.block_array(blocks))
        row_low = np.zeros(matrix.shape[0])
        row_high = np.concatenate([np.concatenate([np.zeros(m), np.full(2 * len(chosen), np.inf)]) for _ in hood.needs])
        return matrix, row_low, row_high, np.concatenate(lower), np.concatenate(upper)

    def run(self, time_limit: float) -> list[Move] | None:
        import highspy

        hood, problem = self.hood, self.hood.state.problem
        matrix, row_low, row_high, lower, upper = self._rows()
        q = len(hood.choice)
        n = matrix.shape[1]
        extra = sp.csr_array(
            (
                np.concatenate([c for _, c, _ in self.extra]) if self.extra else np.zeros(0),
                np.concatenate([a for a, _, _ in self.extra]) if self.extra else np.zeros(0, np.int64),
                np.concatenate([[0], np.cumsum([len(a) for a, _, _ in self.extra])]),
            ),
            shape=(len(self.extra), n),
        )
        price = hood.state.price[hood.choice]
        budget = sp.csr_array((price, np.arange(q), [0, q]), shape=(1, n))
        step = 0.999 if problem.origin.integer_weights else 1e-6 * hood.before
        full = sp.csc_array(sp.vstack([matrix, extra, budget]))
        h = highspy.Highs()
        for name, value in {"output_flag": False, "threads": 1, "random_seed": 0, "mip_heuristic_effort": 0.2}.items():
            h.setOptionValue(name, value)
        h.setOptionValue("time_limit", float(time_limit))
        h.setOptionValue("mip_max_nodes", NODES)
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = n, full.shape[0]
        model.col_cost_ = np.concatenate([price, np.zeros(n - q)])
        model.col_lower_, model.col_upper_ = lower, upper
        model.row_lower_ = np.concatenate([row_low, [r for _, _, r in self.extra], [-np.inf]])
        model.row_upper_ = np.concatenate([row_high, np.full(len(self.extra), np.inf), [hood.before]])
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_ = full.indptr.astype(np.int32)
        model.a_matrix_.index_ = full.indices.astype(np.int32)
        model.a_matrix_.value_ = full.data
        kind = highspy.HighsVarType
        model.integrality_ = [kind.kInteger] * q + [kind.kContinuous] * (n - q)
        h.passModel(model)
        index = np.arange(q, dtype=np.int32)
        h.setSolution(q, index, np.isin(hood.choice, hood.own).astype(float))
        run(h, INTEGER)
        info = h.getInfo()
        if info.primal_solution_status != 2 or info.objective_function_value > hood.before - step:
            return None
        return self._moves(np.array(h.getSolution().col_value))

    def _moves(self, x: FloatArray) -> list[Move] | None:
        hood, problem = self.hood, self.hood.state.problem
        q, k = len(hood.choice), len(self.cells)
        off = np.zeros(problem.n, bool)
        off[hood.choice[x[:q] < 0.5]] = True
        moves = []
        for b, i in enumerate(hood.needs):
            need = hood.state.needs[i]
            y = np.zeros(problem.n)
            y[self.cells] = x[q + b * k : q + (b + 1) * k] * need.level
            y[off] = 0.0
            move = clean(problem, y, both=need.sense == BOTH, scale=need.level)
            if move is None or abs(move.at(need.cell)) < need.level * (1 - 1e-7):
                return None
            moves.append(move)
        return moves


def region(state: Witnessed, size: int, rng: np.random.Generator) -> IntArray:
    """A secondary at random, dear ones more often, and those nearest to it in the table."""
    cells = state.secondaries
    p = np.sqrt(state.price[cells])
    mark = np.zeros(state.problem.n)
    mark[int(rng.choice(cells, p=p / p.sum()))] = 1.0
    lines = abs(state.problem.lines)
    for _ in range(3):
        spread = lines.T @ (lines @ mark / np.diff(state.problem.lines.indptr))
        mark = mark + spread / max(float(spread.max()), 1e-12)
        mark[~state.hidden] *= 0.3
    score = mark[cells] * rng.uniform(0.7, 1.3, len(cells))
    return cells[np.argsort(-score, kind="stable")[:size]]


def dependents(state: Witnessed, own: IntArray, router: Router, stop: Stop) -> tuple[list[int], dict[int, Move]]:
    """Needs that have no witness without these cells, and new witnesses for the others that used them."""
    barred = ~state.hidden
    barred[own] = True
    cost = 1e-3 + state.price / max(1.0, float(state.price.max()))
    failing, others = [], {}
    for i in state.users(own):
        move = None if stop.done else router.route(state.needs[i], cost, barred=barred, time_limit=min(1.0, stop.left))
        if move is None:
            failing.append(i)
        else:
            others[i] = move
    return failing, others


class Search:
    """Iterated neighbourhood search: descend, and when nothing helps any more, disturb the best pattern and descend again.

    ``guide`` is a point of the linear relaxation, ``closed`` cells are never hidden anew. ``state`` is always the best pattern so far.
    """

    def __init__(
        self,
        state: Witnessed,
        guide: FloatArray,
        stop: Stop,
        seed: int,
        *,
        closed: BoolArray | None = None,
    ) -> None:
        self.state, self.now = state, state.copy()
        self.guide = guide if closed is None else np.where(closed, -1.0, guide)
        self.stop = stop
        self.rng = np.random.default_rng(seed)
        self.router = Router(state.problem)
        self.size, self.quiet, self.kicked = 6.0, 0, 0

    def once(self, cuts: list[Cut]) -> bool:
        """One neighbourhood; whether the best pattern became cheaper."""
        if self.quiet >= 12:
            self.disturb()
        before, start = self.now.cost, worked()
        own = region(self.now, round(self.size), self.rng)
        if len(own):
            step(self.now, own, cuts, self.guide, self.router, self.stop, self.rng)
        took = worked() - start
        self.size = float(np.clip(self.size * (0.8 if took > ENOUGH else 1.05), 2.0, 60.0))
        self.quiet = 0 if self.now.cost < before - 1e-9 * abs(before) else self.quiet + 1
        if self.now.cost >= self.state.cost - 1e-9 * abs(self.state.cost):
            return False
        self.state.adopt(self.now)
        return True

    def disturb(self) -> None:
        """Start again from the best pattern with some cells barred for the needs that hang on them."""
        self.now, self.quiet = self.state.copy(), 0
        self.kicked += 1
        own = region(self.now, int(self.rng.integers(3, 9)), self.rng)
        failing, found = dependents(self.now, own, self.router, self.stop)
        for i, move in found.items():
            self.now.put(i, move)
        barred = np.zeros(self.now.problem.n, bool)
        barred[own[: max(1, len(own) // 2)]] = True
        barred |= self.guide < 0
        barred &= ~self.state.problem.free
        old = {i: self.now.moves[i] for i in failing}
        for i in failing:
            self.now.put(i, None)
        for i in failing:
            hidden = self.now.hidden
            limit = min(1.0, self.stop.left)
            route = reroute(
                self.now, self.router, self.now.needs[i], hidden, self.rng, noise=0.4, barred=barred, limit=limit
            )
            self.now.put(i, route if route is not None else old[i])

    def run(self, cuts: list[Cut], *, bound: float = 0.0, patience: int = 200) -> None:
        """Until the stop, the bound, or ``patience`` neighbourhoods without gain."""
        idle = 0
        while not self.stop.done and idle < patience and len(self.state.secondaries):
            if self.stop.enough(self.state.cost, bound):
                return
            if self.once(cuts):
                idle = 0
                self.stop.tell("neighbourhood search", cost=self.state.cost, bound=bound)
            else:
                idle += 1


def useful(cuts: list[Cut], longest: int = 25) -> list[Cut]:
    """Short cuts: long ones slow the small models down more than they tighten them."""
    return [c for c in cuts if len(c.cells) <= longest]


def step(
    state: Witnessed,
    own: IntArray,
    cuts: list[Cut],
    guide: FloatArray,
    router: Router,
    stop: Stop,
    rng: np.random.Generator,
) -> None:
    """One neighbourhood: keep its answer if it is cheaper.

    The model starts with few of the needs that fail and takes in those its answer leaves unprotected: mostly they all hang on
    the same cells, and a model without an answer cheaper than before settles the neighbourhood early.
    """
    failing, found = dependents(state, own, router, stop)
    choice = choices(state, guide, failing, own, rng, 50)
    most = worked() + MOST
    active: list[int] = list(rng.permutation(failing)[:3]) if failing else []
    cost = 1e-3 + state.price / max(1.0, float(state.price.max()))
    while not stop.done:
        new: dict[int, Move] = {}
        if active:
            if worked() >= most:
                return
            moves = Neighbourhood(state, active, own, choice).solve(cuts, stop.left)
            if moves is None:
                return
            new = dict(zip(active, moves, strict=True))
        barred = ~state.hidden
        barred[own] = True
        for move in new.values():
            barred[move.cells] = False
        missing: list[int] = []
        for i in failing:
            if i in new or len(missing) >= 3:
                continue
            route = router.route(state.needs[i], cost, barred=barred, time_limit=min(1.0, stop.left))
            if route is None:
                missing.append(i)
            else:
                new[i] = route
        if not missing:
            for i, move in {**found, **new}.items():
                state.put(int(i), move)
            return
        active += missing


def choices(
    state: Witnessed, guide: FloatArray, needs: list[int], own: IntArray, rng: np.random.Generator, count: int
) -> IntArray:
    """Cells to consider: where the linear relaxation is positive, and cheap ones in the relations of the needs and their moves."""
    problem = state.problem
    near: FloatArray = np.zeros(problem.n)
    for i in needs:
        near[state.needs[i].cell] = 1.0
    near[own] = 1.0
    touched = (abs(problem.lines) @ near > 0).astype(float)
    beside = abs(problem.lines).T @ touched
    score = (beside + 3.0 * np.clip(guide, 0.0, 0.5)) / (
        1.0 + problem.weights / max(1.0, float(np.median(problem.weights)))
    )
    score = score * rng.uniform(0.5, 1.5, problem.n)
    score[state.hidden | (guide < 0)] = -1.0
    best = np.argsort(-score, kind="stable")[:count].astype(np.int64)
    return best[score[best] >= 0]
