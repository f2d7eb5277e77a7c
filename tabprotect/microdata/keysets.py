"""Which combinations of keys expose most, and which small combinations already single a record out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.microdata.encode import combine, encode, group
from tabprotect.microdata.frames import Frame, make_frame, read
from tabprotect.microdata.keyed import check_keys, own_code
from tabprotect.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class KeySets:
    """Every combination of keys up to a size.

    ``uniques`` records alone in their class; ``minimal`` those among them that no smaller combination singles out (minimal sample uniques).
    """

    sets: tuple[tuple[str, ...], ...]
    uniques: IntArray
    minimal: IntArray
    k: IntArray
    classes: IntArray
    n: int
    score: FloatArray = field(repr=False)
    frame: Frame = field(repr=False)

    @property
    def _sizes(self) -> IntArray:
        return np.array([len(s) for s in self.sets], dtype=np.int64)

    @property
    def table(self) -> Any:
        """One row per combination, the most exposing first."""
        order = np.lexsort((self._sizes, -self.minimal, -self.uniques))
        return make_frame(
            {
                "keys": np.array([" × ".join(self.sets[i]) for i in order], dtype=object),
                "size": np.array([len(self.sets[i]) for i in order]),
                "uniques": self.uniques[order],
                "share": self.uniques[order] / max(self.n, 1),
                "minimal_uniques": self.minimal[order],
                "k": self.k[order],
                "classes": self.classes[order],
            },
            self.frame,
        )

    @property
    def by_key(self) -> dict[str, int]:
        """Minimal uniques that each key takes part in: the keys to recode first."""
        names = dict.fromkeys(c for s in self.sets for c in s)
        return {c: int(sum(m for s, m in zip(self.sets, self.minimal, strict=True) if c in s)) for c in names}

    def riskiest(self, count: int = 10) -> Any:
        """Records with the highest SUDA score: singled out by many and small combinations."""
        order = np.argsort(-self.score, kind="stable")[:count]
        return make_frame({"record": order, "score": self.score[order]}, self.frame)

    def summary(self) -> str:
        """The combinations that expose most."""
        order = np.lexsort((self._sizes, -self.uniques))[:5]
        lines = [f"{len(self.sets)} combinations of keys, {self.n:,} records"]
        lines += [
            f"{' × '.join(self.sets[i])}: {self.uniques[i]:,} uniques, {self.minimal[i]:,} of them minimal"
            for i in order
        ]
        return "\n".join(lines)


def key_sets(data: Any, *, keys: Sequence[str], max_size: int = 3) -> KeySets:
    """Uniques of all combinations of keys up to a size, and the minimal unique key sets of the records.

    A record's score adds (m−s)! for each minimal combination of size s out of m keys, the SUDA score.

    >>> import pandas as pd, tabprotect as tp
    >>> df = pd.DataFrame({"a": [1, 1, 2, 2], "b": [1, 2, 1, 2], "c": [0, 0, 0, 1]})
    >>> found = tp.microdata.key_sets(df, keys=["a", "b", "c"], max_size=2)
    >>> {"×".join(s): int(n) for s, n in zip(found.sets, found.minimal) if n}
    {'c': 1, 'a×b': 4, 'a×c': 1, 'b×c': 1}

    Reference: Elliot, Manning and Ford (2002), special uniques.
    """
    frame = read(data, keys if not isinstance(keys, str) else [keys])
    names = check_keys(frame.columns, keys)
    m = len(names)
    if max_size < 1:
        raise InputError(f"max_size={max_size}: at least 1")
    columns = [encode(frame, c) for c in names]
    codes = [own_code(c) for c in columns]
    n = len(frame)
    alone: dict[tuple[int, ...], BoolArray] = {}
    rows = []
    score = np.zeros(n)
    for size in range(1, min(max_size, m) + 1):
        here: dict[tuple[int, ...], BoolArray] = {}
        for chosen in combinations(range(m), size):
            key, span = combine([codes[j] for j in chosen], [columns[j].size + 1 for j in chosen], n)
            ids, count = group(key, span)
            sizes = np.bincount(ids, minlength=count)
            unique = sizes[ids] == 1
            # being unique is passed on to larger combinations, so the next smaller ones tell whether this one is minimal
            fresh = unique.copy()
            for inner in combinations(chosen, size - 1):
                if inner:
                    fresh &= ~alone[inner]
            score[fresh] += float(factorial(m - size))
            here[chosen] = unique
            rows.append((tuple(names[j] for j in chosen), unique.sum(), fresh.sum(), sizes.min(initial=n), count))
        alone = here
    sets, uniques, minimal, smallest, classes = zip(*rows, strict=True)
    counts = np.array([uniques, minimal, smallest, classes], dtype=np.int64)
    return KeySets(sets, counts[0], counts[1], counts[2], counts[3], n, score, frame)
