"""The engine in Python: a thread that runs programs of any backend."""

import threading
import time
from collections import deque
from collections.abc import Iterator

from pulse.facts import Array
from pulse.jit.events import NativeEvent
from pulse.program.streams.feeds import Feed
from pulse.program.streams.state import State
from pulse.support.not_copyable import NotCopyable
from streaming.executor.engine import Result
from streaming.executor.engine_thread import EngineThread
from streaming.realtime import Realtime, RealtimeSetting


class ThreadEngine(NotCopyable, reason="it has a thread; make another one"):
    """The engine for programs of any backend: a thread that calls ``State.advance``, for which it needs the GIL."""

    def __init__(self, realtime: Realtime | None = None) -> None:
        self._changed = threading.Condition()
        self._queues: list[ThreadQueue] = []
        self._ends = False
        self._worker = EngineThread(self._work, self._end, realtime)

    @property
    def realtime_settings(self) -> list[RealtimeSetting]:
        return self._worker.realtime_settings

    def start(self) -> None:
        self._worker.start()

    def open(self, state: State, depth: int) -> "ThreadQueue":
        queue = ThreadQueue(state, depth, self._changed, self._queues)
        with self._changed:
            self._queues.append(queue)
        return queue

    async def stop(self) -> None:
        await self._worker.stop()

    def _end(self) -> None:
        with self._changed:
            self._ends = True
            self._changed.notify()

    def _work(self) -> None:
        while not self._ends:
            with self._changed:
                queues = list(self._queues)
                if not any(queue.waiting_pulses for queue in queues) and not self._ends:
                    self._changed.wait()
            for queue in queues:
                queue.run_next()


class ThreadQueue(NotCopyable, reason="it belongs to one engine; make another one"):
    """The queue of a stream in a ``ThreadEngine``.

    The condition guards all but ``state``, which belongs to the engine's thread.
    """

    def __init__(
        self, state: State, depth: int, changed: threading.Condition, queues: "list[ThreadQueue]"
    ) -> None:
        self.event = NativeEvent()
        self.failure: Exception | None = None
        self._state = state
        self._depth = depth
        self._changed = changed
        self._queues = queues
        self._waiting: deque[dict[str, Array]] = deque()
        self._results: deque[Result] = deque()
        self._in_flight = 0
        self._listening = False

    @property
    def waiting_pulses(self) -> int:
        """The number of pulses to run."""
        return len(self._waiting)

    @property
    def free_slots(self) -> int:
        return self._depth - self._in_flight

    def submit(self, pulse: Feed) -> None:
        copies = {name: array.copy() for name, array in pulse.items()}
        with self._changed:
            self._in_flight += 1
            if self.failure is None:
                self._waiting.append(copies)
                self._changed.notify()

    def drop(self) -> int | None:
        with self._changed:
            if not self._waiting:
                return None
            queue_index = self._in_flight - len(self._waiting)
            self._waiting.popleft()
            self._in_flight -= 1
        return queue_index

    def count_ready(self) -> int:
        return len(self._results)

    def listen(self) -> int:
        with self._changed:
            self._listening = True
            return len(self._results)

    def clear(self) -> None:
        self.event.wait()

    def collect(self, count: int) -> Iterator[Result]:
        for _ in range(count):
            yield self._results.popleft()
            with self._changed:
                self._in_flight -= 1

    def end(self, rest: Feed) -> list[dict[str, Array]]:
        return self._state.end(rest, complete=True)

    def close(self) -> None:
        with self._changed:
            self._waiting.clear()
            self._listening = False
            self._queues.remove(self)
            self.event.close()

    def run_next(self) -> None:
        """Run the oldest waiting pulse, if there is one; called in the engine's thread."""
        with self._changed:
            if not self._waiting:
                return
            pulse = self._waiting.popleft()
        started_ns = time.monotonic_ns()
        try:
            result: Result | None = Result(self._state.advance(pulse), started_ns, time.monotonic_ns())
        except Exception as error:
            result, self.failure = None, error
        with self._changed:
            if result is None:
                self._waiting.clear()
            else:
                self._results.append(result)
            if self._listening or result is None:
                self._listening = False
                self.event.set()
