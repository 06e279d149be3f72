"""Microphone: an input device as a source of an executor."""

from collections.abc import AsyncGenerator

import anyio
import anyio.to_thread

from pulse.errors import InputError
from pulse.support.not_copyable import NotCopyable
from pulse.support.wording import count_of
from streaming.audio.channels import Samples
from streaming.errors import DeviceError, ExecutorError
from streaming.executor.sources import AsyncAudioSource
from streaming.hosts.host import Host
from streaming.hosts.portaudio.portaudio import PortAudio
from streaming.live.capture import Capture
from streaming.live.plan import MAX_DEVICE_CHANNELS


class Microphone(NotCopyable, AsyncAudioSource, reason="it has a device; open another one"):
    """Live audio from an input device.

    device        its number or a part of its name, see ``pulse devices``; the system's default if None
    rate_hz       the rate to open it at; its default if None. The executor resamples to the model's rate.
    channels      the number of channels to open; if None, two, or one if it has only one
    block_frames  device frames in a block; 0 lets the device choose
    latency       the latency to request: ``low``, ``high`` or seconds
    host          the audio system; PortAudio if None. A ``FileHost`` plays a file in place of a microphone.
    Raises        InputError, DeviceError: no such device; later DeviceError: it disappeared

    The device is open while a stream runs, and is released when the stream is closed or cancelled. Its compiled
    callback buffers about 4 s; frames that the executor does not take in time are lost, and counted in ``frames_lost``.
    """

    def __init__(
        self,
        device: str | int | None = None,
        rate_hz: int | None = None,
        channels: int | None = None,
        *,
        block_frames: int = 0,
        latency: str | float = "low",
        host: Host | None = None,
    ) -> None:
        self._host = PortAudio() if host is None else host
        self.device = self._host.choose("input", device)
        self.rate_hz = self.device.rate_hz if rate_hz is None else rate_hz
        self.channels = min(MAX_DEVICE_CHANNELS, self.device.channels) if channels is None else channels
        self.block_frames, self.latency = block_frames, latency
        if self.rate_hz < 1 or block_frames < 0 or not 1 <= self.channels <= self.device.channels:
            raise InputError(
                f"{self.device.name}: {count_of(self.channels, 'channel')} at {self.rate_hz} Hz in blocks of "
                f"{block_frames}; "
                f"give 1 to {count_of(self.device.channels, 'channel')}, a positive rate, and blocks of 0 or more "
                "frames"
            )
        self._capture: Capture | None = None
        self._open = False

    @property
    def frames_in(self) -> int:
        """The number of frames that the device has delivered to the last stream."""
        return 0 if self._capture is None else self._capture.frames_in

    @property
    def frames_lost(self) -> int:
        """The number of frames lost because earlier ones were not taken in time."""
        return 0 if self._capture is None else self._capture.frames_lost

    async def blocks(self) -> AsyncGenerator[Samples]:
        if self._open:
            raise ExecutorError(
                f"{self.device.name}: another stream already has it; make a Microphone for each"
            )
        capture = Capture(
            self._host, self.device, self.channels, self.rate_hz, self.block_frames, self.latency
        )
        self._capture, self._open = capture, True
        try:
            await anyio.to_thread.run_sync(capture.open)
            ended = False
            while not ended:
                ended, block = capture.finished, capture.read()
                if len(block):
                    yield block
                elif not ended:
                    await self._wait(capture)
            if capture.error is not None:
                raise capture.error
            if not self._host.is_finite:
                raise DeviceError(f"{self.device.name}: the device ended by itself; is it unplugged?")
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(capture.close)
            self._open = False

    async def _wait(self, capture: Capture) -> None:
        """Wait until there are frames to read. Raises DeviceError: the device makes no more calls."""
        limit_s = float("inf") if self._host.virtual_clock or self._host.is_finite else capture.limit_s
        with anyio.move_on_after(limit_s) as waiting:
            await anyio.wait_readable(capture.event.to_read)
        if waiting.cancelled_caught:
            raise DeviceError(
                f"{self.device.name}: the device has not called for {limit_s:g} s; is it unplugged, or its server down?"
            )
        capture.event.wait()
