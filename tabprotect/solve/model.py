"""A linear, mixed-integer or diagonal quadratic program as plain arrays: what every solver back end takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.errors import InputError
from tabprotect.types import BoolArray, FloatArray


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel:
    """min ``cost @ x + ½ Σ quadratic·x² + offset`` subject to ``row_lower ≤ matrix @ x ≤ row_upper``, ``lower ≤ x ≤ upper``, some x integer.

    ``quadratic`` is None for a linear program. Everything is an array: no solver is loaded and nothing is built one by one.

    >>> model = LinearModel.of([[1, 1]], row_lower=[1.5], row_upper=[np.inf], cost=[1, 2], upper=[1, 5], integer=True)
    >>> model
    <LinearModel: 2 columns (2 integer), 1 row, 2 coefficients>
    >>> model.objective(np.array([1.0, 1.0])), model.violation(np.array([1.0, 0.0]))
    (3.0, 0.5)
    """

    matrix: Any
    row_lower: FloatArray
    row_upper: FloatArray
    lower: FloatArray
    upper: FloatArray
    cost: FloatArray
    integer: BoolArray
    quadratic: FloatArray | None = None
    offset: float = 0.0

    @classmethod
    def of(
        cls,
        matrix: Any,
        *,
        row_lower: Any,
        row_upper: Any,
        cost: Any,
        lower: Any = 0.0,
        upper: Any = np.inf,
        integer: Any = False,
        quadratic: Any = None,
        offset: float = 0.0,
    ) -> LinearModel:
        """Check and broadcast: any bound, ``integer`` or ``quadratic`` may be one number for all."""
        a = sp.csr_array(matrix if sp.issparse(matrix) else np.atleast_2d(np.asarray(matrix, float)), dtype=np.float64)
        m, n = a.shape

        def fill(name: str, given: Any, size: int, kind: type = float) -> Any:
            array: Any = np.asarray(given, kind)
            if array.ndim == 0:
                array = np.full(size, array[()])
            if array.shape != (size,):
                raise InputError(f"{name} has shape {array.shape}, expected ({size},)")
            if kind is float and np.isnan(array).any():
                raise InputError(f"{name} has a value that is not a number")
            return array

        q = None if quadratic is None else fill("quadratic", quadratic, n)
        if q is not None and (q < 0).any():
            raise InputError("the quadratic part must be convex: no negative entries")
        return cls(
            a,
            fill("row_lower", row_lower, m),
            fill("row_upper", row_upper, m),
            fill("lower", lower, n),
            fill("upper", upper, n),
            fill("cost", cost, n),
            fill("integer", integer, n, bool),
            None if q is None or not q.any() else q,
            float(offset),
        )

    @property
    def n(self) -> int:
        return int(self.matrix.shape[1])

    @property
    def m(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def kind(self) -> str:
        """``lp``, ``qp``, ``mip`` or ``miqp``."""
        whole = bool(self.integer.any())
        return ("mi" if whole else "") + ("qp" if self.quadratic is not None else "p" if whole else "lp")

    def objective(self, x: FloatArray) -> float:
        """Cost of a point, by plain arithmetic."""
        value = float(self.cost @ x) + self.offset
        return value if self.quadratic is None else value + 0.5 * float(self.quadratic @ (x * x))

    def violation(self, x: FloatArray) -> float:
        """Largest amount by which a point breaks a row, a bound or an integrality; 0 when it is feasible."""
        rows = self.matrix @ x
        worst = [self.row_lower - rows, rows - self.row_upper, self.lower - x, x - self.upper]
        if self.integer.any():
            worst.append(np.abs(x - np.rint(x))[self.integer])
        return max(0.0, *(float(w.max(initial=0.0)) for w in worst))

    def relaxed(self) -> LinearModel:
        """The same without integrality."""
        return LinearModel(
            self.matrix,
            self.row_lower,
            self.row_upper,
            self.lower,
            self.upper,
            self.cost,
            np.zeros(self.n, bool),
            self.quadratic,
            self.offset,
        )

    def __repr__(self) -> str:
        whole = f" ({int(self.integer.sum()):,} integer)" if self.integer.any() else ""
        curved = ", quadratic" if self.quadratic is not None else ""
        return (
            f"<LinearModel: {self.n:,} columns{whole}, {self.m:,} row{'s' * (self.m != 1)}, "
            f"{self.matrix.nnz:,} coefficients{curved}>"
        )
