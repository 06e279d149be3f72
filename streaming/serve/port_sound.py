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
from streaming.snapshot import pack, unpack_one

Coded = tuple[int, int, bytes]
"""The number of the first frame, the number of frames, and the bytes of a message."""


class InputSound(NotCopyable, reason="it remembers samples; begin a new stream"):
    """An input: from the client to the model.

    port          the port as the client sees it
    skip          samples that an Opus decoder skips at the start; None if not Opus
    delay_frames  the delay of the resampler in frames of the client
    """

    def __init__(self, port: StreamPort, client_hz: int, model_hz: int, skip: int | None) -> None:
        self._shape = [-1 if size is None else size for size in port.shape]
        self.port = replace(port, rate=None if port.rate is None else port.rate * client_hz / model_hz)
        self._resampler = _resampler(client_hz, model_hz)
        self._skip = skip
        self._decoder = None if skip is None else OpusDecoder(skip)
        self.delay_frames = _delay_frames(self._resampler)
        self.skipped_frames = skip or 0
        self.received = 0

    def push(self, frames: Array | bytes, count: int) -> Array:
        """Convert to the model's input, in the port's shape. Raises ProtocolError: a packet that cannot be decoded."""
        samples = frames.ravel() if not isinstance(frames, bytes) else self._decode(frames, count)
        self.received += count
        return self._resample(samples)

    def flush(self) -> Array:
        """Return the rest."""
        return self._resample(np.zeros(self.delay_frames, np.float32))

    def reset(self) -> None:
        """Start a new stream."""
        self.received = 0
        if self._resampler is not None:
            self._resampler.reset()
        if self._skip is not None:
            self._decoder = OpusDecoder(self._skip)

    def snapshot(self) -> bytes:
        """Return a snapshot. Opus streams have none."""
        assert self._resampler is not None
        return pack([self.received], [self._resampler.snapshot()])

    def restore(self, snapshot: bytes) -> None:
        """Resume from a snapshot. Raises InputError: it is of another stream."""
        assert self._resampler is not None
        (received,), resampler = unpack_one(snapshot, 1)
        self._resampler.restore(resampler)
        self.received = received

    def _decode(self, packet: bytes, count: int) -> Array:
        assert self._decoder is not None
        size, samples = self._decoder.decode(packet)
        if size != count:
            raise ProtocolError(
                "message",
                f"{self.port.name}: a packet has {count_of(size, 'sample')}, but its header says {count}",
                "send one packet per message, with its number of samples at 48 kHz",
            )
        return samples

    def _resample(self, samples: Array) -> Array:
        if self._resampler is not None:
            samples = self._resampler.process(samples)
        return samples.reshape(self._shape)


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
        self._resampler = _resampler(model_hz, client_hz)
        self._rest_frames = _delay_frames(self._resampler)
        self._encoder = OpusEncoder() if format == "opus" else None
        coding = 0 if self._encoder is None else self._encoder.delay_samples
        rate = None if port.rate is None else port.rate * client_hz / model_hz
        delay = -(-(port.delay + self._rest_frames) * client_hz // model_hz) + (self._rest_frames > 0)
        self.port = replace(port, rate=rate, delay=delay + input_delay_frames + coding)
        self.sent_frames = self._coded_frames = 0

    def push(self, array: Array) -> list[Coded]:
        """Convert more of the output; return its messages."""
        samples = array.ravel()
        if self._resampler is not None:
            samples = self._resampler.process(samples)
        self.sent_frames += samples.size
        if self._encoder is not None:
            return self._number_packets(self._encoder.encode(samples))
        return self._number_packets([(samples.size, self._encode(samples))] if samples.size else [])

    def flush(self) -> list[Coded]:
        """Return the messages of the rest."""
        remaining = self.push(np.zeros(self._rest_frames, np.float32))
        return remaining if self._encoder is None else remaining + self._number_packets(self._encoder.flush())

    def reset(self) -> None:
        """Start a new stream."""
        self.sent_frames = self._coded_frames = 0
        if self._resampler is not None:
            self._resampler.reset()
        if self._encoder is not None:
            self._encoder = OpusEncoder()

    def snapshot(self) -> bytes:
        """Return a snapshot. Opus streams have none."""
        assert self._resampler is not None
        return pack([self.sent_frames, self._coded_frames], [self._resampler.snapshot()])

    def restore(self, snapshot: bytes) -> None:
        """Resume from a snapshot. Raises InputError: it is of another stream."""
        assert self._resampler is not None
        (sent_frames, coded_frames), resampler = unpack_one(snapshot, 2)
        self._resampler.restore(resampler)
        self.sent_frames, self._coded_frames = sent_frames, coded_frames

    def _encode(self, samples: Array) -> bytes:
        return self.port.encode(
            samples.reshape([-1 if size is None else size for size in self.port.shape]), self._format
        )

    def _number_packets(self, packets: Sequence[tuple[int, bytes]]) -> list[Coded]:
        messages: list[Coded] = []
        for count, values in packets:
            messages.append((self._coded_frames, count, values))
            self._coded_frames += count
        return messages


def _delay_frames(resampler: NativeResampler | None) -> int:
    return 0 if resampler is None else resampler.delay_frames


def _resampler(rate_in_hz: int, rate_out_hz: int) -> NativeResampler | None:
    return None if rate_in_hz == rate_out_hz else NativeResampler(rate_in_hz, rate_out_hz)
