"""The sound of a stream in Opus packets, on the client's side; no sample is lost or added."""

from collections.abc import Sequence

import numpy as np

from pulse.facts import Array
from pulse.support.not_copyable import NotCopyable
from streaming.protocol.opus import RATE_HZ, OpusDecoder, OpusEncoder
from streaming.protocol.ports import StreamPort


class OpusSound(NotCopyable, reason="it remembers samples; connect again"):
    """The encoders of the inputs and the decoders of the outputs.

    skip    samples that decoders skip at the start, as stated by the server
    Raises  InputError: PyAV is not installed
    """

    def __init__(self, inputs: Sequence[StreamPort], outputs: Sequence[StreamPort], skip: int) -> None:
        self._inputs, self._skip = inputs, skip
        self._outputs = [
            port for port in outputs if port.kind == "sound" and port.values == 1 and port.rate == RATE_HZ
        ]
        self.reset()

    def reset(self) -> None:
        """Start a new stream."""
        self._encoders = {port.number: OpusEncoder() for port in self._inputs}
        self._decoders = {port.number: _HeldDecoder(port, self._skip) for port in self._outputs}

    def encode(self, port: StreamPort, array: Array) -> list[tuple[int, bytes]]:
        """Return the full packets, each with its number of samples."""
        return self._encoders[port.number].encode(array.ravel())

    def flush(self, port: StreamPort) -> list[tuple[int, bytes]]:
        """Return the last packets of an input."""
        return self._encoders[port.number].flush()

    def decode(self, port: StreamPort, packet: bytes) -> Array | None:
        """Decode more of an output, in its shape; None if it is not sound. Raises ProtocolError: not a packet."""
        decoder = self._decoders.get(port.number)
        return None if decoder is None else decoder.push(packet)

    def ends(
        self, totals_sent: Sequence[int], streaming: Sequence[StreamPort]
    ) -> list[tuple[StreamPort, Array]]:
        """Return the last samples of each output without padding; ``totals_sent`` counts all samples of the sound."""
        totals = {port.number: total for port, total in zip(streaming, totals_sent)}
        return [(port, self._decoders[port.number].end(totals[port.number])) for port in self._outputs]


class _HeldDecoder:
    """Delays samples by one packet, since only the next packet shows that a packet was not the last."""

    def __init__(self, port: StreamPort, skip: int) -> None:
        self._shape = [-1 if size is None else size for size in port.shape]
        self._decoder = OpusDecoder(skip)
        self._held: Array = np.zeros(0, np.float32)
        self._samples_out = 0

    def push(self, packet: bytes) -> Array:
        _, samples = self._decoder.decode(packet)
        previous, self._held = self._held, samples
        self._samples_out += previous.size
        return previous.reshape(self._shape)

    def end(self, total: int) -> Array:
        return self._held[: max(0, total - self._samples_out)].reshape(self._shape)
