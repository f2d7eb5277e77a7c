"""Rules written as text, for the command line and for policy files."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tabprotect.errors import InputError
from tabprotect.sensitivity.dominance import Dominance
from tabprotect.sensitivity.ppercent import PPercent, PriorPosterior
from tabprotect.sensitivity.request import Request
from tabprotect.sensitivity.rule import AnyOf, SensitivityRule
from tabprotect.sensitivity.threshold import MinFrequency, Threshold, ZeroValue

_RULES: dict[str, Callable[..., SensitivityRule]] = {
    "p%": PPercent,
    "p": PPercent,
    "pq": PriorPosterior,
    "nk": Dominance,
    "dominance": Dominance,
    "freq": MinFrequency,
    "threshold": Threshold,
    "zero": ZeroValue,
    "request": Request,
    "req": Request,
}
_ONE = re.compile(r"\s*([A-Za-z%]+)\s*(?:\(([^()]*)\))?\s*\Z")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\Z")


def parse(text: str) -> SensitivityRule:
    """Rules from text: names with arguments, joined by ``|``; τ-ARGUS's ``P(10,1)``, ``NK(1,80)``, ``FREQ(3,30)`` are understood too.

    Known: ``p%(p, n)``, ``pq(p, q, n)``, ``nk(n, k)``, ``freq(n, range)`` (count < n), ``threshold(base)`` (count ≤ base), ``zero``, ``request(share, range)``;
    keywords as in Python: ``nk(1, 80, boundary=>)``, ``p%(10, unit=holding)``, ``threshold(2, zeros=true)``.

    >>> print(parse("p%(10)|freq(3)|nk(1,80)|pq(10,50)"))
    p%(10)|threshold(2)|nk(1,80)|pq(10,50)
    """
    if not isinstance(text, str) or not text.strip():
        raise InputError("no rule given: write for example p%(10)|freq(3)")
    rules = tuple(_parse_one(part, text) for part in text.split("|"))
    return rules[0] if len(rules) == 1 else AnyOf(rules)


def _parse_one(part: str, text: str) -> SensitivityRule:
    match = _ONE.match(part)
    if match is None:
        raise InputError(
            f"cannot read the rule {part.strip()!r} in {text!r}: write a name with arguments, for example p%(10)"
        )
    make = _RULES.get(match[1].lower())
    if make is None:
        raise InputError(f"unknown rule {match[1]!r} in {text!r}: known are {', '.join(_RULES)}")
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for argument in filter(None, (a.strip() for a in (match[2] or "").split(","))):
        key, equals, value = argument.partition("=")
        if equals and key.strip().isidentifier():
            named[key.strip()] = _value(value.strip())
        else:
            positional.append(_value(argument))
    try:
        return make(*positional, **named)
    except TypeError as error:
        raise InputError(f"rule {part.strip()!r}: {str(error).replace('__init__() ', '')}") from None


def _value(text: str) -> Any:
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if not _NUMBER.match(text):
        return text
    number = float(text)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number
