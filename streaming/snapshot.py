"""Packs numbers and chunks of bytes into a snapshot, and unpacks them."""

import struct
import zlib
from collections.abc import Sequence

from pulse.errors import InputError

_MAGIC = b"session1"
_SIZES = struct.Struct("<8sIII")


def pack(numbers: Sequence[int], chunks: Sequence[bytes]) -> bytes:
    """Pack the magic number, both counts, a checksum of the rest, the numbers, sizes of chunks, and the chunks."""
    values = [*numbers, *(len(chunk) for chunk in chunks)]
    content = struct.pack(f"<{len(values)}q", *values) + b"".join(chunks)
    return _SIZES.pack(_MAGIC, len(numbers), len(chunks), zlib.crc32(content)) + content


def unpack(snapshot: bytes) -> tuple[list[int], list[bytes]]:
    """Return the reverse of ``pack``. Raises InputError: the bytes are not a complete, undamaged snapshot."""
    if len(snapshot) < _SIZES.size or not snapshot.startswith(_MAGIC):
        raise InputError("this is not a session snapshot")
    _, count, chunk_count, checksum = _SIZES.unpack_from(snapshot)
    start = _SIZES.size + 8 * (count + chunk_count)
    if len(snapshot) < start:
        raise InputError("the session snapshot is truncated")
    if zlib.crc32(snapshot[_SIZES.size :]) != checksum:
        raise InputError("the session snapshot is damaged")
    values = list(struct.unpack_from(f"<{count + chunk_count}q", snapshot, _SIZES.size))
    chunks: list[bytes] = []
    for size in values[count:]:
        chunks.append(snapshot[start : start + size])
        start += size
    if start != len(snapshot) or not chunks or min(values, default=0) < 0:
        raise InputError("the session snapshot is truncated")
    return values[:count], chunks


def unpack_one(snapshot: bytes, count: int) -> tuple[list[int], bytes]:
    """Unpack some numbers and one chunk. Raises InputError: there are more or fewer."""
    numbers, chunks = unpack(snapshot)
    if (len(numbers), len(chunks)) != (count, 1):
        raise InputError(
            f"this is a snapshot of another kind: it has {len(numbers)} numbers and {len(chunks)} chunks instead of "
            f"{count} and 1; restore one of the same kind"
        )
    return numbers, chunks[0]
