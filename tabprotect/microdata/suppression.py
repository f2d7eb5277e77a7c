"""Suppressing records and cells until every class satisfies the conditions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from tabprotect.errors import Infeasible, InputError
from tabprotect.microdata.classes import Sensitive
from tabprotect.microdata.conditions import Conditions
from tabprotect.microdata.encode import Encoded, Keys, combine, encode
from tabprotect.microdata.frames import Frame, checked
from tabprotect.microdata.keyed import check_keys, check_missing, keyed, own_code
from tabprotect.microdata.recipe import Deidentified
from tabprotect.microdata.wildcard import matches
from tabprotect.types import BoolArray, IntArray

PATTERNS = 4096  # combinations of suppressed keys that are tried


def suppress_records(
    data: Any,
    *,
    keys: Sequence[str],
    k: int = 2,
    l: int | None = None,
    entropy_l: float | None = None,
    t: float | None = None,
    sensitive: str | Sequence[str] | None = None,
) -> Deidentified:
    """Drop the records of classes that break k-anonymity, l-diversity or t-closeness.

    The conditions hold for what is left: as long as dropping changes the distribution so that other classes break t, those go too.

    >>> import pandas as pd, tabprotect as tp
    >>> df = pd.DataFrame({"sex": list("mmmf"), "pay": [1, 2, 3, 4]})
    >>> tp.microdata.suppress_records(df, keys=["sex"], k=2).data["pay"].tolist()
    [1, 2, 3]
    """
    rule = Conditions.of(k, l, entropy_l, t, sensitive)
    done = Deidentified.start(data)
    keep = surviving(done.frame, keys, rule)
    options = {"keys": list(keys), **rule.options()}
    return done.step("suppress_records", options, keep=keep, details={"dropped": int((~keep).sum())})


def surviving(frame: Frame, keys: Sequence[str], rule: Conditions) -> BoolArray:
    """The records that can stay."""
    records = keyed(frame, keys, "class")
    keep = settled(records.key, records.span, rule, rule.attributes(frame))
    if records.n and not keep.any():
        raise Infeasible(
            "no class satisfies the conditions, so no record could stay; recode the keys first or relax them"
        )
    return keep


def settled(key: Keys, span: int, rule: Conditions, attributes: Sequence[Sensitive]) -> BoolArray:
    """Drop the records of failing classes until none fails: t refers to the distribution of what is left."""
    keep = np.ones(len(key), np.bool_)
    while keep.any():
        here = np.flatnonzero(keep)
        bad = rule.failing_records(key[here], span, [_part(a, here) for a in attributes])
        if not bad.any():
            break
        keep[here[bad]] = False
    return keep


def _part(attribute: Sensitive, rows: IntArray) -> Sensitive:
    """The attribute for some records only, with their distribution.

    Values that none of them has are left out: the ordered distance is relative to the number of values in the released file.
    """
    codes = attribute.codes[rows]
    count = np.bincount(codes, minlength=attribute.size)
    some = count > 0
    place = np.cumsum(some, dtype=np.int32) - np.int32(1)
    values = None if attribute.values is None else attribute.values[some]
    return replace(attribute, codes=place[codes], share=count[some] / max(len(codes), 1), values=values)


def suppress_cells(
    data: Any,
    *,
    keys: Sequence[str],
    k: int = 2,
    l: int | None = None,
    entropy_l: float | None = None,
    t: float | None = None,
    sensitive: str | Sequence[str] | None = None,
    importance: Mapping[str, float] | None = None,
    missing: str = "class",
) -> Deidentified:
    """Blank single key values (local suppression) until every class satisfies the conditions.

    importance: weight per key; the cheaper keys are blanked first.
    missing: ``"class"`` asks that even records with the same blanks number k (then the file is k-anonymous for an attacker who reads a blank as
    anything, too); ``"wildcard"`` counts a blank as a match with anything, as sdcMicro does, blanks less, and knows only k.
    Records that no blanks help are dropped.

    >>> import pandas as pd, tabprotect as tp
    >>> df = pd.DataFrame({"sex": list("mmmmmf"), "age": [1, 1, 1, 2, 3, 2]})
    >>> tp.microdata.suppress_cells(df, keys=["sex", "age"], k=2, importance={"sex": 2}).data["age"].tolist()
    [1.0, 1.0, 1.0, nan, nan]
    """
    rule = Conditions.of(k, l, entropy_l, t, sensitive)
    done = Deidentified.start(data)
    frame = done.frame
    names = check_keys(frame.columns, keys)
    columns = [encode(frame, c) for c in names]
    checked(names, importance or {})
    weight = np.array([float((importance or {}).get(c, 1.0)) for c in names])
    if check_missing(missing) == "wildcard":
        if rule.needs_values:
            raise InputError("missing='wildcard' knows only k; use missing='class' for l and t")
        codes, keep = _blank_for_wildcards(columns, weight, k), np.ones(len(frame), np.bool_)
    elif missing == "drop":
        raise InputError("missing='drop' makes no sense here; choose 'class' or 'wildcard'")
    else:
        codes, keep = _blank(columns, weight, rule, rule.attributes(frame))
    if len(frame) and not keep.any():
        raise Infeasible("no record could stay under these conditions; recode the keys first or relax them")
    blanks = {c.name: int((new[keep] != c.codes[keep]).sum()) for c, new in zip(columns, codes, strict=True)}
    changed = {c.name: _blanked(c, new) for c, new in zip(columns, codes, strict=True) if (new != c.codes).any()}
    options = {"keys": names, **rule.options(), "importance": dict(importance or {}), "missing": missing}
    details = {"blanked cells": sum(blanks.values()), "blanked": blanks, "dropped": int((~keep).sum())}
    return done.step("suppress_cells", options, columns=changed, keep=keep, details=details)


def _blanked(column: Encoded, codes: npt.NDArray[np.int32]) -> npt.NDArray[Any]:
    if column.numeric:
        return np.append(column.values, np.nan)[codes]
    return column.decoded(codes)


def _patterns(weight: npt.NDArray[np.float64]) -> Iterator[tuple[int, ...]]:
    """Combinations of keys to blank, cheapest first; all of them if they are few, else small ones and the whole."""
    m = len(weight)
    found: list[tuple[int, ...]] = []
    for size in range(1, m + 1):
        found += combinations(range(m), size)
        if len(found) > PATTERNS:
            found = [*found[:PATTERNS], tuple(range(m))]
            break
    yield from sorted(found, key=lambda p: (weight[list(p)].sum(), len(p), p))


def _blank(
    columns: Sequence[Encoded], weight: npt.NDArray[np.float64], rule: Conditions, attributes: Sequence[Sensitive]
) -> tuple[list[npt.NDArray[np.int32]], BoolArray]:
    """Failing records are regrouped with more and more keys blanked, and leave the pool in groups that satisfy the conditions."""
    codes = [c.codes.copy() for c in columns]
    sizes = [c.size + 1 for c in columns]
    n = len(columns[0].codes)
    keep = np.ones(n, np.bool_)

    def failing(rows: IntArray, blank: tuple[int, ...], parts: Sequence[Sensitive]) -> BoolArray:
        filled = [
            np.full(len(rows), c.size, np.int32) if j in blank else own_code(replace(c, codes=codes[j][rows]))
            for j, c in enumerate(columns)
        ]
        key, span = combine(filled, sizes, len(rows))
        return rule.failing_records(key, span, parts)

    while keep.any():  # blanks and drops can break t elsewhere, so look again until nothing fails
        here = np.flatnonzero(keep)
        pool = here[failing(here, (), [_part(a, here) for a in attributes])]
        if not len(pool):
            break
        whole = [_part(a, here) for a in attributes]
        place = np.full(n, -1, np.int64)
        place[here] = np.arange(len(here))
        for blank in _patterns(weight):
            if not len(pool):
                break
            parts = [replace(a, codes=a.codes[place[pool]]) for a in whole]
            bad = failing(pool, blank, parts)
            for j in blank:
                codes[j][pool[~bad]] = -1
            pool = pool[bad]
        keep[pool] = False
    return codes, keep


def _blank_for_wildcards(
    columns: Sequence[Encoded], weight: npt.NDArray[np.float64], k: int
) -> list[npt.NDArray[np.int32]]:
    """Each record with fewer than k matches blanks the key that helps: the cheapest that reaches k, else the one with most matches."""
    codes = [c.codes.copy() for c in columns]
    n = len(codes[0])
    if 0 < n < k:
        raise Infeasible(f"{n} records cannot match k={k} others")
    while True:
        now = matches([replace(c, codes=x) for c, x in zip(columns, codes, strict=True)])
        short = np.flatnonzero(now.sizes()[now.ids] < k)
        if not len(short):
            return codes
        gain = np.full((len(columns), len(short)), -1, np.int64)
        for j in range(len(columns)):
            trial = [np.append(x, np.where(i == j, -1, x[short])).astype(np.int32) for i, x in enumerate(codes)]
            found = matches([replace(c, codes=x) for c, x in zip(columns, trial, strict=True)])
            real = np.bincount(found.ids[:n], minlength=found.count)
            size = np.bincount(found.left, weights=real[found.right], minlength=found.count)[found.ids[n:]]
            gain[j] = np.where(codes[j][short] >= 0, size, -1)
        enough = gain >= k
        cost = np.where(enough, weight[:, None], np.inf)
        choice = np.where(enough.any(axis=0), cost.argmin(axis=0), gain.argmax(axis=0))
        for j in range(len(columns)):
            codes[j][short[choice == j]] = -1
