"""tabprotect: protect published tables, prove that they are protected, and do it fast.

Everything public is reached from here and imported only when first used:

>>> import tabprotect as tp
>>> table = tp.examples.d272().mark(tp.rules.Threshold(2))
>>> int(table.primary.sum())
4
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# name -> (module, attribute); attribute None means the module itself
_EXPORTS: dict[str, tuple[str, str | None]] = {
    "Hierarchy": ("tabprotect.table.hierarchy", "Hierarchy"),
    "Table": ("tabprotect.table.table", "Table"),
    "link": ("tabprotect.table.linked", "link"),
    "tabulate": ("tabprotect.table.tabulate", "tabulate"),
    "examples": ("tabprotect.table.examples", None),
    "rules": ("tabprotect.sensitivity", None),
    "Protected": ("tabprotect.protected", "Protected"),
    "read_jj": ("tabprotect.io.jj", "read_jj"),
    "write_jj": ("tabprotect.io.jj", "write_jj"),
    "read_argus": ("tabprotect.io.argus", "read_argus"),
    "write_argus": ("tabprotect.io.argus", "write_argus"),
    "read_microdata": ("tabprotect.io.argus", "read_microdata"),
    "read_apriori": ("tabprotect.io.argus", "read_apriori"),
    "read_cells": ("tabprotect.io.frames", "read_cells"),
    "write_cells": ("tabprotect.io.frames", "write_cells"),
    "attack": ("tabprotect.attacker", "attack"),
    "Knowledge": ("tabprotect.attacker", "Knowledge"),
    "Certificate": ("tabprotect.attacker", "Certificate"),
    "verify": ("tabprotect.attacker", "verify"),
    "suppress": ("tabprotect.suppression", "suppress"),
    "round": ("tabprotect.rounding", "round_table"),
    "adjust": ("tabprotect.adjustment", "adjust"),
    "compare": ("tabprotect.report.compare", "compare"),
    "microdata": ("tabprotect.microdata", None),
    "dp": ("tabprotect.dp", None),
    "substitution": ("tabprotect.substitution", None),
    "errors": ("tabprotect.errors", None),
}

__all__ = ["__version__", *_EXPORTS]

if TYPE_CHECKING:
    from tabprotect import dp as dp
    from tabprotect import errors as errors
    from tabprotect import microdata as microdata
    from tabprotect import sensitivity as rules  # noqa: F401
    from tabprotect import substitution as substitution
    from tabprotect.adjustment import adjust as adjust
    from tabprotect.attacker import Certificate as Certificate
    from tabprotect.attacker import Knowledge as Knowledge
    from tabprotect.attacker import attack as attack
    from tabprotect.attacker import verify as verify
    from tabprotect.io.argus import read_apriori as read_apriori
    from tabprotect.io.argus import read_argus as read_argus
    from tabprotect.io.argus import read_microdata as read_microdata
    from tabprotect.io.argus import write_argus as write_argus
    from tabprotect.io.frames import read_cells as read_cells
    from tabprotect.io.frames import write_cells as write_cells
    from tabprotect.io.jj import read_jj as read_jj
    from tabprotect.io.jj import write_jj as write_jj
    from tabprotect.protected import Protected as Protected
    from tabprotect.report.compare import compare as compare
    from tabprotect.rounding import round_table as round  # noqa: F401
    from tabprotect.suppression import suppress as suppress
    from tabprotect.table import examples as examples
    from tabprotect.table.hierarchy import Hierarchy as Hierarchy
    from tabprotect.table.linked import link as link
    from tabprotect.table.table import Table as Table
    from tabprotect.table.tabulate import tabulate as tabulate


def __getattr__(name: str) -> Any:
    try:
        module, attribute = _EXPORTS[name]
    except KeyError:
        raise AttributeError(f"module 'tabprotect' has no attribute {name!r}") from None
    found = importlib.import_module(module)
    value = found if attribute is None else getattr(found, attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
