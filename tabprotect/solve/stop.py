"""When to stop: time, gap, cancellation, and how long work tells of its progress."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Progress:
    """One line of news from long work: seconds so far, best cost, lower bound, and what is being done.

    >>> Progress(1.5, "search", cost=120.0, bound=90.0).gap
    0.25
    """

    seconds: float
    phase: str
    cost: float | None = None
    bound: float | None = None
    done: int | None = None
    total: int | None = None

    @property
    def gap(self) -> float | None:
        """(cost − bound) / cost, or None while one of them is unknown."""
        if self.cost is None or self.bound is None:
            return None
        return 0.0 if self.cost <= self.bound else (self.cost - self.bound) / abs(self.cost)


Listener: TypeAlias = Callable[[Progress], None]


@dataclass
class Stop:
    """A deadline that can also be cancelled from outside; shared by all steps of one call.

    >>> stop = Stop(time_limit=60)
    >>> stop.done
    False
    >>> stop.cancel(); stop.done
    True
    """

    time_limit: float | None = None
    gap: float = 0.0
    listener: Listener | None = None
    start: float = field(default_factory=time.perf_counter)
    _cancelled: threading.Event = field(default_factory=threading.Event, repr=False)

    @property
    def seconds(self) -> float:
        """Wall time since the start."""
        return time.perf_counter() - self.start

    @property
    def left(self) -> float:
        """Wall time left (infinite without a limit, never negative, zero once cancelled)."""
        if self._cancelled.is_set():
            return 0.0
        return float("inf") if self.time_limit is None else max(0.0, self.time_limit - self.seconds)

    @property
    def done(self) -> bool:
        """Whether the work has to stop now."""
        return self.left <= 0.0

    def enough(self, cost: float, bound: float) -> bool:
        """Whether the gap between a cost and a lower bound is as small as was asked for.

        >>> Stop(gap=0.05).enough(100.0, 96.0), Stop().enough(100.0, 96.0)
        (True, False)
        """
        return cost - bound <= max(1e-9, self.gap) * abs(cost)

    @property
    def cancelled(self) -> bool:
        return self._cancelled.is_set()

    def cancel(self) -> None:
        """Ask the work to stop at its next check."""
        self._cancelled.set()

    def part(self, share: float) -> Stop:
        """A stop with a share of the time that is left, cancelled together with this one."""
        limit = None if self.time_limit is None else self.seconds + self.left * share
        return Stop(limit, self.gap, self.listener, self.start, self._cancelled)

    def until(self, event: threading.Event) -> Stop:
        """The same stop, which an event ends too.

        >>> event = threading.Event()
        >>> stop = Stop(time_limit=60).until(event)
        >>> event.set(); stop.done
        True
        """
        return Stop(self.time_limit, self.gap, self.listener, self.start, _Either(self._cancelled, event))

    def tell(self, phase: str, **news: Any) -> None:
        """Report progress to the listener, if there is one."""
        if self.listener is not None:
            self.listener(Progress(self.seconds, phase, **news))


class _Either(threading.Event):
    """Set when one of two events is."""

    def __init__(self, first: threading.Event, second: threading.Event) -> None:
        super().__init__()
        self._two = first, second

    def is_set(self) -> bool:
        return self._two[0].is_set() or self._two[1].is_set()

    def set(self) -> None:
        self._two[0].set()


@contextmanager
def interruptible(stop: Stop) -> Iterator[None]:
    """Turn the first Ctrl-C into ``stop.cancel()`` while the block runs (main thread only); a second one interrupts."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(signum: int, frame: Any) -> None:
        if stop.cancelled:
            raise KeyboardInterrupt
        stop.cancel()

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
