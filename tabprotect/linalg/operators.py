"""Square linear operators that are applied, inverted and measured without forming their matrix.

A diagonal plus a rank-one term is closed under inversion (Sherman-Morrison), transposition and element-wise squaring, and so
is a Kronecker product of such operators. That is all that is needed for unbiased reconstruction, exact variances and exact
condition numbers in time and memory linear in the size of the domain.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from math import prod, sqrt
from typing import Any, Literal

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from tabprotect.errors import InputError
from tabprotect.types import FloatArray

Norm = Literal["2", "fro"]
DENSE_LIMIT = 8000  # an explicit inverse of a general matrix beyond this size would need over half a gibibyte
SVD_LIMIT = 2500  # beyond this size extreme singular values come from Lanczos iteration


class Operator(ABC):
    """A square linear operator of size ``n``; ``apply``, ``solve``, ``adjoint``, ``inverse``, ``squared``, ``condition_number``."""

    n: int

    @abstractmethod
    def act(self, x: FloatArray) -> FloatArray:
        """The product along the middle axis of an array of shape (before, n, after)."""

    @abstractmethod
    def _invert(self) -> Operator: ...

    @abstractmethod
    def adjoint(self) -> Operator:
        """The transpose."""

    @abstractmethod
    def squared(self) -> Operator:
        """The operator whose entries are the squares of these entries (not the matrix product)."""

    @abstractmethod
    def norm2(self) -> float:
        """Largest singular value."""

    def apply(self, x: Any) -> FloatArray:
        """M @ x for a vector or for the columns of a matrix."""
        return self._columns(self.act, x)

    def solve(self, y: Any) -> FloatArray:
        """The x with M @ x = y."""
        return self.inverse().apply(y)

    def inverse(self) -> Operator:
        """The inverse, made once; ``InputError`` when the operator is singular."""
        return self._inverse

    def condition_number(self, norm: Norm = "2") -> float:
        """‖M‖·‖M⁻¹‖ in the 2-norm or the Frobenius norm.

        >>> round(DiagonalPlusRankOne(50, 10 / 60, 1 / 60, 1.0).condition_number("fro"), 2)
        64.56
        """
        if norm == "2":
            return self.norm2() * self.inverse().norm2()
        if norm == "fro":
            return self.frobenius() * self.inverse().frobenius()
        raise InputError(f"unknown norm {norm!r}: use '2' or 'fro'")

    def frobenius(self) -> float:
        """Root of the sum of the squared entries."""
        return sqrt(float(self.squared().apply(np.ones(self.n)).sum()))

    def dense(self) -> FloatArray:
        """The matrix itself, for small sizes and for tests."""
        return self.apply(np.eye(self.n))

    @cached_property
    def _inverse(self) -> Operator:
        return self._invert()

    def _columns(self, act: Any, x: Any) -> FloatArray:
        values = np.asarray(x, dtype=np.float64)
        if values.ndim not in (1, 2) or values.shape[0] != self.n:
            raise InputError(f"the operator has size {self.n}, the data has shape {values.shape}")
        return np.asarray(act(values.reshape(1, self.n, -1))).reshape(values.shape)


class DiagonalPlusRankOne(Operator):
    """diag(d) + u vᵀ with each of ``d``, ``u``, ``v`` one number or ``n`` numbers; everything costs O(n).

    >>> m = DiagonalPlusRankOne(3, 0.5, [0.2, 0.2, 0.1], 1.0)
    >>> m.apply([10.0, 0.0, 0.0]).tolist()
    [7.0, 2.0, 1.0]
    >>> m.solve([7.0, 2.0, 1.0]).round(12).tolist()
    [10.0, 0.0, 0.0]

    Sherman and Morrison (1950), Annals of Mathematical Statistics 21, 124-127.
    """

    def __init__(self, n: int, d: Any, u: Any, v: Any) -> None:
        self.n = int(n)
        self.d, self.u, self.v = (np.asarray(part, dtype=np.float64) for part in (d, u, v))
        for name, part in (("d", self.d), ("u", self.u), ("v", self.v)):
            if part.shape not in ((), (self.n,)):
                raise InputError(f"{name} has shape {part.shape}: give one number or {self.n}")

    def act(self, x: FloatArray) -> FloatArray:
        d, u, v = (part if part.ndim == 0 else part[:, None] for part in (self.d, self.u, self.v))
        dots = v * x.sum(axis=1, keepdims=True) if v.ndim == 0 else np.einsum("k,bka->ba", self.v, x)[:, None, :]
        result: FloatArray = d * x
        result += u * dots
        return result

    def _invert(self) -> DiagonalPlusRankOne:
        if not np.all(self.d):
            raise InputError("the operator is singular: a value of the domain has no weight of its own")
        left, right = self.u / self.d, self.v / self.d
        pivot = 1.0 + self._dot(left, self.v)
        if abs(pivot) < 1e-14 * (1.0 + abs(pivot - 1.0)):
            raise InputError("the operator is singular: the rank-one part cancels the diagonal")
        return DiagonalPlusRankOne(self.n, 1.0 / self.d, -left / pivot, right)

    def adjoint(self) -> DiagonalPlusRankOne:
        return DiagonalPlusRankOne(self.n, self.d, self.v, self.u)

    def squared(self) -> DiagonalPlusRankOne:
        return DiagonalPlusRankOne(self.n, self.d * (self.d + 2.0 * self.u * self.v), self.u**2, self.v**2)

    def norm2(self) -> float:
        if self.d.ndim or self.n == 1:
            return _largest_singular_value(self)
        # Outside the plane of u and v the operator multiplies by d; inside it is a 2x2 triangular matrix.
        c, length = float(self.d), sqrt(self._dot(self.u, self.u))
        if length == 0.0:
            return abs(c)
        along = self._dot(self.u, self.v) / length
        across = sqrt(max(self._dot(self.v, self.v) - along**2, 0.0))
        plane = np.array([[c + length * along, length * across], [0.0, c]])
        return float(np.linalg.svd(plane, compute_uv=False)[0])

    def _dot(self, a: FloatArray, b: FloatArray) -> float:
        both = a * b
        return float(both) * self.n if both.ndim == 0 else float(both.sum())


class Dense(Operator):
    """A general matrix, factorised once.

    >>> Dense([[0.8, 0.3], [0.2, 0.7]]).solve([55.0, 45.0]).round(12).tolist()
    [50.0, 50.0]
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = np.asarray(matrix, dtype=np.float64)
        if self.matrix.ndim != 2 or self.matrix.shape[0] != self.matrix.shape[1] or not self.matrix.size:
            raise InputError(f"a square matrix is needed, this one has shape {self.matrix.shape}")
        if not np.isfinite(self.matrix).all():
            raise InputError("the matrix has entries that are not finite")
        self.n = self.matrix.shape[0]

    def act(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.matmul(self.matrix, x))

    def solve(self, y: Any) -> FloatArray:
        return self._columns(lambda x: scipy.linalg.lu_solve(self._factors, x[0])[None], y)

    def _invert(self) -> Dense:
        return Dense(scipy.linalg.lu_solve(self._factors, np.eye(self.n)))

    def adjoint(self) -> Dense:
        return Dense(self.matrix.T)

    def squared(self) -> Dense:
        return Dense(self.matrix**2)

    def norm2(self) -> float:
        return _largest_singular_value(self)

    def dense(self) -> FloatArray:
        return self.matrix.copy()

    @cached_property
    def _factors(self) -> tuple[Any, Any]:
        lu, pivots, _ = scipy.linalg.lapack.dgetrf(self.matrix)
        rcond, _ = scipy.linalg.lapack.dgecon(lu, np.abs(self.matrix).sum(axis=0).max())
        if rcond < self.n * np.finfo(float).eps:
            raise InputError(f"the matrix is singular to working precision (reciprocal condition {rcond:.1e})")
        return lu, pivots


class Sparse(Operator):
    """A general sparse matrix: ``solve`` by sparse LU, an explicit inverse only on request.

    >>> Sparse(sp.csr_array(np.diag([2.0, 4.0]))).solve([2.0, 2.0]).tolist()
    [1.0, 0.5]
    """

    def __init__(self, matrix: Any) -> None:
        self.matrix = sp.csc_array(matrix, dtype=np.float64)
        if self.matrix.shape[0] != self.matrix.shape[1] or not self.matrix.shape[0]:
            raise InputError(f"a square matrix is needed, this one has shape {self.matrix.shape}")
        if not np.isfinite(self.matrix.data).all():
            raise InputError("the matrix has entries that are not finite")
        self.n = int(self.matrix.shape[0])

    def act(self, x: FloatArray) -> FloatArray:
        before, _, after = x.shape
        flat = np.moveaxis(x, 1, 0).reshape(self.n, -1)
        return np.asarray(np.moveaxis((self.matrix @ flat).reshape(self.n, before, after), 0, 1))

    def solve(self, y: Any) -> FloatArray:
        return self._columns(lambda x: self._factors.solve(np.ascontiguousarray(x[0]))[None], y)

    def _invert(self) -> Dense:
        if self.n > DENSE_LIMIT:
            raise InputError(
                f"the inverse of a general matrix of size {self.n} would be dense: use a structured matrix"
            )
        return Dense(self._factors.solve(np.eye(self.n)))

    def adjoint(self) -> Sparse:
        return Sparse(self.matrix.T)

    def squared(self) -> Sparse:
        return Sparse(self.matrix.multiply(self.matrix))

    def norm2(self) -> float:
        return _largest_singular_value(self)

    @cached_property
    def _factors(self) -> Any:
        try:
            factors = spla.splu(self.matrix)
        except RuntimeError as error:
            raise InputError(f"the matrix is singular ({error})") from error
        size = np.abs(factors.U.diagonal())
        if size.min() < self.n * np.finfo(float).eps * size.max():
            raise InputError("the matrix is singular to working precision")
        return factors


class Kronecker(Operator):
    """M₁ ⊗ M₂ ⊗ …, one factor per attribute, acting on the row-major product domain and never formed.

    >>> two = Kronecker([DiagonalPlusRankOne(2, 0.5, 0.25, 1.0), Dense([[1.0, 0.5], [0.0, 0.5]])])
    >>> two.apply([8.0, 0.0, 0.0, 0.0]).tolist()
    [6.0, 0.0, 2.0, 0.0]
    """

    def __init__(self, factors: Sequence[Operator]) -> None:
        if not factors:
            raise InputError("a product needs at least one factor")
        self.factors = tuple(factors)
        self.n = prod(factor.n for factor in self.factors)

    def act(self, x: FloatArray) -> FloatArray:
        shape, before, rest = x.shape, x.shape[0], self.n
        for factor in self.factors:
            rest //= factor.n
            x = factor.act(x.reshape(before, factor.n, rest * shape[2]))
            before *= factor.n
        return x.reshape(shape)

    def _invert(self) -> Kronecker:
        return Kronecker([factor.inverse() for factor in self.factors])

    def adjoint(self) -> Kronecker:
        return Kronecker([factor.adjoint() for factor in self.factors])

    def squared(self) -> Kronecker:
        return Kronecker([factor.squared() for factor in self.factors])

    def norm2(self) -> float:
        return prod(factor.norm2() for factor in self.factors)

    def frobenius(self) -> float:
        return prod(factor.frobenius() for factor in self.factors)


def _largest_singular_value(operator: Operator) -> float:
    if operator.n <= SVD_LIMIT:
        return float(np.linalg.svd(operator.dense(), compute_uv=False)[0])
    transposed = operator.adjoint()
    gram = spla.LinearOperator(
        (operator.n, operator.n), matvec=lambda x: transposed.apply(operator.apply(np.ravel(x))), dtype=np.float64
    )
    start = np.random.default_rng(0).random(operator.n)  # fixed, so that the answer never varies
    return sqrt(float(spla.eigsh(gram, k=1, which="LM", v0=start, tol=0, return_eigenvectors=False)[0]))
