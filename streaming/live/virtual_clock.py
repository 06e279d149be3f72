"""Hosts that hold the clock: nothing gets a thread, time passes when a test says so."""

from collections.abc import Callable
from typing import Protocol, TypeGuard

from streaming.hosts.host import Host
from streaming.live.pipeline import Pipeline


class VirtualClockHost(Host, Protocol):
    """One that holds the clock, and does what threads do elsewhere."""

    def now_ns(self) -> int:
        """What time it is."""
        ...

    def attach(self, pipeline: Pipeline, look: Callable[[], None]) -> None:
        """Compute the pulses of a pipeline as they come, and call ``look`` as often as a supervisor does."""
        ...

    def detach(self, pipeline: Pipeline) -> None:
        """Do so no more."""
        ...


def has_virtual_clock(host: Host) -> TypeGuard[VirtualClockHost]:
    """Whether a host holds the clock."""
    return host.virtual_clock
