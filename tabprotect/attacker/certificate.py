"""The certificate: alternative tables that prove protection, checked by anyone with exact arithmetic and without a solver."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from tabprotect.errors import InputError
from tabprotect.files import write_bytes

FIRST_LINE = "# CONFIDENTIAL tabprotect certificate: for the auditor inside the office; it holds the true values. Check: tabprotect verify FILE"
FORMAT = "tabprotect-certificate-1"
Number: TypeAlias = int | Fraction


class Certificate:
    """A table, a suppression pattern, and for every primary cell and side an alternative table the attacker cannot rule out.

    ``body`` is plain JSON data (numbers as decimal strings): ``values``, ``lb``, ``ub`` (null: unbounded), ``relations`` row by row (``ends``, ``cells``,
    ``coefficients``) with ``rhs``, ``suppressed``, ``needs`` as [cell, lpl, upl, spl], ``moves`` as {den, cells, nums}, ``witness`` as [cell, up, down], where up
    and down are ±(number of the move + 1), the sign saying whether the move is added or subtracted, and 0 that none is needed.
    """

    def __init__(self, body: dict[str, Any] | Callable[[], dict[str, Any]]) -> None:
        self._body = body

    @cached_property
    def body(self) -> dict[str, Any]:
        return self._body() if callable(self._body) else self._body

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the content: the report shows it, so that the file can be matched to the publication."""
        text = json.dumps(self.body, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def save(self, path: str | Path) -> Path:
        """Write the certificate (compressed when the name ends in ``.gz``), under a temporary name first."""
        target = Path(path)
        text = f"{FIRST_LINE}\n{json.dumps({**self.body, 'fingerprint': self.fingerprint}, separators=(',', ':'))}\n"
        data = gzip.compress(text.encode(), mtime=0) if target.suffix == ".gz" else text.encode()
        return write_bytes(target, data)

    @classmethod
    def load(cls, path: str | Path) -> Certificate:
        """Read a certificate; a file whose content does not match its fingerprint is rejected."""
        target = Path(path)
        try:
            data = target.read_bytes()
            text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode()
        except (OSError, EOFError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read the certificate: {error}", file=target) from None
        first, _, rest = text.partition("\n")
        if not first.startswith("# CONFIDENTIAL tabprotect certificate"):
            raise InputError("not a tabprotect certificate: the first line is not the usual one", file=target, line=1)
        try:
            body = json.loads(rest)
            given = body.pop("fingerprint")
        except (ValueError, KeyError, AttributeError, RecursionError):
            raise InputError(
                "the certificate is damaged: its second line is not valid JSON with a fingerprint", file=target, line=2
            ) from None
        found = cls(body)
        if found.fingerprint != given:
            raise InputError(
                "the certificate was changed after it was made: its fingerprint does not match", file=target, line=2
            )
        return found

    def __repr__(self) -> str:
        b = self.body
        return f"<Certificate: {len(b['values']):,} cells, {len(b['needs']):,} protected by {len(b['moves']):,} alternatives, {self.fingerprint[:12]}>"


@dataclass(frozen=True)
class Verification:
    """The outcome of a check: ``ok``, and what is wrong."""

    ok: bool
    problems: tuple[str, ...]
    fingerprint: str
    n_cells: int
    n_protected: int
    n_moves: int

    def __bool__(self) -> bool:
        return self.ok

    def summary(self) -> str:
        """One line for people, or one per problem."""
        if self.ok:
            return (
                f"valid: {self.n_protected:,} sensitive cells of {self.n_cells:,} are protected, shown by {self.n_moves:,} alternative tables "
                f"(fingerprint {self.fingerprint[:16]})"
            )
        return "NOT valid:\n" + "\n".join(f"  {p}" for p in self.problems)


def verify(certificate: Certificate | str | Path) -> Verification:
    """Check a certificate with whole-number arithmetic and no solver.

    The table satisfies its relations, every alternative satisfies the same relations and the attacker's bounds and differs from the truth only in
    suppressed cells, and every primary cell is suppressed and reaches its levels in the alternatives named for it.
    """
    if not isinstance(certificate, Certificate):
        certificate = Certificate.load(certificate)
    body = certificate.body
    try:
        problems = _problems(body)
        sizes = len(body["values"]), len(body["needs"]), len(body["moves"])
    except (KeyError, TypeError, ValueError, IndexError, ZeroDivisionError, AttributeError) as error:
        problems, sizes = [f"the certificate is malformed ({type(error).__name__}: {error})"], (0, 0, 0)
    return Verification(not problems, tuple(problems[:20]), certificate.fingerprint, *sizes)


def _number(text: str) -> Number:
    return Fraction(text) if "." in text or "e" in text or "/" in text else int(text)


def _size(x: Number) -> Number:
    return x if x >= 0 else -x


def _problems(body: dict[str, Any]) -> list[str]:
    if body.get("format") != FORMAT:
        return [f"unknown format {body.get('format')!r}"]
    values = [_number(v) for v in body["values"]]
    lb = [None if b is None else _number(b) for b in body["lb"]]
    ub = [None if b is None else _number(b) for b in body["ub"]]
    n = len(values)
    if not len(lb) == len(ub) == n:
        return ["values and bounds differ in length"]
    hidden = set(body["suppressed"])
    problems = [f"suppressed cell {c} does not exist" for c in hidden if not 0 <= c < n]
    moved = {int(c) for move in body["moves"] for c in move["cells"]}
    rows_of: dict[int, list[tuple[int, Number]]] = {c: [] for c in moved}
    start, columns, coefficients = 0, body["relations"]["cells"], body["relations"]["coefficients"]
    for r, (end, rhs) in enumerate(zip(body["relations"]["ends"], body["rhs"], strict=True)):
        total: Number = -_number(rhs)
        size = _size(total)
        for k in range(start, end):
            cell, c = columns[k], _number(coefficients[k])
            if cell in rows_of:
                rows_of[cell].append((r, c))
            part = c * values[cell]
            total += part
            size += _size(part)
        start = end
        # published decimals may carry the rounding of binary floats, nothing more
        if _size(total) * 10**9 > size:
            problems.append(f"relation {r} does not hold in the table itself")
    for i in range(n):
        low, high = lb[i], ub[i]
        if i in hidden and ((low is not None and values[i] < low) or (high is not None and values[i] > high)):
            problems.append(f"the value of cell {i} is outside what the attacker is said to know")
    moves = []
    for k, move in enumerate(body["moves"]):
        changes, found = _check_move(k, move, hidden, rows_of, bool(body.get("integer")))
        moves.append(changes)
        problems += found
    problems += _check_needs(body, values, lb, ub, hidden, moves)
    return problems


def _check_move(
    k: int, move: dict[str, Any], hidden: set[int], rows_of: dict[int, list[tuple[int, Number]]], integer: bool
) -> tuple[dict[int, Fraction], list[str]]:
    """The changes of a move, and what is wrong with it as far as relations and the pattern go."""
    den = int(move["den"])
    changes = {int(c): Fraction(int(v), den) for c, v in zip(move["cells"], move["nums"], strict=True)}
    problems = [f"alternative {k} changes cell {c}, which is published" for c in changes if c not in hidden]
    if integer and any(v.denominator != 1 for v in changes.values()):
        problems.append(f"alternative {k} is not a table of whole numbers")
    sums: dict[int, Fraction] = {}
    for c, v in changes.items():
        for r, coefficient in rows_of[c]:
            sums[r] = sums.get(r, Fraction(0)) + coefficient * v
    problems += [f"alternative {k} violates relation {r}" for r, s in sums.items() if s != 0]
    return changes, problems


def _check_needs(
    body: dict[str, Any],
    values: list[Number],
    lb: list[Number | None],
    ub: list[Number | None],
    hidden: set[int],
    moves: list[dict[int, Fraction]],
) -> list[str]:
    problems: list[str] = []
    within: dict[int, bool] = {}

    def change(reference: int, cell: int) -> Fraction | None:
        """Change of the cell in the alternative referred to; None when that alternative breaks a bound or does not exist."""
        if reference == 0:
            return Fraction(0)
        sign = 1 if reference > 0 else -1
        k = abs(reference) - 1
        if k >= len(moves):
            return None
        if reference not in within:
            within[reference] = all(
                (low is None or values[c] + sign * v >= low) and (high is None or values[c] + sign * v <= high)
                for c, v in moves[k].items()
                for low, high in ((lb[c], ub[c]),)
            )
        return sign * moves[k].get(cell, Fraction(0)) if within[reference] else None

    witness = {int(cell): (int(up), int(down)) for cell, up, down in body["witness"]}
    needs = {int(cell): (Fraction(lpl), Fraction(upl), Fraction(spl)) for cell, lpl, upl, spl in body["needs"]}
    missing = set(body["primary"]) - set(needs)
    problems += [f"primary cell {c} has no protection level" for c in sorted(missing)]
    for cell, (lpl, upl, spl) in needs.items():
        if cell not in hidden:
            problems.append(f"primary cell {cell} is published")
            continue
        up_ref, down_ref = witness.get(cell, (0, 0))
        up, down = change(up_ref, cell), change(down_ref, cell)
        if up is None or down is None:
            problems.append(f"an alternative named for cell {cell} breaks the attacker's bounds")
        elif up < upl:
            problems.append(f"cell {cell}: upper protection level not reached")
        elif -down < lpl:
            problems.append(f"cell {cell}: lower protection level not reached")
        elif up - down < spl or (lpl == upl == spl == 0):
            problems.append(f"cell {cell}: interval too narrow")
    return problems
