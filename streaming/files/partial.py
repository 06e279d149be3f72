"""PartialFile: a file that grows by whole pieces, and appears only when it is complete."""

from collections.abc import Callable
from io import FileIO
from pathlib import Path

from pulse.support.not_copyable import NotCopyable
from streaming.files.atomic import create_temporary_file, publish, write_error


def write_all(write: Callable[[memoryview], int], data: bytes) -> None:
    """Write with the function of a raw file, which may take a part at a time.

    Raises OSError: the function does, perhaps after a part
    """
    unwritten = memoryview(data)
    while unwritten:
        unwritten = unwritten[write(unwritten) :]


def append_all(file: FileIO, size: int, data: bytes) -> int:
    """Append to a file of this size all of the data, or nothing. Returns the new size.

    Raises OSError: it cannot be written; the text says so if a part remains
    """
    try:
        file.seek(size)
        write_all(file.write, data)
    except OSError as error:
        reason = error.strerror or str(error)
        try:
            file.truncate(size)
        except OSError as further:
            reason = f"{reason}, and an incomplete piece remains ({further.strerror or further})"
        raise OSError(error.errno, reason) from error
    return size + len(data)


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
            self._size = append_all(self._file, self._size, data)
        except OSError as error:
            raise write_error(self.path, error.strerror) from error

    def amend(self, data: bytes, position: int = 0) -> None:
        """Overwrite bytes from a position on; the file may grow."""
        try:
            self._file.seek(position)
            write_all(self._file.write, data)
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
