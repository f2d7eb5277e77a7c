"""Global recoding to k-anonymity (with l and t): the best level of each key, found in the lattice of all levels."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tabprotect.errors import Infeasible, InputError
from tabprotect.microdata.classes import Sensitive
from tabprotect.microdata.conditions import Conditions
from tabprotect.microdata.encode import combine, encode, group
from tabprotect.microdata.frames import Frame, checked
from tabprotect.microdata.levels import Levels
from tabprotect.microdata.recipe import Deidentified
from tabprotect.microdata.suppression import settled, suppress_cells, suppress_records
from tabprotect.microdata.verbs import recode
from tabprotect.solve.stop import Listener, Stop
from tabprotect.types import FloatArray, IntArray

Node = tuple[int, ...]


def generalize(
    data: Any,
    *,
    hierarchies: Mapping[str, Any],
    k: int = 5,
    l: int | None = None,
    entropy_l: float | None = None,
    t: float | None = None,
    sensitive: str | Sequence[str] | None = None,
    suppression: float = 0.0,
    local: bool = False,
    weights: Mapping[str, float] | None = None,
    time_limit: float | None = 60.0,
    progress: Listener | None = None,
) -> Deidentified:
    """Recode the keys as little as possible so that every class satisfies the conditions.

    hierarchies: per key its coarser and coarser levels: band widths ``[5, 10, 20]``, lists of edges, mappings, functions, a ``tp.Hierarchy``, a frame with one
    column per level, or ``[]``; the last level, nothing at all, is added.
    k, l, entropy_l, t, sensitive: the conditions on every class.
    suppression: share of records that may be suppressed instead; ``local`` blanks single values of them where that is enough.
    weights: importance per key.

    The loss of a solution is the mean over records and keys of (values it could be − 1)/(values − 1), 1 for suppressed records: the
    normalised dissimilarity of the keys. Nodes of the lattice are taken in the order of a lower bound of their loss, so the result is optimal
    unless the time limit ends the search; ``details`` says which, and the bound.

    >>> import pandas as pd, tabprotect as tp
    >>> df = pd.DataFrame({"age": [21, 22, 23, 24, 41, 42, 43, 44], "sex": list("mfmfmfmf")})
    >>> done = tp.microdata.generalize(df, hierarchies={"age": [5, 10], "sex": []}, k=2)
    >>> done.details["levels"], done.data["age"].unique().tolist()
    ({'age': 1, 'sex': 0}, ['20-24', '40-44'])

    References: Samarati (2001); LeFevre, DeWitt and Ramakrishnan (2005); El Emam et al. (2009).
    """
    rule = Conditions.of(k, l, entropy_l, t, sensitive)
    if not 0 <= suppression < 1:
        raise InputError(f"suppression={suppression}: a share of records in [0, 1)")
    if not hierarchies:
        raise InputError("give the levels of at least one key, for example hierarchies={'age': [5, 10]}")
    done = Deidentified.start(data)
    frame = done.frame
    names = checked(frame.columns, hierarchies)
    if set(names) & set(rule.sensitive):
        raise InputError(f"{sorted(set(names) & set(rule.sensitive))}: a column cannot be both key and sensitive")
    columns = [encode(frame, c) for c in names]
    levels = [Levels.of(c, hierarchies[c.name]) for c in columns]
    checked(names, weights or {})
    weight = np.array([float((weights or {}).get(c, 1.0)) for c in names])
    lattice = Lattice.of(frame, levels, weight / weight.sum(), rule)
    search = Search(lattice, int(suppression * len(frame)), Stop(time_limit, listener=progress))
    search.run()
    if search.best is None:
        raise Infeasible(
            f"not even one class of all records satisfies the conditions within {suppression:.2%} suppressed records; relax them"
        )
    chosen = {c: levels[j].recodings[v] for j, (c, v) in enumerate(zip(names, search.best, strict=True)) if v}
    done = recode(done, {c: r for c, r in chosen.items() if r is not None}) if chosen else done
    if search.best_failing:
        finish = suppress_cells if local else suppress_records
        done = finish(done, keys=names, k=k, l=l, entropy_l=entropy_l, t=t, sensitive=sensitive)
    details = {"levels": dict(zip(names, search.best, strict=True)), **search.details(), **done.details}
    return replace(done, details=details)


@dataclass(frozen=True)
class Lattice:
    """All combinations of levels, with the records reduced to their distinct key combinations."""

    levels: Sequence[Levels]
    weight: FloatArray
    rule: Conditions
    ids: IntArray
    first: IntArray  # one record of each distinct combination
    count: IntArray
    attributes: Sequence[Sensitive]
    mean_cost: Sequence[FloatArray]  # per key and level, over all records

    @classmethod
    def of(cls, frame: Frame, levels: Sequence[Levels], weight: FloatArray, rule: Conditions) -> Lattice:
        n = len(frame)
        codes = [v.codes[0][v.column.codes] for v in levels]
        key, span = combine(codes, [v.sizes[0] for v in levels], n)
        ids, total = group(key, span)
        first = np.zeros(total, np.int64)
        first[ids[::-1]] = np.arange(n - 1, -1, -1)
        count = np.bincount(ids, minlength=total)
        costs = [np.array([c[v.column.codes].mean() if n else 0.0 for c in v.cost]) for v in levels]
        return cls(levels, weight, rule, ids, first, count, rule.attributes(frame), costs)

    @property
    def top(self) -> Node:
        return tuple(len(v) - 1 for v in self.levels)

    def bound(self, node: Node) -> float:
        """Loss of the recoding itself: what suppression can only add to."""
        return float(sum(w * c[v] for w, c, v in zip(self.weight, self.mean_cost, node, strict=True)))

    def evaluate(self, node: Node) -> tuple[int, float]:
        """Number of failing records, and the loss when they are suppressed."""
        codes = [v.codes[at][v.column.codes[self.first]] for v, at in zip(self.levels, node, strict=True)]
        key, span = combine(codes, [v.sizes[at] for v, at in zip(self.levels, node, strict=True)], len(self.first))
        if self.attributes:
            lost_records = ~settled(key[self.ids], span, self.rule, self.attributes)
            failing = np.bincount(self.ids[lost_records], minlength=len(self.first))
        else:
            classes, total = group(key, span)
            size = np.bincount(classes, weights=self.count, minlength=total)[classes]
            failing = np.where(size < self.rule.k, self.count, 0)
        bad = np.flatnonzero(failing)
        kept_cost = sum(
            w * v.cost[at][v.column.codes[self.first[bad]]]
            for w, v, at in zip(self.weight, self.levels, node, strict=True)
        )
        lost = float((failing[bad] * (1.0 - kept_cost)).sum()) if len(bad) else 0.0
        return int(failing.sum()), self.bound(node) + lost / max(len(self.ids), 1)


@dataclass
class Search:
    """Best-first search of a lattice; coarser nodes of an infeasible node are probed so that what lies below is never looked at."""

    lattice: Lattice
    limit: int
    stop: Stop
    best: Node | None = None
    best_loss: float = np.inf
    best_failing: int = 0
    bound: float = 0.0
    known: dict[Node, tuple[int, float]] = field(default_factory=dict)
    hopeless: list[Node] = field(default_factory=list)

    @property
    def evaluated(self) -> int:
        return len(self.known)

    def details(self) -> dict[str, Any]:
        """How good the result is."""
        return {
            "loss": self.best_loss,
            "bound": self.bound,
            "optimal": self.bound >= self.best_loss - 1e-12,
            "nodes evaluated": self.evaluated,
            "nodes": int(np.prod([v + 1.0 for v in self.lattice.top])),
        }

    def run(self) -> None:
        """Search until the best node is proved best, or the time is over."""
        self._greedy()
        heap = [(0.0, tuple(0 for _ in self.lattice.top))]
        seen = {heap[0][1]}
        while heap:
            self.bound = min(heap[0][0], self.best_loss)
            if self.bound >= self.best_loss or (self.best is not None and self.stop.done):
                return
            _, node = heapq.heappop(heap)
            if not self._below_hopeless(node) and not self._try(node) and self.lattice.rule.monotone:
                self._probe(node)
            for j, most in enumerate(self.lattice.top):
                if node[j] < most:
                    child = (*node[:j], node[j] + 1, *node[j + 1 :])
                    if child not in seen:
                        seen.add(child)
                        heapq.heappush(heap, (self.lattice.bound(child), child))
            self.stop.tell("lattice", cost=self.best_loss, bound=self.bound, done=self.evaluated)
        self.bound = self.best_loss

    def _try(self, node: Node) -> bool:
        """Evaluate a node; whether it keeps to the limit of suppressed records."""
        if node not in self.known:
            self.known[node] = self.lattice.evaluate(node)
        failing, loss = self.known[node]
        good = failing <= self.limit
        if good and loss < self.best_loss and failing < max(len(self.lattice.ids), 1):
            self.best, self.best_loss, self.best_failing = node, loss, failing
        return good

    def _greedy(self) -> None:
        """A first solution: from the finest node, always the step that saves most records for its loss."""
        node: Node = tuple(0 for _ in self.lattice.top)
        while not self._try(node):
            failing = self.known[node][0]
            steps = [
                (*node[:j], node[j] + 1, *node[j + 1 :]) for j, most in enumerate(self.lattice.top) if node[j] < most
            ]
            if not steps:
                return
            for step in steps:
                self._try(step)
            extra = self.lattice.bound(node)
            gain: Callable[[Node], float] = lambda s: (  # noqa: E731
                (failing - self.known[s][0] + 1) / (self.lattice.bound(s) - extra + 1e-9)  # noqa: B023
            )
            node = max(steps, key=gain)

    def _below_hopeless(self, node: Node) -> bool:
        return any(all(a <= b for a, b in zip(node, bad, strict=True)) for bad in self.hopeless)

    def _probe(self, node: Node) -> None:
        """Bisect a path from an infeasible node to the top; the last infeasible node on it rules out all below it."""
        path, at = [node], list(node)
        while tuple(at) != self.lattice.top:
            j = min(
                (j for j, most in enumerate(self.lattice.top) if at[j] < most),
                key=lambda j: at[j] / self.lattice.top[j],
            )
            at[j] += 1
            path.append(tuple(at))
        low, high = 0, len(path) - 1
        while high - low > 1:
            middle = (low + high) // 2
            if self._try(path[middle]):
                high = middle
            else:
                low = middle
        bad = path[low]
        self.hopeless = [h for h in self.hopeless if not all(a <= b for a, b in zip(h, bad, strict=True))] + [bad]
