"""The signals that end a command.

They raise where the command is. A compiler calls Python back in places that no exception can leave: there it would
be lost, or end the process with a crash. A signal that comes in such a place is sent again a moment later.
"""

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

COMPILER = "llvmlite."
"""Modules whose functions are called by compiled code, or call it."""
AGAIN_S = 0.01
_seen: list[int] = []
"""The interrupts of the command that runs."""


@contextmanager
def watch_interrupts() -> Generator[list[int]]:
    """Gathers the interrupts of the block, each raised as KeyboardInterrupt too.

    A compiler may lose that exception and raise another one later; the list still has it.
    """
    _seen.clear()
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield _seen
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not _postponed(number, frame):
            _seen.append(number)
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield _seen
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def forget_interrupts() -> None:
    """Those until now ended what ran as they should: what goes wrong after it is told as ever."""
    _seen.clear()


def end_on_signals() -> None:
    """End as other commands do: SIGTERM and a closed terminal remove half-written files; a closed pipe kills."""
    signal.signal(signal.SIGTERM, _terminate)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _terminate)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _terminate(number: int, frame: FrameType | None) -> None:
    if not _postponed(number, frame):
        raise SystemExit(128 + number)


def _postponed(number: int, frame: FrameType | None) -> bool:
    """Whether a signal came inside of the compiler; it comes again then."""
    while frame is not None and not str(frame.f_globals.get("__name__")).startswith(COMPILER):
        frame = frame.f_back
    if frame is None:
        return False
    again = threading.Timer(AGAIN_S, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()
    return True
