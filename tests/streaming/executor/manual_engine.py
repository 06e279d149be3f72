"""Test doubles under a test's control: an engine that runs a pulse on demand, and time that passes when all wait."""

import asyncio
import selectors
import threading
from collections.abc import Callable
from selectors import SelectorKey
from typing import Any

import anyio
import trio
from trio.testing import MockClock

from pulse.program.streams.state import State
from streaming.executor.executor_statistics import ExecutorStatistics
from streaming.executor.thread_engine import ThreadQueue


class HeldEngine:
    """Runs pulses only in ``run``, in turn, in the thread of the test."""

    def __init__(self) -> None:
        self.realtime_settings = []
        self.queues = []
        self.started = self.stopped = 0
        self._changed = threading.Condition()

    def start(self) -> None:
        self.started += 1

    def open(self, state: State, depth: int) -> ThreadQueue:
        queue = ThreadQueue(state, depth, self._changed, self.queues)
        self.queues.append(queue)
        return queue

    async def stop(self) -> None:
        assert not self.queues, "queues are open"
        self.stopped += 1

    @property
    def waiting_pulses(self) -> int:
        """The number of pulses that are ready to run."""
        return sum(queue.waiting_pulses for queue in self.queues)

    def run(self, count: int) -> None:
        """Run this many pulses of each stream."""
        for _ in range(count):
            for queue in list(self.queues):
                queue.run_next()


class HeldLoop(asyncio.SelectorEventLoop):
    """An asyncio loop whose time passes only while all tasks wait, and then at once."""

    def __init__(self) -> None:
        self._now_s = 1000.0
        super().__init__(_Jumping(self))

    def time(self) -> float:
        return self._now_s

    def pass_s(self, seconds: float) -> None:
        self._now_s += seconds


class _Jumping(selectors.DefaultSelector):
    def __init__(self, loop: HeldLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            return super().select(10)
        self._loop.pass_s(timeout)
        return []


def run_held(
    backend: str, function: Callable[..., Any], *args: Any
) -> ExecutorStatistics | tuple[Any, ...] | None:
    """Run a coroutine function on a clock that jumps."""
    if backend == "trio":  # anyio before 4.14 does not give trio a clock
        return trio.run(function, *args, clock=MockClock(autojump_threshold=0))
    return anyio.run(function, *args, backend=backend, backend_options={"loop_factory": HeldLoop})
