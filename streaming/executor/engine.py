"""Engines: what runs the pulses of an executor's streams in one thread of its own; the one in Python."""

import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from pulse.facts import Array
from pulse.program.program import Feed, Program, State
from streaming.executor.worker import Worker
from streaming.native.events import Event
from streaming.realtime import Measure, Realtime


class Result(NamedTuple):
    """A pulse that has run: output name -> array, valid until the next; and when, by ``time.monotonic_ns``."""

    outputs: Mapping[str, Array]
    started_ns: int
    ended_ns: int


class Slots(Protocol):
    """The place of one stream in an engine: room for so many pulses, which come out in the order they went in.

    event    set when a pulse has run after ``listen``, and when one fails
    failure  why no more pulses will come; None where all is well
    free     pulses for which there is room
    """

    event: Event

    @property
    def failure(self) -> Exception | None: ...

    @property
    def free(self) -> int: ...

    def submit(self, pulse: Feed) -> None:
        """Have a checked pulse run; its arrays are copied. There must be room."""
        ...

    def drop(self) -> int | None:
        """Take back the oldest pulse that is not begun.

        returns  its place among those that were submitted and not collected; None where all are begun
        """
        ...

    def ready(self) -> int:
        """How many pulses can be collected."""
        ...

    def listen(self) -> int:
        """The same; have ``event`` set when there is one more."""
        ...

    def clear(self) -> None:
        """Take back that ``event`` is set."""
        ...

    def collect(self, count: int) -> Iterator[Result]:
        """The oldest pulses that are ready; the place of each is free when the next is asked for."""
        ...

    def end(self, rest: Feed) -> list[dict[str, Array]]:
        """What ``State.end`` gives, to be submitted; all before must have been collected. Raises InputError."""
        ...

    def close(self) -> None:
        """Forget all; a pulse that runs is not waited for."""
        ...


class Engine(Protocol):
    """Runs pulses of any number of streams, one of each in turn, in one thread."""

    @property
    def measures(self) -> list[Measure]:
        """What its thread had of what it wished."""
        ...

    def start(self) -> None:
        """Begin; all is compiled then."""
        ...

    def open(self, state: State, depth: int) -> Slots:
        """Room for ``depth`` pulses of a new stream."""
        ...

    async def stop(self) -> None:
        """End the thread, after the pulse that it runs. All slots must be closed. Raises ExecutorError."""
        ...


class ThreadEngine:
    """For programs of any backend: a thread that calls ``State.advance``. It needs the GIL as all of Python does."""

    def __init__(self, realtime: Realtime | None = None) -> None:
        self._changed = threading.Condition()
        self._all: list[ThreadSlots] = []
        self._ends = False
        self._worker = Worker(self._work, self._end, realtime)

    @property
    def measures(self) -> list[Measure]:
        return self._worker.measures

    def start(self) -> None:
        self._worker.start()

    def open(self, state: State, depth: int) -> "ThreadSlots":
        slots = ThreadSlots(state, depth, self._changed, self._all)
        with self._changed:
            self._all.append(slots)
        return slots

    async def stop(self) -> None:
        await self._worker.stop()

    def _end(self) -> None:
        with self._changed:
            self._ends = True
            self._changed.notify()

    def _work(self) -> None:
        while not self._ends:
            with self._changed:
                turn = list(self._all)
                if not any(slots.waits for slots in turn) and not self._ends:
                    self._changed.wait()
            for slots in turn:
                slots.run_next()


class ThreadSlots:
    """Slots of a ``ThreadEngine``; the condition guards all but ``state``, which belongs to whoever runs a pulse."""

    def __init__(
        self, state: State, depth: int, changed: threading.Condition, everyone: "list[ThreadSlots]"
    ) -> None:
        self.event = Event()
        self.failure: Exception | None = None
        self._state = state
        self._depth = depth
        self._changed = changed
        self._everyone = everyone
        self._waiting: deque[dict[str, Array]] = deque()
        self._done: deque[Result] = deque()
        self._under_way = 0
        self._listening = False

    @property
    def waits(self) -> bool:
        """Whether a pulse is to run."""
        return bool(self._waiting)

    @property
    def free(self) -> int:
        return self._depth - self._under_way

    def submit(self, pulse: Feed) -> None:
        copied = {name: array.copy() for name, array in pulse.items()}
        with self._changed:
            self._under_way += 1
            self._waiting.append(copied)
            self._changed.notify()

    def drop(self) -> int | None:
        with self._changed:
            if not self._waiting:
                return None
            place = self._under_way - len(self._waiting)
            self._waiting.popleft()
            self._under_way -= 1
        return place

    def ready(self) -> int:
        return len(self._done)

    def listen(self) -> int:
        with self._changed:
            self._listening = True
            return len(self._done)

    def clear(self) -> None:
        self.event.clear()

    def collect(self, count: int) -> Iterator[Result]:
        for _ in range(count):
            yield self._done.popleft()
            with self._changed:
                self._under_way -= 1

    def end(self, rest: Feed) -> list[dict[str, Array]]:
        return self._state.end(rest)

    def close(self) -> None:
        with self._changed:
            self._waiting.clear()
            self._listening = False
            self._everyone.remove(self)
            self.event.close()

    def run_next(self) -> None:
        """Run the oldest pulse that waits, if there is one; in the engine's thread."""
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
                self._done.append(result)
            if self._listening or result is None:
                self._listening = False
                self.event.set()


def engine_for(program: Program, realtime: Realtime | None) -> Engine:
    """The engine of a program's backend."""
    if program.backend == "numba":
        from streaming.executor.native_engine import NativeEngine

        return NativeEngine(realtime)
    return ThreadEngine(realtime)
