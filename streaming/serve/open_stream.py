"""OpenStream: the frame counts of a stream, on the side of its connection."""

import time
from typing import Any

import anyio

from pulse.facts import Array
from pulse.ops.clock import frames_at
from pulse.support.not_copyable import NotCopyable
from pulse.support.wording import count_of
from streaming.protocol.binary_messages import EPOCH_MODULUS, HEADER, INPUT, unpack_header
from streaming.protocol.errors import ProtocolError
from streaming.protocol.ports import StreamPort
from streaming.serve.checkpoints import Checkpoint
from streaming.serve.hosted_model import HostedModel
from streaming.serve.lanes.lane_stream import Answer, Block, Flush, LaneStream, OutgoingMessage
from streaming.serve.lanes.lane_worker import MAX_UNSENT_BYTES, LaneWorker
from streaming.serve.settings import LimitSettings
from streaming.serve.sound_conversion import SoundConversion
from streaming.serve.stream_times import StreamTimes

MIN_WINDOW_PULSES = 4
"""The minimum number of pulses in a window."""
ACKS_PER_WINDOW = 4
"""An acknowledgement is sent after each such part of a window."""
MAX_PACKET_SAMPLES = 5760
"""Samples in a packet of Opus: 120 ms."""


class OpenStream(NotCopyable, reason="it has a lane of a running server"):
    """Checks frame numbers, hands blocks to the lane, and counts the pulses that it has stepped.

    window  frames of the model's symbol by which an input may be ahead of the steps
    """

    def __init__(
        self,
        model: HostedModel,
        stream: LaneStream,
        worker: LaneWorker,
        conversion: SoundConversion,
        limits: LimitSettings,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.model, self._stream, self._worker = model, stream, worker
        self._conversion = conversion
        rate_hz = model.rate_hz or 100 * model.program.pulse
        self._window = max(int(limits.window_s * rate_hz), MIN_WINDOW_PULSES * model.program.pulse)
        self.window = conversion.client_frames(self._window)
        self.epoch = 0 if checkpoint is None else checkpoint.epoch
        streaming = [port for port in model.outputs if port.kind != "final"]
        self.received = [0] * len(model.inputs) if checkpoint is None else list(checkpoint.received)
        """Frames received for each input."""
        self._sent = [0] * len(streaming) if checkpoint is None else list(checkpoint.sent)
        self.pulses = self._whole_pulses()
        """Pulses stepped in this epoch."""
        self._acknowledged = self.pulses
        self._saved = self.received.copy()
        self._flushed = False
        self._closed = anyio.Event()

    @property
    def times(self) -> StreamTimes:
        """The latencies of the stream."""
        return self._stream.times

    @property
    def has_space(self) -> bool:
        """Whether few bytes are waiting to be sent."""
        return self._stream.unsent_bytes < MAX_UNSENT_BYTES // 2

    def as_dict(self) -> dict[str, Any]:
        """Return the fields of ``ready`` that describe the stream."""
        model = self.model
        return {
            "model": model.name,
            "rate": self._conversion.client_hz,
            "format": self._conversion.name,
            **self._conversion.as_dict(),
            "pulse": model.program.pulse,
            "epoch": self.epoch,
            "received": self.received,
            "sent": self._sent,
            "inputs": [port.as_dict() for port in self._conversion.inputs],
            "outputs": [port.as_dict() for port in self._conversion.outputs],
            "events": model.event_dicts(),
        }

    def accept(self, message: bytes) -> int:
        """Take a binary message. Returns how many new frames it has.

        Raises ProtocolError: the message does not fit the stream, or is not in order
        """
        header = unpack_header(message)
        if header.kind != INPUT or header.port >= len(self.received):
            raise ProtocolError(
                "message",
                f"a header of kind {header.kind}, port {header.port}",
                f"inputs have kind {INPUT} and ports 0 to {len(self.received) - 1}",
            )
        port = self._conversion.inputs[header.port]
        frames = self._values(port, message, header.frames)
        if header.epoch != self.epoch % EPOCH_MODULUS:
            return 0
        if self._flushed:
            raise ProtocolError("ended", "input after the flush", "reset begins a new stream")
        expected = self.received[header.port]
        if header.first > expected:
            raise ProtocolError(
                "gap",
                f"input {port.name}: frames begin at {header.first}, and {expected} were expected",
                "send every frame once, in order",
            )
        fresh = header.first + header.frames - expected
        if fresh <= 0:
            return 0
        self._enqueue_frames(header.port, port, frames, header.frames - fresh, fresh)
        return fresh

    def flush(self) -> None:
        """End the input. Raises ProtocolError: it has already ended."""
        if self._flushed:
            raise ProtocolError("ended", "flush after the flush", "reset begins a new stream")
        self._flushed = True
        self._stream.inbox.append(Flush(self.epoch))
        self.wake()

    def reset(self) -> None:
        """Begin a new epoch."""
        self.epoch += 1
        self.received, self.pulses, self._acknowledged = [0] * len(self.received), 0, 0
        self._saved = self.received.copy()
        self._flushed = False
        self._stream.commands.append("reset")
        self.wake()

    async def close(self) -> None:
        """Release the lane; returns when the worker no longer uses it."""
        self._stream.commands.append("close")
        self.wake()
        await self._closed.wait()

    def wake(self) -> None:
        """Wake the worker."""
        self._worker.wake(self._stream)

    def add_unsent(self, size: int) -> bool:
        """Count bytes that wait to be sent. Returns whether the lane stalls."""
        self._stream.unsent_bytes += size
        return self._stream.unsent_bytes > MAX_UNSENT_BYTES

    def record_answer(self, answer: Answer) -> list[OutgoingMessage]:
        """Count the work of the lane. Returns an acknowledgement if one is due."""
        if answer.closed:
            self._closed.set()
        if answer.epoch != self.epoch or answer.pulses == self.pulses:
            return []
        self.pulses = answer.pulses
        pulse = self.model.program.pulse
        if (self.pulses - self._acknowledged) * pulse * ACKS_PER_WINDOW < self._window:
            return []
        self._acknowledged = self.pulses
        frames = [
            min(received, self._conversion.client_frames(self.pulses * self.model.frames[port.name]))
            for received, port in zip(self.received, self.model.inputs)
        ]
        safe = self._saved if self.model.saves else frames
        return [{"type": "ack", "epoch": self.epoch, "taken": frames, "safe": safe}]

    def record_saved(self, checkpoint: Checkpoint) -> list[OutgoingMessage]:
        """Record that a checkpoint is on the disk. Returns its acknowledgement."""
        if checkpoint.epoch != self.epoch:
            return []
        self._saved = list(checkpoint.received)
        return [{"type": "ack", "epoch": self.epoch, "taken": self._saved, "safe": self._saved}]

    def is_ahead(self) -> bool:
        """Return whether an input is ahead of the steps by more than the window.

        Raises ProtocolError: it would remain so
        """
        ahead = self._farthest()
        if ahead is not None and self._whole_pulses() <= self.pulses:
            raise ProtocolError(
                "input",
                f"input {ahead.name} is more than {count_of(self.window, 'frame')} ahead of another one",
                "send the inputs in turn",
            )
        return ahead is not None

    def _values(self, port: StreamPort, message: bytes, frames: int) -> Array | bytes:
        """Return the values after a header. Raises ProtocolError: more or fewer than the header says."""
        values = memoryview(message)[HEADER.size :]
        if self._conversion.name != "opus":
            return port.decode(values, frames, self._conversion.name)
        if not 0 < frames <= MAX_PACKET_SAMPLES:
            raise ProtocolError(
                "message",
                f"a packet of {count_of(frames, 'sample')}",
                f"at most {MAX_PACKET_SAMPLES} are in one",
            )
        return bytes(values)

    def _enqueue_frames(
        self, port_index: int, port: StreamPort, frames: Array | bytes, received: int, fresh: int
    ) -> None:
        if received:
            assert port.axis is not None
            if isinstance(frames, bytes):
                raise ProtocolError(
                    "gap", "a packet that begins in another one", "send each packet once, in order"
                )
            frames = frames_at(frames, port.axis, received, received + fresh)
        self.received[port_index] += fresh
        self._stream.inbox.append(Block(self.epoch, port.name, frames, fresh, time.monotonic_ns()))
        self.wake()

    def _farthest(self) -> StreamPort | None:
        """Return an input that is too far ahead."""
        pulse = self.model.program.pulse
        for received, port in zip(self.received, self.model.inputs):
            per_pulse = self.model.frames[port.name]
            if (
                self._conversion.model_frames(received) - self.pulses * per_pulse
            ) * pulse > self._window * per_pulse:
                return port
        return None

    def _whole_pulses(self) -> int:
        conversion = self._conversion
        return min(
            conversion.ready_frames(received, port.name) // self.model.frames[port.name]
            for received, port in zip(self.received, self.model.inputs)
        )
