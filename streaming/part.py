"""Part: a file that grows by whole pieces, and appears under its name only when it is complete."""

from pathlib import Path

from pulse.errors import InputError
from streaming.replacing import part_of, publish, unwritable


class Part:
    """A file to be, beside ``path``.

    Raises  InputError: a folder that refuses, and whatever the disk refuses, at once
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = part_of(path)
        """Where it is meanwhile."""
        self._file = self.place.open("r+b", buffering=0)
        self._size = 0

    def append(self, data: bytes) -> None:
        """Write all of it behind what is there, or nothing."""
        try:
            self._write(self._size, data)
        except OSError as error:
            raise self._cut(error) from error
        self._size += len(data)

    def amend(self, data: bytes, position: int = 0) -> None:
        """Write over what is there, or is to be, from a byte on."""
        try:
            self._write(position, data)
        except OSError as error:
            raise unwritable(self.path, error.strerror) from error

    def clear(self) -> None:
        """Begin anew."""
        self._size = 0
        self._file.truncate(0)

    def publish(self) -> None:
        """End the file; it gets its name. Raises InputError; the file is gone then."""
        self._file.close()
        publish(self.place, self.path)

    def discard(self) -> None:
        """End the file; it is taken away."""
        self._file.close()
        self.place.unlink(missing_ok=True)

    def _write(self, position: int, data: bytes) -> None:
        self._file.seek(position)
        left = memoryview(data)
        while left:
            left = left[self._file.write(left) :]

    def _cut(self, error: OSError) -> InputError:
        """Take a part of a piece away; what is wrong."""
        reason = error.strerror
        try:
            self._file.truncate(self._size)
        except OSError as further:
            reason = f"{reason}, and a broken piece stays ({further.strerror})"
        return unwritable(self.path, reason)
