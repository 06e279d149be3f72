"""Keys pressed while a command runs."""

import os
import select
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress

if os.name == "posix":
    import termios
    import tty


@contextmanager
def key_presses() -> Generator[Callable[[float], str]]:
    """Yield a function that waits this many seconds for a key and returns it; empty if none was pressed.

    If stdin is not a POSIX terminal, no key can be pressed.
    """
    if os.name != "posix" or not sys.stdin.isatty():
        yield _read_nothing
        return
    descriptor = sys.stdin.fileno()
    attributes = termios.tcgetattr(descriptor)

    def wait(seconds: float) -> str:
        ready, _, _ = select.select([descriptor], [], [], seconds)
        return os.read(descriptor, 1).decode(errors="replace") if ready else ""

    tty.setcbreak(descriptor)
    try:
        yield wait
    finally:
        with suppress(termios.error):  # nothing to restore if the terminal was closed
            termios.tcsetattr(descriptor, termios.TCSADRAIN, attributes)


def _read_nothing(seconds: float) -> str:
    time.sleep(seconds)
    return ""
