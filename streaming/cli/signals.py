"""The signals that end a command.

They raise wherever the command is; inside ``gather_signals`` they are only recorded. A compiler and libsndfile call
back into Python from places that no exception can leave: it would be lost, or crash the process. A signal that arrives
in such a place is sent again a moment later.
"""

import os
import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from types import FrameType

CALLED_BACK_MODULES = ("llvmlite.", "soundfile")
"""How the names of modules begin whose functions are called by compiled code, or call it."""
RESEND_S = 0.01
"""A signal that arrives inside these modules is sent again after this many seconds."""
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""The signals of Ctrl-C, of the end of a service, and of a closed terminal."""


@contextmanager
def watch_interrupts() -> Generator[list[int]]:
    """Gather the interrupts of the block, which are also raised as KeyboardInterrupt.

    A compiler may lose that exception and raise another one later; the list still has it.
    """
    numbers: list[int] = []
    usual = signal.getsignal(signal.SIGINT)
    if not _is_in_main_thread() or usual not in (signal.default_int_handler, _terminate):
        yield numbers
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not postpone(number, frame):
            numbers.append(number)
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield numbers
    finally:
        signal.signal(signal.SIGINT, usual)


@contextmanager
def gather_signals() -> Generator[list[int]]:
    """Gather the signals of the block without raising. The block checks the list, and ends soon after a signal.

    No write is interrupted, however often Ctrl-C is pressed. If a disk hangs, SIGQUIT and SIGKILL still end the process
    at once. A signal that is ignored stays ignored; outside the main thread, nothing is gathered.
    """
    numbers: list[int] = []

    def record(number: int, frame: FrameType | None) -> None:
        numbers.append(number)

    handlers = {number: signal.getsignal(number) for number in SIGNALS} if _is_in_main_thread() else {}
    try:
        for number, handler in handlers.items():
            if handler not in (signal.SIG_IGN, None):
                signal.signal(number, record)
        yield numbers
    finally:
        for number, handler in handlers.items():
            if handler is not None:
                signal.signal(number, handler)


def end_on_signals() -> None:
    """End as other commands do: SIGTERM and a closed terminal remove half-written files; a closed pipe kills.

    Ctrl-C ends without a message until ``watch_interrupts`` takes it: nothing has begun.
    """
    signal.signal(signal.SIGTERM, _terminate)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _terminate)
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, _terminate)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGPIPE])  # the parent process may have blocked it


def _terminate(number: int, frame: FrameType | None) -> None:
    if not postpone(number, frame):
        raise SystemExit(128 + number)


def _is_in_main_thread() -> bool:
    """Return whether this is the main thread, the only one in which Python sets and calls signal handlers."""
    return threading.current_thread() is threading.main_thread()


def postpone(number: int, frame: FrameType | None) -> bool:
    """Return whether a signal arrived inside the compiler or libsndfile; if so, it is sent again."""
    while frame is not None and not str(frame.f_globals.get("__name__")).startswith(CALLED_BACK_MODULES):
        frame = frame.f_back
    if frame is None:
        return False
    again = threading.Timer(RESEND_S, os.kill, (os.getpid(), number))
    again.daemon = True
    again.start()
    return True
