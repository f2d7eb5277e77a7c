"""A reproduction as a Markdown page with its CSV files and figures."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from tabprotect.files import write_text
from tabprotect.report.plots import svg

if TYPE_CHECKING:
    from tabprotect.sources.claim import Reproduction

MARK = {"yes": "yes", "no": "**no**", "explained": "*explained*"}


def markdown(found: Reproduction, command: str, versions: Mapping[str, str]) -> str:
    """The page; pictures are expected in ``figures/``, the claims also in a CSV file beside it."""
    n = found.counts
    parts = [
        f"# {found.title}",
        f"{found.reference}",
        f"**{len(found.claims)} claims: {n['yes']} agree, {n['explained']} explained, {n['no']} not reproduced.** "
        f"The same table as a file: [{found.source}.csv]({found.source}.csv).",
    ]
    if command:
        size = ", with small simulations (`--quick`)" if found.quick else ""
        made = ", ".join(f"{name} {value}" for name, value in versions.items())
        parts.append(f"This page is written by the command below{size}; {made}.\n\n```bash\n{command}\n```")
    parts += found.notes
    for place, claims in groupby(found.claims, key=lambda c: c.place):
        rows = [
            f"| {_cell(c.what)} | {_cell(c.printed)} | {_cell(c.ours)} | {MARK[c.agrees]} | {_cell(c.remark)} |"
            for c in claims
        ]
        head = "| what | printed | ours | agrees | remark |\n|---|---|---|---|---|"
        parts.append(f"## {place[:1].upper()}{place[1:]}\n\n{head}\n" + "\n".join(rows))
    if found.figures:
        parts.append("## Pictures")
    for name in found.figures:
        caption = found.captions.get(name, name)
        parts.append(f"![{_cell(caption)}](figures/{found.source}-{name}.svg)\n\n*{caption}*")
    return "\n\n".join(parts) + "\n"


def save(found: Reproduction, folder: str | Path, *, command: str = "", versions: Mapping[str, str]) -> list[Path]:
    """Write the page, its claims as CSV, its frames and its figures; returns the files."""
    where = Path(folder)
    (where / "figures").mkdir(parents=True, exist_ok=True)
    files = [
        write_text(where / f"{found.source}.md", found.to_markdown(command=command, versions=versions)),
        write_text(where / f"{found.source}.csv", found.frame.to_csv(index=False)),
    ]
    for name, frame in found.frames.items():
        files.append(
            write_text(where / "figures" / f"{found.source}-{name}.csv", frame.to_csv(index=False, float_format="%.6g"))
        )
    for name, figure in found.figures.items():
        files.append(write_text(where / "figures" / f"{found.source}-{name}.svg", svg(figure)))
    return files


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("*", "\\*")
