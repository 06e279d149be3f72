"""The real-time settings that a stream requests of the system, and those that the system grants."""

import os

from pulse.errors import InputError
from pulse.support.record import record
from pulse.support.wording import spell

MIN_PRIORITY, MAX_PRIORITY = 1, 99
"""Priorities of SCHED_FIFO on Linux."""
MIN_SWITCH_S = 1e-6
"""A shorter switch interval is an error: Python counts whole microseconds."""


@record
class Realtime:
    """Requests to the system; None or False leaves a setting as it is.

    priority           1 to 99: SCHED_FIFO of the engine's thread, else as near to it as the rights allow
    lock_memory        keep touched pages in memory, until the end
    cpu                the only CPU of the engine's thread, 0 is the first
    freeze_gc          collect garbage, then exclude all present objects from later collections, until the end
    switch_interval_s  seconds after which Python threads take turns, until the end; useful only if an engine runs
                       in Python
    Raises             InputError: a priority, CPU or interval that does not exist
    """

    priority: int | None = 70
    lock_memory: bool = True
    cpu: int | None = None
    freeze_gc: bool = True
    switch_interval_s: float | None = None

    def __post_init__(self) -> None:
        if self.priority is not None and not MIN_PRIORITY <= self.priority <= MAX_PRIORITY:
            raise InputError(
                f"priority {self.priority}: give {MIN_PRIORITY} to {MAX_PRIORITY}, or None for no priority"
            )
        if self.cpu is not None and not 0 <= self.cpu < cpu_count():
            raise InputError(
                f"{spell('cpu', self.cpu)}: this machine has CPUs 0 to {cpu_count() - 1}; omit it for all of them"
            )
        if self.switch_interval_s is not None and not self.switch_interval_s >= MIN_SWITCH_S:
            raise InputError(
                f"switch_interval_s {self.switch_interval_s:g}: give at least {MIN_SWITCH_S:g}, or None for Python's"
            )


UNCHANGED = Realtime(priority=None, lock_memory=False, freeze_gc=False)
"""Requests nothing."""


@record
class RealtimeSetting:
    """A setting that was requested from the system.

    name       ``priority``, ``cpu``, ``memory``, ``collector``, ``switch interval``
    requested  the value that was requested
    granted    the value in force, in the same terms
    reason     why they differ and what to do; None if they are the same
    """

    name: str
    requested: str
    granted: str
    reason: str | None = None

    @property
    def is_granted(self) -> bool:
        """Whether the system granted the request."""
        return self.granted == self.requested

    def __str__(self) -> str:
        if self.is_granted:
            return f"{self.name}: {self.granted}"
        return f"{self.name}: {self.granted} instead of {self.requested}: {self.reason}"


def cpu_count() -> int:
    """Return the CPUs of this machine, including those that this process may not use."""
    if "SC_NPROCESSORS_CONF" in getattr(os, "sysconf_names", {}):
        return os.sysconf("SC_NPROCESSORS_CONF")
    return os.cpu_count() or 1
