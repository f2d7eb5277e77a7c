"""Hierarchies from and to nested dicts, parent–child pairs, τ-ARGUS files and positional digits."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabprotect.errors import InputError
from tabprotect.table.columns import arrow_columns, code_text
from tabprotect.table.hierarchy import Hierarchy

if TYPE_CHECKING:
    import pandas as pd

Children = dict[tuple[str, str], list[str]]
"""Parts of every (code, breakdown), in order."""


def assemble(roots: Sequence[str], children: Children) -> Hierarchy:
    """Number the codes depth first and write down the sums."""
    breakdowns: dict[str, list[str]] = {}
    for code, name in children:
        breakdowns.setdefault(code, []).append(name)
    position: dict[str, int] = {}
    stack = list(reversed(roots))
    while stack:
        code = stack.pop()
        if code in position:
            continue
        position[code] = len(position)
        for name in reversed(breakdowns.get(code, [])):
            stack.extend(reversed(children[code, name]))
    for (code, _), parts in children.items():
        for c in (code, *parts):
            if c not in position:
                raise InputError(f"the hierarchy has a cycle through code {c!r}")
    sums = [(position[code], tuple(position[p] for p in parts)) for (code, _), parts in children.items()]
    return Hierarchy(tuple(position), tuple(sorted(sums, key=lambda s: s[0])))


# -- nested dicts ---------------------------------------------------------------------------------------------------------------


def read_tree(tree: Mapping[str, Any] | Sequence[Any], total: str) -> Hierarchy:
    """See `Hierarchy.from_tree`."""
    children: Children = {}
    seen = {total}
    stack: list[tuple[str, Any]] = [(total, tree)]
    while stack:
        parent, below = stack.pop()
        if below is None or (not isinstance(below, str) and len(below) == 0):
            continue
        if isinstance(below, str):
            raise InputError(f"below {parent!r} stands the text {below!r}: a mapping or a list of codes is expected")
        items = list(below.items()) if isinstance(below, Mapping) else [(c, None) for c in below]
        parts = [str(code) for code, _ in items]
        for code in parts:
            if code in seen:
                raise InputError(f"code {code!r} below {parent!r} occurs twice in the hierarchy")
            seen.add(code)
        children[parent, ""] = parts
        stack.extend((str(code), deeper) for code, deeper in reversed(items))
    return assemble([total], children)


def write_tree(hierarchy: Hierarchy) -> dict[str, Any]:
    """See `Hierarchy.to_tree`."""
    root = _single(hierarchy, "nested dicts")
    below: dict[int, dict[str, Any]] = {i: {} for i in range(len(hierarchy))}
    for total, parts in hierarchy.sums:
        for i in parts:
            below[total][hierarchy.codes[i]] = below[i]
    return below[root]


# -- parent and child -----------------------------------------------------------------------------------------------------------


def read_pairs(pairs: Any, parent: str | None, child: str | None, breakdown: str | None, total: str) -> Hierarchy:
    """See `Hierarchy.from_pairs`."""
    ups, downs, names = _pair_columns(pairs, parent, child, breakdown)
    children: Children = {}
    met: dict[tuple[str, str, str], int] = {}
    order: dict[str, None] = {}
    for row, (up, down, name) in enumerate(zip(ups, downs, names, strict=True)):
        if down is None:
            raise InputError(f"row {row} (from 0): the child code is missing (parent {up!r})")
        if up is None:
            order[down] = None
            continue
        if up == down:
            raise InputError(f"row {row} (from 0): code {down!r} is its own parent")
        if (up, down, name) in met:
            raise InputError(
                f"row {row} (from 0): the pair {up!r}, {down!r} was already given in row {met[up, down, name]}"
            )
        met[up, down, name] = row
        order[up] = order[down] = None
        children.setdefault((up, name), []).append(down)
    if not order:
        raise InputError("no pairs given: a hierarchy needs at least one code")
    below = {c for parts in children.values() for c in parts}
    roots = [c for c in order if c not in below]
    if not roots:
        raise InputError(f"the hierarchy has a cycle through code {next(iter(order))!r}: no code is without a parent")
    if len(roots) == 1:
        return assemble(roots, children)
    if total in order:
        stray = next(c for c in roots if c != total)
        raise InputError(f"code {stray!r} has no parent, although {total!r} is the total")
    children = {(total, ""): roots, **children}
    return assemble([total], children)


def _pair_columns(
    pairs: Any, parent: str | None, child: str | None, breakdown: str | None
) -> tuple[list[str | None], list[str | None], list[str]]:
    if isinstance(pairs, list | tuple) and (not pairs or isinstance(pairs[0], list | tuple)):
        for row, pair in enumerate(pairs):
            if len(pair) not in (2, 3):
                raise InputError(f"row {row} (from 0): a (parent, child) pair is expected, got {pair!r}")
        names = [str(p[2]) if len(p) == 3 else "" for p in pairs]
        return [code_text(p[0]) for p in pairs], [code_text(p[1]) for p in pairs], names
    available = list(arrow_columns(pairs, None))
    if len(available) < 2:
        raise InputError(f"a frame of parent and child needs two columns, got {available}")
    up = parent or ("parent" if "parent" in available else available[0])
    down = child or ("child" if "child" in available else available[1])
    wanted = [up, down, *([breakdown] if breakdown else [])]
    columns = arrow_columns(pairs, wanted)
    texts = [[code_text(x) for x in columns[c].to_pylist()] for c in wanted]
    names = [t or "" for t in texts[2]] if breakdown else [""] * len(texts[0])
    return texts[0], texts[1], names


def write_frame(hierarchy: Hierarchy) -> pd.DataFrame:
    """See `Hierarchy.to_frame`."""
    import pandas as pd

    level, codes = hierarchy.level, hierarchy.codes
    number: dict[int, int] = {}
    rows = []
    for total, parts in hierarchy.sums:
        k = number.get(total, -1) + 1
        number[total] = k
        rows += [(codes[total], codes[i], k, int(level[i])) for i in parts]
    return pd.DataFrame(rows, columns=["parent", "child", "breakdown", "level"])


# -- τ-ARGUS --------------------------------------------------------------------------------------------------------------------


def read_hrc(path: str | Path, lead: str, total: str, encoding: str) -> Hierarchy:
    """See `Hierarchy.from_hrc`; the format is that of the τ-ARGUS manual, section 4.2 (hierarchical codelists)."""
    if not lead:
        raise InputError("the lead sign of a hierarchy file must not be empty")
    try:
        text = Path(path).read_bytes().decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", file=path) from None
    except (UnicodeDecodeError, LookupError) as error:
        raise InputError(f"is not {encoding} text ({error}); pass encoding='latin-1' or another", file=path) from None
    children: Children = {}
    line_of: dict[str, int] = {}
    path_down: list[str] = [total]
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line == "\x1a":
            continue
        depth = 0
        while line.startswith(lead):
            line, depth = line[len(lead) :].strip(), depth + 1
        if not line:
            raise InputError(f"no code after {depth} lead signs {lead!r}", file=path, line=number)
        if line in line_of:
            raise InputError(f"code {line!r} occurs twice, first in line {line_of[line]}", file=path, line=number)
        if line == total:
            raise InputError(f"code {line!r} is also the name of the total: pass total='…'", file=path, line=number)
        if depth > len(path_down) - 1:
            raise InputError(
                f"code {line!r} is at depth {depth}, but the line before is only at depth {len(path_down) - 2}",
                file=path,
                line=number,
            )
        del path_down[depth + 1 :]
        children.setdefault((path_down[-1], ""), []).append(line)
        path_down.append(line)
        line_of[line] = number
    if not line_of:
        raise InputError("the hierarchy file has no codes", file=path)
    return assemble([total], children)


def write_hrc(hierarchy: Hierarchy, path: str | Path, lead: str, encoding: str) -> None:
    """See `Hierarchy.to_hrc`."""
    root = _single(hierarchy, "a hierarchy file")
    below = dict(hierarchy.sums)
    lines, stack = [], [(i, 0) for i in reversed(below.get(root, ()))]
    while stack:
        i, depth = stack.pop()
        if hierarchy.codes[i].startswith(lead) or hierarchy.codes[i] != hierarchy.codes[i].strip():
            raise InputError(f"code {hierarchy.codes[i]!r} cannot be written with lead sign {lead!r}")
        lines.append(lead * depth + hierarchy.codes[i])
        stack.extend((part, depth + 1) for part in reversed(below.get(i, ())))
    target = Path(path)
    scratch = target.with_name(f".{target.name}.{os.getpid()}")
    scratch.write_text("".join(f"{line}\n" for line in lines), encoding=encoding)
    scratch.replace(target)


def _single(hierarchy: Hierarchy, form: str) -> int:
    """The top code of a plain tree."""
    if len(hierarchy.roots) != 1:
        raise InputError(f"{form} needs one top code, this hierarchy has {len(hierarchy.roots)}")
    totals = [t for t, _ in hierarchy.sums]
    if len(set(totals)) < len(totals) or sum(len(p) for _, p in hierarchy.sums) != len(hierarchy) - 1:
        raise InputError(f"{form} holds one breakdown, this hierarchy has several: use to_frame()")
    return int(hierarchy.roots[0])


# -- digits ---------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Digits:
    """A hierarchy by the digits of its codes, waiting for the codes: ``widths`` digits at each level, then a ``total`` above all.

    >>> Digits((1, 1)).resolve(["11", "12", "21"]).codes
    ('Total', '1', '11', '12', '2', '21')
    """

    widths: tuple[int, ...]
    total: str = "Total"

    def __post_init__(self) -> None:
        if not self.widths or any(int(w) != w or w < 1 for w in self.widths):
            raise InputError(f"digit widths must be positive whole numbers, got {list(self.widths)}")

    def resolve(self, codes: Iterable[object]) -> Hierarchy:
        """The hierarchy of these codes; a code may stop at any level, and prefixes of other codes may be among them."""
        ends = list(accumulate(self.widths))
        children: Children = {}
        seen: set[str] = set()
        for row, code in enumerate(codes):
            text = code_text(code)
            if text is None:
                raise InputError(f"code number {row} (from 0) is missing")
            if text == self.total:
                continue
            if len(text) not in ends:
                raise InputError(
                    f"code {text!r} has {len(text)} signs; digits {list(self.widths)} allow {', '.join(map(str, ends))}"
                )
            for k in range(ends.index(len(text)), -1, -1):
                part = text[: ends[k]]
                if part in seen:
                    break
                seen.add(part)
                children.setdefault((part[: ends[k - 1]] if k else self.total, ""), []).append(part)
        return assemble([self.total], children)


# -- several breakdowns ---------------------------------------------------------------------------------------------------------


def combine(first: Hierarchy, *others: Hierarchy) -> Hierarchy:
    """See `Hierarchy.combine`."""
    position = dict(first.position)
    sums = list(first.sums)
    known = {(t, frozenset(p)) for t, p in sums}
    leaves = {first.codes[i] for i in first.leaves}
    for other in others:
        if len(first.roots) != 1 or len(other.roots) != 1:
            raise InputError("hierarchies that are combined need one top code each")
        rename = {other.codes[other.roots[0]]: first.codes[first.roots[0]]}
        names = [rename.get(c, c) for c in other.codes]
        for i in other.leaves:
            if names[i] not in first.position:
                raise InputError(f"code {names[i]!r} is a leaf of one breakdown and not in the other")
        missing = leaves - set(names)
        if missing and all(names[i] in leaves for i in other.leaves):
            raise InputError(f"code {min(missing)!r} is a leaf of one breakdown and missing in the other")
        for name in names:
            position.setdefault(name, len(position))
        for total, parts in other.sums:
            new = (position[names[total]], tuple(position[names[i]] for i in parts))
            if (new[0], frozenset(new[1])) not in known:
                sums.append(new)
    return Hierarchy(tuple(position), tuple(sorted(sums, key=lambda s: s[0])))
