"""Mining on randomised records: frequent itemsets and decision-tree splits, estimated without ever seeing a true record.

Both only need the joint counts of a few attributes, which have gone through the marginal of the matrix. Agrawal and Haritsa (2005)
for itemsets, Dowd, Xu and Zhang (2006) for decision trees.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.substitution.accuracy import Estimate
from tabprotect.substitution.matrix import Matrix
from tabprotect.types import BoolArray, FloatArray


def frequent_itemsets(
    codes: Any,
    matrix: Matrix,
    *,
    min_support: float,
    max_length: int = 3,
    names: Sequence[str] | None = None,
    items_only: bool = False,
) -> Any:
    """Itemsets {attribute = value, …} whose estimated support reaches ``min_support``, as a pandas frame with standard errors.

    ``codes`` are the randomised records, one column per attribute. Apriori: a set is looked at only when all its subsets are frequent.
    ``items_only`` ignores the value 0 (attributes that say "bought or not").

    >>> rng = np.random.default_rng(0)
    >>> true = np.stack([rng.random(50_000) < 0.5, rng.random(50_000) < 0.1], axis=1).astype(int)
    >>> from tabprotect.substitution import GammaDiagonal
    >>> matrix = GammaDiagonal((2, 2), gamma=19)
    >>> found = frequent_itemsets(matrix.randomize(true, seed=1), matrix, min_support=0.3)
    >>> found["itemset"].tolist()
    ['0=0', '0=1', '1=0', '0=0, 1=0', '0=1, 1=0']
    """
    rows = _records(codes, matrix)
    if not 0 < min_support <= 1:
        raise InputError(f"min_support is {min_support}: a share above 0 and at most 1")
    labels = _names(names, matrix)
    found: list[Any] = []
    frequent: dict[tuple[int, ...], BoolArray] = {(): np.array(True)}
    for length in range(1, min(max_length, len(matrix.sizes)) + 1):
        for axes in combinations(range(len(matrix.sizes)), length):
            wanted = _candidates(axes, frequent, matrix.sizes, items_only)
            if wanted is None:
                continue
            table = joint_estimate(rows, matrix, axes)
            support, std = table.x / len(rows), table.std / len(rows)
            hit = wanted & (support >= min_support)
            if not hit.any():
                continue
            frequent[axes] = hit
            for cell in np.argwhere(hit):
                items = ", ".join(f"{labels[axis]}={value}" for axis, value in zip(axes, cell, strict=True))
                found.append((items, length, float(support[tuple(cell)]), float(std[tuple(cell)])))
    import pandas as pd

    return pd.DataFrame(found, columns=["itemset", "length", "support", "std"])


def split_statistics(
    codes: Any,
    matrix: Matrix,
    *,
    target: int,
    attributes: Sequence[int] | None = None,
    given: Mapping[int, int] | None = None,
    names: Sequence[str] | None = None,
) -> Any:
    """Information gain (bits) and Gini decrease of splitting on each attribute, estimated from randomised records, best first.

    ``target`` is the class attribute; ``given`` fixes attributes to values, as on the path to a node. Supports are maximum-likelihood
    estimates; the standard errors come from the exact covariance by the delta method.

    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(0, 3, 50_000)
    >>> true = np.stack([a, rng.integers(0, 4, 50_000), (a == 2) ^ (rng.random(50_000) < 0.1)], axis=1)
    >>> from tabprotect.substitution import GammaDiagonal, Product
    >>> matrix = Product([GammaDiagonal(3, gamma=9), GammaDiagonal(4, gamma=9), GammaDiagonal(2, gamma=9)])
    >>> split_statistics(matrix.randomize(true, seed=1), matrix, target=2)["attribute"].tolist()
    ['0', '1']
    """
    rows = _records(codes, matrix)
    labels, fixed = _names(names, matrix), dict(given or {})
    chosen = (
        [a for a in range(len(matrix.sizes)) if a != target and a not in fixed] if attributes is None else attributes
    )
    bad = {target, *chosen, *fixed} - set(range(len(matrix.sizes)))
    if bad or target in {*chosen, *fixed} or set(chosen) & set(fixed) or not chosen:
        raise InputError(
            "target, attributes and given have to name different attributes of the matrix, at least one to split on"
        )
    found = []
    for attribute in chosen:
        axes = sorted({*fixed, attribute, target})
        table = joint_estimate(rows, matrix, axes, method="ml")
        node = tuple(fixed.get(axis, slice(None)) for axis in axes)
        counts = table.x[node] if axes.index(attribute) < axes.index(target) else table.x[node].T
        records = float(counts.sum())
        if records <= 0:
            raise InputError("no record is estimated to reach this node")
        row: list[Any] = [labels[attribute], records]
        for statistic in (_information_gain, _gini_decrease):
            value, gradient = statistic(counts)
            weights = np.zeros_like(table.x)
            weights[node] = gradient if axes.index(attribute) < axes.index(target) else gradient.T
            row += [value, table.linear(weights)[1]]
        found.append(row)
    import pandas as pd

    frame = pd.DataFrame(found, columns=["attribute", "records", "gain", "gain_std", "gini", "gini_std"])
    return frame.sort_values("gain", ascending=False, kind="stable").reset_index(drop=True)


def joint_estimate(codes: Any, matrix: Matrix, axes: Sequence[int], *, method: str = "unbiased") -> Estimate:
    """Estimated joint counts of some attributes (an array with one axis each) from randomised records."""
    part = matrix.marginal(axes)
    columns = np.asarray(codes)[:, list(axes)]
    joint = np.ravel_multi_index(tuple(columns.T.astype(np.int64)), part.sizes)
    return part.estimate(np.bincount(joint, minlength=part.n).reshape(part.sizes), method=method)


def _candidates(
    axes: tuple[int, ...], frequent: Mapping[Any, BoolArray], sizes: Any, items_only: bool
) -> BoolArray | None:
    wanted = np.ones([sizes[axis] for axis in axes], dtype=bool)
    for place in range(len(axes)):
        rest = axes[:place] + axes[place + 1 :]
        if rest not in frequent:
            return None
        wanted &= np.expand_dims(frequent[rest], place)
        if items_only:
            wanted[(slice(None),) * place + (0,)] = False
    return wanted if wanted.any() else None


def _information_gain(x: FloatArray) -> tuple[float, FloatArray]:
    total = x.sum()
    expected = np.outer(x.sum(axis=1), x.sum(axis=0)) / total
    ratio = np.divide(x, expected, out=np.ones_like(x), where=x > 0)
    gain = float((x * np.log2(ratio)).sum() / total)
    return gain, np.where(x > 0, (np.log2(ratio) - gain) / total, 0.0)


def _gini_decrease(x: FloatArray) -> tuple[float, FloatArray]:
    total, rows, columns = x.sum(), x.sum(axis=1, keepdims=True), x.sum(axis=0)
    within = np.divide(x, rows, out=np.zeros_like(x), where=rows > 0)
    purity = (within**2).sum(axis=1, keepdims=True)
    inside, overall = float((rows * purity).sum() / total), float((columns**2).sum() / total**2)
    slope = (2.0 * within - purity - inside) / total - 2.0 * (columns / total - overall) / total
    return inside - overall, slope


def _records(codes: Any, matrix: Matrix) -> Any:
    rows = np.asarray(codes)
    if rows.ndim != 2 or not len(rows):
        raise InputError("records are an array with one row per record and one column per attribute, at least one row")
    matrix.join(rows)
    return rows


def _names(names: Sequence[str] | None, matrix: Matrix) -> list[str]:
    labels = [str(i) for i in range(len(matrix.sizes))] if names is None else [str(name) for name in names]
    if len(labels) != len(matrix.sizes):
        raise InputError(f"{len(matrix.sizes)} names are needed, one per attribute")
    return labels
