"""Records ready to be added up: codes checked and numbered, amounts checked and made whole numbers, by lazy narwhals expressions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tabprotect.errors import InputError
from tabprotect.table.cube import check_size
from tabprotect.table.dimension import as_hierarchy
from tabprotect.table.hierarchy import Dimension, Hierarchy
from tabprotect.table.scan import Source

if TYPE_CHECKING:
    import narwhals as nw

EXACT = 2.0**53
DECIMALS = 6


@dataclass(frozen=True)
class Policy:
    """What to do with records that are not as they should be."""

    missing: str | Mapping[str, str] = "error"
    unknown: str | Mapping[str, str] = "error"
    negative: str = "error"
    nan: str = "error"

    def __post_init__(self) -> None:
        for name, allowed in (("negative", ("error", "absolute", "allow")), ("nan", ("error", "drop", "zero"))):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name}={getattr(self, name)!r} is none of {', '.join(repr(a) for a in allowed)}")

    def of(self, name: str, column: str) -> str:
        """The policy ``missing`` or ``unknown`` of one column."""
        policy: str | Mapping[str, str] = getattr(self, name)
        return policy if isinstance(policy, str) else policy.get(column, "error")


@dataclass(frozen=True)
class Roles:
    """Which columns of the records mean what."""

    value: str | None = None
    contributor: str | None = None
    holding: str | None = None
    weight: str | None = None
    request: str | None = None

    @property
    def keys(self) -> list[str]:
        """Columns that are carried along as they are."""
        return list(dict.fromkeys(c for c in (self.contributor, self.holding, self.request) if c is not None))

    @property
    def columns(self) -> list[str]:
        return [*(c for c in (self.value, self.weight) if c is not None), *self.keys]


@dataclass(frozen=True)
class Records:
    """A lazy frame with the columns ``cell`` (inner cell number), ``x``, ``w`` (if weighted) and the key columns.

    ``x`` and ``w`` are whole numbers in units of 1/scale where the data allow it (scale > 0): their sums are then exact and do not depend
    on the order in which an engine adds them up.
    """

    frame: nw.LazyFrame[Any]
    dims: tuple[Dimension, ...]
    x_scale: int
    w_scale: int


def prepare(
    source: Source, by: Mapping[str, Any], totals: Mapping[str, str | None], roles: Roles, policy: Policy
) -> Records:
    """Apply the policies and number the cells."""
    import narwhals as nw

    frame = source.frame
    schema = frame.collect_schema()
    weighted = roles.weight is not None
    frame = frame.select(
        *[_text(c, schema[c]).alias(f"code{k}") for k, c in enumerate(by)],
        _amount(roles.value, schema).alias("x"),
        *([_amount(roles.weight, schema).alias("w")] if weighted else []),
        *[nw.col(c).alias(f"key_{c}") for c in roles.keys],
    )
    found = _profile(frame, weighted, roles.contributor)
    frame = _apply(frame, found, roles, list(by), policy)
    dims, cell = [], nw.lit(0)
    for k, (column, spec) in enumerate(by.items()):
        records, frame = _codes(frame, f"code{k}", column, policy)
        hierarchy = as_hierarchy(spec, sorted(records, key=_natural), totals[column], column)
        places = _places(hierarchy, records, column, policy)
        table = source.lookup(list(places), list(places.values())).rename({"code": f"code{k}", "pos": f"pos{k}"})
        frame = frame.join(table, on=f"code{k}", how="inner")
        cell = cell * len(hierarchy.leaves) + nw.col(f"pos{k}")
        dims.append(Dimension(column, hierarchy))
    check_size(dims)
    x_scale, w_scale = _scales(found)
    frame = frame.select(
        cell.cast(nw.Int64).alias("cell"),
        _whole("x", x_scale),
        *([_whole("w", w_scale)] if weighted else []),
        *[f"key_{c}" for c in roles.keys],
    )
    return Records(frame, tuple(dims), x_scale, w_scale)


# -- amounts --------------------------------------------------------------------------------------------------------------------


def _amount(column: str | None, schema: Any) -> Any:
    """The amount as a float, null where it is missing or NaN; one per record for a count."""
    import narwhals as nw

    if column is None:
        return nw.lit(1.0)
    kind = schema[column]
    if not (kind.is_numeric() or kind == nw.Boolean):
        raise InputError(f"column {column!r} must be numeric, it holds {kind}")
    amount = nw.col(column).cast(nw.Float64)
    return nw.when(~amount.is_nan()).then(amount) if kind.is_float() else amount


def _profile(frame: Any, weighted: bool, contributor: str | None) -> dict[str, float]:
    """One pass over the records: how many are not as they should be, and how many decimals there are."""
    import narwhals as nw

    def number(condition: Any, name: str) -> Any:
        return condition.cast(nw.Int64).sum().alias(name)

    x, w = nw.col("x"), nw.col("w")
    wanted = [number(x.is_null(), "gaps"), number(x < 0, "negative"), number(~x.is_finite(), "infinite")]
    if weighted:
        wanted += [number(_bad_weight(), "bad_weights"), (x * w).abs().sum().alias("xw_sum")]
    if contributor:
        wanted += [number(nw.col(f"key_{contributor}").is_null(), "nameless")]
    for name in ("x", "w") if weighted else ("x",):
        column = nw.col(name)
        wanted.append(column.abs().sum().alias(f"{name}_sum"))
        for d in range(DECIMALS + 1):
            wanted.append(number((column * 10.0**d).round(0) / 10.0**d != column, f"{name}_{d}"))
    return {k: float(v or 0) for k, v in _row(frame.select(*wanted)).items()}


def _bad_weight() -> Any:
    import narwhals as nw

    w = nw.col("w")
    return w.is_null() | ~w.is_finite() | (w < 0)


def _apply(frame: Any, found: Mapping[str, float], roles: Roles, by: Sequence[str], policy: Policy) -> Any:
    """Refuse, leave out or fill in the records that the policies speak of."""
    import narwhals as nw

    x, value = nw.col("x"), roles.value
    if found["gaps"] and policy.nan == "error":
        example = _example(frame, x.is_null(), by)
        raise InputError(f"{found['gaps']:,.0f} records have no {value!r}{example}: use nan='drop' or nan='zero'")
    if found["infinite"]:
        example = _example(frame, ~x.is_finite(), by)
        raise InputError(f"{found['infinite']:,.0f} records have an infinite {value!r}{example}")
    if found["negative"] and policy.negative == "error":
        raise InputError(
            f"{found['negative']:,.0f} records have a negative {value!r}{_example(frame, x < 0, by)}: "
            "use negative='absolute' (ranked by size) or negative='allow'"
        )
    if found.get("bad_weights"):
        example = _example(frame, _bad_weight(), by)
        raise InputError(f"{found['bad_weights']:,.0f} records have no proper weight {roles.weight!r}{example}")
    if found.get("nameless"):
        name = roles.contributor or ""
        if policy.of("missing", name) != "drop":
            raise InputError(
                f"{found['nameless']:,.0f} records have no {name!r}: use missing='drop', or give each of them a name"
            )
        frame = frame.filter(~nw.col(f"key_{name}").is_null())
    if found["gaps"]:
        frame = frame.filter(~x.is_null()) if policy.nan == "drop" else frame.with_columns(x.fill_null(0.0))
    return frame


def _example(frame: Any, condition: Any, by: Sequence[str]) -> str:
    """The codes of one such record."""
    names = [f"code{k}" for k in range(len(by))]
    row = _row(frame.filter(condition).select(*names).sort(*names).head(1))
    return " (for example " + ", ".join(f"{c}={v}" for c, v in zip(by, row.values(), strict=True)) + ")"


def _scales(found: Mapping[str, float]) -> tuple[int, int]:
    """Powers of ten that make amounts and weights whole numbers with exact sums, 0 where there is none."""
    scale = {"x": 0, "w": 0}
    for name in scale:
        exact = [10**d for d in range(DECIMALS + 1) if found.get(f"{name}_{d}") == 0]
        if exact and found[f"{name}_sum"] * exact[0] < EXACT:
            scale[name] = exact[0]
    if found.get("xw_sum", 0.0) * scale["x"] * scale["w"] >= EXACT:
        return 0, 0
    return scale["x"], scale["w"]


def _whole(name: str, scale: int) -> Any:
    import narwhals as nw

    column = nw.col(name)
    return column if scale in (0, 1) else (column * float(scale)).round(0).alias(name)


# -- codes ----------------------------------------------------------------------------------------------------------------------


def _text(column: str, kind: Any) -> Any:
    """The code as text, the same in every engine."""
    import narwhals as nw

    code = nw.col(column)
    if kind == nw.String:
        return code
    if kind == nw.Boolean:
        return nw.when(code).then(nw.lit("True")).when(~code).then(nw.lit("False"))
    if kind.is_float():
        whole = code.cast(nw.Float64)
        # a fraction is no code: it becomes text that no hierarchy holds, and is reported as unknown
        return (
            nw.when(whole.is_nan())
            .then(nw.lit(None, nw.String))
            .when(whole.round(0) == whole)
            .then(whole.cast(nw.Int64).cast(nw.String))
            .otherwise(whole.cast(nw.String))
        )
    return code.cast(nw.String)


def _codes(frame: Any, name: str, column: str, policy: Policy) -> tuple[dict[str, int], Any]:
    """Number of records of each code, after the policy for missing codes."""
    import narwhals as nw

    table = frame.group_by(name).agg(nw.len().alias("records")).collect("pyarrow").to_native().to_pydict()
    found = dict(zip(table[name], map(int, table["records"]), strict=True))
    gaps = found.pop(None, 0)
    if gaps:
        fill = policy.of("missing", column)
        if fill == "error":
            raise InputError(f"{gaps:,} records have no code of {column!r}: use missing='drop' or missing=<a code>")
        if fill != "drop":
            frame = frame.with_columns(nw.col(name).fill_null(fill))
            found[fill] = found.get(fill, 0) + gaps
    if not found and not gaps:
        raise InputError("there are no records")
    return found, frame


def _places(hierarchy: Hierarchy, found: Mapping[str, int], column: str, policy: Policy) -> dict[str, int]:
    """Leaf number of every code found; unknown codes are refused, left out or moved to another code."""
    leaf = {hierarchy.codes[i]: k for k, i in enumerate(hierarchy.leaves)}
    unknown = sorted((c for c in found if c not in leaf), key=_natural)
    places = {c: leaf[c] for c in found if c in leaf}
    choice = policy.of("unknown", column)
    if unknown and choice == "error":
        number = sum(found[c] for c in unknown)
        shown = ", ".join(f"{c!r} ({found[c]:,} records)" for c in unknown[:5]) + (" …" if len(unknown) > 5 else "")
        totals = [c for c in unknown if c in hierarchy.position]
        why = "are totals of finer codes" if len(totals) == len(unknown) else "are not in its hierarchy"
        raise InputError(
            f"{number:,} records have codes of {column!r} that {why}: {shown}; use unknown='drop' or unknown=<a code>"
        )
    if unknown and choice != "drop":
        if choice not in leaf:
            raise InputError(f"unknown={choice!r} is no code without parts in the hierarchy of {column!r}")
        places.update(dict.fromkeys(unknown, leaf[choice]))
    # an engine needs at least one row to know the types
    return places or {hierarchy.codes[hierarchy.leaves[0]]: 0}


def _natural(code: str) -> tuple[int, int, str]:
    """Whole numbers by value, before text in alphabetical order."""
    return (0, int(code), code) if code.isdecimal() and len(code) < 19 else (1, 0, code)


def _row(frame: Any) -> dict[str, Any]:
    table = frame.collect("pyarrow").to_native()
    return {c: table.column(c)[0].as_py() for c in table.column_names}
