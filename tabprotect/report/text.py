"""Results in a few lines of text."""

from __future__ import annotations

from tabprotect.protected import Protected


def summary(res: Protected) -> str:
    """Method, status, cost, gap and counts, without any hidden value."""
    table = res.table
    primary, secondary = int(table.primary.sum()), int(res.secondary.sum())
    lines = [
        f"{table.name or 'table'}: {table.n_cells:,} cells, {table.n_relations:,} relations, {primary:,} sensitive",
        f"{res.kind} by {res.method} ({res.info.get('why', 'asked for')})",
        f"status {res.status}, objective {res.cost_text}, gap {res.gap:.2%}, {res.runtime:.2f} s",
    ]
    if res.kind == "suppress":
        lines.append(f"{primary + secondary:,} cells hidden: {primary:,} sensitive and {secondary:,} to protect them")
    if res.certificate is not None:
        lines.append(f"proved safe: certificate {res.certificate.fingerprint[:16]}")
    elif res.status == "unsafe":
        lines.append(f"NOT SAFE: {len(res.info.get('exposed', ())):,} sensitive cells can be inferred")
    return "\n".join(lines)
