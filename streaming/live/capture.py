"""Capture: the input of a device, kept in memory by its callback until Python reads it; no model."""

import numpy as np
from numpy.typing import NDArray

from pulse.not_copyable import NotCopyable
from pulse.program.memory import aligned_bytes
from streaming.channels import Samples
from streaming.hosts.host import Endpoint, Host, OpenStream, StreamRequest
from streaming.live.memory import ring_frames
from streaming.live.watchdog import TEARDOWN_S, stall_s
from streaming.native import control_block as cb
from streaming.native import positions
from streaming.native.callback import stream_callback
from streaming.native.events import Event
from streaming.native.histogram import new_histogram


class Capture(NotCopyable):
    """The blocks of an input device.

    host          who has the device
    source        which one
    channels      of its that are taken
    rate_hz       that it is to run at
    block_frames  device frames that come at once; 0 lets the device choose
    latency       ``low``, ``high`` or seconds

    ``event`` is readable when there is something to ``read``, and when the device has ended by itself. What is not
    read within ``memory.RING_S`` is lost block by block, and counted.
    """

    instead = "it has an open device; open another one"

    def __init__(
        self,
        host: Host,
        source: Endpoint,
        channels: int,
        rate_hz: int,
        block_frames: int,
        latency: str | float,
    ) -> None:
        frames = ring_frames(rate_hz, 4 * block_frames)
        self._ring = np.zeros((frames, channels), np.float32)
        self._times = [new_histogram() for _ in range(2)]
        self._control: NDArray[np.int64] = aligned_bytes(8 * cb.PIPELINE_FIELDS).view(np.int64)
        self._host = host
        self._request = StreamRequest(
            stream_callback.address,
            self._control.ctypes.data,
            source,
            None,
            channels,
            0,
            rate_hz,
            block_frames,
            latency,
            self._finish,
        )
        self._stream: OpenStream | None = None
        self.event = Event()
        self.finished = False
        """Whether the device has ended by itself."""
        self.error: Exception | None = None
        """Why, where that was an error."""
        self.limit_s = stall_s(block_frames, rate_hz)
        """Without a block for so long the device is taken to be gone."""
        for field, value in {
            cb.VIRTUAL_CLOCK: int(host.virtual_clock),
            cb.ENGINE: cb.ON_WORKER,
            cb.WAKE: self.event.to_write,
            cb.IN_CHANNELS: channels,
            cb.IN_RING: self._ring.ctypes.data,
            cb.IN_FRAMES: frames,
            cb.SIDES + cb.CALLBACK_TIMES: self._times[0].ctypes.data,
            cb.SIDES + cb.INTERVAL_TIMES: self._times[1].ctypes.data,
        }.items():
            self._control[field] = value

    @property
    def frames_in(self) -> int:
        """Frames that the device gave."""
        return int(self._control[cb.FRAMES_IN])

    @property
    def frames_lost(self) -> int:
        """Of these: nobody had read those before them in time."""
        return int(self._control[cb.FRAMES_LOST])

    @property
    def latency_s(self) -> float:
        """The latency of the input, as the device states it; 0 while it is not open."""
        return 0.0 if self._stream is None else self._stream.input_latency_s

    def open(self) -> None:
        """Open the device; blocks begin to come. Raises DeviceError."""
        self._stream = self._host.open(self._request)
        self._stream.start()

    def read(self) -> Samples:
        """[frames, channels] since the last reading, a copy."""
        address, first = self._control.ctypes.data, int(self._control[cb.IN_READ])
        last = positions.load.call(address, cb.IN_WRITTEN)
        frames = self._ring[np.arange(first, last) & (len(self._ring) - 1)]
        positions.store.call(address, cb.IN_READ, last)
        return frames

    def close(self) -> bool:
        """Give the device back, in bounded time; False where it does not answer."""
        stream, self._stream = self._stream, None
        if self in abandoned_captures:
            return False
        stopped = stream is None or stream.stop(TEARDOWN_S)
        self._control[cb.WAKE] = -1
        if stream is None or not stream.in_callback:
            self.event.close()
        else:
            abandoned_captures.append(self)
        return stopped

    def _finish(self, error: Exception | None = None, /) -> None:
        self.error, self.finished = error, True
        self.event.set()


abandoned_captures: list[Capture] = []
"""Captures that a device's thread may still use: their memory stays."""
