"""Host: the interface of a live run to PortAudio, files or simulated devices."""

from dataclasses import replace
from typing import Protocol

from pulse.support.record import record
from streaming.hosts.devices import DeviceKind


@record
class Endpoint:
    """One direction of one device.

    name         its name in reports
    index        the host's number for it; None if it has none. Endpoints of the same index share a clock
    channels     the number of channels
    rate_hz      its default sample rate
    """

    name: str
    index: int | None
    channels: int
    rate_hz: int


class Finished(Protocol):
    """Called when a device has ended by itself, perhaps with an error."""

    def __call__(self, error: Exception | None = None, /) -> None: ...


@record
class StreamRequest:
    """A stream to open: the addresses of the C callback and its user data, and the arguments that it expects.

    callback_address, user_address  addresses of the C callback and of its user data
    source, target            devices; None for an unused direction
    channels_in, channels_out  the channels of the blocks
    rate_hz                   the rate of both
    block_frames              frames of a block; 0 lets the device choose
    latency                   ``low``, ``high`` or seconds
    finished                  called when the device ends by itself, with the error if known, in any thread
    delay_frames              the delay of playback, for hosts whose input ends: they play this much more
    """

    callback_address: int
    user_address: int
    source: Endpoint | None
    target: Endpoint | None
    channels_in: int
    channels_out: int
    rate_hz: int
    block_frames: int
    latency: str | float
    finished: Finished
    delay_frames: int = 0

    def only_source(self) -> "StreamRequest":
        """Return the request without its output."""
        return replace(self, target=None, channels_out=0)

    def only_target(self) -> "StreamRequest":
        """Return the request without its input."""
        return replace(self, source=None, channels_in=0)


class DeviceStream(Protocol):
    """An open stream of a device.

    note  A remark about the stream, such as that its callback goes through Python
    """

    note: str | None
    input_latency_s: float
    output_latency_s: float

    @property
    def in_callback(self) -> bool:
        """Whether a callback has not returned though the stream was stopped: it may still use its user data."""
        ...

    def start(self) -> None:
        """Start the callbacks. Raises DeviceError: the device does not start."""
        ...

    def stop(self, limit_s: float) -> bool:
        """Stop the callbacks and release the device. Returns False if that takes longer than the limit."""
        ...


class Host(Protocol):
    """A source of devices.

    virtual_clock  whether time passes only when a test advances it: then there are no threads, and the host is a
                   ``live.virtual_clock.VirtualClockHost``
    is_finite      whether its sound has an end: then a device that ends is the normal end of the run
    """

    virtual_clock: bool
    is_finite: bool

    def choose(self, kind: DeviceKind, requested: str | int | None) -> Endpoint:
        """Find a device for ``input`` or ``output``, by number or a part of its name; the default device if None.

        Raises DeviceError: the devices cannot be listed; InputError: there is no such device
        """
        ...

    def open(self, request: StreamRequest) -> DeviceStream:
        """Open a stream. Raises DeviceError: the device cannot be opened."""
        ...

    def refresh(self) -> bool:
        """Search for devices again, before a stream is reopened. Returns False if streams can no longer be opened."""
        ...
