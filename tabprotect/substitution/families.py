"""More transition matrices: retention with a replacement distribution, general matrices, invariant PRAM, products."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, reduce
from math import inf, prod
from typing import Any

import numpy as np
import scipy.sparse as sp

from tabprotect.errors import InputError
from tabprotect.linalg.operators import Dense, DiagonalPlusRankOne, Kronecker, Sparse
from tabprotect.substitution.chacha import Stream
from tabprotect.substitution.matrix import Codes, Matrix, check_axes
from tabprotect.substitution.privacy import as_prior
from tabprotect.types import FloatArray

_WHOLE = 2.0**64
_BELOW_ONE = 1.0 - 2.0**-53


class Retention(Matrix):
    """Keep value k with probability ``retain[k]``, otherwise draw from ``replacement``: diag(r) + q (1 − r)ᵀ, everything O(n).

    >>> Retention(0.6, [0.5, 0.3, 0.2]).dense().round(2).tolist()
    [[0.8, 0.2, 0.2], [0.12, 0.72, 0.12], [0.08, 0.08, 0.68]]
    """

    width = 2

    def __init__(self, retain: Any, replacement: Any) -> None:
        self.replacement = as_prior(np.size(replacement), replacement)
        self.sizes = (self.replacement.size,)
        self.retain = np.asarray(retain, dtype=np.float64)
        if self.retain.shape not in ((), (self.n,)):
            raise InputError(f"retain needs one number or {self.n}")
        if not ((self.retain > 0) & (self.retain <= 1)).all():
            raise InputError("retain: probabilities above 0 and at most 1 (0 would erase a value)")

    @classmethod
    def from_prior(cls, prior: Any, gamma: float) -> Retention:
        """Replace by the prior distribution, with as much retention as amplification γ allows.

        The released data then have the same expected distribution as the prior, which makes the matrix invariant for it.

        >>> matrix = Retention.from_prior([0.5, 0.3, 0.2], gamma=19)
        >>> round(matrix.amplification, 9), matrix.apply([50, 30, 20]).round(9).tolist()
        (19.0, [50.0, 30.0, 20.0])
        """
        chances = as_prior(np.size(prior), prior)
        if not 1 < gamma < inf or not chances.min() > 0:
            raise InputError(
                "from_prior needs gamma above 1 and a prior without zeros (a zero would make gamma infinite)"
            )
        odds = (gamma - 1.0) * float(chances.min())
        return cls(odds / (1.0 + odds), chances)

    @classmethod
    def invariant(cls, prior: Any, retain: Any) -> Retention:
        """PRAM with its own retention for every value that leaves the distribution ``prior`` unchanged, in O(n).

        >>> matrix = Retention.invariant([0.5, 0.3, 0.2], retain=[0.9, 0.8, 0.5])
        >>> matrix.apply([50, 30, 20]).round(9).tolist()
        [50.0, 30.0, 20.0]
        """
        chances = as_prior(np.size(prior), prior)
        leaving = chances * (1.0 - np.asarray(retain, dtype=np.float64))
        if not leaving.sum() > 0:
            raise InputError("retain is 1 everywhere: nothing would be protected")
        return cls(retain, leaving)

    @cached_property
    def operator(self) -> DiagonalPlusRankOne:
        return DiagonalPlusRankOne(self.n, self.retain, self.replacement, 1.0 - self.retain)

    @cached_property
    def amplification(self) -> float:
        leave = np.broadcast_to(1.0 - self.retain, (self.n,))
        order = np.argsort(leave)
        largest = np.where(np.arange(self.n) == order[-1], leave[order[-2]] if self.n > 1 else 0.0, leave[order[-1]])
        smallest = np.where(np.arange(self.n) == order[0], leave[order[1]] if self.n > 1 else inf, leave[order[0]])
        own = self._diagonal()
        top, bottom = np.maximum(own, self.replacement * largest), np.minimum(own, self.replacement * smallest)
        return float((top / bottom).max()) if (bottom > 0).all() else inf

    def marginal(self, axes: Sequence[int]) -> Retention:
        check_axes(axes, 1)
        return self

    def _substitute(self, codes: Codes, out: Codes, state: Any, position: int) -> int:
        from tabprotect.substitution import kernels

        keep = np.broadcast_to((np.minimum(self.retain, _BELOW_ONE) * _WHOLE).astype(np.uint64), (self.n,)).copy()
        cumulative = (np.minimum(np.cumsum(self.replacement), _BELOW_ONE) * _WHOLE).astype(np.uint64)
        return int(kernels.retention(codes, out, state, position, self.n, keep, cumulative))

    def _diagonal(self) -> FloatArray:
        return np.asarray(self.retain + self.replacement * (1.0 - self.retain))

    def __repr__(self) -> str:
        return f"Retention(n={self.n}, gamma={self.amplification:g})"


class Transition(Matrix):
    """A general transition matrix, dense or sparse; column k is the distribution of what value k becomes.

    >>> Transition([[0.8, 0.3], [0.2, 0.7]]).reconstruct([55, 45]).round(9).tolist()
    [50.0, 50.0]
    """

    def __init__(self, matrix: Any) -> None:
        self.operator = Sparse(matrix) if sp.issparse(matrix) else Dense(matrix)
        self.sizes = (self.operator.n,)
        entries: Any = self.operator.matrix
        if entries.min() < 0:
            raise InputError("a transition matrix has no negative entries")
        sums = np.asarray(entries.sum(axis=0)).ravel()
        bad = np.flatnonzero(np.abs(sums - 1.0) > 1e-9)
        if bad.size:
            hint = "; the rows do: transpose it" if np.allclose(np.asarray(entries.sum(axis=1)), 1.0) else ""
            raise InputError(f"column {int(bad[0])} sums to {sums[bad[0]]:.9g}, not to 1{hint}")

    operator: Dense | Sparse

    @cached_property
    def amplification(self) -> float:
        entries = self.operator.matrix
        if sp.issparse(entries):
            rows = sp.csr_array(entries)
            rows.eliminate_zeros()
            filled = np.diff(rows.indptr)
            if ((filled > 0) & (filled < self.n)).any():
                return inf
            entries = rows.toarray()
        top, bottom = entries.max(axis=1), entries.min(axis=1)
        possible = top > 0
        return float((top[possible] / bottom[possible]).max()) if (bottom[possible] > 0).all() else inf

    def invariant(self, prior: Any) -> Transition:
        """The two-stage invariant version: this matrix, then its Bayes inverse under ``prior``, which it leaves unchanged.

        Kooiman, Willenborg and Gouweleeuw (1997), PRAM: a method for disclosure limitation of microdata.

        >>> pram = Transition([[0.8, 0.3], [0.2, 0.7]]).invariant([0.6, 0.4])
        >>> pram.apply([60, 40]).round(9).tolist()
        [60.0, 40.0]
        """
        chances = as_prior(self.n, prior)
        forward = sp.csc_array(self.operator.matrix)
        seen = forward @ chances
        scale = np.divide(1.0, seen, out=np.zeros_like(seen), where=seen > 0)
        back = sp.diags_array(chances) @ forward.T @ sp.diags_array(scale)
        both = back @ forward
        # a value of prior zero reaches the same releases but never comes back: keep its column a distribution
        both = both @ sp.diags_array(1.0 / np.asarray(both.sum(axis=0)).ravel())
        return Transition(sp.csc_array(both) if isinstance(self.operator, Sparse) else both.toarray())

    def marginal(self, axes: Sequence[int]) -> Transition:
        check_axes(axes, 1)
        return self

    def _substitute(self, codes: Codes, out: Codes, state: Any, position: int) -> int:
        from tabprotect.substitution import kernels

        return int(kernels.columns(codes, out, state, position, self.n, *self._cumulative))

    @cached_property
    def _cumulative(self) -> tuple[Any, Any, Any]:
        stored = sp.csc_array(self.operator.matrix)
        stored.eliminate_zeros()
        stored.sort_indices()
        running = np.cumsum(stored.data)
        before = np.concatenate([[0.0], running])[stored.indptr[:-1]]
        within = running - np.repeat(before, np.diff(stored.indptr))
        thresholds = (np.clip(within, 0.0, _BELOW_ONE) * _WHOLE).astype(np.uint64)
        return stored.indptr.astype(np.int64), stored.indices.astype(np.int64), thresholds

    def _diagonal(self) -> FloatArray:
        return np.asarray(self.operator.matrix.diagonal())

    def __repr__(self) -> str:
        return f"Transition(n={self.n}, gamma={self.amplification:g})"


class Product(Matrix):
    """Every attribute randomised on its own: the Kronecker product of the attributes' matrices, never formed.

    >>> from tabprotect.substitution import GammaDiagonal
    >>> both = Product([GammaDiagonal(2, gamma=3), GammaDiagonal(100, gamma=4)])
    >>> both.n, both.amplification, both.sizes
    (200, 12.0, (2, 100))
    """

    def __init__(self, factors: Sequence[Matrix]) -> None:
        self.factors: tuple[Matrix, ...] = tuple(
            part for factor in factors for part in (factor.factors if isinstance(factor, Product) else (factor,))
        )
        if not self.factors:
            raise InputError("a product needs at least one matrix")
        self.sizes = tuple(size for factor in self.factors for size in factor.sizes)
        self.width = max(factor.width for factor in self.factors)

    @cached_property
    def operator(self) -> Kronecker:
        return Kronecker([factor.operator for factor in self.factors])

    @property
    def amplification(self) -> float:
        return prod(factor.amplification for factor in self.factors)

    def marginal(self, axes: Sequence[int]) -> Matrix:
        chosen = check_axes(axes, len(self.sizes))
        parts: list[Matrix] = []
        for factor, first in zip(self.factors, self._first_axes, strict=True):
            inside = [axis - first for axis in chosen if first <= axis < first + len(factor.sizes)]
            if inside:
                parts.append(factor.marginal(inside))
        order = [
            a for f, s in zip(self.factors, self._first_axes, strict=True) for a in chosen if s <= a < s + len(f.sizes)
        ]
        if list(chosen) != order:
            if any(len(part.sizes) > 1 for part in parts):
                raise InputError(
                    "attributes that are randomised jointly have to be listed next to each other, in order"
                )
            parts = [parts[order.index(axis)] for axis in chosen]
        return parts[0] if len(parts) == 1 else Product(parts)

    def _substitute(self, codes: Codes, out: Codes, state: Any, position: int) -> int:
        if codes.size and (codes.min() < 0 or codes.max() >= self.n):
            return int(np.flatnonzero((codes < 0) | (codes >= self.n))[0])
        stream = Stream(state, reproducible=True)
        rest, shift = codes.astype(np.int64), self.n
        out[:] = 0
        for number, factor in enumerate(self.factors):
            shift //= factor.n
            part, rest = np.divmod(rest, shift)
            new = np.empty_like(part)
            # every attribute has a stream of its own, addressed by record, so that no word is used twice
            own = stream.branch(number + 1, self.width, position // self.width * factor.width)
            factor._substitute(part, new, own.state, own.position)
            out += (new * shift).astype(out.dtype)
        return -1

    @cached_property
    def _first_axes(self) -> list[int]:
        sizes = [len(factor.sizes) for factor in self.factors]
        return [sum(sizes[:i]) for i in range(len(sizes))]

    def _diagonal(self) -> FloatArray:
        return np.asarray(reduce(np.multiply.outer, [factor._diagonal() for factor in self.factors])).ravel()

    def __repr__(self) -> str:
        return f"Product({list(self.factors)})"
