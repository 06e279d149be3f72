"""The header of a WAV stream, read from a pipe in one pass, or written to one.

Sources: Microsoft's RIFF documentation; EBU Tech 3306 for RF64.
"""

import re
from collections.abc import Callable
from struct import pack, unpack

from pulse.errors import InputError
from pulse.support.record import record
from pulse.support.wording import count_of, spell
from streaming.audio.encodings import ENCODINGS, Encoding

PCM, FLOATING, EXTENSIBLE = 1, 3, 0xFFFE
"""The tags of formats in a WAV."""
UNKNOWN_SIZE = 0xFFFF_FFFF
"""The size field of a stream of unknown length."""
MAX_STATED_BYTES = 0x7FFF_F000
"""Sizes from here on mean unknown: SoX writes this one, FFmpeg the largest 32-bit number."""
MAX_FORMAT_BYTES = 40
"""The number of bytes of a ``fmt`` chunk that are read."""
MAX_READ_BYTES = 1 << 16
"""Maximum number of bytes that are read at a time."""
HEADERS = {
    "WAV": rb"RIFF.{4}WAVE",
    "RF64": rb"RF64.{4}WAVE",
    "AIFF": rb"FORM.{4}AIF",
    "FLAC": rb"fLaC",
    "Ogg": rb"OggS",
    "CAF": rb"caff",
    "AU": rb"\.snd",
    "MP3": rb"ID3",
}
"""Format of audio files -> how its header begins."""
CUT_SHORT = "ends before its samples begin; look at the program that writes it"


@record
class StreamFormat:
    """The format of samples in a stream of bytes.

    encoding    encoding of the samples
    rate_hz     sample rate
    channels    number of channels
    data_bytes  bytes of all samples; None if unknown before the end
    """

    encoding: Encoding
    rate_hz: int
    channels: int
    data_bytes: int | None = None

    @property
    def frame_bytes(self) -> int:
        """The bytes of one sample of every channel."""
        return self.encoding.nbytes * self.channels

    @classmethod
    def parse(cls, text: str, rate_hz: int | None) -> "StreamFormat":
        """Parse ``s16``, ``s16,48000`` or ``s16,48000,2``: encoding, rate (else ``rate_hz``), channels (else 1).

        Raises InputError: not such a text, or the rate is unknown
        """
        name, *numbers = text.split(",")
        name = name.removesuffix("le")
        are_numbers = len(numbers) <= 2 and all(
            number.isascii() and number.isdigit() and int(number) for number in numbers
        )
        if name not in ENCODINGS or not are_numbers:
            raise InputError(
                f"{spell('raw', text)}: give encoding,rate,channels such as s16,48000,2; the encodings are "
                f"{', '.join(ENCODINGS)}, little-endian"
            )
        rate = int(numbers[0]) if numbers else rate_hz
        if rate is None:
            raise InputError(f"{spell('raw', text)}: give the rate too: {spell('raw', f'{name},48000')}")
        return cls(ENCODINGS[name], rate, int(numbers[1]) if len(numbers) > 1 else 1)


def read_header(name: str, exactly: Callable[[int], bytes]) -> StreamFormat:
    """Read up to the first sample.

    name     the name in messages
    exactly  a function that reads this many bytes, or fewer at the end
    Raises   InputError: not WAV, or an encoding that streams do not support
    """
    start = exactly(12)
    if not start:
        raise InputError(f"{name}: is empty")
    if start[:4] not in (b"RIFF", b"RF64") or start[8:] != b"WAVE":
        raise InputError(
            f"{name}: does not begin like WAV; a pipe carries WAV, or raw samples with "
            f"{spell('raw', 's16,48000,2')}; for other formats, pipe through ffmpeg -i - -f wav -"
        )
    stream_format, long_bytes = None, 0
    while True:
        header = exactly(8)
        if len(header) < 8:
            raise InputError(f"{name}: {CUT_SHORT}")
        chunk_id, size = unpack("<4sI", header)
        if chunk_id == b"data":
            break
        chunk = _chunk(exactly, size)
        if len(chunk) < min(size, MAX_FORMAT_BYTES):
            raise InputError(f"{name}: {CUT_SHORT}")
        if chunk_id == b"ds64":
            long_bytes = unpack("<Q", chunk[8:16].ljust(8, b"\0"))[0]
        elif chunk_id == b"fmt ":
            stream_format = _read_format(name, chunk)
    if stream_format is None:
        raise InputError(f"{name}: the encoding of its samples is unknown (no chunk fmt before data)")
    if size == UNKNOWN_SIZE and 0 < long_bytes < 1 << 62:
        size = long_bytes
    elif size == 0 or size >= MAX_STATED_BYTES:
        return stream_format
    return StreamFormat(stream_format.encoding, stream_format.rate_hz, stream_format.channels, size)


def header_format(data: bytes) -> str | None:
    """Return the format of audio files whose header data begin with; None if they may be raw samples."""
    return next((name for name, start in HEADERS.items() if re.match(start, data, re.DOTALL)), None)


def _chunk(exactly: Callable[[int], bytes], size: int) -> bytes:
    """Read a whole chunk, padded to even size, and return its beginning."""
    chunk, size_left = b"", size + size % 2
    while size_left:
        piece = exactly(min(size_left, MAX_READ_BYTES))
        chunk, size_left = (chunk + piece)[:MAX_FORMAT_BYTES], size_left - len(piece)
        if not piece:
            break
    return chunk


def _read_format(name: str, chunk: bytes) -> StreamFormat:
    tag, channels, rate_hz, _, frame_bytes, bits = unpack("<HHIIHH", chunk[:16].ljust(16, b"\0"))
    if tag == EXTENSIBLE:
        tag = unpack("<H", chunk[24:26].ljust(2, b"\0"))[0]
    if not (channels and rate_hz):
        raise InputError(
            f"{name}: has {count_of(channels, 'channel')} at {rate_hz} Hz; both must be positive"
        )
    for encoding in ENCODINGS.values():
        if (FLOATING if encoding.floating else PCM, 8 * encoding.nbytes) == (tag, bits):
            if frame_bytes != encoding.nbytes * channels:
                break
            return StreamFormat(encoding, rate_hz, channels)
    raise InputError(
        f"{name}: WAV of format {tag}, {count_of(bits, 'bit')} in frames of {count_of(frame_bytes, 'byte')} cannot "
        "be read from a pipe; "
        "pipe it through ffmpeg -i - -c:a pcm_f32le -f wav -, or write it to a file"
    )


def wav_header(stream_format: StreamFormat) -> bytes:
    """Return the header before the samples."""
    encoding, size = stream_format.encoding, stream_format.data_bytes
    tag = FLOATING if encoding.floating else PCM
    rate_bytes = stream_format.rate_hz * stream_format.frame_bytes
    format_chunk = pack(
        "<HHIIHH",
        tag,
        stream_format.channels,
        stream_format.rate_hz,
        rate_bytes,
        stream_format.frame_bytes,
        8 * encoding.nbytes,
    )
    fact = b""
    if encoding.floating:
        format_chunk += pack("<H", 0)
        frames = UNKNOWN_SIZE if size is None else size // stream_format.frame_bytes
        fact = pack("<4sII", b"fact", 4, min(frames, UNKNOWN_SIZE))
    body = b"WAVE" + pack("<4sI", b"fmt ", len(format_chunk)) + format_chunk + fact + pack("<4s", b"data")
    whole = (
        UNKNOWN_SIZE
        if size is None or size + len(body) + 4 > UNKNOWN_SIZE
        else size + size % 2 + len(body) + 4
    )
    return (
        pack("<4sI", b"RIFF", whole)
        + body
        + pack("<I", UNKNOWN_SIZE if whole == UNKNOWN_SIZE or size is None else size)
    )
