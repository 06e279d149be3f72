"""Settings of the whole process that streams change while they run."""

import gc
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager

from streaming.realtime.locked_memory import lock_all, unlock_all
from streaming.realtime.realtime_settings import Realtime, RealtimeSetting


@contextmanager
def apply_to_process(options: Realtime) -> Generator[list[RealtimeSetting]]:
    """Set the switch interval, freeze the collector and lock memory while a stream runs.

    Enter it when all is loaded, compiled and touched.

    Streams may run concurrently: each repeats it for what is new since, and the last one to end undoes it. Objects that
    the application froze itself are then collected again, too, since Python does not tell them apart.

    Yields  one setting for each request that concerns the process
    """
    with ExitStack() as until_the_end:
        settings: list[RealtimeSetting] = []
        if options.switch_interval_s is not None:
            settings.append(until_the_end.enter_context(_switching.hold(options.switch_interval_s)))
        if options.freeze_gc:
            settings.append(until_the_end.enter_context(_collector.hold()))
        if options.lock_memory:
            settings.append(until_the_end.enter_context(_memory.hold()))
        yield settings


class _Shared:
    """A setting of the process that streams share.

    make  applies it, once for each stream; returns the reason if it cannot
    undo  undoes it, when the last stream ends
    """

    def __init__(
        self,
        name: str,
        active_state: str,
        inactive_state: str,
        make: Callable[[], str | None],
        undo: Callable[[], None],
    ) -> None:
        self._name, self._active_state, self._inactive_state = name, active_state, inactive_state
        self._make, self._undo = make, undo
        self._lock = threading.Lock()
        self._holders = 0

    @contextmanager
    def hold(self) -> Generator[RealtimeSetting]:
        """Apply the setting, and undo it at the end."""
        with self._lock:
            reason = self._make()
            self._holders += reason is None
        if reason is not None:
            yield RealtimeSetting(self._name, self._active_state, self._inactive_state, reason)
            return
        try:
            yield RealtimeSetting(self._name, self._active_state, self._active_state)
        finally:
            with self._lock:
                self._holders -= 1
                if not self._holders:
                    self._undo()


class _SwitchInterval:
    """The switch interval of Python's threads: the shortest that a running stream requests."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._before_s = 0.0
        self._requested_s: list[float] = []

    @contextmanager
    def hold(self, interval_s: float) -> Generator[RealtimeSetting]:
        """Set the interval, and restore it at the end."""
        with self._lock:
            if not self._requested_s:
                self._before_s = sys.getswitchinterval()
            self._requested_s.append(interval_s)
            shortest_s = self._set()
        reason = None if shortest_s == interval_s else "another stream of this process requests it"
        try:
            yield RealtimeSetting(
                "switch interval", _milliseconds(interval_s), _milliseconds(shortest_s), reason
            )
        finally:
            with self._lock:
                self._requested_s.remove(interval_s)
                self._set()

    def _set(self) -> float:
        shortest_s = min(self._requested_s, default=self._before_s)
        sys.setswitchinterval(shortest_s)
        return shortest_s


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:g} ms"


def _freeze() -> None:
    gc.collect()
    gc.freeze()


_collector = _Shared("collector", "frozen", "running", _freeze, gc.unfreeze)
_memory = _Shared("memory", "locked", "not locked", lock_all, unlock_all)
_switching = _SwitchInterval()
