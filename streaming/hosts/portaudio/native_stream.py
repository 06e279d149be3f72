"""A PortAudio stream whose callback is compiled: no Python between the device and the pipeline."""

import ctypes
import time
from ctypes import c_void_p

from pulse.support.not_copyable import NotCopyable
from streaming.errors import DeviceError
from streaming.hosts.host import StreamRequest
from streaming.hosts.portaudio.stream_spec import StreamSide, StreamSpec
from streaming.hosts.portaudio.system import AudioSystem
from streaming.native.gate import Gate, stream_callback

_FINISHED = ctypes.CFUNCTYPE(None, c_void_p)
_given_up: list["NativeStream"] = []
"""Streams that could not be closed. Calls of their devices, should they return, are ignored."""


class NativeStream(NotCopyable, reason="it has a device; open another one"):
    """An open stream; see ``host.DeviceStream``. Raises DeviceError: the device cannot be opened."""

    note: str | None = None
    in_callback = False

    def __init__(self, system: AudioSystem, request: StreamRequest, sides: tuple[StreamSide, ...]) -> None:
        self._system = system
        self._title = " and ".join(dict.fromkeys(side.device.title for side in sides))
        self._gate = Gate(request.callback_address, request.user_address, request.channels_out)
        self._spec = StreamSpec(
            sides, request.rate_hz, request.block_frames, stream_callback.address, self._gate.address
        )
        self._on_jack = system.uses_jack(self._spec)
        self._finished_callback = request.finished
        self._started = self._stopping = self._finished = self.closed = False
        self._handle = system.open(self._spec)
        self._ended = _FINISHED(self._end)
        system.library.SetStreamFinishedCallback(self._handle, ctypes.cast(self._ended, c_void_p))
        info = system.library.GetStreamInfo(self._handle).contents
        self.input_latency_s: float = info.input_s
        self.output_latency_s: float = info.output_s

    def _end(self, user: int | None) -> None:
        self._finished = True
        if not self._stopping:
            self._finished_callback()

    def start(self) -> None:
        """Start the callbacks. Raises DeviceError: the device does not start."""
        reason = self._system.start(self._handle)
        if reason is not None:
            raise DeviceError(f"{self._title}: does not start ({reason}); is its sound server still running?")
        self._started = True

    @property
    def active(self) -> bool:
        """Whether the device reports that it runs."""
        return not self.closed and self._system.library.IsStreamActive(self._handle) == 1

    @property
    def is_lost(self) -> bool:
        """Whether the device has ended the stream by itself: unplugged, or its server has gone."""
        has_finished = self._finished or not self.active  # PortAudio reports one slightly before the other
        return self._started and not self._stopping and not self._gate.has_ended and has_finished

    def stop(self, limit_s: float) -> bool:
        """Stop the callbacks and release the device, once.

        Returns False if that takes longer than the limit, or would hang: the device is then left as it is. On return,
        no new callback enters the pipeline; if one has not returned (``in_callback``), the result is False, too.
        """
        if self.closed:
            return True
        until = time.monotonic() + limit_s
        dead = self._on_jack and self.is_lost and not self._finished
        self._stopping = self.closed = True
        if self._system.is_inherited:
            return False
        clean = not dead and self._give_back(until)
        self.in_callback = not self._gate.shut(until - time.monotonic())
        clean = clean and not self.in_callback
        if not clean:
            _given_up.append(self)
        self._system.release_stream(clean)
        return clean

    def _give_back(self, until: float) -> bool:
        if self._started and not self._system.stop(self._handle, until - time.monotonic()):
            return False
        return self._system.close(self._handle, self._on_jack, max(until - time.monotonic(), 0.0))
