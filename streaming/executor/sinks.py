"""Sinks of outputs: callables, memory streams, byte streams and files."""

import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio.to_thread
import numpy as np
from anyio.abc import ByteSendStream, ObjectSendStream

from pulse.errors import InputError
from pulse.facts import Array
from pulse.interface import Port
from pulse.program.program import Program
from pulse.support.not_copyable import NotCopyable
from streaming.audio.audio_formats import audio_format, is_audio_file
from streaming.audio.encodings import Encoding
from streaming.audio.files import AudioWriter
from streaming.audio.frame_files import FramesFile
from streaming.audio.interfaces import Clipping
from streaming.executor.sources import AsyncAudioSource, open_in_thread, require_rate
from streaming.native.resample import AudioResampler
from streaming.routing import find_output, sound_inputs, sound_output

Write = Callable[[Mapping[str, Array]], Awaitable[None]]
BATCH_S = 0.5
"""Audio is resampled and written in pieces of this length, in a helper thread."""
BATCH_BYTES = 1 << 16
"""Frames are written in pieces of this many bytes, also in a helper thread."""
ARRAY_OVERHEAD_BYTES = 128
"""The bytes that an array needs in addition to its values, so that empty ones count, too."""


class Sink(ABC):
    """Takes the outputs of one stream."""

    @abstractmethod
    def open(
        self, program: Program, rate_hz: int | None, source: AsyncAudioSource | None
    ) -> AbstractAsyncContextManager[Write]:
        """Open the sink, until the stream has ended or failed.

        rate_hz  the rate of the model; None if unknown
        source   the source of the model's input; None if it is not audio
        Raises   InputError: the program has no output that the sink can take
        """


class CallSink(Sink):
    """Calls a function, or a coroutine function, with the outputs."""

    def __init__(self, function: Callable[[Mapping[str, Array]], Any]) -> None:
        self._function = function

    @asynccontextmanager
    async def open(
        self, program: Program, rate_hz: int | None, source: AsyncAudioSource | None
    ) -> AsyncGenerator[Write]:
        async def write(outputs: Mapping[str, Array]) -> None:
            waited = self._function(outputs)
            if inspect.isawaitable(waited):
                await waited

        yield write


class PcmSink(NotCopyable, Sink, reason="it has an open byte stream; make another one"):
    """Writes raw little-endian samples of one output to a byte stream, which stays open; its channels are interleaved.

    encoding  u8, s16, s24, s32, f32 or f64
    output    its name, or a channel of it, ``name:channel``; by default that of ``pulse.interface.main_output``
    Raises    InputError: no such encoding
    """

    def __init__(self, stream: ByteSendStream, encoding: str, output: str | None = None) -> None:
        self._stream = stream
        self._encoding = Encoding.of_name(encoding)
        self._output = output
        self.clipping: Clipping | None = None
        """The samples that the encoding has clipped in the last stream; None before the first."""

    @asynccontextmanager
    async def open(
        self, program: Program, rate_hz: int | None, source: AsyncAudioSource | None
    ) -> AsyncGenerator[Write]:
        output = sound_output(program, self._output)
        clipping = self.clipping = Clipping(len(output.channels))

        async def write(outputs: Mapping[str, Array]) -> None:
            samples = output.samples(outputs[output.port.name])
            if samples.size:
                if not self._encoding.floating:
                    clipping.count(samples)
                await self._stream.send(self._encoding.encode(samples.ravel()))

        yield write


class AudioFileSink(NotCopyable, Sink, reason="it writes one file; make another one with another path"):
    """Writes one output, all its channels, to an audio file, which appears when the stream has ended without error.

    path      the suffix selects the format: .wav, .flac, .mp3 and any other that libsndfile writes
    rate_hz   the rate of the file; by default the source's if it is audio, else the model's
    output    its name, or a channel of it, ``name:channel``; by default that of ``pulse.interface.main_output``
    encoding  libsndfile's name, or that of a raw encoding, such as float or s24; the nearest to the source's by default
    Raises    InputError: a suffix that is not an audio format, or an encoding that it does not have
    """

    clipping: Clipping | None = None
    """The samples that the encoding has clipped; None until there is a file."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        rate_hz: int | None = None,
        output: str | None = None,
        encoding: str | None = None,
    ) -> None:
        self.path = Path(path)
        self._rate_hz = rate_hz
        self._output = output
        self._encoding = None if encoding is None else audio_format(self.path).parse_encoding(encoding)

    @asynccontextmanager
    async def open(
        self, program: Program, rate_hz: int | None, source: AsyncAudioSource | None
    ) -> AsyncGenerator[Write]:
        output = sound_output(program, self._output)
        port, channels = output.port, len(output.channels)
        made_hz = require_rate(rate_hz) * port.rate
        if made_hz.denominator != 1:
            raise InputError(
                f"{port.name}: {float(made_hz):g} samples per second; an audio file needs an integer"
            )
        file_hz = self._rate_hz or (source.rate_hz if source is not None else int(made_hz))
        resampler = await anyio.to_thread.run_sync(AudioResampler, int(made_hz), file_hz, channels)
        pending = PendingArrays()

        def write_all(writer: AudioWriter) -> None:
            writer.write(resampler.process(np.concatenate(pending.take())))

        def write_rest(writer: AudioWriter) -> None:
            if pending.size:
                write_all(writer)
            writer.write(resampler.flush(_whole_length(port, program, source, file_hz)))

        make = partial(AudioWriter, self.path, file_hz, channels, self._encoding)
        async with open_in_thread(make) as writer:
            self.clipping = writer.clipping

            async def write(outputs: Mapping[str, Array]) -> None:
                samples = output.samples(outputs[port.name])
                if samples.size:
                    pending.add(samples, len(samples))
                if pending.size >= BATCH_S * made_hz:
                    await anyio.to_thread.run_sync(write_all, writer)

            yield write
            await anyio.to_thread.run_sync(write_rest, writer)


class FramesFileSink(NotCopyable, Sink, reason="it writes one file; make another one with another path"):
    """Writes frames of one output as .npy or .csv; the file appears when the stream has ended without error.

    output  its name; the first by default
    """

    def __init__(self, path: str | os.PathLike[str], output: str | None = None) -> None:
        self.path = Path(path)
        self._output = output

    @asynccontextmanager
    async def open(
        self, program: Program, rate_hz: int | None, source: AsyncAudioSource | None
    ) -> AsyncGenerator[Write]:
        port = program.outputs[0] if self._output is None else find_output(program, self._output)
        pending = PendingArrays()

        def write_all(file: FramesFile) -> None:
            for piece in pending.take():
                file.write(piece)

        make = partial(FramesFile, self.path, port.axis, port.frames_hz(rate_hz))
        async with open_in_thread(make) as file:

            async def write(outputs: Mapping[str, Array]) -> None:
                if port.name in outputs:
                    frames = outputs[port.name]
                    pending.add(frames, frames.nbytes + ARRAY_OVERHEAD_BYTES)
                    if pending.size >= BATCH_BYTES:
                        await anyio.to_thread.run_sync(write_all, file)

            yield write
            await anyio.to_thread.run_sync(write_all, file)


class PendingArrays:
    """Arrays to be written together.

    size  their total size, in the caller's unit
    """

    def __init__(self) -> None:
        self.size = 0
        self._pieces: list[Array] = []

    def add(self, piece: Array, size: int) -> None:
        self._pieces.append(piece)
        self.size += size

    def take(self) -> list[Array]:
        """Remove and return all arrays."""
        pieces, self._pieces, self.size = self._pieces, [], 0
        return pieces


def make_sink(sink: Any) -> Sink:
    """Convert anything that takes outputs to a sink. Raises InputError: it is none of these."""
    if isinstance(sink, Sink):
        return sink
    if isinstance(sink, str | os.PathLike):
        path = Path(cast("str | os.PathLike[str]", sink))
        return AudioFileSink(path) if is_audio_file(path) else FramesFileSink(path)
    if isinstance(sink, ObjectSendStream):
        return CallSink(cast("ObjectSendStream[Any]", sink).send)
    if callable(sink):
        return CallSink(cast("Callable[[Mapping[str, Array]], Any]", sink))
    raise InputError(
        f"{type(sink).__name__} is not a sink; give a function, a memory stream, the path of a file or a Sink"
    )


def _whole_length(port: Port, program: Program, source: AsyncAudioSource | None, file_hz: int) -> int | None:
    """Return the samples of a file as long as its source; None if the length is unknown."""
    sound_input = next(iter(sound_inputs(program)), None)
    if source is None or sound_input is None:
        return None
    return source.samples if port.length == sound_input.length and source.rate_hz == file_hz else None
