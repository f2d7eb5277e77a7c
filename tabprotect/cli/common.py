"""What all commands share: exit codes, JSON output, progress on a terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console

from tabprotect.errors import InputError, SolverUnavailable, TabprotectError
from tabprotect.solve.stop import Listener, Progress

console = Console(stderr=True)


@contextmanager
def exit_code() -> Iterator[None]:
    """Exit code 2 for bad input or a missing solver, 1 for unsafe or infeasible; one line on stderr, no traceback."""
    try:
        yield
    except TabprotectError as error:
        console.print(f"[bold red]error:[/] {type(error).__name__}: ", end="")
        console.print(str(error), markup=False, highlight=False, soft_wrap=True)
        sys.exit(2 if isinstance(error, InputError | SolverUnavailable) else 1)
    except BrokenPipeError:
        sys.exit(0)


def print_json(data: Any) -> None:
    """Write JSON to standard output; numpy scalars and arrays become plain numbers and lists, NaN becomes null."""
    typer.echo(json.dumps(_plain(data), indent=2, ensure_ascii=False, allow_nan=False))


def _plain(x: Any) -> Any:
    if isinstance(x, dict):
        return {str(k): _plain(v) for k, v in x.items()}
    if isinstance(x, list | tuple):
        return [_plain(v) for v in x]
    if hasattr(x, "tolist"):
        return _plain(x.tolist())
    if isinstance(x, float) and (x != x or x in (float("inf"), float("-inf"))):
        return None if x != x else ("inf" if x > 0 else "-inf")
    return x


@contextmanager
def progress_line(title: str, show: bool | None = None) -> Iterator[Listener | None]:
    """A live status line on stderr; nothing when stderr is not a terminal."""
    if not (console.is_terminal if show is None else show):
        yield None
        return
    with console.status(title) as status:

        def listen(news: Progress) -> None:
            parts = [f"{title}: {news.phase}", f"{news.seconds:.1f} s"]
            if news.done is not None:
                parts.append(f"{news.done:,}" + ("" if news.total is None else f" of {news.total:,}"))
            if news.cost is not None:
                parts.append(f"cost {news.cost:,.6g}")
            if news.bound is not None:
                parts.append(f"bound {news.bound:,.6g}")
            if news.gap is not None:
                parts.append(f"gap {news.gap:.2%}")
            status.update(" · ".join(parts))

        yield listen
