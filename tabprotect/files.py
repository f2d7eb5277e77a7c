"""Files that are either written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tabprotect.errors import InputError


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary name beside ``path`` to write to; it takes the place of ``path`` when the block ends well, and is removed otherwise."""
    target = Path(path)
    temporary = target.with_name(f".{target.stem}.{os.getpid()}.part{target.suffix}")
    if not target.parent.is_dir():
        raise InputError("the folder does not exist", file=target)
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> Path:
    """Write a text file (UTF-8) under a temporary name and rename it."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return Path(path)


def write_bytes(path: str | Path, data: bytes) -> Path:
    """Write a binary file under a temporary name and rename it."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)
    return Path(path)
