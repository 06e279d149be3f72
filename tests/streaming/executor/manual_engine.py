"""Test doubles under a test's control: an engine that runs a pulse on demand, and time that passes when all wait."""

import asyncio
import selectors
import threading

import anyio
import trio
from trio.testing import MockClock

from streaming.executor.thread_engine import ThreadSlots


class HeldEngine:
    """Runs pulses only in ``run``, in turn, in the thread of the test."""

    def __init__(self):
        self.realtime_settings = []
        self.everyone = []
        self.started = self.stopped = 0
        self._changed = threading.Condition()

    def start(self):
        self.started += 1

    def open(self, state, depth):
        slots = ThreadSlots(state, depth, self._changed, self.everyone)
        self.everyone.append(slots)
        return slots

    async def stop(self):
        assert not self.everyone, "slots are open"
        self.stopped += 1

    @property
    def waiting_pulses(self):
        """Pulses that could run."""
        return sum(slots.waiting_pulses for slots in self.everyone)

    def run(self, count):
        """Run so many pulses of each stream."""
        for _ in range(count):
            for slots in list(self.everyone):
                slots.run_next()


class HeldLoop(asyncio.SelectorEventLoop):
    """An asyncio loop whose time passes only while all tasks wait, and then at once."""

    def __init__(self):
        self._now_s = 1000.0
        super().__init__(_Jumping(self))

    def time(self):
        return self._now_s

    def pass_s(self, seconds):
        self._now_s += seconds


class _Jumping(selectors.DefaultSelector):
    def __init__(self, loop):
        super().__init__()
        self._loop = loop

    def select(self, timeout=None):
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            return super().select(10)
        self._loop.pass_s(timeout)
        return []


def run_held(backend, function, *args):
    """Run a coroutine function on a clock that jumps."""
    if backend == "trio":  # anyio before 4.14 does not give trio a clock
        return trio.run(function, *args, clock=MockClock(autojump_threshold=0))
    return anyio.run(function, *args, backend=backend, backend_options={"loop_factory": HeldLoop})
