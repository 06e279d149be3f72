"""Host: what a live run needs of PortAudio, a file, or a test in their place."""

from dataclasses import replace
from typing import Protocol

from pulse.support.record import record
from streaming.hosts.devices import Kind


@record
class Endpoint:
    """One direction of one device.

    name         as reports show it
    index        what the host calls it; None if it has no number. Those of one index have one clock
    channels     that it has
    rate_hz      its default sample rate
    """

    name: str
    index: int | None
    channels: int
    rate_hz: int


class Finished(Protocol):
    """A device has ended by itself, perhaps by an error."""

    def __call__(self, error: Exception | None = None, /) -> None: ...


@record
class StreamRequest:
    """A stream to be opened: the C callback and its user data, as addresses, and what it is to be called with.

    source, target            devices; None for a direction that is not wanted
    channels_in, channels_out  of the blocks
    rate_hz                   of both
    block_frames              of a block; 0 lets the device choose
    latency                   ``low``, ``high`` or seconds
    finished                  called when the device ends by itself, with what went wrong if that is known, from any
                              thread
    delay_frames              by how much later a sample is played, for hosts that end: they play this much more
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
        """The request without its output."""
        return replace(self, target=None, channels_out=0)

    def only_target(self) -> "StreamRequest":
        """The request without its input."""
        return replace(self, source=None, channels_in=0)


class OpenStream(Protocol):
    """A stream of a device that is open."""

    note: str | None
    """What is not as it should be, such as a callback that goes through Python."""
    input_latency_s: float
    output_latency_s: float

    @property
    def in_callback(self) -> bool:
        """Whether a callback has not returned though the stream was stopped: it may still use what it was given."""
        ...

    def start(self) -> None:
        """Let the callbacks begin. Raises DeviceError."""
        ...

    def stop(self, limit_s: float) -> bool:
        """End the callbacks and give the device back; False if that takes longer than the limit."""
        ...


class Host(Protocol):
    """A source of devices.

    virtual_clock  whether time passes only when a test advances it: then there are no threads, and the host is a
                   ``live.virtual_clock.VirtualClockHost``
    is_finite      whether its sound has an end: then a device that ends is the normal end of the run
    """

    virtual_clock: bool
    is_finite: bool

    def choose(self, kind: Kind, wanted: str | int | None) -> Endpoint:
        """A device for ``input`` or ``output``, by number or a part of its name; the default device where None.

        Raises DeviceError, InputError
        """
        ...

    def open(self, request: StreamRequest) -> OpenStream:
        """Open a stream. Raises DeviceError."""
        ...

    def refresh(self) -> bool:
        """Search for devices again, before a stream is reopened; False if no stream can be opened any more."""
        ...
