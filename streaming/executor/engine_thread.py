"""The one thread of an engine."""

import threading
from collections.abc import Callable

import anyio

from pulse.jit.events import NativeEvent
from pulse.support.not_copyable import NotCopyable
from streaming.errors import ExecutorError
from streaming.realtime import Realtime, RealtimeSetting, apply_to_thread

END_TIMEOUT_S = 10.0
"""The seconds that the engine may take to end, which it does after its current pulse."""


class EngineThread(NotCopyable, reason="it has a thread; make another one"):
    """A thread that runs from ``start`` to ``stop``.

    body      the function it runs, which returns once the end is requested
    end       a function that requests the end
    realtime  the real-time settings that the thread requests
    realtime_settings  the settings requested, each with what the system granted, known once the thread has started
    """

    def __init__(self, body: Callable[[], None], end: Callable[[], None], realtime: Realtime | None) -> None:
        self._body = body
        self._end = end
        self._realtime = realtime
        self.realtime_settings: list[RealtimeSetting] = []
        self._started = threading.Event()
        self._ended = NativeEvent()
        self._thread = threading.Thread(target=self._run, name="pulse engine", daemon=True)

    def start(self) -> None:
        """Start the thread; returns when it runs."""
        self._thread.start()
        self._started.wait()

    async def stop(self, limit_s: float = END_TIMEOUT_S) -> None:
        """Request the end and wait for it, even if the task is cancelled. Raises ExecutorError: it does not end."""
        self._end()
        with anyio.move_on_after(limit_s, shield=True) as limit:
            await anyio.wait_readable(self._ended.to_read)
        if limit.cancelled_caught:
            raise ExecutorError(
                f"the engine has not ended within {limit_s:g} s: a pulse hangs or takes longer than that; its thread "
                "and memory stay until the process ends"
            )
        self._thread.join()
        self._ended.close()

    def _run(self) -> None:
        try:
            if self._realtime is not None:
                self.realtime_settings = apply_to_thread(self._realtime)
            self._started.set()
            self._body()
        finally:
            self._started.set()
            self._ended.set()
