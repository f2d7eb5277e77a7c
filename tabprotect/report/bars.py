"""Intervals as bars on one axis, drawn as SVG text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

import numpy as np

from tabprotect.types import BoolArray, FloatArray

MOST = 60
"""So many intervals are drawn at most, sensitive cells first, narrowest first."""
_WIDTH, _ROW, _LETTER, _LABEL = 440, 20, 6.6, 42


def interval_bars(
    labels: Sequence[str],
    lower: FloatArray,
    upper: FloatArray,
    primary: BoolArray,
    need_low: FloatArray | None = None,
    need_high: FloatArray | None = None,
) -> str:
    """A bar from lower to upper for every hidden cell; with the needs (confidential) also a frame around what had to be covered.

    The axis is linear, or logarithmic away from zero when the ends differ by more than a factor of a thousand. Open ends run to the edge.
    """
    order = np.lexsort((upper - lower, ~primary))[:MOST]
    ends = np.concatenate([lower[order], upper[order]])
    place, ticks = _axis(ends[np.isfinite(ends)])
    left = _LETTER * max((min(len(labels[k]), _LABEL) for k in order), default=0) + 16
    parts = []
    for row, k in enumerate(order):
        y = row * _ROW
        color, kind = ("#8c1c13", "sensitive") if primary[k] else ("#0b4f8a", "complement")
        numbers = f"{short(lower[k])} – {short(upper[k])}"
        bar = _rect(left, place(lower[k]), place(upper[k]), y + 5, 10, f'rx="3" fill="{color}" fill-opacity="0.75"')
        if need_low is not None and need_high is not None and need_high[k] > need_low[k]:
            bar += _rect(
                left,
                place(need_low[k]),
                place(need_high[k]),
                y + 3,
                14,
                'fill="none" stroke="#1b1f24" stroke-width="1.5"',
            )
        parts.append(
            f"<g><title>{escape(labels[k])}: {numbers} ({kind})</title>{text(left - 8, y + 14, labels[k][:_LABEL], 'end')}{bar}"
            f"{text(left + _WIDTH + 12, y + 14, numbers)}</g>"
        )
    height = max(len(order), 1) * _ROW
    for tick in ticks:
        x = left + place(tick) * _WIDTH
        parts.insert(
            0,
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}" stroke="#d5dae0"/>'
            + text(x, height + 14, short(tick), "middle"),
        )
    wide, tall = left + _WIDTH + 190, height + 20
    return f'<svg class="scope" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {tall}" width="{wide}" height="{tall}">{"".join(parts)}</svg>'


def _axis(ends: FloatArray) -> tuple[Callable[[float], float], list[float]]:
    """Where a number stands between 0 and 1, and the ticks."""
    low, high = (float(ends.min()), float(ends.max())) if len(ends) else (0.0, 1.0)
    if high <= low:
        high = low + 1.0
    sizes = np.abs(ends[ends != 0])
    log = len(sizes) > 0 and sizes.max() > 1000 * max(float(np.median(sizes)), 1e-300)
    unit = max(float(np.median(sizes)), 1e-300) / 10 if log else 1.0

    def bend(v: float) -> float:
        return float(np.arcsinh(v / unit)) if log else v

    def place(v: float) -> float:
        return min(max((bend(min(max(v, low), high)) - bend(low)) / (bend(high) - bend(low)), 0.0), 1.0)

    if log:
        ticks = [t for t in (0.0, *(s * 10.0**e for e in range(-2, 16, 2) for s in (-1, 1))) if low <= t <= high]
        return place, ticks[:8]
    step = 10.0 ** np.floor(np.log10(high - low))
    step = step if (high - low) / step >= 4 else step / 2 if (high - low) / step >= 2 else step / 5
    first = np.ceil(low / step) * step
    return place, [float(first + k * step) for k in range(int((high - first) / step + 1e-9) + 1)]


def _rect(left: float, start: float, end: float, y: float, height: float, look: str) -> str:
    return f'<rect x="{left + start * _WIDTH:.1f}" y="{y}" width="{max((end - start) * _WIDTH, 2):.1f}" height="{height}" {look}/>'


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """A line of text at a place."""
    return f'<text x="{x:.1f}" y="{y}" text-anchor="{anchor}" font-size="12" font-family="system-ui,sans-serif" fill="#1b1f24">{escape(words)}</text>'


def short(v: float) -> str:
    """A number in at most six digits."""
    # what a solver leaves of zero is zero
    return "∞" if v == np.inf else "−∞" if v == -np.inf else f"{round(float(v), 9) + 0.0:,.6g}"
