"""Random damage to valid files: bytes changed, cut, doubled, lines moved, numbers made absurd."""

from __future__ import annotations

from hypothesis import strategies as st

WORDS = [
    b"1e400",
    b"-1e400",
    b"nan",
    b"inf",
    b"-1",
    b"x",
    b"",
    b"\xff\xfe",
    b"\x00",
    b"99999999999999999999",
    b"s",
    b"u s",
    b":",
    b"(",
    b'"',
    b"\n",
    b"0x1",
    b"1_0",
    b";",
    b"<X>",
]


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """The data after one to three random mutations."""
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        end = min(len(data), at + draw(st.integers(0, 12)))
        kind = draw(st.sampled_from(["word", "byte", "cut", "truncate", "double", "swap"]))
        if kind == "word":
            data = data[:at] + draw(st.sampled_from(WORDS)) + data[end:]
        elif kind == "byte":
            data = data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :]
        elif kind == "cut":
            data = data[:at] + data[end:]
        elif kind == "truncate":
            data = data[:at]
        elif kind == "double":
            data = data[:end] + data[at:]
        else:
            lines = data.split(b"\n")
            i, j = draw(st.integers(0, len(lines) - 1)), draw(st.integers(0, len(lines) - 1))
            lines[i], lines[j] = lines[j], lines[i]
            data = b"\n".join(lines)
    return data
