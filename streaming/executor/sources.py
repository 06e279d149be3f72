"""Sources of blocks: anything that can be iterated, and sound in files and byte streams.

Audio comes from an ``AsyncAudioSource``; the executor selects the channel, resamples, and shapes the samples as the
model's input.
"""

import os
import threading
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, Generic, TypeVar, cast

import anyio
import anyio.lowlevel
import anyio.to_thread
import numpy as np
from anyio.abc import ByteReceiveStream

from pulse.errors import InputError
from pulse.program.program import Program
from pulse.support.not_copyable import NotCopyable
from pulse.support.wording import count_of
from streaming.audio.channels import Samples
from streaming.audio.encodings import Encoding
from streaming.audio.files import AudioReader
from streaming.blocks.input_blocks import InputBlock
from streaming.native.filters import require_quality
from streaming.native.resample import AudioResampler
from streaming.routing import channels_of_source, sound_inputs

FileT = TypeVar("FileT", bound=AbstractContextManager[Any])
MAX_INLINE_S = 0.05
"""Blocks longer than this are resampled in a helper thread, to keep the event loop responsive."""


class AsyncAudioSource(ABC):
    """Audio that comes in blocks.

    rate_hz  samples per second
    channels the channels of every block
    samples  the length of the whole input; None if unknown
    quality  the quality of the resampler to the model's rate; one of ``QUALITIES`` in ``streaming.native.filters``
    """

    rate_hz: int
    channels: int
    samples: int | None = None
    quality = "high"

    @abstractmethod
    def blocks(self) -> AsyncGenerator[Samples]:
        """Yield float32 [samples, channels], any number of samples at a time; the reader closes the generator."""


class AudioFile(NotCopyable, AsyncAudioSource, reason="it has an open file; give the path to each stream"):
    """An audio file, read in a helper thread. Raises InputError: no such file, or not an audio file."""

    quality = "best"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        with AudioReader(path) as reader:
            self.rate_hz, self.channels, self.samples = reader.rate_hz, reader.channels, reader.frames

    async def blocks(self) -> AsyncGenerator[Samples]:
        async with open_in_thread(partial(AudioReader, self.path)) as reader:
            blocks = iter(reader)
            while (block := await anyio.to_thread.run_sync(next, blocks, None)) is not None:
                yield block


class PcmSource(NotCopyable, AsyncAudioSource, reason="it has an open byte stream; make another one"):
    """Raw samples, little-endian and interleaved, from a byte stream, which is closed at the end.

    encoding  u8, s16, s24, s32, f32 or f64
    Raises    InputError: no such encoding, rate or channels; later: the bytes end within a frame
    """

    def __init__(self, stream: ByteReceiveStream, encoding: str, channels: int, rate_hz: int) -> None:
        if min(channels, rate_hz) < 1:
            raise InputError(f"{count_of(channels, 'channel')} at {rate_hz} Hz: both must be positive")
        self._stream = stream
        self._encoding = Encoding.of_name(encoding)
        self.channels = channels
        self.rate_hz = rate_hz

    async def blocks(self) -> AsyncGenerator[Samples]:
        size, remaining = self._encoding.nbytes * self.channels, b""
        async with self._stream:
            async for chunk in self._stream:
                data = remaining + chunk
                whole_bytes = len(data) // size * size
                remaining = data[whole_bytes:]
                yield self._encoding.decode(data[:whole_bytes]).reshape(-1, self.channels)
        if remaining:
            raise InputError(
                f"the byte stream ends after {len(remaining)} of the {size} bytes of a frame; check encoding and "
                "channels"
            )


class _Opening(Generic[FileT]):
    """The opening of a file in a thread. asyncio's cancellation leaves the thread, and then it closes the file."""

    def __init__(self, make: Callable[[], FileT]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._file: FileT | None = None
        self._error: BaseException | None = None

    def run(self) -> FileT:
        file = self._make()
        with self._lock:
            self._file, error = file, self._error
        if error is not None:
            file.__exit__(type(error), error, None)
        return file

    def abandon(self, error: BaseException) -> None:
        """Close the file now if it is open, else once it is."""
        with self._lock:
            self._error, file = error, self._file
        if file is not None:
            file.__exit__(type(error), error, None)


@asynccontextmanager
async def open_in_thread(make: Callable[[], FileT]) -> AsyncGenerator[FileT]:
    """Open and close a file in helper threads, since a slow disk must not hold up the event loop."""
    opening = _Opening(make)
    try:
        file = await anyio.to_thread.run_sync(opening.run)
    except BaseException as error:
        opening.abandon(error)
        raise

    async def close(*error: Any) -> bool | None:
        with anyio.CancelScope(shield=True):
            return await anyio.to_thread.run_sync(file.__exit__, *error)

    async with AsyncExitStack() as stack:
        stack.push_async_exit(close)
        yield file


def make_source(source: Any) -> Any:
    """Return the source itself, or an audio file if it is a path. Raises InputError: no such file, or not audio."""
    return (
        AudioFile(cast("str | os.PathLike[str]", source)) if isinstance(source, str | os.PathLike) else source
    )


def make_blocks(
    source: Any, program: Program, rate_hz: int | None, channel: str
) -> AsyncGenerator[InputBlock]:
    """Yield the blocks of any source. Raises InputError: not a source, or audio for a model without an audio input."""
    source = make_source(source)
    if isinstance(source, AsyncAudioSource):
        return _audio_blocks(source, program, rate_hz, channel)
    if isinstance(source, np.ndarray | Mapping):
        return _blocks_of_iterable([cast("InputBlock", source)])
    if isinstance(source, AsyncGenerator):
        return cast("AsyncGenerator[InputBlock]", source)
    if isinstance(source, AsyncIterable):
        return _blocks_of_async(cast("AsyncIterable[InputBlock]", source))
    if isinstance(source, Iterable):
        return _blocks_of_iterable(cast("Iterable[InputBlock]", source))
    raise InputError(
        f"{type(source).__name__} is not a source; give arrays, something to iterate over, an AsyncAudioSource or the "
        "path of an audio file"
    )


async def _blocks_of_async(
    source: AsyncIterable[InputBlock],
) -> AsyncGenerator[InputBlock]:
    iterator = aiter(source)
    try:
        async for block in iterator:
            yield block
    finally:
        if (close := getattr(iterator, "aclose", None)) is not None:
            await close()


async def _blocks_of_iterable(source: Iterable[InputBlock]) -> AsyncGenerator[InputBlock]:
    iterator = iter(source)
    try:
        for block in iterator:
            yield block
            await anyio.lowlevel.checkpoint()
    finally:
        if (close := getattr(iterator, "close", None)) is not None:
            close()


def _audio_blocks(
    source: AsyncAudioSource, program: Program, rate_hz: int | None, channel: str
) -> AsyncGenerator[InputBlock]:
    """Yield audio in the shape of the model's inputs.

    Raises InputError: the channels do not fit the inputs, the rate is not known, or it cannot be resampled to
    """
    ports = sound_inputs(program)
    choice = channels_of_source(program, ports, source.channels, channel)
    ends = np.cumsum([port.channels for port in ports])
    model_hz, channels = require_rate(rate_hz), int(ends[-1])
    require_quality(source.rate_hz, model_hz, source.quality)

    def shape(samples: Samples) -> InputBlock:
        parts = np.split(samples, ends[:-1], axis=1)
        return {port.name: port.shape_sound(part) for port, part in zip(ports, parts)}

    @cache
    def resampler() -> AudioResampler:
        return AudioResampler(source.rate_hz, model_hz, channels, source.quality)

    def convert(block: Samples) -> InputBlock:
        return shape(resampler().process(block if channels > 1 else choice.select(block)))

    async def blocks() -> AsyncGenerator[InputBlock]:
        # A new filter may take half a second. A generator must have begun to close what it reads when it is cancelled.
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(resampler)
        audio = source.blocks()
        try:
            async for block in audio:
                if len(block) > MAX_INLINE_S * source.rate_hz:
                    yield await anyio.to_thread.run_sync(convert, block)
                else:
                    yield convert(block)
        finally:
            await audio.aclose()
        yield shape(resampler().flush())

    return blocks()


def require_rate(rate_hz: int | None) -> int:
    """Return the model's rate. Raises InputError: it is unknown."""
    if rate_hz is None:
        raise InputError("audio needs the model's rate: give rate_hz to the executor")
    return rate_hz
