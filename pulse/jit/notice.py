"""Warnings that are told once in a process."""

import warnings

from pulse.errors import PulseWarning

_told: set[str] = set()


def tell_once(message: str, about: str = "") -> None:
    """Warn, the first time in this process that it is about this: the message itself by default."""
    if (about or message) not in _told:
        _told.add(about or message)
        warnings.warn(message, PulseWarning, stacklevel=2)
