"""Warnings that are given once in a process."""

import warnings

from pulse.errors import PulseWarning

warned: set[str] = set()
"""The subjects of all warnings of ``warn_once`` in this process."""


def warn_once(message: str, about: str = "") -> None:
    """Warn once per process for each ``about``; by default for each message."""
    if (about or message) not in warned:
        warned.add(about or message)
        warnings.warn(message, PulseWarning, stacklevel=2)
