"""The signals that end a command."""

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NoReturn


@contextmanager
def watch_interrupts() -> Generator[list[int]]:
    """Gathers the interrupts of the block, each raised as KeyboardInterrupt too.

    A compiler may lose that exception in a callback and raise another one later; the list still has it.
    """
    seen: list[int] = []
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield seen
        return

    def interrupt(number: int, _: Any) -> NoReturn:
        seen.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_on_signals() -> None:
    """End as other commands do: SIGTERM removes half-written files; a closed pipe kills at once."""
    signal.signal(signal.SIGTERM, _terminate)
    if hasattr(signal, "SIGPIPE"):
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def _terminate(number: int, _: Any) -> NoReturn:
    raise SystemExit(128 + number)
