"""Hosts that hold the clock: nothing gets a thread, time passes when a test says so."""

from collections.abc import Callable
from typing import Protocol, TypeGuard

from streaming.hosts.host import Host
from streaming.live.line import Line


class HeldHost(Host, Protocol):
    """One that holds the clock, and does what threads do elsewhere."""

    def now_ns(self) -> int:
        """What time it is."""
        ...

    def attend(self, line: Line, look: Callable[[], None]) -> None:
        """From now on compute the pulses of a line as they come, and call ``look`` as often as a supervisor does."""
        ...

    def leave(self, line: Line) -> None:
        """Do so no more."""
        ...


def is_held(host: Host) -> TypeGuard[HeldHost]:
    """Whether a host holds the clock."""
    return host.held
