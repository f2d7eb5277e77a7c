"""The errors of tabprotect: one small family, so that callers can catch exactly what they can handle."""

from __future__ import annotations

from collections.abc import Sequence


class TabprotectError(Exception):
    """Base class of every error that tabprotect raises on purpose."""


class InputError(TabprotectError, ValueError):
    """The input is wrong; the message says what, where, and what to do.

    >>> print(InputError("unknown status 'q'", file="t.jj", line=7))
    t.jj, line 7: unknown status 'q'
    """

    def __init__(self, message: str, *, file: object = None, line: int | None = None) -> None:
        where = ", ".join(filter(None, [None if file is None else str(file), None if line is None else f"line {line}"]))
        super().__init__(f"{where}: {message}" if where else message)
        self.file, self.line = file, line


class Infeasible(TabprotectError):
    """No protected table exists under the given conditions.

    ``cells`` are the cells (indices) that cannot be protected, ``missing`` how much room each of them lacks.
    """

    def __init__(self, message: str, *, cells: Sequence[int] = (), missing: Sequence[float] = ()) -> None:
        super().__init__(message)
        self.cells, self.missing = tuple(cells), tuple(missing)


class Unsafe(TabprotectError):
    """A table that could not be proved safe (within the limit); it is never returned.

    ``cells`` are the cells still exposed, ``bound`` the best lower bound of the cost known when the limit was reached.
    """

    def __init__(self, message: str, *, cells: Sequence[int] = (), bound: float | None = None) -> None:
        super().__init__(message)
        self.cells, self.bound = tuple(cells), bound


class SolverUnavailable(TabprotectError, ImportError):
    """A solver or optional package is asked for but not installed; the message says how to install it."""


class BudgetExceeded(TabprotectError):
    """A release would spend more privacy budget than is left; nothing was released."""
