"""Intervals as bars, drawn as SVG text."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import numpy as np

from tabprotect.types import BoolArray, FloatArray

MOST = 60
"""So many intervals are drawn at most, sensitive cells first, narrowest first."""


def interval_bars(
    labels: Sequence[str],
    lower: FloatArray,
    upper: FloatArray,
    primary: BoolArray,
    need_low: FloatArray | None = None,
    need_high: FloatArray | None = None,
) -> str:
    """A bar from lower to upper for every hidden cell; with the needs (confidential) also what had to be covered."""
    width = upper - lower
    order = np.lexsort((width, ~primary))[:MOST]
    lines = []
    left, scale, height = 260, 440, 20
    for row, k in enumerate(order):
        y = row * height
        low, high = lower[k], upper[k]
        finite = bool(np.isfinite(low) and np.isfinite(high))
        span_low = min(low, need_low[k]) if need_low is not None and finite else low
        span_high = max(high, need_high[k]) if need_high is not None and finite else high
        span = (span_high - span_low) or 1.0
        color = "#8c1c13" if primary[k] else "#0b4f8a"
        kind = "sensitive" if primary[k] else "complement"
        numbers = f"{_short(low)} – {_short(high)}"
        start, end = ((low - span_low) / span, (high - span_low) / span) if finite else (0.0, 1.0)
        bar = f'<rect x="{left + start * scale:.1f}" y="{y + 5}" width="{max((end - start) * scale, 2):.1f}" height="10" rx="3" fill="{color}" fill-opacity="0.75"/>'
        if need_low is not None and need_high is not None and finite:
            a, b = ((v - span_low) / span for v in (need_low[k], need_high[k]))
            bar += f'<rect x="{left + a * scale:.1f}" y="{y + 3}" width="{max((b - a) * scale, 2):.1f}" height="14" fill="none" stroke="#1b1f24" stroke-width="1.5"/>'
        lines.append(
            f'<g><title>{escape(labels[k])}: {numbers} ({kind})</title><text x="{left - 8}" y="{y + 14}" text-anchor="end" font-size="12" fill="#1b1f24">'
            f'{escape(labels[k][:42])}</text>{bar}<text x="{left + scale + 8}" y="{y + 14}" font-size="12" fill="#1b1f24">{numbers}</text></g>'
        )
    total = max(len(order) * height, height)
    return (
        f'<svg class="scope" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + scale + 190} {total + 6}" width="{left + scale + 190}" height="{total + 6}">'
        + "".join(lines)
        + "</svg>"
    )


def _short(v: float) -> str:
    return "∞" if v == np.inf else "−∞" if v == -np.inf else f"{v:,.6g}"
