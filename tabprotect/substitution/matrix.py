"""What every transition matrix of random substitution can do: randomise, reconstruct, and say how private and how exact it is.

``M[h, k]`` is the probability that the value k is released as h, so that columns sum to one. The subclasses are
``GammaDiagonal`` here and ``Retention``, ``Transition`` and ``Product`` in ``families``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor
from fractions import Fraction
from functools import cached_property
from math import ceil, inf, log, prod, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from tabprotect.errors import InputError
from tabprotect.linalg.operators import DiagonalPlusRankOne, Norm, Operator
from tabprotect.substitution import accuracy, privacy
from tabprotect.substitution.chacha import Stream
from tabprotect.substitution.columns import decode, encode, is_column
from tabprotect.types import FloatArray

Codes = npt.NDArray[Any]


class Matrix(ABC):
    """A transition matrix on a domain of ``n`` values, or on the product of several attributes of the given ``sizes``."""

    sizes: tuple[int, ...]
    width = 1  # random words per record

    @property
    def n(self) -> int:
        """Number of values of the domain (the product over the attributes)."""
        return prod(self.sizes)

    @cached_property
    @abstractmethod
    def operator(self) -> Operator:
        """The matrix as a linear operator that is never formed."""

    @property
    @abstractmethod
    def amplification(self) -> float:
        """Largest ratio m[y, x₁] / m[y, x₂]: the γ of γ-amplification (Evfimievski, Gehrke and Srikant 2003)."""

    @abstractmethod
    def marginal(self, axes: Sequence[int]) -> Matrix:
        """The matrix that the attributes ``axes`` alone have gone through, in the order given."""

    @abstractmethod
    def _substitute(self, codes: Codes, out: Codes, state: Any, position: int) -> int:
        """Write the new codes; return -1 or the position of the first unknown code."""

    # -- randomise -------------------------------------------------------------------------------------------------

    def randomize(
        self, codes: Any, rng: Any = None, *, seed: int | None = None, executor: Executor | None = None
    ) -> Any:
        """Replace every record's value at random, O(1) per record, and return the same kind of object.

        ``codes`` are integers 0 … n-1, a categorical Series (pandas, polars) with n categories, or for several attributes
        an array with one column each. Without ``rng`` and ``seed`` the randomness is cryptographic; a seed or a NumPy
        generator makes it reproducible, for studies. Codes never depend on chunks or on the ``executor``.

        >>> GammaDiagonal(5, gamma=19).randomize([0, 1, 2, 3, 4, 0], seed=3).shape
        (6,)
        """
        if is_column(codes):
            return decode(self.randomize(encode(codes, self.n), rng, seed=seed, executor=executor), codes)
        given = np.asarray(codes)
        joint = self.join(given) if given.ndim == 2 else self._integers(given)
        stream = Stream.of(rng, seed)
        position = stream.take(joint.size, self.width)
        out = np.empty_like(joint)
        self._run(joint, out, stream.state, position, executor)
        return (out if given.ndim < 2 else self.split(out)).astype(given.dtype if given.size else np.int64, copy=False)

    def randomize_chunks(self, chunks: Iterable[Any], rng: Any = None, *, seed: int | None = None) -> Iterator[Any]:
        """Randomise one chunk after the other; together the same as one call on everything.

        >>> matrix, codes = GammaDiagonal(5, gamma=3), np.arange(100) % 5
        >>> parts = list(matrix.randomize_chunks(np.array_split(codes, 7), seed=1))
        >>> bool((np.concatenate(parts) == matrix.randomize(codes, seed=1)).all())
        True
        """
        stream = Stream.of(rng, seed)
        for chunk in chunks:
            yield self.randomize(chunk, stream)

    def counts(self, codes: Any) -> FloatArray:
        """How often each value of the domain occurs among the records (an array, or chunks of it)."""
        chunks = [codes] if hasattr(codes, "__len__") else codes
        total = np.zeros(self.n, dtype=np.int64)
        for chunk in chunks:
            given = encode(chunk, self.n) if is_column(chunk) else np.asarray(chunk)
            joint = self.join(given) if given.ndim == 2 else self._integers(given)
            if joint.size and (joint.min() < 0 or joint.max() >= self.n):
                self._unknown(int(np.flatnonzero((joint < 0) | (joint >= self.n))[0]))
            total += np.bincount(joint, minlength=self.n)
        return total.astype(np.float64)

    def join(self, codes: Any) -> Codes:
        """One code of the product domain (row-major) per row of attribute codes."""
        rows = np.asarray(codes)
        if rows.ndim != 2 or rows.shape[1] != len(self.sizes):
            raise InputError(f"the matrix has {len(self.sizes)} attribute(s), the codes have shape {rows.shape}")
        self._integers(rows)
        bad = (rows < 0) | (rows >= np.asarray(self.sizes))
        if bad.any():
            row, axis = (int(i) for i in np.argwhere(bad)[0])
            raise InputError(f"record {row}, attribute {axis}: the code is not in 0 … {self.sizes[axis] - 1}")
        return np.asarray(np.ravel_multi_index(tuple(rows.T.astype(np.int64)), self.sizes)).astype(np.int64, copy=False)

    def split(self, joint: Any) -> Codes:
        """The attribute codes (one column each) of codes of the product domain."""
        return np.stack(np.unravel_index(np.asarray(joint), self.sizes), axis=1)

    def _run(self, codes: Codes, out: Codes, state: Any, position: int, executor: Executor | None) -> None:
        if executor is None:
            pieces = [(0, codes.size)]
            bad = [self._substitute(codes, out, state, position)]
        else:
            step = max(1 << 18, -(-codes.size // 64))
            pieces = [(i, min(i + step, codes.size)) for i in range(0, codes.size, step)]
            tasks = [executor.submit(self._piece, codes[a:b], state, position + a * self.width) for a, b in pieces]
            bad = []
            for (a, b), task in zip(pieces, tasks, strict=True):
                out[a:b], found = task.result()
                bad.append(found)
        for (start, _), found in zip(pieces, bad, strict=True):
            if found >= 0:
                self._unknown(start + found)

    def _piece(self, codes: Codes, state: Any, position: int) -> tuple[Codes, int]:
        out = np.empty_like(codes)
        return out, self._substitute(codes, out, state, position)

    def _integers(self, codes: Codes) -> Codes:
        if not codes.size:
            return np.empty(0, np.int64)
        if codes.ndim == 0 or codes.dtype.kind not in "iu":
            raise InputError(
                f"codes are integers 0 … {self.n - 1} (got {codes.dtype}); turn labels into a categorical first"
            )
        # two compiled versions are enough: narrow integers widen to 32 bits, everything else to 64
        return np.ascontiguousarray(
            codes, dtype=np.int32 if codes.dtype.itemsize < 4 or codes.dtype == np.int32 else np.int64
        )

    def _unknown(self, position: int) -> None:
        # the code itself is a person's answer and stays out of the message
        raise InputError(f"record {position}: the code is not in 0 … {self.n - 1}; the domain has to be complete")

    # -- reconstruct -----------------------------------------------------------------------------------------------

    def reconstruct(self, counts: Any, *, method: str = "unbiased") -> FloatArray:
        """Estimate the original counts from the counts of the randomised records.

        ``method``: "unbiased" (M⁻¹y), "clipped" (negatives to 0 and rounded), "floor" (as printed in the source), "nnls" (least
        squares, non-negative, total kept), "ml" (maximum likelihood), "em" (the same by the EM algorithm whatever the matrix).

        >>> matrix = GammaDiagonal(3, gamma=4)
        >>> matrix.reconstruct(matrix.apply([60, 30, 10])).round(9).tolist()
        [60.0, 30.0, 10.0]
        """
        return accuracy.point(self, counts, method)

    def estimate(
        self,
        counts: Any,
        *,
        method: str = "unbiased",
        level: float = 0.95,
        sampling: bool = False,
        interval: str = "normal",
    ) -> accuracy.Estimate:
        """Estimated original counts with standard errors and intervals; see ``Estimate``.

        ``sampling=False`` treats the people as fixed (Poisson-binomial counts); True estimates the distribution they are a
        multinomial sample of. ``interval="exact"`` inverts the exact distribution of the count (γ-diagonal matrices).

        >>> found = GammaDiagonal(2, gamma=3).estimate([600, 400])
        >>> found.x.tolist(), found.std.round(2).tolist()
        ([700.0, 300.0], [27.39, 27.39])
        """
        return accuracy.estimate(self, counts, method, level, sampling, interval)

    def apply(self, x: Any) -> FloatArray:
        """Expected counts of the randomised records, E[Y] = M x."""
        return self.operator.apply(accuracy.as_counts(self.n, x))

    def dense(self) -> FloatArray:
        """The matrix itself, for small domains."""
        return self.operator.dense()

    # -- accuracy --------------------------------------------------------------------------------------------------

    def condition_number(self, norm: Norm = "2") -> float:
        """Exact condition number, ``"2"`` or ``"fro"``.

        >>> GammaDiagonal(50, 11).condition_number("2"), round(GammaDiagonal(50, 11).condition_number("fro"), 2)
        (6.0, 64.56)
        """
        return self.operator.condition_number(str(norm))  # type: ignore[arg-type]

    def variance(self, x: Any) -> FloatArray:
        """Var(Y_j) of every randomised count, given the original counts (Poisson-binomial)."""
        counts = accuracy.as_counts(self.n, x)
        return np.maximum(self.operator.apply(counts) - self.operator.squared().apply(counts), 0.0)

    def covariance(self, x: Any, *, sampling: bool = False) -> FloatArray:
        """Exact covariance of the unbiased estimator: M⁻¹ diag(Mx) M⁻ᵀ − diag(x), or − x xᵀ/S with ``sampling``."""
        return accuracy.covariance(self, accuracy.as_counts(self.n, x), sampling)

    def standard_errors(self, x: Any, *, sampling: bool = False) -> FloatArray:
        """Exact standard deviation of every cell of the unbiased estimator, without forming the covariance."""
        return np.sqrt(accuracy.variances(self, accuracy.as_counts(self.n, x), sampling))

    def standard_error(self, x: Any, *, sampling: bool = False) -> float:
        """The source's standard error sd(X̂)/‖X‖ with sd(X̂)² = E‖X̂ − X‖², exact.

        >>> round(GammaDiagonal(50, 2).standard_error(np.full(50, 2000)), 4)
        1.1287
        """
        counts = accuracy.nonempty(accuracy.as_counts(self.n, x))
        return sqrt(float(accuracy.variances(self, counts, sampling).sum())) / float(np.linalg.norm(counts))

    def error_bound(self, x: Any, norm: Norm = "2") -> float:
        """The upper bound κ·sd(Y)/‖E[Y]‖ of the standard error (theorem 4.3 of the source, with the exact κ)."""
        counts = accuracy.nonempty(accuracy.as_counts(self.n, x))
        spread = sqrt(float(self.variance(counts).sum()))
        return self.condition_number(norm) * spread / float(np.linalg.norm(self.apply(counts)))

    # -- privacy ---------------------------------------------------------------------------------------------------

    @property
    def epsilon(self) -> float:
        """Local differential privacy of one record: ln of the amplification."""
        return log(self.amplification) if self.amplification < inf else inf

    @property
    def statement(self) -> privacy.LocalPrivacy:
        """The per-record guarantee in words and numbers."""
        return privacy.LocalPrivacy(self.amplification)

    def posterior(self, rho1: Any) -> Any:
        """The ρ2 that a property of prior probability ρ1 cannot exceed: γρ1/(1 − ρ1 + γρ1).

        >>> round(GammaDiagonal(10, 19).posterior(0.05), 6)
        0.5
        """
        return privacy.posterior_bound(self.amplification, rho1)

    def posterior_table(self, prior: Any) -> FloatArray:
        """Pr[X = x | Y = y], row y and column x, for someone who knows the distribution ``prior``."""
        return privacy.posterior_table(self, prior)

    def changed_share(self, x: Any = None) -> float:
        """Expected share of records whose value changes, for original counts ``x`` (default: all values equally frequent)."""
        weights = accuracy.nonempty(accuracy.as_counts(self.n, np.ones(self.n) if x is None else x))
        return 1.0 - float(self._diagonal() @ weights / weights.sum())

    @abstractmethod
    def _diagonal(self) -> FloatArray:
        """Probability of keeping each value."""


class GammaDiagonal(Matrix):
    """γ/(γ+n−1) on the diagonal and 1/(γ+n−1) elsewhere, on one attribute or jointly on a product of attributes.

    Of all symmetric matrices with amplification γ it has the smallest condition number (Agrawal and Haritsa 2005). Several
    sizes make it the γ-diagonal matrix of the product domain.

    >>> GammaDiagonal(4, gamma=5).dense().tolist()[0]
    [0.625, 0.125, 0.125, 0.125]
    >>> GammaDiagonal((3, 4), gamma=13).marginal([1])
    GammaDiagonal(4, gamma=5)

    Agrawal, S. and Haritsa, J. R. (2005), A framework for high-accuracy privacy-preserving mining, ICDE, 193-204;
    Kang, J.-S., An, A. and Hong, D. (2008), the source ``substitution``.
    """

    def __init__(self, n: int | Sequence[int], gamma: float) -> None:
        self.sizes = domain_sizes(n)
        if isinstance(gamma, bool) or not isinstance(gamma, int | float | np.number) or not 1.0 < gamma < inf:
            raise InputError(f"gamma is {gamma!r}: it has to be a number above 1 (1 would erase the data)")
        self.gamma = float(gamma)
        if self.n < 2:
            raise InputError("the domain needs at least two values")

    @property
    def diagonal(self) -> float:
        return self.gamma / (self.gamma + self.n - 1)

    @property
    def off_diagonal(self) -> float:
        return 1.0 / (self.gamma + self.n - 1)

    @property
    def amplification(self) -> float:
        return self.gamma

    @cached_property
    def operator(self) -> DiagonalPlusRankOne:
        return DiagonalPlusRankOne(self.n, (self.gamma - 1) * self.off_diagonal, self.off_diagonal, 1.0)

    def condition_number(self, norm: Norm = "2") -> float:
        return 1.0 + self.n / (self.gamma - 1) if str(norm) == "2" else super().condition_number(norm)

    def marginal(self, axes: Sequence[int]) -> GammaDiagonal:
        kept = [self.sizes[axis] for axis in check_axes(axes, len(self.sizes))]
        return GammaDiagonal(kept, 1.0 + (self.gamma - 1) * prod(kept) / self.n)

    def _substitute(self, codes: Codes, out: Codes, state: Any, position: int) -> int:
        from tabprotect.substitution import kernels

        keep, width = self._thresholds
        return int(kernels.uniform(codes, out, state, position, self.n, keep, width))

    def _diagonal(self) -> FloatArray:
        return np.full(self.n, self.diagonal)

    @cached_property
    def _thresholds(self) -> tuple[np.uint64, np.uint64]:
        # The chance of every other value is rounded up, so that the amplification of the integer lottery never exceeds γ.
        width = ceil(Fraction(2**64) / (Fraction(self.gamma) + self.n - 1))
        keep = 2**64 - self.n * width
        if keep < 0:
            raise InputError(f"gamma = {self.gamma!r} is too close to 1 for a domain of {self.n} values")
        return np.uint64(keep), np.uint64(width)

    def __repr__(self) -> str:
        size = self.n if len(self.sizes) == 1 else self.sizes
        return f"GammaDiagonal({size}, gamma={self.gamma:g})"


def domain_sizes(n: int | Sequence[int]) -> tuple[int, ...]:
    """The sizes of the attributes as a tuple; each has to be a whole number of at least 1."""
    sizes = tuple(n) if isinstance(n, Iterable) else (n,)
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise InputError(f"a domain has a whole number of values, not {size!r}")
    if not sizes:
        raise InputError("the matrix needs at least one attribute")
    return tuple(int(size) for size in sizes)


def check_axes(axes: Sequence[int], count: int) -> tuple[int, ...]:
    """Attribute numbers, distinct and in range."""
    chosen = tuple(int(axis) for axis in axes)
    if not chosen or len(set(chosen)) < len(chosen) or not all(0 <= axis < count for axis in chosen):
        raise InputError(f"attributes {list(axes)}: choose different numbers from 0 … {count - 1}")
    return chosen
