"""Microdata: disclosure risk by similarity, de-identification, and how far released data are from the original.

Sources: Cho, Kwon and Lee (2012) for the risk measures, Kang, Oh, Yong and Lee (2017) for the dissimilarity.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

# name -> module that defines it; empty: the name is a module
_EXPORTS = {
    "risk": "disclosure",
    "Risk": "disclosure",
    "key_sets": "keysets",
    "KeySets": "keysets",
    "Recipe": "recipe",
    "Deidentified": "recipe",
    "Recoding": "recoding",
    "recode": "verbs",
    "top_code": "verbs",
    "bottom_code": "verbs",
    "drop_columns": "verbs",
    "generalize": "generalization",
    "suppress_records": "suppression",
    "suppress_cells": "suppression",
    "microaggregate": "microaggregation",
    "add_noise": "noise",
    "dissimilarity": "distance",
    "Dissimilarity": "distance",
    "information_loss": "loss",
    "trade_off": "tradeoff",
    "study": "",
}

__all__ = list(_EXPORTS)

if TYPE_CHECKING:
    from tabprotect.microdata import study as study
    from tabprotect.microdata.disclosure import Risk as Risk
    from tabprotect.microdata.disclosure import risk as risk
    from tabprotect.microdata.distance import Dissimilarity as Dissimilarity
    from tabprotect.microdata.distance import dissimilarity as dissimilarity
    from tabprotect.microdata.generalization import generalize as generalize
    from tabprotect.microdata.keysets import KeySets as KeySets
    from tabprotect.microdata.keysets import key_sets as key_sets
    from tabprotect.microdata.loss import information_loss as information_loss
    from tabprotect.microdata.microaggregation import microaggregate as microaggregate
    from tabprotect.microdata.noise import add_noise as add_noise
    from tabprotect.microdata.recipe import Deidentified as Deidentified
    from tabprotect.microdata.recipe import Recipe as Recipe
    from tabprotect.microdata.recoding import Recoding as Recoding
    from tabprotect.microdata.suppression import suppress_cells as suppress_cells
    from tabprotect.microdata.suppression import suppress_records as suppress_records
    from tabprotect.microdata.tradeoff import trade_off as trade_off
    from tabprotect.microdata.verbs import bottom_code as bottom_code
    from tabprotect.microdata.verbs import drop_columns as drop_columns
    from tabprotect.microdata.verbs import recode as recode
    from tabprotect.microdata.verbs import top_code as top_code


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'tabprotect.microdata' has no attribute {name!r}")
    module = _EXPORTS[name]
    value: Any = importlib.import_module(f"tabprotect.microdata.{module or name}")
    if module:
        value = getattr(value, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
