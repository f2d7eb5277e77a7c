"""Random tables for the attacker's tests, and what brute force says of them."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tabprotect.table.cube import cube_codes, cube_relations, fill_margins
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.table.table import Table


def random_cube(rng: np.random.Generator, *sizes: int | str, most: int = 9) -> Table:
    """A cube of counts with margins; a size such as "2x3" is a hierarchy of two groups of three."""
    dims = []
    for k, size in enumerate(sizes):
        if isinstance(size, str):
            groups, each = map(int, size.split("x"))
            tree = {f"g{i}": [f"g{i}.{j}" for j in range(each)] for i in range(groups)}
            dims.append(Dimension(f"d{k}", Hierarchy.from_tree(tree)))
        else:
            dims.append(Dimension(f"d{k}", Hierarchy.flat(range(size))))
    inner = rng.integers(0, most + 1, [len(d.hierarchy.leaves) for d in dims]).astype(float)
    values = fill_margins(inner, dims)
    return Table(
        values,
        cube_relations(dims),
        dims=tuple(dims),
        codes=cube_codes(dims),
        freq=values.astype(np.int64),
        counts=True,
    )


def random_mask(rng: np.random.Generator, table: Table, share: float) -> np.ndarray:
    mask = rng.random(table.n_cells) < share
    if not mask.any():
        mask[rng.integers(table.n_cells)] = True
    return mask


def brute_force(table: Table, hidden: np.ndarray, lb: np.ndarray, ub: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Smallest and largest whole value of every hidden cell over all whole tables that fit, by enumeration."""
    cells = np.flatnonzero(hidden)
    a = sp.csr_array(table.relations)[:, cells].toarray()
    target = table.rhs - table.relations @ np.where(hidden, 0.0, table.values)
    axes = [np.arange(int(lb[c]), int(ub[c]) + 1) for c in cells]
    x = np.stack([g.ravel() for g in np.meshgrid(*axes, indexing="ij")], axis=1)
    fits = x[(np.abs(x @ a.T - target) < 1e-9).all(axis=1)]
    return fits.min(axis=0), fits.max(axis=0)
