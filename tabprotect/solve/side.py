"""A second process that works beside this one and exchanges news with it until one of them is done.

It is a fresh interpreter, so neither forked locks nor the caller's ``__main__`` matter, and it dies with its parent. Messages are pickled
objects over its standard streams; a thread on either side reads them as they come.
"""

from __future__ import annotations

import importlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import IO, Any, TypeAlias

Heard: TypeAlias = Callable[[Any], None]
Send: TypeAlias = Callable[[Any], None]
Task: TypeAlias = Callable[[Any, Send], tuple[Heard, Callable[[], None]]]
_END = object()
_ONE_CORE = {"OPENBLAS_NUM_THREADS": "1"}
"""Matrix products of the other process must not take this one's core."""


class Link:
    """One end of the exchange: ``send`` a message, ``listen`` to those that come. Threads read and write, so nobody waits for the other."""

    def __init__(self, reads: IO[bytes], writes: IO[bytes]) -> None:
        self._reads, self._writes = reads, writes
        self._waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._writer.start()

    def _write(self) -> None:
        try:
            while (message := self._waiting.get()) is not _END:
                pickle.dump(message, self._writes, protocol=pickle.HIGHEST_PROTOCOL)
                self._writes.flush()
        except (OSError, ValueError):  # a partner who has gone does not mind
            pass

    def send(self, message: Any) -> None:
        """Send an object (it must not be changed afterwards)."""
        self._waiting.put(message)

    def close(self) -> None:
        """Wait until everything is sent, or the partner has gone."""
        self._waiting.put(_END)
        self._writer.join()

    def listen(self, heard: Heard, closed: Callable[[], None]) -> threading.Thread:
        """A thread that calls ``heard`` with each message, and ``closed`` when the partner has gone."""

        def read() -> None:
            try:
                while True:
                    heard(pickle.load(self._reads))
            except (EOFError, OSError, ValueError, pickle.UnpicklingError):
                closed()

        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        return thread


class Side:
    """A task in a process of its own, for a ``with`` block; ``heard`` and ``closed`` are called in a thread.

    The task is named "module:function". The function gets the job and a function that sends a message, and returns the one that is called
    with each message from here and the one that does the work.

    >>> answers = []
    >>> with Side("tabprotect.solve.side:echo", "hello", answers.append) as side:
    ...     side.wait(20)
    >>> answers
    ['hello']
    """

    def __init__(self, task: str, job: Any, heard: Heard, closed: Callable[[], None] = lambda: None) -> None:
        path = os.pathsep.join(p for p in sys.path if p)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tabprotect.solve.side", task],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": path, **_ONE_CORE},
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._link = Link(self._process.stdout, self._process.stdin)
        self._listener = self._link.listen(heard, closed)
        self.send(job)

    def send(self, message: Any) -> None:
        """Send an object to the task."""
        self._link.send(message)

    def wait(self, seconds: float) -> None:
        """Until the task is done and its last message read, at most so long."""
        self._listener.join(seconds)

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.wait()
        self._link.close()
        for stream in (self._process.stdin, self._process.stdout):
            try:
                if stream is not None:
                    stream.close()
            except OSError:  # what was not sent is not needed any more
                pass


def cores() -> int:
    """How many cores this process may use.

    >>> cores() >= 1
    True
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def echo(job: Any, send: Send) -> tuple[Heard, Callable[[], None]]:
    """A task that sends its job back."""
    return send, lambda: send(job)


def _main(task: str) -> None:
    """The other process: standard output belongs to the messages, Ctrl-C to the parent, and without a parent there is nothing to do."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    writes = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    job = pickle.load(sys.stdin.buffer)
    module, name = task.split(":")
    make: Task = getattr(importlib.import_module(module), name)
    link = Link(sys.stdin.buffer, writes)
    heard, run = make(job, link.send)
    link.listen(heard, closed=lambda: os._exit(0))
    run()
    link.close()
    os._exit(0)


if __name__ == "__main__":
    _main(sys.argv[1])
