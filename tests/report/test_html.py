"""The HTML pages: nothing from outside, nothing confidential, readable for everyone."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import tabprotect as tp
from tests.report.report_cases import ALL, SECRET, TRACES, bare, flat, hierarchical


def written(path: Path, res: tp.Protected, **options: bool) -> str:
    return res.to_html(path / "report.html", **options).read_text(encoding="utf-8")


def attack_page(path: Path, res: tp.Protected) -> str:
    return tp.attack(res).to_html(path / "attack.html").read_text(encoding="utf-8")


class Outline(HTMLParser):
    """All start tags with their attributes, and whether every opened element is closed again."""

    VOID = {"meta", "br", "img", "line", "rect", "hr", "input", "link", "col"}

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    @classmethod
    def of(cls, text: str) -> Outline:
        found = cls()
        found.feed(text)
        assert not found.open
        return found


@pytest.mark.parametrize("name", ALL)
def test_true_values_of_hidden_cells_are_nowhere(name: str, tmp_path: Path) -> None:
    res = ALL[name]()
    shown = {
        "report": written(tmp_path, res),
        "attack": attack_page(tmp_path, res),
        "notebook": res._repr_html_(),
        "attack in a notebook": tp.attack(res)._repr_html_(),
        "repr": repr(res),
        "summary": res.summary(),
        "attack's summary": tp.attack(res).summary(),
        "published": res.publish("x").to_csv(),
    }
    for where, text in shown.items():
        for trace in TRACES:
            assert trace not in text, where


def test_attack_on_a_table_with_gaps_shows_intervals_only(tmp_path: Path) -> None:
    res = flat()
    published = res.publish().assign(value=lambda f: f["value"].where(~res.suppressed))
    found = tp.attack(published, by=["row", "column"])
    page = found.to_html(tmp_path / "gaps.html").read_text()
    assert found.to_html() == page
    assert not any(trace in page for trace in TRACES)
    low, high = found.intervals[["lower", "upper"]].iloc[0]
    assert f"{low:,.6g}" in page
    assert f"{high:,.6g}" in page


def test_sums_over_hidden_cells_are_for_the_confidential_page_only(tmp_path: Path) -> None:
    """The hidden share of the value is one more equation for the attacker when totals are hidden too."""
    assert "value hidden" not in written(tmp_path, flat())
    assert "value hidden" in written(tmp_path, flat(), confidential=True)


@pytest.mark.parametrize("name", ["2-D", "3-D hierarchical"])
def test_confidential_page_shows_true_values_under_a_banner(name: str, tmp_path: Path) -> None:
    page = written(tmp_path, ALL[name](), confidential=True)
    assert f"{SECRET:,}" in page
    assert "CONFIDENTIAL" in page
    assert page.index("CONFIDENTIAL") < page.index(f"{SECRET:,}")


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("confidential", [False, True])
def test_one_file_without_anything_from_outside(name: str, confidential: bool, tmp_path: Path) -> None:
    page = written(tmp_path, ALL[name](), confidential=confidential)
    links = [link for link in re.findall(r"https?://[^\s\"'<>)]+", page) if link != "http://www.w3.org/2000/svg"]
    assert links == []
    assert not re.search(r"<script|<link|<iframe|<img|@import|url\(|\bsrc=", page)
    assert page.startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [tmp_path / "report.html"]  # no temporary file is left


@pytest.mark.parametrize("name", ALL)
def test_accessible(name: str, tmp_path: Path) -> None:
    res = ALL[name]()
    page = written(tmp_path, res)
    found = Outline.of(page)
    tags = [tag for tag, _ in found.tags]
    assert dict(found.tags)["html"]["lang"] == "en"
    assert tags.count("title") >= 1
    assert tags.count("h1") == 1
    assert "main" in tags
    assert all(attrs.get("scope") in {"col", "row"} for tag, attrs in found.tags if tag == "th")
    assert all(attrs.get("aria-label") for tag, attrs in found.tags if tag == "figure")
    regions = [attrs for tag, attrs in found.tags if tag == "div" and attrs.get("class") == "scroll"]
    assert regions
    assert all(attrs["tabindex"] == "0" and attrs["aria-label"] for attrs in regions)
    hidden = [attrs for tag, attrs in found.tags if tag == "td" and attrs.get("class") in {"p", "s"}]
    assert all(attrs["tabindex"] == "0" and attrs["title"] for attrs in hidden)
    assert len(hidden) == (int(res.suppressed.sum()) if res.table.dims else 0)


def luminance(colour: str) -> float:
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("pair", [("ink", "paper"), ("muted", "paper"), ("primary", "primary-bg"), ("secondary", "secondary-bg"), ("good", "good-bg"), ("muted", "soft")])  # fmt: skip
def test_contrast_is_enough_for_weak_eyes(scheme: str, pair: tuple[str, str], tmp_path: Path) -> None:
    """WCAG 2.1 asks for a contrast of 4.5 for text."""
    page = written(tmp_path, flat())
    blocks = re.findall(r":root \{(.*?)\}", page, flags=re.DOTALL)
    colours = dict(re.findall(r"--([\w-]+):(#\w{6})", blocks[0].replace("#fff;", "#ffffff;")))
    if scheme == "dark":
        colours |= dict(re.findall(r"--([\w-]+):(#\w{6})", blocks[1]))
    light, dark = sorted((luminance(colours[name]) for name in pair), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_dark_and_print_styles(tmp_path: Path) -> None:
    page = written(tmp_path, flat())
    assert "@media (prefers-color-scheme: dark)" in page
    assert "@media print" in page
    assert "break-inside:avoid" in page


def test_what_the_report_says(tmp_path: Path) -> None:
    res = tp.suppress(tp.examples.d272().mark(tp.rules.Threshold(2)), time_limit=None)
    page = written(tmp_path, res)
    text = re.sub(r"<[^>]+>", " ", page)
    for words in ("D272: protected by cell suppression", "Safe:", "optimal", "By level", "Certificate fingerprint"):
        assert words in text
    assert res.certificate.fingerprint in text
    assert page.count('<td class="p"') == 4
    assert page.count('<td class="s"') == 6
    found = tp.attack(res)
    for low, high in zip(found.lower, found.upper, strict=True):
        assert f"{low:,.0f} – {high:,.0f}" in text


def test_tiny_negative_zeros_of_a_solver_are_zero() -> None:
    from tabprotect.report.bars import short
    from tabprotect.report.grid import Picture

    picture = Picture((), None, np.zeros(1), np.zeros(1, bool), np.zeros(1, bool), np.zeros(1, bool), 1)
    assert picture.number(-1e-14) == "0.0"
    assert short(-2.8e-14) == "0"
    assert short(np.inf) == "∞"


def test_labels_are_escaped(tmp_path: Path) -> None:
    rows = [(a, b, v) for (a, b), v in zip([(a, b) for a in ("<i>z", 'y"&') for b in ("p", "q")], [5.0, 900.0, 800.0, 700.0], strict=True)]  # fmt: skip
    table = tp.Table.from_frame(pd.DataFrame(rows, columns=["<dim>", "k", "v"]), by=["<dim>", "k"], value="v")
    cell = [int(table.find(k="p")[1])]
    res = tp.suppress(table.with_status(cell, "u").with_levels(cell, lpl=1, upl=1), time_limit=None)
    page = written(tmp_path, res)
    Outline.of(page)
    assert "<i>z" not in page
    assert "&lt;i&gt;z" in page
    assert "<dim>" not in page


def test_large_tables_are_cut_and_say_so(tmp_path: Path) -> None:
    values = np.random.default_rng(5).integers(50, 5000, (330, 2)).astype(float)
    values[5, 0] = 3.0
    rows = [(f"r{i:03}", f"c{j}", values[i, j]) for i in range(330) for j in range(2)]
    table = tp.Table.from_frame(pd.DataFrame(rows, columns=["r", "c", "v"]), by=["r", "c"], value="v")
    cell = [int(table.cell(r="r005", c="c0"))]
    res = tp.suppress(table.with_status(cell, "u").with_levels(cell, lpl=1, upl=1), method="network", time_limit=None)
    page = written(tmp_path, res)
    assert "more rows" in page
    assert len(page) < 200_000


def test_notebook_view_of_a_table_marks_sensitive_cells() -> None:
    table = tp.examples.d272().mark(tp.rules.Threshold(2))
    html = table._repr_html_()
    Outline.of(html)
    assert html.count('class="p"') == 4
    assert ">748<" in html  # the producer's own view shows values


def test_the_unprotected_baseline_has_no_report(tmp_path: Path) -> None:
    leaky = tp.suppress(tp.examples.d272().mark(tp.rules.Threshold(2)), method="none")
    for write in (leaky.to_html, leaky.to_excel):
        with pytest.raises(tp.errors.Unsafe):
            write(tmp_path / "no")
    with pytest.raises(tp.errors.Unsafe):
        leaky.plot()
    assert list(tmp_path.iterdir()) == []
    assert "NOT SAFE" in leaky._repr_html_()
    assert "<td" not in leaky._repr_html_()


def test_table_without_dimensions_lists_hidden_cells(tmp_path: Path) -> None:
    page = written(tmp_path, bare())
    assert "hidden cells of 12" in page
    assert page.count("complement</td>") == int(bare().secondary.sum())


def test_hierarchy_is_visible(tmp_path: Path) -> None:
    page = written(tmp_path, hierarchical())
    assert page.count("<caption>") >= 3  # one part per code of the third dimension
    assert 'class="sub"' in page
    assert "&nbsp;" * 6 in page


def test_without_a_path_the_report_is_returned(tmp_path: Path) -> None:
    res = flat()
    text = res.to_html()
    assert text.startswith("<!doctype html>")
    assert text == written(tmp_path, res)
    assert f"{SECRET:,}" in res.to_html(confidential=True)


def test_a_map_shows_the_pattern_of_larger_tables() -> None:
    from tabprotect.bench.families import magnitude
    from tabprotect.report.heatmap import FILL, heat_map

    def width(drawn: str, kind: int) -> float:
        return sum(float(w) for w in re.findall(rf'width="([\d.]+)" height="[\d.]+" fill="{FILL[kind]}"', drawn))

    res = tp.suppress(magnitude(3, "20,14", mean=6), time_limit=5)
    drawn = heat_map(res)
    cell = 18.0  # the side of a cell of a table of this width
    assert width(drawn, 4) == pytest.approx(cell * res.table.primary.sum())
    assert width(drawn, 3) == pytest.approx(cell * res.secondary.sum())
    assert heat_map(res) in res.to_html()
    assert "<rect" in heat_map(bare())
    assert "Where the hidden cells lie" not in flat().to_html()


def test_large_maps_show_the_most_sensitive_cell_of_a_block() -> None:
    from tabprotect.bench.families import uniform
    from tabprotect.report.heatmap import FILL, heat_map

    table = uniform(1, "900,3", share=0.001)
    hidden = table.primary.copy()
    hidden[np.flatnonzero(table.status == "s")[:40]] = True
    values = np.where(hidden, np.nan, table.values)
    res = tp.Protected(table, "suppress", "test", values, hidden, "feasible", 1.0, 0.0, 0.0)
    drawn = heat_map(res)
    assert drawn.count("<rect") < 400 * 5
    assert FILL[4] in drawn
    assert FILL[3] in drawn


@pytest.mark.parametrize("method", ["round", "adjust"])
def test_true_zeros_are_not_told_from_made_ones(method: str, tmp_path: Path) -> None:
    """An 'empty' symbol in a rounded table would say that every 0 stands for a positive count."""
    table = tp.examples.d272().mark(tp.rules.Threshold(2))
    res = tp.round(table, base=5) if method == "round" else tp.adjust(table)
    page = res.to_html()
    assert "<td>–</td>" not in page
    assert page.count("<td>0</td>") >= int((res.values == 0).sum())
    assert "complements" not in page
    import openpyxl

    sheet = openpyxl.load_workbook(res.to_excel(tmp_path / "t.xlsx"))["cells"]
    assert [row[2].value for row in list(sheet.rows)[1:]] == res.values.tolist()
    assert not (res.plot().axes[0].images[0].get_array() == 2).any()
