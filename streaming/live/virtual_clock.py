"""Virtual clock: what a live run needs of a host whose time a test advances."""

from collections.abc import Callable
from typing import Protocol, TypeGuard

from streaming.hosts.host import DeviceStream, Host
from streaming.live.pipeline import Pipeline


class VirtualClockHost(Host, Protocol):
    """A host with a virtual clock; it does the work that threads do for other hosts.

    compute_s  duration of a pulse on the virtual clock
    """

    compute_s: float

    def now_ns(self) -> int:
        """Return the time in ns."""
        ...

    def set_ns(self, ns: int) -> None:
        """Set the time, without running the events that are due in between."""
        ...

    def record_close(self, stream: DeviceStream, took_s: float) -> None:
        """Record that a stream was closed, and how long that took."""
        ...

    def attach(self, pipeline: Pipeline, look: Callable[[], None]) -> None:
        """Compute each pulse of a pipeline, and call ``look`` at the interval of a supervisor."""
        ...

    def detach(self, pipeline: Pipeline) -> None:
        """Stop computing the pulses of a pipeline."""
        ...


def has_virtual_clock(host: Host) -> TypeGuard[VirtualClockHost]:
    """Return whether a host has a virtual clock, and the methods that go with it."""
    return host.virtual_clock
