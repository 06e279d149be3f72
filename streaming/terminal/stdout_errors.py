"""Errors of standard output, with its name."""

from collections.abc import Generator
from contextlib import contextmanager

from pulse.errors import InputError


@contextmanager
def name_stdout() -> Generator[None]:
    """Raise InputError if standard output cannot be written inside, as on a full disk."""
    try:
        yield
    except OSError as error:
        raise InputError(f"standard output: cannot be written ({error.strerror})") from error
