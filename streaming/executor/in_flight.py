"""The pulses of a stream that are in flight: submitted, and not taken yet."""

import time
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice, takewhile
from math import inf
from typing import NamedTuple

from pulse.facts import Array
from pulse.program.streams.feeds import Feed
from streaming.executor.engine import Slots
from streaming.executor.statistics import StreamCounters


class Arrival(NamedTuple):
    """A pulse, as far as time is concerned.

    at_ns   when its last sample was there, by ``time.monotonic_ns``
    due_s   when its outputs are late, by the loop's clock
    frames  of the symbol that it holds; the last one may hold fewer than others
    """

    at_ns: int
    due_s: float
    frames: int


class InFlight:
    """Pulses in slots with their times of arrival, the oldest first; counts results and losses.

    Silence may be given for the oldest ones. They are *owed* then: their results are thrown away when they come.
    """

    def __init__(self, slots: Slots, counters: StreamCounters) -> None:
        self._slots = slots
        self._counters = counters
        self._arrivals: deque[Arrival] = deque()
        self._owed = 0

    def __len__(self) -> int:
        return len(self._arrivals)

    @property
    def frames(self) -> int:
        """Frames of the symbol for which nothing was given yet."""
        return sum(arrival.frames for arrival in self._waiting_arrivals())

    @property
    def due_s(self) -> float:
        """When the oldest that is wanted is late, by the loop's clock."""
        return next((arrival.due_s for arrival in self._waiting_arrivals()), inf)

    def submit(self, pulse: Feed, arrival: Arrival) -> None:
        """Have a pulse run; there must be space."""
        self._slots.submit(pulse)
        self._arrivals.append(arrival)

    def drop(self) -> bool:
        """Discard the oldest pulse that has not begun; gives whether there was one."""
        place = self._slots.drop()
        if place is not None:
            del self._arrivals[place]
        return place is not None

    def ready(self) -> tuple[int, int]:
        """The number of pulses that have run, and the number of them whose results are wanted."""
        count = self._slots.ready()
        return count, max(0, count - self._owed)

    def results(self, count: int) -> Iterator[Mapping[str, Array]]:
        """Collect ``count`` finished pulses; yield the results that are wanted, each valid until the next."""
        now_ns = time.monotonic_ns()
        for result in self._slots.collect(count):
            arrival = self._arrivals.popleft()
            self._counters.record(arrival.at_ns, result.started_ns, result.ended_ns, now_ns)
            if self._owed:
                self._owed -= 1
            else:
                self._counters.frames_out += arrival.frames
                yield result.outputs

    def late(self, now_s: float) -> int:
        """The number of pulses that wait for results and are due."""
        return sum(1 for _ in takewhile(lambda arrival: arrival.due_s <= now_s, self._waiting_arrivals()))

    def add_silence(self, count: int) -> None:
        """Silence is given for the oldest that are wanted."""
        frames = sum(arrival.frames for arrival in islice(self._waiting_arrivals(), count))
        self._counters.frames_silent += frames
        self._counters.frames_out += frames
        self._owed += count

    def clear(self) -> None:
        """Forget all."""
        self._arrivals.clear()

    def _waiting_arrivals(self) -> Iterator[Arrival]:
        return islice(self._arrivals, self._owed, None)
