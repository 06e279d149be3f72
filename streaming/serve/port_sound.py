"""The sound of one port, converted between the client's rate and format and the model's."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pulse.facts import Array
from pulse.support.not_copyable import NotCopyable
from pulse.support.wording import count_of
from streaming.native.resample import NativeResampler
from streaming.protocol.errors import ProtocolError
from streaming.protocol.opus import OpusDecoder, OpusEncoder
from streaming.protocol.ports import StreamPort
from streaming.snapshot import pack, unpack_sections

Coded = tuple[int, int, bytes]
"""The number of the first frame, the number of frames, and the bytes of a message."""


class InputSound(NotCopyable, reason="it remembers samples; begin a new stream"):
    """An input: from the client to the model.

    port          the port as the client sees it
    skip          samples that an Opus decoder skips at the start; None if not Opus
    delay_frames  the delay of the resampler in frames of the client
    """

    def __init__(self, port: StreamPort, client_hz: int, model_hz: int, skip: int | None) -> None:
        self.port = replace(port, rate=None if port.rate is None else port.rate * client_hz / model_hz)
        self._resamplers = _ChannelResamplers(port, client_hz, model_hz)
        self._skip = skip
        self._decoder = None if skip is None else OpusDecoder(skip)
        self.delay_frames = self._resamplers.delay_frames
        self.skipped_frames = skip or 0
        self.received = 0

    def push(self, frames: Array | bytes, count: int) -> Array:
        """Convert to the model's input, in the port's shape. Raises ProtocolError: a packet that cannot be decoded."""
        samples = frames if not isinstance(frames, bytes) else self._decode(frames, count)
        self.received += count
        return self._resamplers.process(samples)

    def flush(self) -> Array:
        """Return the rest."""
        return self._resamplers.flush()

    def reset(self) -> None:
        """Start a new stream."""
        self.received = 0
        self._resamplers.reset()
        if self._skip is not None:
            self._decoder = OpusDecoder(self._skip)

    def snapshot(self) -> bytes:
        """Return a snapshot. Opus streams have none."""
        return self._resamplers.snapshot([self.received])

    def restore(self, snapshot: bytes) -> None:
        """Resume from a snapshot. Raises InputError: it is of another stream."""
        (self.received,) = self._resamplers.restore(snapshot, 1)

    def _decode(self, packet: bytes, count: int) -> Array:
        assert self._decoder is not None
        size, samples = self._decoder.decode(packet)
        if size != count:
            raise ProtocolError(
                "message",
                f"{self.port.name}: a packet has {count_of(size, 'sample')}, but its header says {count}",
                "send one packet per message, with its number of samples at 48 kHz",
            )
        return samples.reshape([-1 if size is None else size for size in self.port.shape])


class OutputSound(NotCopyable, reason="it remembers samples; begin a new stream"):
    """An output: from the model to the client.

    input_delay_frames  the delay of the inputs' resamplers in frames of the client, a part of ``port.delay``
    port          the port as the client sees it
    sent_frames   frames of the sound so far, without those in packets that a decoder skips or that are after the end
    """

    def __init__(
        self, port: StreamPort, model_hz: int, client_hz: int, format: str, input_delay_frames: int
    ) -> None:
        self._format = format
        self._resamplers = _ChannelResamplers(port, model_hz, client_hz)
        rest_frames = self._resamplers.delay_frames
        self._encoder = OpusEncoder() if format == "opus" else None
        coding = 0 if self._encoder is None else self._encoder.delay_samples
        rate = None if port.rate is None else port.rate * client_hz / model_hz
        delay = -(-(port.delay + rest_frames) * client_hz // model_hz) + (rest_frames > 0)
        self.port = replace(port, rate=rate, delay=delay + input_delay_frames + coding)
        self.sent_frames = self._coded_frames = 0

    def push(self, array: Array) -> list[Coded]:
        """Convert more of the output; return its messages."""
        return self._code(self._resamplers.process(array))

    def flush(self) -> list[Coded]:
        """Return the messages of the rest."""
        remaining = self._code(self._resamplers.flush())
        return remaining if self._encoder is None else remaining + self._number_packets(self._encoder.flush())

    def reset(self) -> None:
        """Start a new stream."""
        self.sent_frames = self._coded_frames = 0
        self._resamplers.reset()
        if self._encoder is not None:
            self._encoder = OpusEncoder()

    def snapshot(self) -> bytes:
        """Return a snapshot. Opus streams have none."""
        return self._resamplers.snapshot([self.sent_frames, self._coded_frames])

    def restore(self, snapshot: bytes) -> None:
        """Resume from a snapshot. Raises InputError: it is of another stream."""
        self.sent_frames, self._coded_frames = self._resamplers.restore(snapshot, 2)

    def _code(self, samples: Array) -> list[Coded]:
        frames = samples.size // self.port.values
        self.sent_frames += frames
        if self._encoder is not None:
            return self._number_packets(self._encoder.encode(samples.ravel()))
        return self._number_packets([(frames, self.port.encode(samples, self._format))] if frames else [])

    def _number_packets(self, packets: Sequence[tuple[int, bytes]]) -> list[Coded]:
        messages: list[Coded] = []
        for count, values in packets:
            messages.append((self._coded_frames, count, values))
            self._coded_frames += count
        return messages


class _ChannelResamplers:
    """The resamplers of all channels of a port, for arrays in its shape; none if the rates are equal."""

    def __init__(self, port: StreamPort, rate_in_hz: int, rate_out_hz: int) -> None:
        self._axis, self._shape = port.axis or 0, port.shape
        count = port.values if rate_in_hz != rate_out_hz else 0
        self._resamplers = [NativeResampler(rate_in_hz, rate_out_hz) for _ in range(count)]
        self.delay_frames = self._resamplers[0].delay_frames if count else 0

    def process(self, samples: Array) -> Array:
        """Return the frames that are ready."""
        if not self._resamplers:
            return samples
        rows = np.moveaxis(samples, self._axis, -1).reshape(len(self._resamplers), -1)
        ready = np.stack([resampler.process(row) for resampler, row in zip(self._resamplers, rows)])
        others = [size for size in self._shape if size is not None]
        return np.moveaxis(ready.reshape([*others, ready.shape[1]]), -1, self._axis)

    def flush(self) -> Array:
        """Return the rest."""
        shape = [self.delay_frames if size is None else size for size in self._shape]
        return self.process(np.zeros(shape, np.float32))

    def reset(self) -> None:
        """Start a new stream."""
        for resampler in self._resamplers:
            resampler.reset()

    def snapshot(self, numbers: Sequence[int]) -> bytes:
        """Return a snapshot with some numbers."""
        return pack(numbers, [resampler.snapshot() for resampler in self._resamplers])

    def restore(self, snapshot: bytes, count: int) -> list[int]:
        """Restore a snapshot and return its numbers. Raises InputError: it is of another stream."""
        numbers, sections = unpack_sections(snapshot, count, len(self._resamplers))
        for resampler, section in zip(self._resamplers, sections):
            resampler.restore(section)
        return numbers
