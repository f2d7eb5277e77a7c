"""Source "tables" (2008): complementary cell suppression of the D272 table, worked through."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tabprotect.attacker import attack
from tabprotect.protected import Protected
from tabprotect.sensitivity import Threshold
from tabprotect.solve.stop import Listener
from tabprotect.sources.claim import Claim, Reproduction, number, statement
from tabprotect.suppression import suppress
from tabprotect.suppression.circuit import circuits
from tabprotect.table.examples import d272
from tabprotect.table.table import Table
from tabprotect.types import BoolArray

# (row, column) of the report: rows are size classes 1 to 8 (0 the total), columns D2721, D2722, D2729 are 1 to 3 (0: D272)
PRIMARY = [(5, 3), (6, 3), (7, 1), (8, 1)]
PATTERN = [(4, 1), (4, 3), (5, 1), (5, 3), (6, 2), (6, 3), (7, 1), (7, 2), (8, 1), (8, 2)]
# table 1: other column, other row, printed sum, crossed out
TABLE1 = [
    *((2, row, value, row == 6) for row, value in zip(range(7, 0, -1), (13, 13, 31, 62, 154, 222, 225), strict=True)),
    *((3, row, value, True) for row, value in zip(range(7, 0, -1), (4, 3, 8, 16, 70, 97, 96), strict=True)),
]
# table 3: primary cell, the other three cells of its cheapest circuit, their sum
TABLE3 = [
    ((7, 1), ((7, 2), (8, 2), (8, 1)), "13"),
    ((5, 3), ((5, 1), (4, 1), (4, 3)), "19"),
    ((6, 3), ((6, 2), (5, 2), (5, 3)), "30"),
]
# tables 4 and 5, columns D272, D2721, D2722, D2729
TABLE4 = {
    "cells A": ("24", "8", "8", "8"),
    "CCS, hidden cells B": ("10", "4", "3", "3"),
    "CCS, share C = B/A": ("41.7", "50.0", "37.5", "37.5"),
    "SODC, hidden cells D": ("4", "2", "0", "2"),
    "SODC, share E": ("16.7", "25.0", "0.0", "25.0"),
    "C − E": ("25.0", "25.0", "37.5", "12.5"),
}
TABLE5 = {
    "value H": ("748", "217", "467", "64"),
    "CCS, hidden value I": ("40", "19", "16", "5"),
    "CCS, share J = I/H": ("5.4", "8.8", "3.4", "7.8"),
    "SODC, hidden value K": ("6", "4", "0", "2"),
    "SODC, share L = K/H": ("0.8", "1.8", "0.0", "3.1"),
    "J − L": ("4.6", "7.0", "3.4", "4.7"),
}
# the report's equations of the hidden cells: the cells of one row or column, and what is left of its total
EQUATIONS = [
    ("a41 + a43", 14), ("a51 + a53", 5), ("a62 + a63", 8), ("a71 + a72", 7), ("a81 + a82", 6),
    ("a41 + a51 + a71 + a81", 19), ("a62 + a72 + a82", 16), ("a43 + a53 + a63", 5),
]  # fmt: skip
COLUMNS = ("D272", "D2721", "D2722", "D2729")
# the intervals that the report's equations with a ≥ 1 imply, worked out by hand
INTERVALS = {
    "a41": (11, 13), "a43": (1, 3), "a51": (2, 4), "a53": (1, 3), "a62": (5, 7),
    "a63": (1, 3), "a71": (1, 3), "a72": (4, 6), "a81": (1, 3), "a82": (3, 5),
}  # fmt: skip
MISPRINTS = {
    "table 1: circuit (8,3) (5,3) (5,1)": "misprint: 2 + 0 + 1 + 4 = 7; the circuit is crossed out anyway",
    "table 5: D272, CCS, share J = I/H": "misprint: 40/748 = 5.348 %, which rounds to 5.3",
    "table 5: D272, J − L": "follows from the misprinted 5.4; the printed differences are those of the rounded shares",
}
REMARKS = {
    "table 4: D272, SODC, share E": "printed as E = (B/A); it is (D/A)",
    "table 5: D2721, J − L": "difference of the rounded shares, as printed; unrounded it is 6.9",
}


def reproduce(*, quick: bool = False, progress: Listener | None = None) -> Reproduction:
    """Tables 1 to 5 of the report, the check by linear equations, and what it left open (proof of the optimum, intervals).

    >>> found = reproduce()
    >>> found.counts["no"]
    0
    """
    table = d272().mark(Threshold(2))
    ccs = suppress(table, time_limit=None, progress=progress)
    fewest = suppress(_interior(table), objective="count", time_limit=None, progress=progress)
    sodc = suppress(table, method="none")
    claims = [
        *_primaries(table),
        *_table1(table),
        *_table2(table, ccs),
        *_table3(table),
        *_shares("table 4", TABLE4, table, ccs.suppressed, sodc.suppressed, np.ones(table.n_cells)),
        *_shares("table 5", TABLE5, table, ccs.suppressed, sodc.suppressed, table.values),
        *_check(table, ccs, sodc),
        *_beyond(table, ccs, fewest),
    ]
    from tabprotect.report import plots

    found = attack(ccs, lb=1)
    return Reproduction(
        "tables",
        "Cell suppression of a business survey table (2008)",
        "Statistics Korea, *Joint study of disclosure control for macro data*, report of 2008: establishments of industry group D272 by size "
        "class, 2006 mining and manufacturing survey.",
        tuple(claims),
        {"pattern": plots.pattern(ccs), "intervals": plots.intervals(found)},
        {"intervals": found.intervals},
        notes=(
            "All of it is arithmetic on a printed table, so every number can be compared digit by digit. Cells are written as in the report, "
            "a81 being size class 8 (500 and more) of D2721. CCS is complementary cell suppression, SODC the suppression of disclosive cells only.",
        ),
        captions={
            "pattern": "Table 2: published, sensitive and complementary cells.",
            "intervals": "What the attacker of section “check” can deduce when hidden cells are known to be at least 1.",
        },
        quick=False,  # nothing here is simulated
    )


def _cell(table: Table, row: int, column: int) -> int:
    size, industry = table.dims
    return table.cell(size=size.codes[row], industry=industry.codes[column])


def _name(table: Table, cell: int) -> str:
    return "a{}{}".format(*table.codes[cell])


def _names(table: Table, mask: BoolArray) -> str:
    return ", ".join(_name(table, int(i)) for i in np.flatnonzero(mask))


def _interior(table: Table) -> Table:
    """The report publishes all totals."""
    return table.protect(np.flatnonzero((table.codes == 0).any(axis=1)))


def _primaries(table: Table) -> list[Claim]:
    printed = ", ".join(f"a{r}{c}" for r, c in sorted(PRIMARY))
    ours = _names(table, table.primary)
    return [statement("step 1: sensitive cells (count of 1 or 2)", printed, ours, printed == ours)]


def _sums(table: Table, cell: int) -> dict[frozenset[int], tuple[float, bool]]:
    listed = circuits(table, cell)
    return {frozenset(c): (v, z) for c, v, z in zip(listed["cells"], listed["value"], listed["has_zero"], strict=True)}


def _table1(table: Table) -> list[Claim]:
    found = _sums(table, _cell(table, 8, 1))
    claims = [
        statement(
            "table 1: number of circuits of a81",
            str(len(TABLE1)),
            str(len(found)),
            len(found) == len(TABLE1),
        )
    ]
    for column, row, value, crossed in TABLE1:
        cells = [(8, column), (row, column), (row, 1)]
        ours, zero = found[frozenset(_cell(table, *c) for c in cells)]
        printed = f"{value}{', has a zero' if crossed else ''}"
        shown = f"{ours:g}{', has a zero' if zero else ''}"
        what = " ".join(f"({r},{c})" for r, c in cells)
        item = f"table 1: circuit {what}"
        claims.append(statement(item, printed, shown, printed == shown, why=MISPRINTS.get(item, "")))
    return claims


def _table2(table: Table, ccs: Protected) -> list[Claim]:
    printed, ours = ", ".join(f"a{r}{c}" for r, c in PATTERN), _names(table, ccs.suppressed)
    return [
        statement("table 2: hidden cells", printed, ours, printed == ours),
        number("table 2: number of hidden cells", "10", int(ccs.suppressed.sum())),
        number("table 2: hidden value, objective (1)", "40", ccs.objective),
    ]


def _table3(table: Table) -> list[Claim]:
    claims = []
    for cell, others, value in TABLE3:
        listed = circuits(table, _cell(table, *cell))
        best = listed[~listed["has_zero"]].iloc[0]
        printed = f"{value}: " + ", ".join(f"a{r}{c}" for r, c in sorted(others))
        ours = f"{best['value']:g}: " + ", ".join(sorted(_name(table, int(i)) for i in best["cells"]))
        claims.append(statement(f"table 3: cheapest circuit of a{cell[0]}{cell[1]}", printed, ours, printed == ours))
    return claims


def _shares(
    place: str, rows: Mapping[str, tuple[str, ...]], table: Table, ccs: BoolArray, sodc: BoolArray, weight: Any
) -> list[Claim]:
    """Tables 4 and 5: what is hidden of the 24 inner cells, in all and by column."""
    claims = []
    inner = (table.codes != 0).all(axis=1)
    for k, column in enumerate(COLUMNS):
        part = inner if k == 0 else inner & (table.codes[:, 1] == k)
        whole, b, d = (float(weight[part & mask].sum()) for mask in (inner, ccs, sodc))
        shares = [round(100 * v / whole, 1) for v in (b, d)]
        ours = (whole, b, 100 * b / whole, d, 100 * d / whole, shares[0] - shares[1])
        for (what, printed), value in zip(rows.items(), ours, strict=True):
            item = f"{place}: {column}, {what}"
            claims.append(
                number(item, printed[k], value, misprint=MISPRINTS.get(item, ""), remark=REMARKS.get(item, ""))
            )
    return claims


def _check(table: Table, ccs: Protected, sodc: Protected) -> list[Claim]:
    """The report's validation: the equations of the hidden cells have no unique solution; those of SODC do."""
    claims = []
    for text, right in EQUATIONS:
        names = text.split(" + ")
        total = sum(table.values[_cell(table, int(n[1]), int(n[2]))] for n in names)
        hidden = {_cell(table, int(n[1]), int(n[2])) for n in names}
        line = [np.flatnonzero((table.codes[:, k] == int(names[0][1 + k])) & ccs.suppressed) for k in (0, 1)]
        whole = any(set(part.tolist()) == hidden for part in line)
        claims.append(statement(f"check: {text}", f"= {right}", f"= {total:g}", whole and total == right))
    found, leaked = attack(ccs, lb=1), attack(sodc)
    widths = found.upper - found.lower
    return [
        *claims,
        statement(
            "check: the hidden cells have no unique solution (a ≥ 1)",
            "not recoverable",
            f"every interval is {widths.min():g} wide",
            bool((widths > 0).all()) and not found.recovered,
        ),
        *(
            statement(
                f"check: interval of {name} (a ≥ 1)",
                f"[{low}, {high}]",
                f"[{a:g}, {b:g}]",
                (a, b) == (low, high),
                remark="not printed; follows from the printed equations",
            )
            for (name, (low, high)), a, b in zip(INTERVALS.items(), found.lower, found.upper, strict=True)
        ),
        statement(
            "check: SODC can be undone by the linear relations",
            "recoverable",
            f"{len(leaked.recovered)} of {len(leaked.cells)} hidden cells recovered exactly",
            len(leaked.recovered) == len(leaked.cells),
        ),
    ]


def _beyond(table: Table, ccs: Protected, fewest: Protected) -> list[Claim]:
    """What the report does not print but its pattern implies."""
    cheapest = suppress(_interior(table), time_limit=None)
    return [
        statement(
            "not printed: objective (1), min Σ a z over inner cells",
            "40, found by circuits",
            f"{cheapest.objective:g}, {cheapest.status}",
            cheapest.objective == 40 and cheapest.status == "optimal",
            remark="the report's pattern is proved to be the best possible",
        ),
        statement(
            "not printed: objective (2), min Σ z over inner cells",
            "10 cells in the pattern of objective (1)",
            f"{fewest.objective:g}, {fewest.status}",
            fewest.objective == 10 and fewest.status == "optimal",
            remark="fewer cells cannot do",
        ),
        statement(
            "not printed: with totals that may be hidden too",
            "40",
            f"{ccs.objective:g}, {ccs.status}",
            ccs.objective == 40 and ccs.status == "optimal",
        ),
    ]
