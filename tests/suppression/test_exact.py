"""Exact suppression against enumeration, against the compact model, and on the worked example."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import Bounds, LinearConstraint, linprog, milp

from tabprotect.bench.families import magnitude
from tabprotect.errors import Infeasible
from tabprotect.solve.side import Side
from tabprotect.solve.stop import Progress, Stop
from tabprotect.suppression import exact, exact_scip, exact_side, heuristic, heuristic_start
from tabprotect.suppression.cuts import Cut, Pool
from tabprotect.suppression.exact_root import cut_root, start_root
from tabprotect.suppression.preprocess import reduce
from tabprotect.suppression.problem import Pattern, Problem, Requirement
from tabprotect.table.cube import cube_relations, fill_margins
from tabprotect.table.examples import d272
from tabprotect.table.hierarchy import Dimension, Hierarchy

FLAT2 = Hierarchy.flat("ab")
FLAT3 = Hierarchy.flat("abc")
DEEP = Hierarchy.from_tree({"A": ["A1", "A2"], "B": ["B1", "B2", "B3"]})


def cube(rng: np.random.Generator, *hierarchies: Hierarchy) -> tuple[np.ndarray, sp.csr_array]:
    dims = [Dimension(f"d{k}", h) for k, h in enumerate(hierarchies)]
    inner = rng.integers(0, 12, [len(h.leaves) for h in hierarchies]).astype(float)
    return fill_margins(inner, dims), cube_relations(dims)


def linked(rng: np.random.Generator) -> tuple[np.ndarray, sp.csr_array]:
    """Two 2-D tables with the same row totals."""
    values, rows = cube(rng, FLAT3, FLAT2)
    n, per = len(values), 3
    totals = values.reshape(4, per)[:, 0]
    first = np.minimum(rng.integers(0, 12, 4).astype(float), totals)
    first[0] = first[1:].sum()
    second = np.column_stack([first, totals - first])
    extra = second.ravel()
    more = sp.lil_array((6, n + len(extra)))
    for i in range(4):
        more[i, i * per], more[i, n + 2 * i], more[i, n + 2 * i + 1] = -1, 1, 1
    for k in range(2):
        more[4 + k, n + k] = -1
        for i in range(1, 4):
            more[4 + k, n + 2 * i + k] = 1
    wide = sp.hstack([rows, sp.csr_array((rows.shape[0], len(extra)))])
    return np.concatenate([values, extra]), sp.csr_array(sp.vstack([wide, more.tocsr()]))


def arbitrary(rng: np.random.Generator) -> tuple[np.ndarray, sp.csr_array]:
    """Relations with any coefficients, met by zero movement as every table is."""
    n, m = 10, 4
    matrix = np.where(rng.random((m, n)) < 0.5, rng.integers(-2, 3, (m, n)), 0).astype(float)
    return rng.integers(1, 12, n).astype(float), sp.csr_array(matrix)


KINDS = {
    "2-D": lambda rng: cube(rng, FLAT3, FLAT3),
    "3-D": lambda rng: cube(rng, FLAT2, FLAT2, FLAT3),
    "hierarchy": lambda rng: cube(rng, DEEP, FLAT2),
    "linked": linked,
    "arbitrary": arbitrary,
}


def instance(kind: str, seed: int, *, sliding: bool = False, keep: bool = False, count: bool = False) -> Problem:
    rng = np.random.default_rng([seed, sorted(KINDS).index(kind)])
    values, relations = KINDS[kind](rng)
    n = len(values)
    positive = np.flatnonzero(values > 0)
    primary = rng.choice(positive, min(len(positive), int(rng.integers(1, 4))), replace=False)
    fixed = np.zeros(n, bool)
    fixed[primary] = True
    if keep:
        fixed[rng.choice(positive)] = True
    candidates = (values > 0) & ~fixed & (rng.random(n) < 0.9)
    needs = []
    for p in primary:
        level = float(rng.integers(1, 4))
        if sliding:
            needs.append(Requirement(int(p), 0, level))
        else:
            needs += [Requirement(int(p), 1, level), Requirement(int(p), -1, min(level, float(values[p])))]
    up = np.full(n, np.inf) if rng.random() < 0.3 else values + 5.0
    weights = np.ones(n) if count else np.maximum(values, 1.0)
    return Problem(relations, values.copy(), up, weights, fixed, candidates, tuple(needs), integer_weights=True)


def attack(problem: Problem, hidden: np.ndarray, r: Requirement) -> bool:
    """Whether the requirement holds, by an LP written down independently of the package."""
    bounds = [
        (-d, None if np.isinf(u) else u) if h else (0, 0)
        for d, u, h in zip(problem.down, problem.up, hidden, strict=True)
    ]
    reach = 0.0
    for sense in (1, -1) if r.sense == 0 else (r.sense,):
        c = np.zeros(problem.n)
        c[r.cell] = -sense
        answer = linprog(c, A_eq=problem.relations, b_eq=np.zeros(problem.relations.shape[0]), bounds=bounds)
        reach += np.inf if answer.status == 3 else -answer.fun
    return reach >= r.level - 1e-6


def safe(problem: Problem, hidden: np.ndarray) -> bool:
    return all(attack(problem, hidden, r) for r in problem.requirements)


def enumerate_optimum(problem: Problem) -> float | None:
    """Cheapest safe pattern by trying all, cheapest first."""
    free = np.flatnonzero(problem.candidates)
    patterns = []
    for size in range(len(free) + 1):
        for chosen in itertools.combinations(free, size):
            patterns.append((problem.weights[list(chosen)].sum(), chosen))
    everything = problem.fixed | problem.candidates
    if not safe(problem, everything):
        return None
    for cost, chosen in sorted(patterns):
        hidden = problem.fixed.copy()
        hidden[list(chosen)] = True
        if safe(problem, hidden):
            return float(cost + problem.fixed_cost)
    return None


def compact_optimum(problem: Problem, far: float = 60.0) -> float | None:
    """The compact model: one movement for every requirement and direction, |y_j| ≤ room_j z_j."""
    n, m = problem.n, problem.relations.shape[0]
    blocks = [(r, s) for r in problem.requirements for s in ((1, -1) if r.sense == 0 else (r.sense,))]
    width = n * (1 + len(blocks))
    up, down = np.minimum(problem.up, far), np.minimum(problem.down, far)
    rows = []
    eye = sp.identity(n, format="csr")
    for b in range(len(blocks)):
        pad = [sp.csr_array((n, n))] * len(blocks)
        flow = [sp.csr_array((m, n))] * len(blocks)
        flow[b] = problem.relations
        rows.append(LinearConstraint(sp.csr_array(sp.hstack([sp.csr_array((m, n)), *flow])), 0, 0))
        pad[b] = eye
        stacked = sp.hstack([sp.csr_array((n, n)), *pad])
        rows.append(
            LinearConstraint(
                sp.csr_array(stacked - sp.hstack([sp.diags_array(up), sp.csr_array((n, width - n))])), -np.inf, 0
            )
        )
        rows.append(
            LinearConstraint(
                sp.csr_array(stacked + sp.hstack([sp.diags_array(down), sp.csr_array((n, width - n))])), 0, np.inf
            )
        )
    for r in problem.requirements:
        line = np.zeros((1, width))
        for b, (other, s) in enumerate(blocks):
            if other is r:
                line[0, n * (1 + b) + r.cell] = s
        rows.append(LinearConstraint(line, r.level, np.inf))
    low, high = np.full(width, -far), np.full(width, far)
    low[:n] = problem.fixed
    high[:n] = problem.fixed | problem.candidates
    cost = np.concatenate([problem.weights, np.zeros(width - n)])
    kind = np.concatenate([np.ones(n), np.zeros(width - n)])
    answer = milp(cost, constraints=rows, bounds=Bounds(low, high), integrality=kind)
    return None if answer.status == 2 else float(answer.fun)


def check(problem: Problem, pattern: Pattern) -> None:
    """The pattern is allowed and safe, and its moves prove it."""
    assert pattern.suppressed[problem.fixed].all()
    assert not (pattern.suppressed & ~problem.fixed & ~problem.candidates).any()
    assert safe(problem, pattern.suppressed)
    y = pattern.moves.toarray()
    assert not y[:, ~pattern.suppressed].any()
    assert np.allclose(problem.relations @ y.T, 0, atol=1e-6)
    assert (y <= problem.up + 1e-7).all()
    assert (y >= -problem.down - 1e-7).all()
    high, low = y.max(axis=0, initial=0.0), y.min(axis=0, initial=0.0)
    for r in problem.requirements:
        reach = high[r.cell] if r.sense > 0 else -low[r.cell] if r.sense < 0 else high[r.cell] - low[r.cell]
        assert reach >= r.level * (1 - 1e-6)


def compare(problem: Problem, optimum: float | None, tree: str) -> None:
    if optimum is None:
        with pytest.raises(Infeasible):
            exact.solve(problem, Stop(60), tree=tree)
        return
    rough = heuristic.solve(problem, Stop(0.3), seed=1)
    check(problem, rough)
    pattern = exact.solve(problem, Stop(60), start=rough, tree=tree)
    check(problem, pattern)
    assert pattern.optimal
    assert problem.cost(pattern.suppressed) == pytest.approx(optimum)
    assert pattern.bound == pytest.approx(optimum)
    assert problem.cost(rough.suppressed) >= optimum - 1e-9


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("tree", ["own", "scip", "highs"])
def test_enumeration(seed: int, tree: str) -> None:
    rng = np.random.default_rng(seed)
    values, relations = cube(rng, FLAT2, FLAT3)
    full = instance("2-D", seed)
    n = len(values)
    fixed = np.zeros(n, bool)
    fixed[rng.choice(np.flatnonzero(values > 0), 2, replace=False)] = True
    candidates = (values > 0) & ~fixed
    needs = tuple(Requirement(int(p), s, 1.0) for p in np.flatnonzero(fixed) for s in (1, -1))
    problem = Problem(
        relations, values, values + 5, np.maximum(values, 1), fixed, candidates, needs, integer_weights=True
    )
    assert full.n == 16
    compare(problem, enumerate_optimum(problem), tree)


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("sliding", [False, True], ids=["two-sided", "sliding"])
@pytest.mark.parametrize("count", [False, True], ids=["value", "count"])
@pytest.mark.parametrize("seed", range(5))
def test_compact_model(kind: str, sliding: bool, count: bool, seed: int) -> None:
    problem = instance(kind, seed, sliding=sliding, count=count, keep=seed % 2 == 1)
    compare(problem, compact_optimum(problem), ("own", "scip", "highs")[seed % 3])


@pytest.mark.parametrize("objective", ["value", "count"])
def test_d272(objective: str) -> None:
    table = d272()
    table = table.protect(table.find(size="Total")).protect(table.find(industry="D272"))
    low = (table.values > 0) & (table.values <= 2)
    # the report assumes that every published class has at least one establishment
    table = table.with_status(low, "u").with_levels(low, spl=1).with_bounds(lb=np.minimum(table.values, 1))
    pattern = exact.solve(Problem.from_table(table, objective), Stop(60))
    assert pattern.optimal
    assert pattern.bound == (40 if objective == "value" else 10)


def test_infeasible_names_cells_and_room() -> None:
    problem = Problem(
        sp.csr_array(np.array([[-1.0, 1.0, 1.0]])),
        np.array([9.0, 4.0, 5.0]),
        np.array([9.0, 9.0, 9.0]),
        np.ones(3),
        np.array([False, True, False]),
        np.array([False, False, True]),
        (Requirement(1, -1, 4.0), Requirement(1, 1, 7.0)),
    )
    with pytest.raises(Infeasible) as caught:
        exact.solve(problem, Stop(10))
    assert caught.value.cells == (1,)
    assert caught.value.missing[0] == pytest.approx(2.0)


def test_cancelled_search_still_returns_a_safe_pattern() -> None:
    problem = instance("3-D", 3)
    stop = Stop(60)

    def listen(news: object) -> None:
        stop.cancel()

    stop.listener = listen
    check(problem, exact.solve(problem, stop))


def test_deterministic() -> None:
    problem = instance("hierarchy", 2)
    first, second = (exact.solve(problem, Stop(60), seed=3) for _ in range(2))
    assert (first.suppressed == second.suppressed).all()


@pytest.mark.parametrize("threads", [1, 2])
def test_the_same_in_every_run_with_a_number_of_threads(monkeypatch: Any, threads: int) -> None:
    """With merging, unions, neighbourhoods and the tree all taking part, and clocks that differ."""
    monkeypatch.setattr(exact, "FEW", 2)
    problem = Problem.from_table(magnitude(3, "5,5,5", mean=20))
    first = exact.solve(problem, Stop(), seed=3, threads=threads)
    slower = [0.0]

    def clock() -> float:
        slower[0] += 0.05
        return slower[0]

    monkeypatch.setattr("tabprotect.solve.stop.time.perf_counter", clock)
    second = exact.solve(problem, Stop(), seed=3, threads=threads)
    assert (first.suppressed == second.suppressed).all()
    assert first.info["nodes"] == second.info["nodes"] > 2
    assert first.optimal


def test_cells_are_fixed_by_the_relaxation_whatever_bound_is_known() -> None:
    """Reduced costs belong to the value of their own program: with a better bound from a tree they would fix too much."""
    problem = reduce(Problem.from_table(magnitude(3, "5,5,5", mean=20)))
    state = heuristic_start.construct(problem, Stop(), 0)
    root = cut_root(start_root(problem), state, Stop())
    assert root.value < state.cost
    open_cells = root.fix(state.cost)
    root.bound = state.cost - 1
    assert root.fix(state.cost) == open_cells
    again = exact_side.Job.of(root, state.hidden, Stop(60), 0).root()
    assert again.fix(state.cost) == open_cells
    assert exact_side.Guide.of(root).value == root.value


@pytest.mark.parametrize("seed", range(4))
def test_a_tree_before_the_two_processes_changes_no_optimum(monkeypatch: Any, seed: int) -> None:
    problem = Problem.from_table(magnitude(seed, "4,4,5", mean=12))
    alone = exact.solve(problem, Stop(120), threads=1, tree="own")
    monkeypatch.setattr(exact, "cores", lambda: 2)
    monkeypatch.setattr(exact, "FEW", 4)
    both = exact.solve(problem, Stop(120))
    check(problem, both)
    assert alone.optimal
    assert both.optimal
    assert problem.cost(both.suppressed) == problem.cost(alone.suppressed)


def test_known_cuts_farthest_from_the_point() -> None:
    rng = np.random.default_rng(4)
    pool, n = Pool(), 30
    for _ in range(200):
        cells = np.sort(rng.choice(n - 1, int(rng.integers(2, 6)), replace=False)) + 1
        pool.add([Cut(cells, rng.uniform(0.2, 1.0, len(cells)), head=0 if rng.random() < 0.3 else -1)])
    assert Pool().violated(np.zeros(n), 5) == []
    x = rng.uniform(0.0, 0.4, n)
    found = pool.violated(x, 10)

    def distance(cut: Cut) -> float:
        return cut.violation(x) / np.sqrt((cut.coefficients**2).sum() + (cut.head >= 0))

    expected = sorted((distance(c) for c in pool.cuts), reverse=True)[:10]
    assert [distance(c) for c in found] == pytest.approx(expected)
    pool.add([Cut(np.array([1]), np.ones(1))] * 2)
    assert len(pool.cuts) == 201


@pytest.fixture(scope="module")
def cube_problem() -> Problem:
    """A 4 × 4 × 4 table whose relaxation leaves a gap, and its optimum by one process."""
    return Problem.from_table(magnitude(4, "4,4,4", mean=12))


@pytest.mark.parametrize("quick", [0, exact.QUICK], ids=["all bounds beside", "root here first"])
def test_side_by_side_is_as_good_as_one_process(cube_problem: Problem, monkeypatch: Any, quick: int) -> None:
    monkeypatch.setattr(exact, "cores", lambda: 2)
    monkeypatch.setattr(exact, "QUICK", quick)
    monkeypatch.setattr(exact, "FEW", 1)
    started = []
    monkeypatch.setattr(exact_side, "Side", lambda *given: started.append(given) or Side(*given))
    alone = exact.solve(cube_problem, Stop(120), threads=1)
    assert alone.optimal
    assert not started
    news: list[Progress] = []
    both = exact.solve(cube_problem, Stop(120, listener=news.append))
    check(cube_problem, both)
    assert started
    assert both.optimal
    assert cube_problem.cost(both.suppressed) == cube_problem.cost(alone.suppressed)
    assert all(p.bound <= alone.bound + 1e-6 for p in news if p.bound is not None)


def test_each_tree_where_it_gets_further(cube_problem: Problem) -> None:
    assert not exact_scip.suits(reduce(cube_problem))
    assert exact_scip.suits(reduce(Problem.from_table(magnitude(4, "2x2,3,3", mean=12))))


def test_patterns_that_rest_leave_their_core_to_the_bounds(cube_problem: Problem) -> None:
    root = start_root(reduce(cube_problem))
    hidden = np.ones(root.problem.n, bool)
    bounds = exact_side._Bounds(exact_side.Job.of(root, hidden, Stop(60), 0), lambda message: None)
    assert bounds.busy == 1
    bounds.hear(exact_side.Rest())
    assert bounds.busy == 2
    bounds.hear(exact_side.Rest(over=True))
    assert bounds.busy == 1


def test_cuts_know_their_requirements(cube_problem: Problem) -> None:
    root = start_root(reduce(cube_problem))
    root = cut_root(root, heuristic_start.construct(root.problem, Stop(60), 0), Stop(60))
    known = [cut for cut in root.pool.cuts if cut.need is not None]
    assert known
    for cut in known:  # without its cells the requirement cannot be met
        x = np.ones(root.problem.n)
        x[cut.cells] = 0.0
        assert cut.need in root.requirements
        assert root.separator.requirement(x, cut.need, capped=False)[0] is not None


def test_the_mean_of_the_points_of_the_tree_guides_the_patterns(monkeypatch: Any) -> None:
    root = start_root(reduce(Problem.from_table(magnitude(1, "5,5,5", mean=20))))
    state = heuristic_start.construct(root.problem, Stop(60), 0)
    cut_root(root, state, Stop(60))
    monkeypatch.setattr(exact_side, "GUIDED", 0.0)
    sent: list[Any] = []
    bounds = exact_side._Bounds(exact_side.Job.of(root, state.hidden, Stop(60), 0), sent.append)
    points: list[np.ndarray] = []
    watch = bounds._watch
    monkeypatch.setattr(bounds, "_watch", lambda x: (points.append(x), watch(x))[1])
    bounds.run()
    assert sent[-1].finished
    free = root.problem.free
    assert 1 < len(points) <= exact_side.RECENT
    np.testing.assert_allclose(bounds.mean[~free], np.mean(points, axis=0)[~free])
    guides = [m for m in sent if isinstance(m, exact_side.Guide)]
    assert (guides[-1].likely[free] == 1.0).all()
    assert (guides[-1].likely != guides[-1].x).any()


def test_a_rest_ends_with_the_search(cube_problem: Problem, monkeypatch: Any) -> None:
    sent = []

    class Silent:
        def __init__(self, *given: Any) -> None: ...

        def send(self, message: Any) -> None:
            sent.append(message)

    monkeypatch.setattr(exact_side, "Side", Silent)
    root, stop = start_root(reduce(cube_problem)), Stop()
    beside = exact_side.Beside(root, np.ones(root.problem.n, bool), stop, 0)
    stop.cancel()
    beside.rest(1e6)  # would never come back
    assert sent == [exact_side.Rest(), exact_side.Rest(over=True)]


def test_bounds_that_die_do_not_matter(cube_problem: Problem, monkeypatch: Any) -> None:
    class Dying(exact_side.Side):
        def __init__(self, task: str, *rest: Any) -> None:
            super().__init__("tests.solve.test_side:fail", *rest)

    monkeypatch.setattr(exact, "cores", lambda: 2)
    monkeypatch.setattr(exact_side, "Side", Dying)
    monkeypatch.setattr(exact, "QUICK", 0)
    pattern = exact.solve(cube_problem, Stop(120))
    check(cube_problem, pattern)
    assert pattern.optimal


def test_cancelled_side_by_side(cube_problem: Problem, monkeypatch: Any) -> None:
    monkeypatch.setattr(exact, "cores", lambda: 2)
    monkeypatch.setattr(exact, "QUICK", 0)
    stop = Stop(None)

    def listen(news: Progress) -> None:
        if news.phase != "first safe pattern":
            stop.cancel()

    stop.listener = listen
    check(cube_problem, exact.solve(cube_problem, stop))
