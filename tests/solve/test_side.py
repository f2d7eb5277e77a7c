"""A second process beside this one: messages both ways, its end, and what happens when it dies."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from tabprotect.solve.side import Side
from tabprotect.solve.stop import Stop

HERE = "tests.solve.test_side"


def double(job: int, send: Callable[[Any], None]) -> tuple[Callable[[Any], None], Callable[[], None]]:
    """Send everything back twice as large until a zero comes."""
    done = threading.Event()

    def heard(message: int) -> None:
        send(2 * message)
        if message == 0:
            done.set()

    def run() -> None:
        print("this must not disturb the messages", flush=True)
        send(2 * job)
        done.wait(60)

    return heard, run


def fail(job: int, send: Callable[[Any], None]) -> tuple[Callable[[Any], None], Callable[[], None]]:
    return lambda _: None, lambda: os._exit(3)


def forever(job: int, send: Callable[[Any], None]) -> tuple[Callable[[Any], None], Callable[[], None]]:
    return lambda _: None, lambda: (send(os.getpid()), time.sleep(600))[1]


def blas(job: str, send: Callable[[Any], None]) -> tuple[Callable[[Any], None], Callable[[], None]]:
    return lambda _: None, lambda: send(os.environ[job])


def gone(pid: int) -> bool:
    """Whether a process ends within some seconds (one that is still to be waited for by its parent has ended)."""
    for _ in range(200):
        try:
            os.kill(pid, 0)
            with open(f"/proc/{pid}/stat") as f:
                if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False


def test_its_matrix_products_take_one_core() -> None:
    answers: list[str] = []
    with Side(f"{HERE}:blas", "OPENBLAS_NUM_THREADS", answers.append) as side:
        side.wait(60)
    assert answers == ["1"]


def test_messages_both_ways() -> None:
    answers: list[int] = []
    with Side(f"{HERE}:double", 21, answers.append) as side:
        for message in (5, 7, 0):
            side.send(message)
        side.wait(60)
    assert sorted(answers) == [0, 10, 14, 42]


def test_a_task_that_dies_is_noticed() -> None:
    closed = threading.Event()
    with Side(f"{HERE}:fail", 1, lambda _: None, closed.set) as side:
        assert closed.wait(60)
        side.send("nobody hears this")


def test_it_ends_with_the_block() -> None:
    pids: list[int] = []
    with Side(f"{HERE}:forever", 1, pids.append) as side:
        while not pids:
            side.wait(0.05)
    assert gone(pids[0])


def test_it_ends_with_its_parent() -> None:
    code = (
        "import os, sys\n"
        "from tabprotect.solve.side import Side\n"
        "pids = []\n"
        f"side = Side('{HERE}:forever', 1, pids.append)\n"
        "while not pids: side.wait(0.05)\n"
        "print(pids[0], flush=True)\n"
        "os._exit(0)\n"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    assert gone(int(said.stdout))


def test_a_stop_with_an_event() -> None:
    event = threading.Event()
    outer = Stop(60)
    inner = outer.until(event).part(0.5)
    assert not inner.done
    event.set()
    assert inner.done
    assert not outer.done
    other = outer.until(threading.Event())
    outer.cancel()
    assert other.done


def test_no_thread_is_left_behind() -> None:
    before = set(threading.enumerate())
    for seconds in (20.0, 0.0):  # the partner has ended, or is killed while it starts
        with Side("tabprotect.solve.side:echo", "x" * 10**6, lambda _: None) as side:
            side.wait(seconds)
        side.wait(20)
    assert set(threading.enumerate()) <= before
