"""Microdata: disclosure risk by similarity, de-identification, and how far released data are from the original.

Sources: Cho, Kwon and Lee (2012) for the risk measures, Kang, Oh, Yong and Lee (2017) for the dissimilarity.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_EXPORTS = {
    "risk": "disclosure",
    "Risk": "disclosure",
}

__all__ = list(_EXPORTS)

if TYPE_CHECKING:
    from tabprotect.microdata.disclosure import Risk as Risk
    from tabprotect.microdata.disclosure import risk as risk


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'tabprotect.microdata' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"tabprotect.microdata.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
