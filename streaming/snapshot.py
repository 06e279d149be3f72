"""Packs numbers and sections of bytes into a snapshot, and unpacks them."""

import struct
import zlib
from collections.abc import Sequence

from pulse.errors import InputError
from pulse.support.wording import count_of

_MAGIC = b"session1"
_SIZES = struct.Struct("<8sIII")


def pack(numbers: Sequence[int], sections: Sequence[bytes]) -> bytes:
    """Pack the magic number, both counts, a checksum of the rest, the numbers, sizes of sections, and the sections."""
    values = [*numbers, *(len(section) for section in sections)]
    content = struct.pack(f"<{len(values)}q", *values) + b"".join(sections)
    return _SIZES.pack(_MAGIC, len(numbers), len(sections), zlib.crc32(content)) + content


def unpack(snapshot: bytes) -> tuple[list[int], list[bytes]]:
    """Return the reverse of ``pack``. Raises InputError: the bytes are not a complete, undamaged snapshot."""
    if len(snapshot) < _SIZES.size or not snapshot.startswith(_MAGIC):
        raise InputError("this is not a session snapshot")
    _, count, section_count, checksum = _SIZES.unpack_from(snapshot)
    start = _SIZES.size + 8 * (count + section_count)
    if len(snapshot) < start:
        raise InputError("the session snapshot is truncated")
    if zlib.crc32(snapshot[_SIZES.size :]) != checksum:
        raise InputError("the session snapshot is damaged")
    values = list(struct.unpack_from(f"<{count + section_count}q", snapshot, _SIZES.size))
    sections: list[bytes] = []
    for size in values[count:]:
        sections.append(snapshot[start : start + size])
        start += size
    if start != len(snapshot) or not sections or min(values, default=0) < 0:
        raise InputError("the session snapshot is truncated")
    return values[:count], sections


def unpack_sections(snapshot: bytes, count: int, section_count: int) -> tuple[list[int], list[bytes]]:
    """Unpack some numbers and some sections. Raises InputError: there are more or fewer."""
    numbers, sections = unpack(snapshot)
    if (len(numbers), len(sections)) != (count, section_count):
        raise InputError(
            f"this is a snapshot of another kind: it has {count_of(len(numbers), 'number')} and {len(sections)} "
            "sections instead "
            f"of {count} and {section_count}; restore one of the same kind"
        )
    return numbers, sections


def unpack_one(snapshot: bytes, count: int) -> tuple[list[int], bytes]:
    """Unpack some numbers and one section. Raises InputError: there are more or fewer."""
    numbers, (section,) = unpack_sections(snapshot, count, 1)
    return numbers, section
