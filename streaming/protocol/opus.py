"""Sound as Opus packets (RFC 6716), one per message, mono at 48 kHz, coded by PyAV with its copy of libopus."""

from importlib import import_module
from typing import Any

import numpy as np

from pulse.errors import InputError
from pulse.facts import Array
from pulse.support.not_copyable import NotCopyable
from streaming.protocol.errors import ProtocolError

RATE_HZ = 48_000
"""Opus always works at this rate."""
PACKET_MS = 10
"""The sound in a packet, which a stream waits for."""
PACKET_SAMPLES = RATE_HZ * PACKET_MS // 1000
SKIP_SAMPLES = 120
"""The delay from encoder to decoder in samples: the ``pre-skip`` of RFC 7845."""
BIT_RATE = 64_000
"""Bits per second and channel."""


class OpusEncoder(NotCopyable, reason="it remembers samples; make another one"):
    """Encodes samples as packets. Raises InputError: PyAV is not installed."""

    def __init__(self) -> None:
        av = _av()
        self._av = av
        self._codec: Any = av.CodecContext.create("libopus", "w")
        self._codec.sample_rate, self._codec.layout, self._codec.format = RATE_HZ, "mono", "flt"
        self._codec.bit_rate = BIT_RATE
        self._codec.options = {"frame_duration": str(PACKET_MS), "application": "lowdelay"}
        self._codec.open()
        head = bytes(self._codec.extradata)
        if self._codec.frame_size != PACKET_SAMPLES or int.from_bytes(head[10:12], "little") != SKIP_SAMPLES:
            raise InputError(
                f"libopus makes packets of {self._codec.frame_size} samples: install PyAV from PyPI"
            )
        self._rest: Array = np.zeros(0, np.float32)
        self._samples_in = self._samples_out = 0

    @property
    def delay_samples(self) -> int:
        """The longest delay of an output in samples: until its packet is full, plus the decoder's delay."""
        return PACKET_SAMPLES - 1 + SKIP_SAMPLES

    def encode(self, samples: Array) -> list[tuple[int, bytes]]:
        """Add samples; return the full packets, each with its number of samples."""
        self._samples_in += samples.size
        return self._packets(np.concatenate([self._rest, samples]))

    def flush(self) -> list[tuple[int, bytes]]:
        """Return the rest, padded with enough silence for a decoder to return every sample."""
        missing = self._samples_in + SKIP_SAMPLES - self._samples_out
        whole = -(-missing // PACKET_SAMPLES) * PACKET_SAMPLES if self._samples_in else 0
        return self._packets(np.concatenate([self._rest, np.zeros(whole - self._rest.size, np.float32)]))

    def _packets(self, samples: Array) -> list[tuple[int, bytes]]:
        packets: list[tuple[int, bytes]] = []
        for first in range(0, samples.size - PACKET_SAMPLES + 1, PACKET_SAMPLES):
            block = np.clip(samples[first : first + PACKET_SAMPLES], -1, 1).astype(np.float32)[None]
            frame = self._av.AudioFrame.from_ndarray(np.nan_to_num(block), format="flt", layout="mono")
            frame.sample_rate, frame.pts = RATE_HZ, self._samples_out
            packets += [(PACKET_SAMPLES, bytes(packet)) for packet in self._codec.encode(frame)]
            self._samples_out += PACKET_SAMPLES
        self._rest = samples[len(samples) // PACKET_SAMPLES * PACKET_SAMPLES :].copy()
        return packets


class OpusDecoder(NotCopyable, reason="it remembers samples; make another one"):
    """Decodes packets to samples.

    skip    samples to skip at the start
    Raises  InputError: PyAV is not installed
    """

    def __init__(self, skip: int = SKIP_SAMPLES) -> None:
        self._av = _av()
        self._codec: Any = self._av.CodecContext.create("opus", "r")
        self._codec.sample_rate, self._codec.layout = RATE_HZ, "mono"
        self._skip = skip

    def decode(self, packet: bytes) -> tuple[int, Array]:
        """Return a packet's size in samples, and its samples except those to skip.

        Raises ProtocolError: not a mono Opus packet
        """
        try:
            frames: list[Any] = self._codec.decode(self._av.Packet(packet)) if packet else []
        except (self._av.FFmpegError, ValueError) as error:
            raise ProtocolError(
                "message", f"not an Opus packet: {error}", "send one packet per message"
            ) from None
        parts: list[Array] = [frame.to_ndarray() for frame in frames]
        if not parts or any(part.shape[0] != 1 or part.dtype != np.float32 for part in parts):
            raise ProtocolError("message", "not a mono Opus packet", "send one packet per message")
        samples: Array = np.concatenate(parts, 1)[0]
        left_out = min(self._skip, samples.size)
        self._skip -= left_out
        return samples.size, samples[left_out:]


def _av() -> Any:
    try:
        return import_module("av")
    except ModuleNotFoundError:
        raise InputError("Opus needs PyAV; pip install 'pulse-stream[opus]'") from None
