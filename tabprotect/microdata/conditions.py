"""What a file has to satisfy: k-anonymity, and l-diversity or t-closeness on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.microdata.classes import ClassTable, Sensitive, class_table
from tabprotect.microdata.encode import Keys, encode
from tabprotect.microdata.frames import Frame, checked
from tabprotect.types import BoolArray

EPS = 1e-12


@dataclass(frozen=True)
class Conditions:
    """Bounds that every class must keep.

    k: records; l: distinct sensitive values; entropy_l: exp of their entropy; t: largest distance to the file's distribution.

    >>> Conditions(k=3, l=2, sensitive=("illness",)).monotone
    True
    """

    k: int = 2
    l: int | None = None
    entropy_l: float | None = None
    t: float | None = None
    sensitive: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, k: int, l: int | None, entropy_l: float | None, t: float | None, sensitive: str | Sequence[str] | None
    ) -> Conditions:
        """Check what the user wrote."""
        names = () if sensitive is None else (sensitive,) if isinstance(sensitive, str) else tuple(sensitive)
        if k < 1:
            raise InputError(f"k={k}: a class has at least one record")
        if (l is not None or t is not None or entropy_l is not None) and not names:
            raise InputError("l, entropy_l and t are about a sensitive attribute; say which with sensitive=")
        if t is not None and not 0 <= t <= 1:
            raise InputError(f"t={t} lies in [0, 1]")
        return cls(k, l, entropy_l, t, names)

    @property
    def needs_values(self) -> bool:
        """Whether class sizes alone do not decide."""
        return self.l is not None or self.entropy_l is not None or self.t is not None

    @property
    def monotone(self) -> bool:
        """Whether merging a good class with any other keeps it good, so that coarser recodings never have more failing records."""
        return self.t is None and self.entropy_l is None

    def failing_classes(self, table: ClassTable) -> BoolArray:
        """Classes that break a bound."""
        bad = table.size < self.k
        if self.l is not None:
            bad = bad | (table.distinct < self.l)
        if self.entropy_l is not None:
            bad = bad | (np.exp(table.entropy) < self.entropy_l - EPS)
        if self.t is not None:
            bad = bad | (table.t > self.t + EPS)
        return bad

    def attributes(self, frame: Frame) -> list[Sensitive]:
        """The sensitive attributes of a file, if they matter."""
        if not self.needs_values:
            return []
        return [Sensitive.of(encode(frame, c)) for c in checked(frame.columns, self.sensitive)]

    def failing_records(self, key: Keys, span: int, attributes: Sequence[Sensitive]) -> BoolArray:
        """Records in classes that break a bound for any sensitive attribute."""
        bad = np.zeros(len(key), np.bool_)
        each: list[Sensitive | None] = [*attributes] or [None]
        for attribute in each:
            table = class_table(key, span, attribute)
            worse = table.key[self.failing_classes(table)]
            if len(worse):
                at = np.minimum(np.searchsorted(worse, key), len(worse) - 1)
                bad |= worse[at] == key
        return bad

    def options(self) -> dict[str, Any]:
        """For a recipe."""
        found: dict[str, Any] = {"k": self.k}
        for name in ("l", "entropy_l", "t"):
            if getattr(self, name) is not None:
                found[name] = getattr(self, name)
        return found | ({"sensitive": list(self.sensitive)} if self.sensitive else {})
