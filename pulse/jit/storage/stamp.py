"""A note in the user's cache that files were checked: it holds while their sizes and times are the same."""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress

from pulse.jit.storage.cache_root import cache_root
from pulse.support.blake2 import blake2b
from pulse.support.replaced_file import replace_file


class Stamp:
    """The note of the last check of some files, and the state in which they are now."""

    def __init__(self, files: Sequence[str]) -> None:
        self._path = os.path.join(cache_root(), f"checked-{_digest(files)}")
        self._state = _digest_states(files)

    def is_current(self) -> bool:
        """Return whether all files are in the state in which they were checked."""
        try:
            with open(self._path) as note:
                return self._state is not None and note.read() == self._state
        except (OSError, ValueError):
            return False

    def write(self) -> None:
        """Note that the files were checked. Without a writable cache, they are checked again by each process."""
        with suppress(OSError):
            os.makedirs(os.path.dirname(self._path), mode=0o700, exist_ok=True)
            replace_file(self._path, (self._state or "").encode(), 0o600)


def _digest_states(files: Iterable[str]) -> str | None:
    """Return a digest of sizes, times and identities; None if a file is missing."""
    try:
        states = [os.stat(file) for file in files]
    except OSError:
        return None
    return _digest(f"{state.st_size}:{state.st_mtime_ns}:{state.st_ino}" for state in states)


def _digest(texts: Iterable[str]) -> str:
    return blake2b("\n".join(texts).encode(), digest_size=16).hexdigest()
