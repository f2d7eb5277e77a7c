"""Make the pictures of the documentation: python docs/make_pictures.py (needs Chromium on the path)."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import matplotlib.image
import numpy as np

import tabprotect as tp

STATIC = Path(__file__).parent / "_static"
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--blink-settings=preferredColorScheme=1",
]  # fmt: skip


def screenshot(page: Path, picture: Path, wide: int, tall: int) -> None:
    """A page as a PNG file."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        raise SystemExit("no Chromium found")
    command = [program, *FLAGS, f"--user-data-dir={page.parent / 'profile'}", f"--window-size={wide},{tall}"]
    subprocess.run([*command, f"--screenshot={picture}", page.as_uri()], check=True, capture_output=True)


def crop(picture: Path, margin: int = 16) -> None:
    """Cut the white border off and save in as few colours as the page has."""
    from PIL import Image

    image = matplotlib.image.imread(picture)[..., :3]
    rows, columns = (np.flatnonzero((image < 0.99).any(axis=(2, axis))) for axis in (1, 0))
    box = (max(columns[0] - margin, 0), max(rows[0] - margin, 0), columns[-1] + margin, rows[-1] + margin)
    Image.open(picture).convert("RGB").crop(box).quantize(128).save(picture, optimize=True)


def d272() -> Path:
    """The report of D272: banner, table and intervals, without what comes after."""
    res = tp.suppress(tp.examples.d272().mark(tp.rules.Threshold(2)), time_limit=None)
    picture = STATIC / "d272.png"
    with tempfile.TemporaryDirectory() as folder:
        page = res.to_html(Path(folder) / "d272.html")
        text = page.read_text(encoding="utf-8")
        page.write_text(text[: text.index("<h2>By level</h2>")] + "</main></body></html>", encoding="utf-8")
        screenshot(page, picture, 930, 1150)
    crop(picture)
    return picture


if __name__ == "__main__":
    made = d272()
    print(made, made.stat().st_size, "bytes")
