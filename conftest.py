"""Run every python block of the documentation and the README as a test, each page in one namespace and a temporary folder."""

from __future__ import annotations

import os
import tempfile
from typing import Any

from sybil import Sybil
from sybil.parsers.myst import PythonCodeBlockParser


def setup(namespace: dict[str, Any]) -> None:
    namespace["_folder"] = tempfile.TemporaryDirectory()
    namespace["_before"] = os.getcwd()
    os.environ["MPLBACKEND"] = "Agg"
    os.chdir(namespace["_folder"].name)


def teardown(namespace: dict[str, Any]) -> None:
    os.chdir(namespace["_before"])
    namespace["_folder"].cleanup()


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser()],
    patterns=["README.md", "docs/*.md", "docs/**/*.md"],
    setup=setup,
    teardown=teardown,
).pytest()
