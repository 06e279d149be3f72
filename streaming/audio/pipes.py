"""Audio and frames in pipes, read and written as they arrive: raw samples and WAV, and frames as a table or array."""

import os
import select
import sys
from collections.abc import Iterator
from dataclasses import replace
from io import BytesIO, FileIO

import numpy as np

from pulse.errors import InputError, file_errors
from pulse.facts import Array
from pulse.support.not_copyable import NotCopyable
from pulse.support.wording import spell
from streaming.audio.audio_formats import UNCLIPPED
from streaming.audio.channels import Samples
from streaming.audio.frame_formats import TableFormat
from streaming.audio.interfaces import BLOCK_S, AudioSink, AudioSource, Clipping
from streaming.audio.wav_stream import StreamFormat, header_format, read_header, wav_header
from streaming.files.partial import write_all


class StreamReader(AudioSource):
    """Reads samples from a pipe as they arrive: each block has the available samples, up to half a second.

    name           the name in messages
    descriptor     is read to the end of its samples, and closed with the reader
    stream_format  the format of raw samples; None for WAV, whose header is read at once
    Raises         InputError: there is no data, or it is not WAV
    """

    def __init__(self, name: str, descriptor: int, stream_format: StreamFormat | None = None) -> None:
        self.name = name
        self._file = _Descriptor(descriptor, "rb")
        self._is_raw = stream_format is not None
        try:
            self._format = read_header(name, self._read_exactly) if stream_format is None else stream_format
        except BaseException:
            self._file.close()
            raise
        self.rate_hz, self.channels = self._format.rate_hz, self._format.channels
        self.encoding = self._format.encoding.subtype

    @property
    def frames(self) -> int | None:
        """The number of frames in the header; None if the header does not have it."""
        size = self._format.data_bytes
        return None if size is None else size // self._format.frame_bytes

    def __iter__(self) -> Iterator[Samples]:
        size, frames = self._format.frame_bytes, self.frames
        max_bytes, remaining, frames_read = max(int(self.rate_hz * BLOCK_S), 1) * size, b"", 0
        while frames is None or frames_read < frames:
            size_next = max_bytes if frames is None else min((frames - frames_read) * size, max_bytes)
            piece = self._file.take(size_next - len(remaining))
            if not piece:
                break
            data = remaining + piece
            if not frames_read and self._is_raw:
                self._refuse_header(data)
            whole_bytes = len(data) // size * size
            remaining = data[whole_bytes:]
            if whole_bytes:
                block = self._format.encoding.decode(data[:whole_bytes]).reshape(-1, self.channels)
                self._refuse_nan(block, frames_read)
                frames_read += len(block)
                yield block
        if remaining:
            raise InputError(
                f"{self.name}: ends after {len(remaining)} of the {size} bytes of a frame; check encoding and channels"
            )
        if not frames_read:
            raise InputError(f"{self.name}: no samples arrived")
        if frames is not None and frames_read < frames:
            raise InputError(f"{self.name}: damaged at sample {frames_read} of {frames} (the samples end)")

    def close(self) -> None:
        """Close the descriptor."""
        self._file.close()

    def _refuse_header(self, data: bytes) -> None:
        """Raise InputError if the first bytes of raw samples are the header of an audio file."""
        file_format = header_format(data)
        if file_format is not None:
            raise InputError(
                f"{self.name}: begins with a header of {file_format}, and {spell('raw')} reads it as samples; omit "
                f"{spell('raw')}"
            )

    def _read_exactly(self, count: int) -> bytes:
        """Read ``count`` bytes, or fewer at the end."""
        data = b""
        while len(data) < count and (piece := self._file.take(count - len(data))):
            data += piece
        return data


class StreamWriter(AudioSink):
    """Writes samples without buffering: raw, or WAV whose header does not state their number.

    name        the name in messages
    descriptor  is closed with the writer; if it is a file after all, the header is completed at the end
    wav         whether to write a header
    """

    def __init__(self, name: str, descriptor: int, stream_format: StreamFormat, wav: bool) -> None:
        self.encoding = stream_format.encoding.subtype
        self.clipping = Clipping(stream_format.channels)
        self._name, self._format = name, stream_format
        self._file = _Descriptor(descriptor, "wb")
        self._start = _position(descriptor) if wav else None
        self._bytes = 0
        if wav:
            try:
                self._file.put(wav_header(stream_format), self._name)
            except InputError:
                self._file.close()
                raise

    def write(self, block: Samples) -> None:
        """Append [samples, channels]. Raises InputError: the pipe is closed, or a disk is full."""
        if self.encoding not in UNCLIPPED:
            self.clipping.count(block)
        data = self._format.encoding.encode(block)
        self._file.put(data, self._name)
        self._bytes += len(data)

    def close(self) -> None:
        """End the stream. Raises InputError: a file whose header cannot be written."""
        try:
            if self._start is not None:
                self._file.put(bytes(self._bytes % 2), self._name)
                os.lseek(self._file.fileno(), self._start, os.SEEK_SET)
                self._file.put(wav_header(replace(self._format, data_bytes=self._bytes)), self._name)
                os.lseek(self._file.fileno(), 0, os.SEEK_END)
        finally:
            self._file.close()

    def discard(self) -> None:
        """Close the descriptor."""
        self._file.close()


class TableStream(NotCopyable, reason="it writes one table; make another one"):
    """Writes frames as rows of a table, as in a .csv, without buffering.

    name        the name in messages
    descriptor  is closed at the end of the ``with`` block
    axis        the time axis; None for a tensor without time
    rate_hz     frames per second, for the times; None numbers the frames
    """

    def __init__(self, name: str, descriptor: int, axis: int | None, rate_hz: float | None) -> None:
        self._name, self._axis, self._rate_hz = name, axis, rate_hz
        self._file = _Descriptor(descriptor, "wb")
        self._format: TableFormat | None = None
        self._frames = 0

    def write(self, frames: Array) -> None:
        """Append frames. Raises InputError: the pipe is closed, or a disk is full."""
        head = b""
        if self._format is None:
            self._format = TableFormat(frames, self._axis, self._rate_hz)
            head = self._format.head(0)
        self._file.put(head + self._format.body(frames, self._frames), self._name)
        self._frames += 1 if self._axis is None else frames.shape[self._axis]

    def __enter__(self) -> "TableStream":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


class ArrayStream(NotCopyable, reason="it writes one array; make another one"):
    """Writes frames as one array, as in a .npy, when the ``with`` block ends without error; its head has their number.

    name        the name in messages
    descriptor  is closed at the end of the ``with`` block
    axis        the time axis; None for a tensor without time, of which the last one is written
    """

    def __init__(self, name: str, descriptor: int, axis: int | None) -> None:
        self._name, self._axis = name, axis
        self._file = _Descriptor(descriptor, "wb")
        self._pieces: list[Array] = []

    def write(self, frames: Array) -> None:
        """Append frames; a tensor without time replaces the previous one."""
        if self._axis is None:
            self._pieces.clear()
        self._pieces.append(frames.copy())

    def __enter__(self) -> "ArrayStream":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and self._pieces:
                data = BytesIO()
                np.save(
                    data,
                    np.concatenate(self._pieces, self._axis) if self._axis is not None else self._pieces[0],
                )
                self._file.put(data.getvalue(), self._name)
        finally:
            self._file.close()


class _Descriptor(FileIO):
    """A descriptor with blocking reads and writes, even if another process that shares it has made it non-blocking."""

    def take(self, size: int) -> bytes:
        """Read the available bytes, at least one and at most this many; none at the end."""
        while (data := self.read(size)) is None:
            select.select([self], [], [])
        return data

    def put(self, data: bytes, name: str) -> None:
        """Write all of the data. Raises InputError: it cannot be written."""
        with file_errors(name, "written", InputError):
            write_all(self._put_some, data)

    def _put_some(self, data: memoryview) -> int:
        while (count := self.write(data)) is None:
            select.select([], [self], [])
        return count


def _position(descriptor: int) -> int | None:
    """Return the position in a seekable file; None for a pipe, or a file open for appending."""
    if sys.platform == "win32":
        return None
    import fcntl

    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND:
        return None
    try:
        return os.lseek(descriptor, 0, os.SEEK_CUR)
    except OSError:
        return None
