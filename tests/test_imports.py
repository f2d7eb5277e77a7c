"""What `import tabprotect` loads, and that the solvers can live in one process."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = [
    "highspy",
    "ortools",
    "pyscipopt",
    "pyomo",
    "numba",
    "pandas",
    "polars",
    "pyarrow",
    "duckdb",
    "narwhals",
    "pyspark",
    "matplotlib",
    "opendp",
    "networkx",
    "scipy",
    "rich",
    "typer",
]


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_import_is_light() -> None:
    loaded = set(run("import sys, tabprotect; print(*{m.partition('.')[0] for m in sys.modules})").split())
    assert "tabprotect" in loaded
    assert not loaded & set(HEAVY)


def test_a_table_needs_no_solver_and_no_numba() -> None:
    code = (
        "import sys, tabprotect as tp; t = tp.examples.d272(); tp.Hierarchy.flat(['a']); tp.errors.InputError\n"
        "print(*{m.partition('.')[0] for m in sys.modules})"
    )
    loaded = set(run(code).split())
    assert not loaded & {
        "highspy",
        "ortools",
        "pyscipopt",
        "pyomo",
        "numba",
        "pandas",
        "polars",
        "duckdb",
        "pyspark",
        "matplotlib",
    }


def test_every_public_name_is_listed_once_and_unknown_names_are_errors() -> None:
    import tabprotect as tp

    assert len(set(tp.__all__)) == len(tp.__all__)
    assert set(tp.__all__) <= {*dir(tp)}
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = tp.nonsense


@pytest.mark.parametrize("order", [("highspy", "ortools"), ("ortools", "highspy")])
def test_highs_and_ortools_solve_in_one_process(order: tuple[str, str]) -> None:
    """highspy 1.15 could not (both ship libhighs.so.1); each solves min x + y with x + 2y ≥ 4."""
    solve = {
        "highspy": """
import highspy
h = highspy.Highs(); h.silent()
x, y = h.addVariable(), h.addVariable()
h.addConstr(x + 2 * y >= 4)
h.minimize(x + y)
print(round(h.getObjectiveValue(), 6))
""",
        "ortools": """
from ortools.linear_solver import pywraplp
from ortools.graph.python import min_cost_flow
for name in ("GLOP", "SCIP"):
    s = pywraplp.Solver.CreateSolver(name)
    x, y = s.NumVar(0, 10, "x"), s.NumVar(0, 10, "y")
    s.Add(x + 2 * y >= 4)
    s.Minimize(x + y)
    assert s.Solve() == 0
    print(round(s.Objective().Value(), 6))
f = min_cost_flow.SimpleMinCostFlow()
f.add_arc_with_capacity_and_unit_cost(0, 1, 5, 3)
f.set_node_supply(0, 2); f.set_node_supply(1, -2)
assert f.solve() == f.OPTIMAL
print(f.optimal_cost() / 3)
""",
    }
    out = run("\n".join(solve[name] for name in (*order, *order)))
    assert set(out.split()) == {"2.0"}
    assert len(out.split()) == 8
