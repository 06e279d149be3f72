"""The bytes of a file, whose size is limited."""

import os
from collections.abc import Callable
from pathlib import Path

from pulse.errors import LoadError
from pulse.support.wording import count_of

MAX_MODEL_BYTES = 2**31 - 1
"""Maximum number of bytes of a model in one file: the offsets of protobuf and of a FlatBuffer reach no further."""
HEAD_BYTES = 512
"""How many first bytes of a file explain why it cannot be read."""


def file_bytes(
    path: Path, max_bytes: int, size_advice: str, require_head: Callable[[bytes], None] | None = None
) -> bytes:
    """Return the content of a file.

    size_advice   what follows the size of a file of more than ``max_bytes``, which is not read, and what to do about it
    require_head  called with the first bytes, before the others are read
    Raises        LoadError: there is no such file, it is too large, or it cannot be read; or as ``require_head``
    """
    try:
        if path.exists() and not path.is_file():
            kind = "a folder" if path.is_dir() else "a pipe or a device"
            raise LoadError(f"{path}: is {kind}, not a regular file; give the path of a file")
        with path.open("rb") as file:
            if require_head is not None:
                require_head(file.read(HEAD_BYTES))
            size = os.fstat(file.fileno()).st_size
            if size > max_bytes:
                raise LoadError(f"{path}: has {count_of(size, 'byte')}; {size_advice}")
            file.seek(0)
            return file.read(size)
    except FileNotFoundError:
        raise LoadError(f"{path}: no such file; check the path") from None
    except ValueError as error:
        raise LoadError(f"{str(path)!r} is not a path ({error}); check it") from error
    except OSError as error:
        raise LoadError(f"{path}: cannot be read ({error.strerror}); check its permissions") from error
