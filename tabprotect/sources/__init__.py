"""The five source documents recomputed: printed value, our value, agreement, remark.

>>> from tabprotect.sources import reproduce
>>> reproduce("tables").counts["no"]
0
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from tabprotect.errors import InputError
from tabprotect.solve.stop import Listener
from tabprotect.sources.claim import Claim, Reproduction

# name on the command line -> module with ``reproduce(quick, progress)``
SOURCES = {
    "tables": "tables",
    "similarity": "similarity",
    "dissimilarity": "dissimilarity",
    "dp-test": "dp_test",
    "substitution": "substitution",
}

__all__ = ["SOURCES", "Claim", "Reproduction", "reproduce"]


def reproduce(source: str, *, quick: bool = False, progress: Listener | None = None, **options: Any) -> Reproduction:
    """Recompute one source, table by table and figure by figure.

    source: ``tables``, ``similarity``, ``dissimilarity``, ``dp-test`` or ``substitution``.
    quick: small simulations, seconds instead of hours; the claims are the same.
    options: settings of a source's own ``reproduce`` (numbers of samples, records or repetitions).
    """
    if source not in SOURCES:
        raise InputError(f"unknown source {source!r}: use one of {', '.join(SOURCES)}")
    run: Callable[..., Reproduction] = importlib.import_module(f"tabprotect.sources.{SOURCES[source]}").reproduce
    return run(quick=quick, progress=progress, **options)
