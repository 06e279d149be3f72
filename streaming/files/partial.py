"""PartialFile: a file that grows by whole pieces, and appears only when it is complete."""

from collections.abc import Callable
from io import FileIO
from pathlib import Path

from pulse.errors import InputError
from pulse.support.not_copyable import NotCopyable
from streaming.files.atomic import create_temporary_file, publish, write_error


def write_all(write: Callable[[memoryview], int], data: bytes) -> None:
    """Write with the function of a raw file, which may take a part at a time.

    Raises OSError: the function does, perhaps after a part
    """
    unwritten = memoryview(data)
    while unwritten:
        unwritten = unwritten[write(unwritten) :]


class PartialFile(NotCopyable, reason="it has an open file; make another one"):
    """A temporary file that becomes ``path``, in the same folder.

    Raises  InputError: a folder that cannot be written to, or a disk error
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.temporary_path = create_temporary_file(path)
        self._file = FileIO(self.temporary_path, "r+b")
        self._size = 0

    def append(self, data: bytes) -> None:
        """Append all of the data, or nothing."""
        try:
            self._write(self._size, data)
        except OSError as error:
            raise self._cut(error) from error
        self._size += len(data)

    def amend(self, data: bytes, position: int = 0) -> None:
        """Overwrite bytes from a position on; the file may grow."""
        try:
            self._write(position, data)
        except OSError as error:
            raise write_error(self.path, error.strerror) from error

    def publish(self, path: Path | None = None) -> None:
        """End the file and rename it to its name, or another one.

        Raises InputError: it cannot be renamed; then it is removed
        """
        self._file.close()
        publish(self.temporary_path, path or self.path)

    def discard(self) -> None:
        """End and remove the file."""
        self._file.close()
        self.temporary_path.unlink(missing_ok=True)

    def _write(self, position: int, data: bytes) -> None:
        self._file.seek(position)
        write_all(self._file.write, data)

    def _cut(self, error: OSError) -> InputError:
        """Remove an incomplete piece. Returns the error to raise."""
        reason = error.strerror
        try:
            self._file.truncate(self._size)
        except OSError as further:
            reason = f"{reason}, and an incomplete file remains ({further.strerror})"
        return write_error(self.path, reason)
