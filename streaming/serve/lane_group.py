"""LaneGroup: lanes of one model that step together, and what a step costs."""

import time
from collections.abc import Mapping, Sequence

import numpy as np

from pulse.errors import FaultError
from pulse.facts import Array
from pulse.not_copyable import NotCopyable
from pulse.program.program import Program
from streaming.latency import Latency
from streaming.serve.lane_session import LaneSession
from streaming.serve.lane_stream import Answer, LaneStream, Step, StepResults

MOST_LANES = 32
"""Lanes of a group: beyond these the share of a lane in a step hardly falls, and its wait for the others grows."""
FULL = 16
"""Streams with which a pulse waits as long as it may; with fewer, it waits less."""
TRIALS = 40
"""Steps whose times are measured before the first stream."""
RECENT_S = 10.0
"""The cost is that of the last one or two spans of this length."""


class LaneGroup(NotCopyable):
    """Lanes in one thread. The event loop hands lanes out (``free``); all else is for the thread of its worker.

    gather_s  how long a pulse may wait for those of the group's other streams
    alone     each lane steps by itself, so that its bits do not depend on the others
    """

    instead = "it has the lanes of a running server"

    def __init__(
        self, program: Program, count: int, constants: Mapping[str, Array], gather_s: float, alone: bool
    ) -> None:
        self.program = program
        self.gather_ns = int(gather_s * 1e9)
        self._lanes = program.spawn_many(count, constants)
        self._lanes.alone = alone
        self.sessions = [LaneSession(program, state) for state in self._lanes]
        self.free = list(range(count))
        self.open = 0
        """Streams that have a lane."""
        self.ready: dict[LaneStream, None] = {}
        """Streams with a pulse, in the order in which they came."""
        self._feed = {
            port.name: np.zeros((count, *port.shape), port.dtype) for port in program.inputs if port.streams
        }
        self.cost = StepCost(self._measure(count))

    def due_ns(self) -> int:
        """When the pulses that are ready are to be stepped."""
        if len(self.ready) >= self.open:
            return 0
        wait_ns = self.gather_ns * min(self.open, FULL) // FULL
        return min(stream.arrived_ns for stream in self.ready) + wait_ns

    def step(self) -> list[tuple[LaneStream, Answer]]:
        """One pulse of each stream that has one."""
        streams, self.ready = list(self.ready), {}
        for place, stream in enumerate(streams):
            for name, pulse in stream.take().items():
                self._feed[name][place] = pulse
        arrivals = [stream.arrived_ns for stream in streams]
        started_ns, computed_ns = time.monotonic_ns(), time.thread_time_ns()
        fault: FaultError | None = None
        try:
            results = self._run([stream.lane for stream in streams])
        except FaultError as error:
            fault, results = error, error.outputs
        ended_ns = time.monotonic_ns()
        self.cost.record(time.thread_time_ns() - computed_ns, len(streams))
        answers: list[tuple[LaneStream, Answer]] = []
        shared = StepResults(results)
        for place, (stream, arrived_ns) in enumerate(zip(streams, arrivals)):
            if fault is not None and stream.lane in fault.lanes:
                answers.append((stream, stream.fail(self._lanes[stream.lane].failure("in this stream"))))
            else:
                step = Step(arrived_ns, started_ns, ended_ns)
                answers.append((stream, stream.give(shared, place, step)))
        return answers

    def _run(self, lanes: Sequence[int]) -> dict[str, Array]:
        count = len(lanes)
        return self._lanes.step({name: array[:count] for name, array in self._feed.items()}, lanes)

    def _measure(self, count: int) -> list[int]:
        """A lane's share in steps of all lanes, in nanoseconds of the processor's time."""
        lanes, times = range(count), list[int]()
        for _ in range(TRIALS):
            for session in self.sessions if self.program.limit else ():
                session.reset()
            started_ns = time.thread_time_ns()
            self._run(lanes)
            times.append((time.thread_time_ns() - started_ns) // count)
        for session in self.sessions:
            session.reset()
        return times


class StepCost:
    """What a stream costs: its share in the steps of its group, as time of the processor.

    What else the machine does is no part of it: that goes by, and the stream stays.

    measured_ns  before there were any
    """

    def __init__(self, measured_ns: Sequence[int]) -> None:
        self._measured = Latency()
        for step_ns in measured_ns:
            self._measured.record_ns(step_ns)
        self._recent, self._before = Latency(), Latency()
        self._until_ns = time.monotonic_ns() + int(RECENT_S * 1e9)

    def record(self, step_ns: int, lanes: int) -> None:
        """A step of this many lanes."""
        now_ns = time.monotonic_ns()
        if now_ns > self._until_ns:
            self._recent, self._before = Latency(), self._recent
            self._until_ns = now_ns + int(RECENT_S * 1e9)
        self._recent.record_ns(step_ns // lanes)

    @property
    def p99_s(self) -> float:
        """The p99 of late; what was measured before there were many."""
        return self._of_late().percentile_s(99)

    @property
    def median_s(self) -> float:
        """The median of late; what was measured before there were many."""
        return self._of_late().percentile_s(50)

    def _of_late(self) -> Latency:
        both = Latency()
        both.merge(self._before)
        both.merge(self._recent)
        return both if both.count >= TRIALS else self._measured
