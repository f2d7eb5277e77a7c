"""The pages in headless Chromium: what is drawn, and what a reader's machine sees as text."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

import tabprotect as tp
from tests.report.report_cases import ALL, SECRET, TRACES, flat

pytestmark = pytest.mark.browser
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars",
]  # fmt: skip


def chromium(folder: Path, page: Path, *options: str) -> str:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program, "these tests need Chromium; .ci/run installs it"
    command = [program, *FLAGS, f"--user-data-dir={folder / 'profile'}", *options, page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=True).stdout


def screenshot(folder: Path, page: Path, wide: int, tall: int, *options: str) -> np.ndarray:
    chromium(folder, page, f"--screenshot={folder / 'shot.png'}", f"--window-size={wide},{tall}", *options)
    return matplotlib.image.imread(folder / "shot.png")[..., :3]


def has(image: np.ndarray, colour: tuple[int, int, int]) -> int:
    """Pixels of (about) this colour."""
    return int((np.abs(image * 255 - np.array(colour)).max(axis=-1) <= 3).sum())


@pytest.mark.parametrize("name", ALL)
def test_drawn_and_not_blank(name: str, tmp_path: Path) -> None:
    res = ALL[name]()
    image = screenshot(tmp_path, res.to_html(tmp_path / "page.html"), 1000, 1400)
    assert image.shape == (1400, 1000, 3)
    assert image.std() > 0.05
    assert has(image, (0xDF, 0xF3, 0xE6)) > 5000  # the green banner
    if res.table.dims:
        assert has(image, (0xFB, 0xE3, 0xE0)) > 500  # sensitive cells
        assert has(image, (0xDF, 0xEE, 0xFB)) > 500  # complements


def test_text_has_intervals_and_no_hidden_value(tmp_path: Path) -> None:
    res = flat()
    dom = chromium(tmp_path, res.to_html(tmp_path / "page.html"), "--dump-dom")
    text = re.sub(r"<style.*?</style>|<[^>]+>", " ", dom, flags=re.DOTALL)
    assert not any(trace in dom for trace in TRACES)
    for row in tp.attack(res).intervals.itertuples():
        assert f"{row.lower:,.0f} – {row.upper:,.0f}" in text
    assert "What an outsider can deduce" in text


def test_confidential_page_warns(tmp_path: Path) -> None:
    page = flat().to_html(tmp_path / "page.html", confidential=True)
    dom = chromium(tmp_path, page, "--dump-dom")
    assert f"{SECRET:,}" in dom
    assert "must stay inside the office" in dom
    image = screenshot(tmp_path, page, 1000, 400)
    assert has(image, (0xFB, 0xE3, 0xE0)) > 20_000  # the red banner spans the page


def test_dark_scheme(tmp_path: Path) -> None:
    page = flat().to_html(tmp_path / "page.html")
    image = screenshot(tmp_path, page, 800, 600, "--blink-settings=preferredColorScheme=0")
    light = screenshot(tmp_path, page, 800, 600, "--blink-settings=preferredColorScheme=1")
    assert has(image, (0x14, 0x18, 0x1C)) > 200_000
    assert has(light, (0xFF, 0xFF, 0xFF)) > 200_000


def test_narrow_screens_scroll_inside_the_page(tmp_path: Path) -> None:
    """A wide table scrolls in its own box; the page itself is no wider than the screen."""
    page = flat().to_html(tmp_path / "page.html")
    probe = "<script>document.body.setAttribute('data-wide', document.documentElement.scrollWidth)</script></body>"
    (tmp_path / "probe.html").write_text(page.read_text().replace("</body>", probe))
    dom = chromium(tmp_path, tmp_path / "probe.html", "--dump-dom", "--window-size=520,900")
    wide = re.search(r'data-wide="(\d+)"', dom)
    assert wide
    assert int(wide.group(1)) <= 520


def test_prints_to_pdf(tmp_path: Path) -> None:
    chromium(tmp_path, flat().to_html(tmp_path / "page.html"), f"--print-to-pdf={tmp_path / 'page.pdf'}")
    data = (tmp_path / "page.pdf").read_bytes()
    assert data.startswith(b"%PDF")
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b", data)) <= 4


def test_attack_page(tmp_path: Path) -> None:
    res = flat()
    leaky = res.suppressed & res.table.primary
    found = tp.attack(res.table, suppressed=leaky)
    assert not found.safe
    page = found.to_html(tmp_path / "attack.html")
    dom = chromium(tmp_path, page, "--dump-dom")
    assert "1 cells are exposed" in dom or "1 cell is exposed" in dom
    image = screenshot(tmp_path, page, 900, 900)
    assert image.shape == (900, 900, 3)
    assert has(image, (0xFB, 0xE3, 0xE0)) > 5000
