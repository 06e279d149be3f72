"""LaneGroup: lanes of one model that step together, and the cost of a step."""

import time
from collections.abc import Collection, Mapping, Sequence
from operator import attrgetter

import numpy as np

from pulse.errors import FaultError
from pulse.facts import Array
from pulse.interface import Port
from pulse.program.program import Program
from pulse.support.not_copyable import NotCopyable
from streaming.latency import LatencyHistogram
from streaming.serve.lanes.lane_session import LaneSession
from streaming.serve.lanes.lane_stream import Answer, LaneStream
from streaming.serve.lanes.turn import TurnResults, TurnTimes

MAX_LANES = 128
"""The lanes of a group. Pulses arrive at any time: in a large group, enough arrive to share a step while one waits."""
FULL_GROUP_STREAMS = 16
"""From this many streams on, a pulse waits the whole ``gather_s``; with fewer, it waits less."""
MEASURED_STEPS = 40
"""The number of steps that are measured before the first stream."""
RECENT_S = 10.0
"""The cost covers the last one or two spans of this many seconds."""
_waiting_pulses = attrgetter("waiting_pulses")


class LaneGroup(NotCopyable, reason="it has the lanes of a running server"):
    """Lanes in one thread. The event loop hands out lanes (``free``); all else belongs to the worker's thread.

    gather_s    how long a pulse may wait for pulses of the group's other streams
    max_pulses  maximum number of pulses of a stream in a turn
    alone       whether each lane steps separately, so that its bits do not depend on the others
    """

    def __init__(
        self,
        program: Program,
        count: int,
        constants: Mapping[str, Array],
        gather_s: float,
        max_pulses: int,
        alone: bool,
    ) -> None:
        self.program = program
        self.gather_ns = int(gather_s * 1e9)
        self._max_pulses = max_pulses
        self._lanes = program.spawn_many(count, constants)
        self._lanes.alone = alone
        self.sessions = [LaneSession(program, state) for state in self._lanes]
        self.free = list(range(count))
        self.open_count = 0
        """The number of streams that have a lane."""
        self.ready: dict[LaneStream, None] = {}
        """Streams with a pulse, in order of arrival."""
        self._inputs = [_LaneInput(port, max_pulses, count) for port in program.inputs if port.streams]
        self.cost = StepCost(self._measure(count))

    def due_ns(self) -> int:
        """Return the time at which to step the pulses that are ready."""
        if len(self.ready) >= self.open_count:
            return 0
        wait_ns = self.gather_ns * min(self.open_count, FULL_GROUP_STREAMS) // FULL_GROUP_STREAMS
        return min(stream.arrived_ns for stream in self.ready) + wait_ns

    def step(self) -> list[tuple[LaneStream, Answer]]:
        """Run a turn: step the waiting pulses of each stream, up to the limit of a turn."""
        streams, self.ready = sorted(self.ready, key=_waiting_pulses, reverse=True), {}
        pulses = [min(stream.waiting_pulses, self._max_pulses) for stream in streams]
        for index, (stream, count) in enumerate(zip(streams, pulses)):
            inputs = stream.take_pulses(count)
            for lane_input in self._inputs:
                lane_input.set_pulses(index, inputs[lane_input.name], count)
        started_ns = time.monotonic_ns()
        steps, failed = self._run_steps([stream.lane for stream in streams], pulses)
        ended_ns = time.monotonic_ns()
        answers: list[tuple[LaneStream, Answer]] = []
        results = TurnResults(steps)
        for index, (stream, count) in enumerate(zip(streams, pulses)):
            stepped = failed.get(index, count)
            if stepped:
                turn = TurnTimes(stream.arrived_ns, started_ns, ended_ns, stepped)
                answers.append((stream, stream.make_answer(results, index, turn)))
            if index in failed:
                answers.append((stream, stream.fail(self._lanes[stream.lane].failure("in this stream"))))
        return answers

    def _run_steps(
        self, lanes: Sequence[int], pulses: Sequence[int]
    ) -> tuple[list[dict[str, Array]], dict[int, int]]:
        """Return the results of each step, and index -> pulses before the failure, of lanes that failed."""
        steps: list[dict[str, Array]] = []
        failed: dict[int, int] = {}
        for pulse_index in range(pulses[0]):
            count = sum(stream_pulses > pulse_index for stream_pulses in pulses)
            started_ns = time.thread_time_ns()
            try:
                steps.append(self._run_lanes(lanes[:count], pulse_index, failed))
            except FaultError as error:
                steps.append(
                    _spread(error.outputs, [index for index in range(count) if index not in failed], count)
                )
                failed.update((index, pulse_index) for index in range(count) if lanes[index] in error.lanes)
            self.cost.record(time.thread_time_ns() - started_ns, count)
        return steps, failed

    def _run_lanes(self, lanes: Sequence[int], pulse_index: int, failed: Collection[int]) -> dict[str, Array]:
        """Step the lanes that have not failed, with the pulse of this number."""
        count = len(lanes)
        if not failed:
            inputs = {lane_input.name: lane_input.pulses[pulse_index, :count] for lane_input in self._inputs}
            return self._lanes.step(inputs, lanes)
        indices = [index for index in range(count) if index not in failed]
        inputs = {lane_input.name: lane_input.pulses[pulse_index, indices] for lane_input in self._inputs}
        return _spread(self._lanes.step(inputs, [lanes[index] for index in indices]), indices, count)

    def _measure(self, count: int) -> list[int]:
        """Measure a lane's share in steps of all lanes, in nanoseconds of processor time."""
        lanes, times = range(count), list[int]()
        for _ in range(MEASURED_STEPS):
            if self.program.limit:
                for session in self.sessions:
                    session.reset()
            started_ns = time.thread_time_ns()
            self._run_lanes(lanes, 0, ())
            times.append((time.thread_time_ns() - started_ns) // count)
        for session in self.sessions:
            session.reset()
        return times


class _LaneInput:
    """The pulses of one input in a turn, [pulses, places, …]."""

    def __init__(self, port: Port, pulses: int, lanes: int) -> None:
        axis, shape = port.axis or 0, port.shape
        self.name = port.name
        self.pulses: Array = np.zeros((pulses, lanes, *shape), port.dtype)
        self._split = (*shape[:axis], -1, *shape[axis:])
        self._order = (axis, *range(axis), *range(axis + 1, len(self._split)))

    def set_pulses(self, index: int, frames: Array, count: int) -> None:
        """Write pulses of a stream, joined along the stream axis, at its index."""
        if count == 1:
            self.pulses[0, index] = frames
        else:
            self.pulses[:count, index] = frames.reshape(self._split).transpose(self._order)


def _spread(results: Mapping[str, Array], indices: Sequence[int], count: int) -> dict[str, Array]:
    """Put results at these indices of ``count``; the others are 0."""
    arrays = {name: np.zeros((count, *array.shape[1:]), array.dtype) for name, array in results.items()}
    for name, array in results.items():
        arrays[name][indices] = array
    return arrays


class StepCost:
    """The cost of a stream: its share in the steps of its group, in processor time.

    Load from other processes is excluded: it is temporary, the stream is not.

    measured_ns  the share measured before the first stream
    """

    def __init__(self, measured_ns: Sequence[int]) -> None:
        self._measured = LatencyHistogram()
        for step_ns in measured_ns:
            self._measured.record_ns(step_ns)
        self._recent, self._previous = LatencyHistogram(), LatencyHistogram()
        self._until_ns = time.monotonic_ns() + int(RECENT_S * 1e9)

    def record(self, step_ns: int, lanes: int) -> None:
        """Record a step of this many lanes."""
        now_ns = time.monotonic_ns()
        if now_ns > self._until_ns:
            self._recent, self._previous = LatencyHistogram(), self._recent
            self._until_ns = now_ns + int(RECENT_S * 1e9)
        self._recent.record_ns(step_ns // lanes)

    @property
    def p99_s(self) -> float:
        """The recent p99; the measured share until there are enough steps."""
        return self._recent_times().percentile_s(99)

    @property
    def median_s(self) -> float:
        """The recent median; the measured share until there are enough steps."""
        return self._recent_times().percentile_s(50)

    def _recent_times(self) -> LatencyHistogram:
        latency = LatencyHistogram()
        latency.merge(self._previous)
        latency.merge(self._recent)
        return latency if latency.count >= MEASURED_STEPS else self._measured
