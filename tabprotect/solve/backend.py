"""The solver back ends by name, what each can do, and one function to call any of them.

A back end answers one question, ``solve(model, stop, gap, start, seed, threads)``. It is imported when first used; others register themselves
with `register`. No answer is trusted: the point is checked against the model by plain arithmetic before it is handed on.
"""

from __future__ import annotations

import importlib
from dataclasses import replace
from typing import Protocol

import numpy as np

from tabprotect.errors import InputError, SolverUnavailable
from tabprotect.solve.model import LinearModel
from tabprotect.solve.result import FAILED, SolveResult
from tabprotect.solve.stop import Stop
from tabprotect.types import FloatArray

TOLERANCE = 1e-6


class Backend(Protocol):
    """A solver: its name, the kinds of model it takes (``lp``, ``mip``, ``qp``, ``miqp``), and extras (``duals``, ``start``, ``cancel``)."""

    name: str
    kinds: frozenset[str]
    extras: frozenset[str]

    def solve(
        self,
        model: LinearModel,
        stop: Stop,
        *,
        gap: float = 0.0,
        start: FloatArray | None = None,
        seed: int = 0,
        threads: int = 1,
    ) -> SolveResult: ...


# name -> (module, class, package to import, how to install)
_KNOWN: dict[str, tuple[str, str, str, str]] = {
    "highs": ("tabprotect.solve.highs", "Highs", "highspy", "pip install 'highspy>=1.12,<1.14'"),
    "ortools": ("tabprotect.solve.ortools", "OrTools", "ortools", "pip install ortools"),
    "scip": ("tabprotect.solve.scip", "Scip", "pyscipopt", "pip install 'tabprotect[scip]'"),
    "pyomo": ("tabprotect.solve.pyomo", "Pyomo", "pyomo", "pip install 'tabprotect[pyomo]'"),
}
_EXTRA: dict[str, Backend] = {}


def register(backend: Backend) -> None:
    """Make another solver available under its name."""
    _EXTRA[backend.name] = backend


def names() -> list[str]:
    """All back ends known, installed or not."""
    return [*_KNOWN, *_EXTRA]


def get(name: str) -> Backend:
    """The back end of this name; SolverUnavailable with the command to install it when its package is missing.

    >>> get("highs").name
    'highs'
    """
    if name in _EXTRA:
        return _EXTRA[name]
    if name not in _KNOWN:
        raise InputError(f"unknown solver {name!r}: use one of {', '.join(names())}")
    module, attribute, package, install = _KNOWN[name]
    try:
        importlib.import_module(package)
    except ImportError as error:
        raise SolverUnavailable(f"solver {name!r} needs the package {package}: {install}") from error
    found: Backend = getattr(importlib.import_module(module), attribute)()
    return found


def installed() -> list[str]:
    """The back ends whose packages are here."""
    found = []
    for name in names():
        try:
            get(name)
        except SolverUnavailable:
            continue
        found.append(name)
    return found


def solve(
    model: LinearModel,
    *,
    backend: str = "highs",
    stop: Stop | None = None,
    gap: float = 0.0,
    start: FloatArray | None = None,
    seed: int = 0,
    threads: int = 1,
) -> SolveResult:
    """Solve a model with a back end, and check the point by plain arithmetic.

    >>> model = LinearModel.of([[1, 1]], row_lower=[1.5], row_upper=[np.inf], cost=[1, 2], upper=[1, 5], integer=True)
    >>> solve(model).objective
    3.0
    """
    solver = get(backend)
    if model.kind not in solver.kinds:
        raise InputError(f"solver {backend!r} takes {', '.join(sorted(solver.kinds))}, not {model.kind}")
    if start is not None and np.shape(start) != (model.n,):
        raise InputError(f"the start has {np.size(start)} entries for {model.n} columns")
    if model.n == 0:
        return SolveResult("optimal", np.zeros(0), model.offset, model.offset, backend=backend)
    result = solver.solve(model, stop or Stop(), gap=gap, start=start, seed=seed, threads=threads)
    return checked(model, result)


def checked(model: LinearModel, result: SolveResult) -> SolveResult:
    """The same result with integers made whole and the objective recomputed; ``failed`` when the point breaks the model."""
    if not result.found:
        return result
    x = result.x
    if model.integer.any():
        whole = np.where(model.integer, np.rint(x), x)
        x = whole if np.abs(whole - x).max() <= 1e-4 else x
    scale = max(1.0, float(np.abs(x).max()))
    if model.violation(x) > TOLERANCE * scale * 10:
        return replace(result, status=FAILED)
    return replace(result, x=x, objective=model.objective(x))
