"""A scheme says which columns of a data frame are randomised, over which domains and with which matrix.

It holds nothing confidential: the collector randomises with it, the analyst reconstructs with it, and it travels as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tabprotect.errors import InputError
from tabprotect.files import write_text
from tabprotect.substitution.accuracy import Estimate
from tabprotect.substitution.chacha import Stream
from tabprotect.substitution.columns import categories, codes_of, decode
from tabprotect.substitution.families import Product, Retention, Transition
from tabprotect.substitution.matrix import GammaDiagonal, Matrix
from tabprotect.substitution.privacy import LocalPrivacy


@dataclass(frozen=True)
class Randomized:
    """A frame of the same kind as the one given, the randomised columns replaced, and the guarantee for each of its records."""

    data: Any = field(repr=False)
    privacy: LocalPrivacy
    columns: tuple[str, ...]
    expected_changed: float
    reproducible: bool

    def summary(self) -> str:
        """Two lines: what was done, and what it guarantees."""
        source = "seeded randomness: for studies only, not for release" if self.reproducible else "secure randomness"
        return (
            f"randomised {', '.join(self.columns)} ({source}); about {self.expected_changed:.1%} of the records change\n"
            f"{self.privacy.summary()}; columns that were not randomised are not protected"
        )


@dataclass(frozen=True)
class Scheme:
    """Columns, their domains and the transition matrix on the product of the domains.

    >>> import pandas as pd
    >>> scheme = Scheme.gamma_diagonal({"sex": ["m", "f"], "age": ["young", "old"]}, gamma=19)
    >>> frame = pd.DataFrame({"sex": ["m", "f"] * 500, "age": ["old"] * 1000, "id": range(1000)})
    >>> released = scheme.randomize(frame, seed=1)
    >>> list(released.data.columns), round(released.privacy.epsilon, 3)
    (['sex', 'age', 'id'], 2.944)
    >>> scheme.reconstruct(released.data)["estimate"].round().tolist()
    [-9.0, 501.0, 1.0, 508.0]
    """

    domains: Mapping[str, tuple[Any, ...]]
    matrix: Matrix

    def __post_init__(self) -> None:
        domains = {str(name): tuple(values) for name, values in self.domains.items()}
        object.__setattr__(self, "domains", domains)
        sizes = tuple(len(values) for values in domains.values())
        if sizes != self.matrix.sizes:
            raise InputError(f"the domains have {sizes} values, the matrix is for {self.matrix.sizes}")
        for name, values in domains.items():
            if len(set(values)) < len(values):
                raise InputError(f"the domain of {name!r} lists a value twice")

    @classmethod
    def gamma_diagonal(cls, domains: Mapping[str, Sequence[Any]], gamma: float, *, joint: bool = True) -> Scheme:
        """One γ-diagonal matrix on the product of the domains, or with ``joint=False`` one per column that together amplify by γ."""
        sizes = [len(values) for values in domains.values()]
        if joint:
            return cls(domains, GammaDiagonal(sizes, gamma))  # type: ignore[arg-type]
        if not gamma > 1:
            raise InputError(f"gamma is {gamma!r}: it has to be above 1")
        share = float(gamma) ** (1.0 / max(len(sizes), 1))
        return cls(domains, Product([GammaDiagonal(size, share) for size in sizes]))  # type: ignore[arg-type]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.domains)

    def randomize(self, frame: Any, rng: Any = None, *, seed: int | None = None) -> Randomized:
        """Replace the scheme's columns of a frame (pandas, polars, Arrow); secure unless ``rng`` or ``seed`` is given."""
        import narwhals as nw

        table = nw.from_native(frame, eager_only=True)
        stream = Stream.of(rng, seed)
        new = self.matrix.randomize(self.codes(frame), stream)
        made = [
            nw.from_native(decode(new[:, i], table[name].to_native(), values), series_only=True).alias(name)
            for i, (name, values) in enumerate(self.domains.items())
        ]
        data = table.with_columns(*made).to_native()
        return Randomized(
            data,
            self.matrix.statement,
            self.columns,
            self.matrix.changed_share(),
            reproducible=stream.reproducible,
        )

    def codes(self, frame: Any) -> Any:
        """The codes of the scheme's columns, one row per record."""
        import narwhals as nw

        table = nw.from_native(frame, eager_only=True)
        missing = [name for name in self.domains if name not in table.columns]
        if missing:
            raise InputError(f"the frame has no column {missing[0]!r}; it has {', '.join(map(str, table.columns))}")
        if not len(table):
            raise InputError("the frame has no records")
        return np.stack([codes_of(table[name].to_native(), values) for name, values in self.domains.items()], axis=1)

    def estimate(self, frame: Any, **options: Any) -> Estimate:
        """The estimate of the joint counts from a randomised frame; options of ``Matrix.estimate``."""
        return self.matrix.estimate(self.matrix.counts(self.codes(frame)), **options)

    def reconstruct(self, frame: Any, **options: Any) -> Any:
        """A pandas frame with one row per combination of values: count, estimate, std, lower, upper."""
        import pandas as pd

        labels = pd.MultiIndex.from_product(list(self.domains.values()), names=self.columns).to_frame(index=False)
        return pd.concat([labels, self.estimate(frame, **options).frame()], axis=1)

    def marginal(self, columns: Sequence[str]) -> Scheme:
        """The scheme of some of the columns alone, in the order given."""
        unknown = [name for name in columns if name not in self.domains]
        if unknown:
            raise InputError(f"the scheme has no column {unknown[0]!r}; it has {', '.join(self.columns)}")
        part = self.matrix.marginal([self.columns.index(name) for name in columns])
        return Scheme({name: self.domains[name] for name in columns}, part)

    def to_json(self) -> str:
        """The scheme as JSON text."""
        plain = {name: [_plain(value) for value in values] for name, values in self.domains.items()}
        return json.dumps({"domains": plain, "matrix": _describe(self.matrix)}, ensure_ascii=False, indent=1)

    @classmethod
    def from_json(cls, text: str) -> Scheme:
        """The scheme of ``to_json``."""
        try:
            data = json.loads(text)
            return cls(data["domains"], _build(data["matrix"]))
        except (json.JSONDecodeError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"this is not a scheme: {error}") from error

    def save(self, path: str | Path) -> None:
        """Write the scheme to a file, under a temporary name first."""
        write_text(path, self.to_json() + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Scheme:
        """Read a scheme from a file."""
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", file=path) from error


def find_domains(frame: Any, columns: Sequence[str]) -> dict[str, list[Any]]:
    """Domains of columns: their categories, or for other columns the sorted values found.

    The domain is published with the scheme. Values found in confidential data are confidential: state domains from the questionnaire.
    """
    import narwhals as nw

    table = nw.from_native(frame, eager_only=True)
    found: dict[str, list[Any]] = {}
    for name in columns:
        if name not in table.columns:
            raise InputError(f"the frame has no column {name!r}; it has {', '.join(map(str, table.columns))}")
        series = table[name]
        if series.dtype in (nw.Categorical, nw.Enum):
            found[name] = categories(series.to_native())
        else:
            if series.null_count():
                raise InputError(f"column {name!r} has missing values: make them a value of their own")
            found[name] = series.unique().sort().to_list()
    return found


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _describe(matrix: Matrix) -> dict[str, Any]:
    if isinstance(matrix, GammaDiagonal):
        return {"kind": "gamma-diagonal", "sizes": list(matrix.sizes), "gamma": matrix.gamma}
    if isinstance(matrix, Product):
        return {"kind": "product", "factors": [_describe(factor) for factor in matrix.factors]}
    if isinstance(matrix, Retention):
        return {"kind": "retention", "retain": matrix.retain.tolist(), "replacement": matrix.replacement.tolist()}
    return {"kind": "transition", "matrix": matrix.dense().tolist()}


def _build(data: Mapping[str, Any]) -> Matrix:
    kind = data["kind"]
    if kind == "gamma-diagonal":
        return GammaDiagonal(data["sizes"], data["gamma"])
    if kind == "product":
        return Product([_build(factor) for factor in data["factors"]])
    if kind == "retention":
        return Retention(data["retain"], data["replacement"])
    if kind == "transition":
        return Transition(data["matrix"])
    raise InputError(f"unknown kind of matrix {kind!r}")
