"""Sphinx configuration."""

import tabprotect

project = "tabprotect"
author = "The tabprotect developers"
copyright = "2026, the tabprotect developers"
version = release = tabprotect.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
]
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "tabprotect"
html_static_path = ["_static"]
autodoc_typehints = "description"
autodoc_member_order = "bysource"
autosummary_generate = False
default_role = "code"
suppress_warnings = ["myst.xref_missing"]
