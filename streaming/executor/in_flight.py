"""The pulses of a stream in flight: submitted, but not yet taken."""

import time
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice, takewhile
from math import inf
from typing import NamedTuple

from pulse.facts import Array
from pulse.program.streams.feeds import Feed
from streaming.executor.engine import PulseQueue
from streaming.executor.executor_statistics import StreamCounters


class Arrival(NamedTuple):
    """The times of a pulse.

    at_ns   the arrival time of its last sample, by ``time.monotonic_ns``
    due_s   the time after which its outputs are late, by the loop's clock
    frames  its frames of the symbol; the last pulse may have fewer than others
    """

    at_ns: int
    due_s: float
    frames: int


class InFlight:
    """The submitted pulses with their arrival times, oldest first; counts results and losses.

    Silence may be returned for the oldest pulses. Those are *owed*: their results are discarded when they arrive.
    """

    def __init__(self, queue: PulseQueue, counters: StreamCounters) -> None:
        self._queue = queue
        self._counters = counters
        self._arrivals: deque[Arrival] = deque()
        self._owed = 0

    def __len__(self) -> int:
        return len(self._arrivals)

    @property
    def frames(self) -> int:
        """The frames of the symbol for which nothing was returned yet."""
        return sum(arrival.frames for arrival in self._waiting_arrivals())

    @property
    def due_s(self) -> float:
        """The time after which the oldest pulse that is not owed is late, by the loop's clock."""
        return next((arrival.due_s for arrival in self._waiting_arrivals()), inf)

    def submit(self, pulse: Feed, arrival: Arrival) -> None:
        """Submit a pulse; the queue must not be full."""
        self._queue.submit(pulse)
        self._arrivals.append(arrival)

    def drop(self) -> bool:
        """Discard the oldest pulse that has not started. Returns whether there was one."""
        queue_index = self._queue.drop()
        if queue_index is not None:
            del self._arrivals[queue_index]
        return queue_index is not None

    def count_ready(self) -> tuple[int, int]:
        """Return the number of finished pulses, and the number of them whose results are not discarded."""
        count = self._queue.count_ready()
        return count, max(0, count - self._owed)

    def collect(self, count: int) -> Iterator[Mapping[str, Array]]:
        """Collect ``count`` finished pulses; yield the results that are not discarded, each valid until the next."""
        now_ns = time.monotonic_ns()
        for result in self._queue.collect(count):
            arrival = self._arrivals.popleft()
            self._counters.record(arrival.at_ns, result.started_ns, result.ended_ns, now_ns)
            if self._owed:
                self._owed -= 1
            else:
                self._counters.frames_out += arrival.frames
                yield result.outputs

    def count_late(self, now_s: float) -> int:
        """Return the number of pulses that wait for results and are due."""
        return sum(1 for _ in takewhile(lambda arrival: arrival.due_s <= now_s, self._waiting_arrivals()))

    def add_silence(self, count: int) -> None:
        """Count silence as the result of the oldest pulses that are not owed."""
        frames = sum(arrival.frames for arrival in islice(self._waiting_arrivals(), count))
        self._counters.frames_silent += frames
        self._counters.frames_out += frames
        self._owed += count

    def clear(self) -> None:
        """Discard all pulses."""
        self._arrivals.clear()

    def _waiting_arrivals(self) -> Iterator[Arrival]:
        return islice(self._arrivals, self._owed, None)
