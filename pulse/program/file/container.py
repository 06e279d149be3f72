"""The container of a program file; ``program_file`` defines its contents.

MAGIC with the number of the format, 32 bytes of checksum (BLAKE2b of all that follows), 8 bytes with the length of the
header, the header as JSON, then sections of plain bytes. The header names each section with its size and its offset
from the start of the file, a multiple of 64. All numbers are little-endian.
"""

import json
import mmap
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pulse.errors import LoadError
from pulse.facts import Array
from pulse.program.file.json_object import JsonObject
from pulse.support.blake2 import blake2b
from pulse.support.mapping import ALIGNMENT, align_up, aligned_bytes
from pulse.support.record import record

if TYPE_CHECKING:
    from pathlib import Path

KIND = b"pulse program "
MAGIC = KIND + b"3\n"
"""The first bytes of a file. The format number grows when names in files change, such as the modules of kernels."""
CHECKSUM_BYTES, LENGTH_BYTES = 32, 8
FIXED_BYTES = len(MAGIC) + CHECKSUM_BYTES + LENGTH_BYTES
MAX_HEADER_BYTES = 1 << 26
"""A longer header is refused before it is read."""


@record
class Container:
    """A file that has been read.

    name      its name in errors
    content   all of its bytes, memory-mapped if it is a file
    header    its header
    """

    name: str
    content: Array
    header: JsonObject

    def section(self, name: str) -> Array:
        """Return the bytes of a section, not copied. Raises LoadError: the header has no valid span for it."""
        span = self.header.child("sections").numbers(name)
        start, size = span if len(span) == 2 else (0, 0)
        if start % ALIGNMENT or not FIXED_BYTES <= start <= start + size <= len(self.content):
            raise LoadError(f"{self.name}: section {name} is outside the file; compile the model again")
        return self.content[start : start + size]


def is_program(head: bytes) -> bool:
    """Return whether a file with these first bytes is a program file, of any format version."""
    return head.startswith(KIND)


def is_program_file(path: "Path") -> bool:
    """Return whether a file is a program file; False if it cannot be read."""
    try:
        with path.open("rb") as file:
            return is_program(file.read(len(KIND)))
    except OSError:
        return False


def encode(header: Mapping[str, Any], sections: Mapping[str, Array]) -> bytes:
    """Return the bytes of a file."""
    spans = {name: [0, 0] for name in sections}
    text, end, length = b"", 0, -1
    while len(text) != length:  # larger offsets may have more digits, which changes the length of the text
        length, end = len(text), align_up(FIXED_BYTES + len(text))
        for name, data in sections.items():
            spans[name] = [end, data.nbytes]
            end = align_up(end + data.nbytes)
        text = json.dumps({**header, "sections": spans}, separators=(",", ":"), allow_nan=False).encode()
    body: list[bytes | memoryview] = [len(text).to_bytes(LENGTH_BYTES, "little"), text]
    end = FIXED_BYTES + len(text)
    for name, data in sections.items():
        start, size = spans[name]
        body += [bytes(start - end), np.ascontiguousarray(data).reshape(-1).view(np.uint8).data]
        end = start + size
    body.append(bytes(align_up(end) - end))
    return b"".join([MAGIC, _checksum(body), *body])


def open_container(source: str | bytes) -> Container:
    """Open a file, memory-mapped, or the bytes of one.

    Raises LoadError: it is not a program file, is damaged, or has another format.
    """
    name = "the program" if isinstance(source, bytes) else source
    content = _map(source)
    head = content[: len(MAGIC)].tobytes()
    if not head.startswith(KIND):
        raise LoadError(f"{name}: is not a program file; pulse compile writes one")
    if head != MAGIC:
        raise LoadError(
            f"{name}: is a program file of a format that this version does not read; compile the model again with "
            "pulse compile"
        )
    if sys.byteorder != "little":
        raise LoadError(f"{name}: programs run on little-endian processors only; load the model itself")
    if content[len(MAGIC) :][:CHECKSUM_BYTES].tobytes() != _checksum(
        [content[len(MAGIC) + CHECKSUM_BYTES :].data]
    ):
        raise LoadError(
            f"{name}: its checksum is wrong, so it is damaged; copy it again, or compile the model again"
        )
    size = int.from_bytes(content[FIXED_BYTES - LENGTH_BYTES : FIXED_BYTES].tobytes(), "little")
    if size > min(MAX_HEADER_BYTES, len(content) - FIXED_BYTES):
        raise LoadError(f"{name}: its header is too long; compile the model again")
    try:
        header = json.loads(content[FIXED_BYTES : FIXED_BYTES + size].tobytes())
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{name}: its header is not JSON ({error}); compile the model again") from None
    if not isinstance(header, dict):
        raise LoadError(f"{name}: its header is not a JSON object; compile the model again")
    return Container(name, content, JsonObject(name, cast(dict[str, Any], header)))


def _map(source: str | bytes) -> Array:
    if isinstance(source, bytes):
        content = aligned_bytes(len(source))
        content[:] = np.frombuffer(source, np.uint8)
        content.flags.writeable = False
        return content
    try:
        with open(source, "rb") as file:
            return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise LoadError(f"{source}: cannot be read ({reason}); check the path") from error


def _checksum(body: Sequence[bytes | memoryview]) -> bytes:
    """Return the checksum of all bytes after it, given in parts."""
    digest = blake2b(digest_size=CHECKSUM_BYTES)
    for part in body:
        digest.update(part)
    return digest.digest()
