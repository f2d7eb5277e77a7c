"""What a source says, what we find, and whether the two agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from tabprotect.errors import InputError

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

Verdict = Literal["yes", "no", "explained"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True)
class Claim:
    """One printed number or statement and ours.

    ``item`` says where it is printed, as ``place: what`` ("table 1: circuit (8,2) (7,2) (7,1)"); ``agrees`` is ``yes``, ``no``, or ``explained`` when the two differ for
    a reason that ``remark`` gives (a misprint, data that are not available).
    """

    item: str
    printed: str
    ours: str
    agrees: Verdict
    remark: str = ""

    def __post_init__(self) -> None:
        if self.agrees not in VERDICTS:
            raise InputError(f"agrees must be one of {', '.join(VERDICTS)}, got {self.agrees!r}")
        if self.agrees == "explained" and not self.remark:
            raise InputError(f"{self.item}: what is explained needs a remark")

    @property
    def place(self) -> str:
        """The table, figure or section, before the colon."""
        return self.item.partition(":")[0]

    @property
    def what(self) -> str:
        """What is claimed, after the colon."""
        return self.item.partition(":")[2].strip() or self.item


def number(item: str, printed: str, ours: float, *, misprint: str = "", remark: str = "") -> Claim:
    """A printed number against ours, compared at the digits that were printed; a ``misprint`` explains a difference.

    >>> number("table 4: share", "41.7", 10 / 24 * 100).agrees
    'yes'
    """
    digits = len(printed.partition(".")[2])
    # half a unit of the last digit, and a little for values that lie exactly on the border
    same = abs(ours - float(printed)) <= 0.5 * 10**-digits * (1 + 1e-9)
    shown = f"{ours:.{max(digits, 0)}f}" if same else f"{ours:.{digits + 2}f}"
    if same:
        return Claim(item, printed, shown, "yes", remark)
    return Claim(item, printed, shown, "explained" if misprint else "no", misprint or remark)


def statement(item: str, printed: str, ours: str, holds: bool, *, why: str = "", remark: str = "") -> Claim:
    """A printed statement and whether our numbers bear it out; ``why`` explains a failure."""
    if holds:
        return Claim(item, printed, ours, "yes", remark)
    return Claim(item, printed, ours, "explained" if why else "no", why or remark)


@dataclass(frozen=True)
class Reproduction:
    """A recomputed source: its claims in the order of the document, figures and frames by name, and what it was made with."""

    source: str
    title: str
    reference: str
    claims: tuple[Claim, ...]
    figures: Mapping[str, Figure] = field(default_factory=dict, repr=False)
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict, repr=False)
    notes: tuple[str, ...] = ()
    captions: Mapping[str, str] = field(default_factory=dict, repr=False)
    quick: bool = False

    @property
    def counts(self) -> dict[str, int]:
        """How many claims agree, do not agree, or are explained."""
        return {v: sum(c.agrees == v for c in self.claims) for v in VERDICTS}

    @property
    def frame(self) -> pd.DataFrame:
        """The claims as a table."""
        import pandas as pd

        rows = [(c.place, c.what, c.printed, c.ours, c.agrees, c.remark) for c in self.claims]
        return pd.DataFrame(rows, columns=["place", "what", "printed", "ours", "agrees", "remark"])

    def summary(self) -> str:
        """One line, and one more for every claim that is not reproduced."""
        n = self.counts
        lines = [
            f"{self.source}: {len(self.claims)} claims, {n['yes']} agree, {n['explained']} explained, {n['no']} not reproduced"
        ]
        lines += [
            f"  {c.item}: printed {c.printed}, ours {c.ours}. {c.remark}".rstrip()
            for c in self.claims
            if c.agrees == "no"
        ]
        return "\n".join(lines)

    def to_markdown(self, *, command: str = "", versions: Mapping[str, str] | None = None) -> str:
        """The page of the documentation: how it was made, then the claims place by place, then the figures."""
        from tabprotect.sources.page import markdown

        return markdown(self, command, versions or {})

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "source": self.source,
            "title": self.title,
            "reference": self.reference,
            "quick": self.quick,
            "counts": self.counts,
            "notes": list(self.notes),
            "claims": self.frame.to_dict("records"),
        }
