"""Messages that C libraries print to standard error while they look for devices."""

import os
import re
import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager

_STDERR = 2
_ALSA = re.compile(r"ALSA lib [^:]+:\d+:\(\w+\) (.+)")


@contextmanager
def capture_alsa_messages() -> Generator[Callable[[], str | None]]:
    """Keep standard error from the terminal; yields a function that returns the last reason that ALSA stated, or None.

    All threads of the process share standard error, so use this only briefly.
    """
    try:
        original = os.dup(_STDERR)
    except OSError:  # it is closed
        yield lambda: None
        return
    with tempfile.TemporaryFile() as messages:

        def reason() -> str | None:
            messages.seek(0)
            reasons = _ALSA.findall(messages.read().decode(errors="replace"))
            return str(reasons[-1]).strip() if reasons else None

        os.dup2(messages.fileno(), _STDERR)
        try:
            yield reason
        finally:
            os.dup2(original, _STDERR)
            os.close(original)
