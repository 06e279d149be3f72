"""Files that are written beside their place, and renamed to it when they are complete."""

import os
from contextlib import suppress

WRITE_FLAGS = sum(getattr(os, name, 0) for name in ("O_WRONLY", "O_BINARY", "O_CREAT", "O_EXCL"))


def replace_file(path: str | os.PathLike[str], content: bytes, mode: int = 0o666) -> None:
    """Write a whole file in place of an existing one: every process sees the old content or the new one.

    A symbolic link is replaced, not followed.

    mode    the permissions of a new file, without those that the umask excludes
    Raises  OSError: it cannot be written
    """
    target = os.fspath(path)
    folder, name = os.path.split(target)
    unfinished = os.path.join(folder, f".{name}.{os.urandom(16).hex()}")
    try:
        with open(unfinished, "wb", opener=lambda file, _: os.open(file, WRITE_FLAGS, mode)) as file:
            file.write(content)
        os.replace(unfinished, target)
    except OSError:
        with suppress(FileNotFoundError):
            os.unlink(unfinished)
        raise
