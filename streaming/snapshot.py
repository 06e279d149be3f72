"""Numbers and chunks of bytes in one, told apart again."""

import struct
from collections.abc import Sequence

from pulse.errors import InputError

_MAGIC = b"session1"
_SIZES = struct.Struct("<8sII")


def pack(numbers: Sequence[int], chunks: Sequence[bytes]) -> bytes:
    """Magic, how many of both there are, the numbers, the sizes of the chunks, the chunks."""
    values = [*numbers, *(len(chunk) for chunk in chunks)]
    head = _SIZES.pack(_MAGIC, len(numbers), len(chunks)) + struct.pack(f"<{len(values)}q", *values)
    return head + b"".join(chunks)


def unpack(snapshot: bytes) -> tuple[list[int], list[bytes]]:
    """The reverse of ``pack``. Raises InputError."""
    if len(snapshot) < _SIZES.size or not snapshot.startswith(_MAGIC):
        raise InputError("this is not a snapshot of a session")
    _, count, chunk_count = _SIZES.unpack_from(snapshot)
    start = _SIZES.size + 8 * (count + chunk_count)
    if len(snapshot) < start:
        raise InputError("the snapshot of a session is cut short")
    values = list(struct.unpack_from(f"<{count + chunk_count}q", snapshot, _SIZES.size))
    chunks: list[bytes] = []
    for size in values[count:]:
        chunks.append(snapshot[start : start + size])
        start += size
    if start != len(snapshot) or not chunks or min(values, default=0) < 0:
        raise InputError("the snapshot of a session is cut short")
    return values[:count], chunks
