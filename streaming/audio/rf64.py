"""RF64: the format of WAV files beyond 4 GiB, the limit of the sizes in a WAV header.

Source: EBU Tech 3306. A chunk ``ds64`` at the start has the sizes; the usual size fields are all ones.
"""

from io import FileIO
from pathlib import Path
from struct import pack, unpack

from streaming.files.partial import write_all

MAX_CHUNK_BYTES = 0xFFFF_FFFF
"""Maximum size in 32 bits."""
RF64_SIZE_PLACEHOLDER = 0xFFFF_FFFF
"""The value of a size field whose size is in ``ds64``."""
MAX_PIECE_BYTES = 1 << 24
"""Maximum number of bytes that are moved at a time."""
CHUNK_HEAD_BYTES = 8
"""The bytes of the name and size of a chunk."""


def convert_to_rf64(path: Path) -> bool:
    """Convert a WAV file that is too long for 32-bit sizes to RF64. Returns whether it was too long.

    path    a complete file whose last chunk is ``data``, as libsndfile writes it
    Raises  OSError: a disk error, such as no space for a few more bytes; the file is then unchanged

    Float files have enough space in the header, where libsndfile stores peaks, and are converted at once. The
    samples of other files are moved, which takes as long as copying the file.
    """
    with FileIO(path, "r+b") as file:
        size = file.seek(0, 2)
        if size - CHUNK_HEAD_BYTES <= MAX_CHUNK_BYTES:
            return False
        format_chunk, start = _read_signature(file)
        frame_bytes = unpack("<H", format_chunk[12:14])[0]
        frames = (size - start) // frame_bytes
        gap = start - len(_head(format_chunk, 0, 0, frame_bytes, 0))
        up = 0 if gap == 0 or gap >= CHUNK_HEAD_BYTES else CHUNK_HEAD_BYTES - gap
        if up:
            _grow(file, size, up)
            _move_up(file, start, size, up)
        file.seek(0)
        write_all(file.write, _head(format_chunk, size + up, frames, frame_bytes, gap + up))
    return True


def _read_signature(file: FileIO) -> tuple[bytes, int]:
    """Return the format in the chunk ``fmt``, and the position of the first sample."""
    format_chunk = b""
    file.seek(12)
    while (head := file.read(CHUNK_HEAD_BYTES))[:4] != b"data":
        size = unpack("<I", head[4:])[0]
        chunk = file.read(size + size % 2)
        format_chunk = chunk if head[:4] == b"fmt " else format_chunk
    return format_chunk, file.tell()


def _head(format_chunk: bytes, size: int, frames: int, frame_bytes: int, junk: int) -> bytes:
    """Return the header, with a padding chunk of ``junk`` bytes if not 0."""
    sizes = pack("<QQQI", max(size - CHUNK_HEAD_BYTES, 0), frames * frame_bytes, frames, 0)
    return b"".join(
        [
            pack("<4sI4s", b"RF64", RF64_SIZE_PLACEHOLDER, b"WAVE"),
            pack("<4sI", b"ds64", len(sizes)) + sizes,
            pack("<4sI", b"fmt ", len(format_chunk)) + format_chunk,
            pack("<4sI", b"JUNK", junk - CHUNK_HEAD_BYTES) + bytes(junk - CHUNK_HEAD_BYTES) if junk else b"",
            pack("<4sI", b"data", RF64_SIZE_PLACEHOLDER),
        ]
    )


def _grow(file: FileIO, size: int, up: int) -> None:
    """Reserve space: copy the last bytes to the end, or leave the file as it was."""
    file.seek(size - up)
    tail = file.read(up)
    try:
        write_all(file.write, tail)
    except OSError:
        file.truncate(size)
        raise


def _move_up(file: FileIO, start: int, end: int, up: int) -> None:
    """Move the bytes between ``start`` and ``end``, from the end backwards."""
    while end > start:
        begin = max(start, end - MAX_PIECE_BYTES)
        file.seek(begin)
        piece = file.read(end - begin)
        file.seek(begin + up)
        write_all(file.write, piece)
        end = begin
