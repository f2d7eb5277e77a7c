"""Files: clear errors on the way in, written whole or not at all on the way out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tabprotect.errors import InputError


def read_bytes(path: str | Path) -> bytes:
    """The contents of a file; a missing, unreadable or empty one is an InputError."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError("there is no such file", file=path) from None
    except IsADirectoryError:
        raise InputError("this is a directory, not a file", file=path) from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "not the name of a file"
        raise InputError(f"cannot be read: {reason}", file=path) from None
    if not data.strip():
        raise InputError("the file is empty", file=path)
    return data


def read_text(path: str | Path, encoding: str = "utf-8") -> str:
    """The text of a file, without a byte-order mark; wrong encodings and binary data are InputErrors that name the line."""
    data = read_bytes(path)
    if encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        encoding = "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"is not {encoding.removesuffix('-sig')} text: pass encoding='…'", file=path, line=line
        ) from None
    except LookupError:
        raise InputError(f"unknown encoding {encoding!r}", file=path) from None
    if "\0" in text:
        raise InputError("is binary, not text", file=path, line=text.count("\n", 0, text.index("\0")) + 1)
    return text


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A temporary name beside ``path`` to write to; it takes the place of ``path`` when the block ends well, and is removed otherwise."""
    target = Path(path)
    temporary = target.with_name(f".{target.stem}.{os.getpid()}.part{target.suffix}")
    try:
        yield temporary
        os.chmod(temporary, _permissions(target))
        os.replace(temporary, target)
    except FileNotFoundError:
        raise InputError("cannot be written: the folder does not exist", file=path) from None
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=path) from None
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: str | Path, chunks: bytes | Iterable[bytes]) -> Path:
    """Write a binary file under a temporary name and rename it: readers see the old file or the whole new one."""
    with replacing(path) as temporary, temporary.open("wb") as out:
        for chunk in [chunks] if isinstance(chunks, bytes) else chunks:
            out.write(chunk)
    return Path(path)


def write_text(path: str | Path, chunks: str | Iterable[str], encoding: str = "utf-8") -> Path:
    """`write_bytes` for text."""
    parts = [chunks] if isinstance(chunks, str) else chunks
    try:
        return write_bytes(path, (part.encode(encoding) for part in parts))
    except UnicodeEncodeError as error:
        raise InputError(
            f"{error.object[error.start : error.end]!r} cannot be written in {encoding}", file=path
        ) from None


def _permissions(target: Path) -> int:
    """Those of the file that is replaced, or the usual ones (temporary files are private)."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
