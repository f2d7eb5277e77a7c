"""The tree in SCIP: one branch-and-cut with a constraint handler that asks the outsider's programs for cuts (extra ``scip``)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from tabprotect.errors import SolverUnavailable
from tabprotect.solve.stop import Stop
from tabprotect.suppression.cuts import Cut, line_bridges, row_arrays
from tabprotect.suppression.exact_root import Root
from tabprotect.suppression.exact_tree import Between, Grown, Watch
from tabprotect.suppression.preprocess import Reduced
from tabprotect.suppression.separation import WHOLE
from tabprotect.types import BoolArray, FloatArray

KNOWN = 30
"""Known cuts that are added at a time."""


def available() -> bool:
    """Whether PySCIPOpt can be imported."""
    from importlib.util import find_spec

    return find_spec("pyscipopt") is not None


def suits(problem: Reduced) -> bool:
    """Whether SCIP is there and its tree is the faster one: not on plain cubes, whose cells are in equally many relations.

    ``python -m benchmarks.trees`` compares the two from the same root and pattern.
    """
    origin = problem.origin
    relations = np.diff(origin.columns.indptr)[origin.fixed | origin.candidates]
    return available() and len(np.unique(relations)) > 1


def grow(
    root: Root,
    hidden: BoolArray,
    stop: Stop,
    seed: int,
    between: Between,
    *,
    most: int | None = None,
    watch: Watch | None = None,
) -> Grown:
    """Branch over the cells that the root could not fix, in ``most`` nodes."""
    tree = Tree(root, hidden, stop, seed, between, watch)
    if most is not None:
        tree.model.setParam("limits/nodes", most)
    bound, finished, found = tree.run()
    return Grown(bound, finished, found, int(tree.model.getNNodes()))


class Tree:
    """The model in SCIP, the best pattern, and the callbacks between them.

    ``between`` is called after each node and may return a cheaper pattern, ``watch`` is told the relaxation's points.
    """

    def __init__(
        self, root: Root, hidden: BoolArray, stop: Stop, seed: int, between: Between, watch: Watch | None = None
    ) -> None:
        try:
            pyscipopt: Any = import_module("pyscipopt")
        except ImportError as error:
            raise SolverUnavailable(
                "the tree search in SCIP needs PySCIPOpt: pip install 'tabprotect[scip]'"
            ) from error
        self.kind = pyscipopt
        self.root, self.hidden, self.stop, self.between, self.watch = root, hidden, stop, between, watch
        self.problem = root.problem
        self.turn = 0
        self.model = pyscipopt.Model("suppression")
        self._parameters(seed)
        self.vars: dict[int, Any] = {}
        self._build()

    def _parameters(self, seed: int) -> None:
        m = self.model
        m.hideOutput()
        m.setParam("limits/time", min(1e9, self.stop.left))
        m.setParam("limits/gap", self.stop.gap)
        m.setParam("misc/catchctrlc", False)
        m.setParam("randomization/randomseedshift", seed % 2**31)
        m.setParam("misc/usesymmetry", 0)  # the rows known so far may be symmetric where the problem is not
        m.setParam("misc/allowstrongdualreds", False)
        m.setParam("misc/allowweakdualreds", False)
        m.setParam("presolving/maxrounds", 0)
        m.setParam("separating/maxroundsroot", 30)
        m.setParam("separating/maxrounds", 2)  # nodes are worth more than a few more cuts in each
        m.setParam(
            "nodeselection/bfs/stdpriority", 1_000_000
        )  # patterns come from elsewhere: the tree is for the bound
        m.setParam("branching/relpscost/initcand", 20)
        m.setParam("separating/gomory/freq", 0)  # at the root only
        m.setParam("separating/aggregation/freq", -1)
        m.setHeuristics(self.kind.SCIP_PARAMSETTING.OFF)

    def _build(self) -> None:
        m, problem, master = self.model, self.problem, self.root.master
        for j in master.columns:
            j = int(j)
            if master.fixed_out[j]:
                continue
            self.vars[j] = m.addVar(
                f"z{j}", vtype="B", obj=float(problem.weights[j]), lb=1.0 if master.fixed_in[j] else 0.0
            )
        m.addObjoffset(problem.base)
        for cut in master.active():
            cells, c, rhs = row_arrays(cut)
            terms = [(self.vars[int(j)], float(v)) for j, v in zip(cells, c, strict=True) if int(j) in self.vars]
            if cut.head >= 0 and cut.head not in self.vars:
                continue
            m.addCons(self.kind.quicksum(v * z for z, v in terms) >= rhs, removable=True)
        handler = _handler(self)
        m.includeConshdlr(handler, "outsider", "every requirement can be met", sepapriority=10, enfopriority=-10, chckpriority=-10,
                          sepafreq=1, propfreq=-1, eagerfreq=-1, maxprerounds=0, delaysepa=False, needscons=False)  # fmt: skip
        self.handler = handler
        finder = _finder(self)
        m.includeHeur(finder, "neighbourhoods", "chooses cells anew", "N", priority=100000, freq=1, maxdepth=-1,
                      timingmask=self.kind.SCIP_HEURTIMING.AFTERLPNODE)  # fmt: skip
        self.inject()

    def inject(self, finder: Any = None) -> bool:
        """Give SCIP the best pattern."""
        if self.hidden[self.root.master.fixed_out].any():
            return False
        solution = self.model.createSol(finder)
        for j, z in self.vars.items():
            self.model.setSolVal(solution, z, 1.0 if self.hidden[j] else 0.0)
        return bool(self.model.addSol(solution))

    def point(self, solution: Any = None) -> FloatArray:
        """A solution of SCIP as a point over all cells."""
        x = self.problem.free.astype(float)
        for j, z in self.vars.items():
            x[j] = min(1.0, max(0.0, self.model.getSolVal(solution, z)))
        return x

    def row(self, cut: Cut) -> bool:
        """Add a cut to the relaxation; whether that shows the node infeasible."""
        m = self.model
        cells, c, rhs = row_arrays(cut)
        row = m.createEmptyRowUnspec("cut", lhs=rhs, rhs=None, local=False, modifiable=False, removable=True)
        m.cacheRowExtensions(row)
        for j, v in zip(cells, c, strict=True):
            z = self.vars.get(int(j))
            if z is not None:
                m.addVarToRow(row, z, float(v))
        m.flushRowExtensions(row)
        infeasible = bool(m.addCut(row, forcecut=True))
        m.releaseRow(row)
        return infeasible

    def separate(self, x: FloatArray, *, whole: bool) -> list[Cut]:
        """Violated cuts: all requirements at a whole point; known ones at a fractional one, else a few requirements in turn."""
        root = self.root
        cuts = line_bridges(self.problem, x, 1e-2)
        known = [] if whole else root.pool.violated(x, KNOWN)
        if known:
            return known + cuts
        n = len(root.requirements)
        found = 0
        for k in range(n):
            if self.stop.done or (not whole and (found >= 4 or k >= 12)):
                break
            r = root.requirements[(self.turn + k) % n]
            least = WHOLE if whole else 1e-3
            cut, _ = root.separator.requirement(
                x, r, capped=not whole, least=least, time_limit=max(self.stop.left, 0.5)
            )
            if cut is not None:
                cuts.append(cut)
                found += 1
                if whole and found >= 8:
                    break
        self.turn = (self.turn + 12) % n
        root.pool.add(cuts)
        return cuts if whole else cuts + root.pool.facets(x)

    def safe(self, x: FloatArray) -> bool:
        """Whether a whole point meets every requirement; the best pattern is known to be safe and not asked again."""
        if ((x > 0.5) == self.hidden).all():
            return True
        for r in self.root.requirements:
            if self.stop.done:
                return False
            cut, _ = self.root.separator.requirement(x, r, capped=False, least=WHOLE)
            if cut is not None:
                return False
        return True

    def search(self, finder: Any) -> bool:
        """Look whether there is a better pattern now."""
        better = self.between(self.bound)
        if better is None:
            return False
        self.hidden = better
        return self.inject(finder)

    @property
    def bound(self) -> float:
        return max(self.root.bound, float(self.model.getDualbound()))

    def run(self) -> tuple[float, bool, BoolArray]:
        """Lower bound, whether the tree is finished, and the best pattern."""
        self.model.optimizeNogil()
        finished = self.model.getStatus() in ("optimal", "infeasible")
        if self.model.getNSols():
            found = self.point(self.model.getBestSol()) > 0.5
            if self.problem.cost(found) < self.problem.cost(self.hidden):
                self.hidden = found
        bound = self.problem.cost(self.hidden) if self.model.getStatus() == "infeasible" else self.bound
        return min(bound, 1e300), finished, self.hidden


def _handler(tree: Tree) -> Any:
    kind = tree.kind

    class Outsider(kind.Conshdlr):  # type: ignore[name-defined]
        """Every requirement can be met by a movement of hidden cells."""

        def conscheck(self, constraints: Any, solution: Any, *rest: Any) -> dict[str, Any]:
            good = tree.safe(np.round(tree.point(solution)))
            return {"result": kind.SCIP_RESULT.FEASIBLE if good else kind.SCIP_RESULT.INFEASIBLE}

        def consenfolp(self, constraints: Any, n: int, infeasible: bool) -> dict[str, Any]:
            return self._cut(whole=True)

        def consenfops(self, constraints: Any, n: int, infeasible: bool, *rest: Any) -> dict[str, Any]:
            good = tree.safe(np.round(tree.point()))
            return {"result": kind.SCIP_RESULT.FEASIBLE if good else kind.SCIP_RESULT.INFEASIBLE}

        def conssepalp(self, constraints: Any, n: int) -> dict[str, Any]:
            if tree.stop.done:
                tree.model.interruptSolve()
                return {"result": kind.SCIP_RESULT.DIDNOTRUN}
            return self._cut(whole=False)

        def _cut(self, *, whole: bool) -> dict[str, Any]:
            x = tree.point()
            if tree.watch is not None and not whole:
                tree.watch(x)
            cuts = tree.separate(np.round(x) if whole else x, whole=whole)
            tree.root.pool.add(cuts)
            infeasible = [tree.row(cut) for cut in cuts]
            if any(infeasible):
                return {"result": kind.SCIP_RESULT.CUTOFF}
            if cuts:
                return {"result": kind.SCIP_RESULT.SEPARATED}
            return {"result": kind.SCIP_RESULT.FEASIBLE if whole else kind.SCIP_RESULT.DIDNOTFIND}

        def conslock(self, constraint: Any, kind_: Any, down: int, up: int) -> None:
            for z in tree.vars.values():
                tree.model.addVarLocksType(z, kind_, down, up)

    return Outsider()


def _finder(tree: Tree) -> Any:
    kind = tree.kind

    class Finder(kind.Heur):  # type: ignore[name-defined]
        """Neighbourhood search between the nodes."""

        def heurexec(self, timing: Any, infeasible: bool) -> dict[str, Any]:
            found = tree.search(self)
            return {"result": kind.SCIP_RESULT.FOUNDSOL if found else kind.SCIP_RESULT.DIDNOTFIND}

    return Finder()
