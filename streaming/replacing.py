"""Files that appear under their name only when they are complete."""

import os
import tempfile
from pathlib import Path

from pulse.errors import InputError


def part_of(path: Path) -> Path:
    """A new empty file beside ``path`` to write to first.

    Raises InputError where the folder refuses, and where ``path`` is a folder, a device or a pipe.
    """
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: is no file that can be replaced; give the name of a file")
    try:
        handle, name = tempfile.mkstemp(path.suffix, f".{path.stem}-", path.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); check the folder") from error
    os.close(handle)
    return Path(name)


def publish(part: Path, path: Path) -> None:
    """Give a complete file its name, with the permissions of a new file. Raises InputError."""
    mask = os.umask(0)
    os.umask(mask)
    try:
        part.chmod(0o666 & ~mask)
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
