"""Warnings that are told once in a process."""

import warnings

from pulse.errors import PulseWarning

warned: set[str] = set()


def warn_once(message: str, about: str = "") -> None:
    """Warn, the first time in this process that it is about this: the message itself by default."""
    if (about or message) not in warned:
        warned.add(about or message)
        warnings.warn(message, PulseWarning, stacklevel=2)
