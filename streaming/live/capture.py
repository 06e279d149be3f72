"""Capture: the input of a device without a model; its callback keeps blocks in memory until Python reads them."""

import numpy as np

from pulse.jit.events import NativeEvent
from pulse.support.not_copyable import NotCopyable
from streaming.audio.channels import Samples
from streaming.hosts.host import DeviceStream, Endpoint, Host, StreamRequest
from streaming.live.pipeline_memory import ring_frames
from streaming.live.plan import TEARDOWN_TIMEOUT_S
from streaming.live.watchdog import stall_s
from streaming.native import positions
from streaming.native.callback import stream_callback
from streaming.native.control_block import ON_WORKER, ControlBlock
from streaming.native.histogram import Histogram


class Capture(NotCopyable, reason="it has an open device; open another one"):
    """The blocks of an input device.

    host          the audio system that has the device
    source        the device
    channels      the channels of the device to record
    rate_hz       the rate to open the device at
    block_frames  device frames in a block; 0 lets the device choose
    latency       ``low``, ``high`` or seconds

    ``event`` becomes readable when there are frames to ``read``, and when the device ends by itself. Blocks that are
    not read within ``pipeline_memory.RING_S`` seconds are lost, and counted.
    """

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
        self._times = [Histogram.new() for _ in range(2)]
        self._control = ControlBlock.new()
        self._host = host
        self._request = StreamRequest(
            callback_address=stream_callback.address,
            user_address=self._control.address,
            source=source,
            target=None,
            channels_in=channels,
            channels_out=0,
            rate_hz=rate_hz,
            block_frames=block_frames,
            latency=latency,
            finished=self._finish,
        )
        self._stream: DeviceStream | None = None
        self.event = NativeEvent()
        self.finished = False
        """Whether the device has ended by itself."""
        self.error: Exception | None = None
        """The error with which the device ended, if any."""
        self.limit_s = stall_s(block_frames, rate_hz)
        """After this many seconds without a block, the device counts as disconnected."""
        control = self._control
        control.virtual_clock, control.engine = int(host.virtual_clock), ON_WORKER
        control.wake = self.event.to_write
        control.in_channels, control.in_ring_frames = channels, frames
        control.in_ring = self._ring.ctypes.data
        control.input_side.callback_times = self._times[0].address
        control.input_side.interval_times = self._times[1].address

    @property
    def frames_in(self) -> int:
        """The number of frames that the device delivered."""
        return self._control.frames_in

    @property
    def frames_lost(self) -> int:
        """The number of frames lost because earlier ones were not read in time."""
        return self._control.frames_lost

    @property
    def latency_s(self) -> float:
        """The input latency in seconds that the device reports; 0 while it is closed."""
        return 0.0 if self._stream is None else self._stream.input_latency_s

    def open(self) -> None:
        """Open the device and start to record blocks. Raises DeviceError: the device cannot be opened or started."""
        self._stream = self._host.open(self._request)
        self._stream.start()

    def read(self) -> Samples:
        """Return a copy of the frames since the last call: [frames, channels]."""
        first = self._control.in_read
        last = positions.load(self._control, "in_written")
        frames = self._ring[np.arange(first, last) & (len(self._ring) - 1)]
        positions.store(self._control, "in_read", last)
        return frames

    def close(self) -> bool:
        """Close the device, in bounded time. Returns False if it does not respond."""
        stream, self._stream = self._stream, None
        if self in abandoned_captures:
            return False
        stopped = stream is None or stream.stop(TEARDOWN_TIMEOUT_S)
        self._control.wake = -1
        if stream is None or not stream.in_callback:
            self.event.close()
        else:
            abandoned_captures.append(self)
        return stopped

    def _finish(self, error: Exception | None = None, /) -> None:
        self.error, self.finished = error, True
        self.event.set()


abandoned_captures: list[Capture] = []
"""Captures whose memory a device's thread may still use; kept here so that it is not freed."""
