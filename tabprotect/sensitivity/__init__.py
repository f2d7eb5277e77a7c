"""Which cells are sensitive, how much protection they need, and why: `tp.rules`.

>>> import tabprotect as tp
>>> table = tp.examples.d272().mark(tp.rules.Threshold(2))
>>> table.values[table.primary].tolist()
[1.0, 1.0, 2.0, 2.0]
"""

from tabprotect.sensitivity.dominance import Dominance
from tabprotect.sensitivity.manual import Manual
from tabprotect.sensitivity.parse import parse
from tabprotect.sensitivity.ppercent import PPercent, PriorPosterior
from tabprotect.sensitivity.request import Request
from tabprotect.sensitivity.rule import AnyOf, Only, SensitivityRule
from tabprotect.sensitivity.threshold import MinFrequency, Threshold, ZeroValue
from tabprotect.table.contributions import Contributions

__all__ = [
    "AnyOf",
    "Contributions",
    "Dominance",
    "Manual",
    "MinFrequency",
    "Only",
    "PPercent",
    "PriorPosterior",
    "Request",
    "SensitivityRule",
    "Threshold",
    "ZeroValue",
    "parse",
]
