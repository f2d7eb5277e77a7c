"""The shell of every HTML page: one file, no external resource, light and dark, prints well."""

from __future__ import annotations

from html import escape
from pathlib import Path

from tabprotect.files import write_text

_STYLE = """
:root { --ink:#1b1f24; --paper:#fff; --soft:#f3f5f7; --line:#d5dae0; --primary:#8c1c13; --primary-bg:#fbe3e0; --secondary:#0b4f8a;
  --secondary-bg:#dfeefb; --good:#0a6b36; --good-bg:#dff3e6; --muted:#57606a; }
@media (prefers-color-scheme: dark) { :root { --ink:#e6e9ec; --paper:#14181c; --soft:#1e242a; --line:#39424b; --primary:#ff9d93; --primary-bg:#4a1f1b;
  --secondary:#8cc4f5; --secondary-bg:#173550; --good:#7fdba5; --good-bg:#173a26; --muted:#a3acb5; } }
@media print { :root { --ink:#000; --paper:#fff; --soft:#f3f5f7; --line:#999; --primary:#8c1c13; --primary-bg:#fbe3e0; --secondary:#0b4f8a; --secondary-bg:#dfeefb;
  --good:#0a6b36; --good-bg:#dff3e6; --muted:#57606a; } body { max-width:none; padding:0; font-size:11px; print-color-adjust:exact } .scroll.scroll { overflow:visible; max-height:none }
  tr, figure, .facts div { break-inside:avoid } h2 { break-after:avoid } thead { display:table-header-group } }
* { box-sizing:border-box } body { font:15px/1.5 system-ui,"Segoe UI",Roboto,sans-serif; color:var(--ink); background:var(--paper); margin:0 auto; max-width:72rem; padding:1.5rem }
h1 { font-size:1.7rem; margin:.2rem 0 } h2 { font-size:1.2rem; margin:2rem 0 .6rem; border-bottom:1px solid var(--line); padding-bottom:.2rem } h3 { font-size:1rem; margin:1rem 0 .4rem }
a { color:var(--secondary) } .muted { color:var(--muted) } code { font:13px ui-monospace,monospace; background:var(--soft); padding:0 .25em; border-radius:3px; overflow-wrap:anywhere }
.banner { padding:.7rem 1rem; border-radius:6px; font-weight:600; margin:1rem 0 } .safe { background:var(--good-bg); color:var(--good) } .unsafe { background:var(--primary-bg); color:var(--primary) }
.facts { display:flex; flex-wrap:wrap; gap:.6rem; padding:0; margin:1rem 0 } .facts div { background:var(--soft); border-radius:6px; padding:.5rem .9rem; min-width:7.5rem }
.facts dt { font-size:.78rem; color:var(--muted) } .facts dd { margin:0; font-size:1.15rem; font-weight:600 }
.scroll { overflow:auto; max-width:100%; max-height:90vh } .scroll:focus-visible { outline:3px solid var(--secondary) } table { border-collapse:collapse; font-variant-numeric:tabular-nums; font-size:.92rem } caption { text-align:left; color:var(--muted); padding:.2rem 0 }
th,td { border:1px solid var(--line); padding:.25rem .6rem; text-align:right } th { background:var(--soft); text-align:left; font-weight:600 } thead th { text-align:center; position:sticky; top:0; z-index:1 } tbody th { position:sticky; left:0 } td.sub { background:var(--soft) } tbody td:first-child { text-align:left }
td.total,th.total { font-weight:600 } td.p { background:var(--primary-bg); color:var(--primary); font-weight:700 } td.s { background:var(--secondary-bg); color:var(--secondary); font-weight:700 }
td.p:focus,td.s:focus { outline:3px solid var(--secondary) } td small { display:block; font-weight:400; font-size:.74rem; color:inherit; white-space:nowrap } thead th { white-space:nowrap } .scroll + .scroll { margin-top:1rem }
.key span { display:inline-block; padding:.05rem .5rem; border-radius:4px; margin-right:.8rem } .key .p { background:var(--primary-bg); color:var(--primary) } .key .s { background:var(--secondary-bg); color:var(--secondary) }
figure { margin:1rem 0 } figure svg { max-width:100%; height:auto } figcaption { color:var(--muted); font-size:.88rem } .scope { background:#fff; border-radius:6px }
"""


def page(title: str, body: str) -> str:
    """A complete HTML document."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>\n<body><main>\n{body}\n</main></body></html>\n"
    )


def scroll(table: str, label: str) -> str:
    """A table that scrolls inside the page when it is too large, also by keyboard."""
    return f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(label, quote=True)}">{table}</div>'


def facts(pairs: list[tuple[str, str]]) -> str:
    """A row of key numbers."""
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)
    return f'<dl class="facts">{items}</dl>'


def rows_table(header: list[str], rows: list[list[str]], caption: str = "") -> str:
    """A plain table of text."""
    head = "".join(f'<th scope="col">{escape(h)}</th>' for h in header)
    body = "".join("<tr>" + "".join(f"<td>{escape(c)}</td>" for c in row) + "</tr>" for row in rows)
    cap = f"<caption>{escape(caption)}</caption>" if caption else ""
    return scroll(f"<table>{cap}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>", caption or header[0])


def figure(svg: str, caption: str) -> str:
    """An embedded picture with its caption; the caption is also its text for those who do not see it."""
    return f'<figure role="img" aria-label="{escape(caption, quote=True)}">{svg}<figcaption>{escape(caption)}</figcaption></figure>'


def save_page(path: str | Path, title: str, body: str) -> Path:
    """Write a page under a temporary name and rename it."""
    return write_text(path, page(title, body))
