"""StreamSteps: the steps of a stream from its blocks to its outputs, none of which waits."""

import time
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice, takewhile
from math import inf
from typing import NamedTuple

from pulse.facts import Array
from pulse.program.streams.feeds import Feed
from pulse.program.streams.state import State
from streaming.blocks.input_blocks import InputBlock, InputBlocks
from streaming.blocks.output_trim import OutputTrim
from streaming.errors import ExecutorError
from streaming.executor.engine import PulseQueue
from streaming.executor.executor_statistics import StreamCounters
from streaming.latency import LatencyHistogram
from streaming.policies import Policy


class Arrival(NamedTuple):
    """The times of a pulse.

    at_ns   the arrival time of its last sample, by ``time.monotonic_ns``
    due_s   the time after which its outputs are late, by the loop's clock
    frames  its frames of the symbol; the last pulse may have fewer than others
    """

    at_ns: int
    due_s: float
    frames: int


class StreamSteps:
    """Cuts blocks into pulses, submits them, and returns the frames that are ready; counts every frame.

    state, queue  those of the stream, not shared
    deadline_s    the time from the arrival of a pulse after which its output is late

    Pulses are *in flight* from their submission until their results are taken. Silence may be returned for the oldest
    of them: those are *owed*, and their results are discarded when they arrive.
    """

    def __init__(
        self, state: State, queue: PulseQueue, policy: Policy, deadline_s: float | None, check_finite: bool
    ) -> None:
        self._clock = state.clock
        self._pulse = state.program.pulse
        self._queue = queue
        self._policy = policy
        self._deadline_s = inf if deadline_s is None else deadline_s
        self._input_blocks = InputBlocks(state.program, check_finite)
        self._output_trim = OutputTrim(state.program)
        self._counters = StreamCounters(total=LatencyHistogram(deadline_s))
        self._in_flight: deque[Arrival] = deque()
        self._owed = 0
        self._tail: deque[tuple[Mapping[str, Array], Arrival]] = deque()
        self._discarded = False

    def update_counters(self) -> StreamCounters:
        """Bring the counters up to date and return them."""
        counters, end = self._counters, self._clock.end
        if not self._discarded:
            ahead = (
                self._input_blocks.min_pending_frames
                if end is None
                else sum(rest.frames for _, rest in self._tail)
            )
            counters.frames_in = (
                self._input_blocks.frames_in if end is None else end + counters.frames_dropped
            )
            counters.frames_in_flight = sum(arrival.frames for arrival in self._not_owed()) + ahead
        return counters

    @property
    def has_space(self) -> bool:
        """Whether a pulse may be submitted."""
        return self._queue.free_slots > 0

    @property
    def is_empty(self) -> bool:
        """Whether all submitted pulses have been taken."""
        return not self._in_flight

    @property
    def due_s(self) -> float:
        """The time after which the oldest pulse that is not owed is late, by the loop's clock."""
        return next((arrival.due_s for arrival in self._not_owed()), inf)

    def feed(self, block: InputBlock) -> int:
        """Take a block; returns how many pulses it completes: submit or drop each, then ``keep``.

        Raises InputError: an array does not fit its input
        """
        return self._input_blocks.feed(self._input_blocks.check(block))

    def arrival(self, now_s: float) -> Arrival:
        """Return the arrival of a pulse that is full now, at this time of the loop's clock."""
        return Arrival(time.monotonic_ns(), now_s + self._deadline_s, self._pulse)

    def submit(self, arrival: Arrival) -> None:
        """Submit the next pulse; the queue must not be full."""
        self._submit(self._input_blocks.take(), arrival)

    def drop(self) -> bool:
        """Drop the oldest pulse that has not started, perhaps the next one. Returns whether a slot is free then."""
        queue_index = self._queue.drop()
        if queue_index is None:
            self._input_blocks.take()
        else:
            del self._in_flight[queue_index]
        self._input_blocks.dropped_pulses += 1
        self._counters.pulses_dropped += 1
        self._counters.frames_dropped += self._pulse
        return queue_index is not None

    def keep(self) -> None:
        """Copy the rest of the block, so that the caller may reuse it."""
        self._input_blocks.keep()

    def take_ready(self) -> dict[str, Array] | None:
        """Return the frames of all finished pulses; None if there are none."""
        count = self._queue.count_ready()
        if not count:
            return None
        outputs = self._output_trim.take(self._collect(count), max(0, count - self._owed))
        self._submit_tail()
        return nonempty(outputs)

    def take_late(self, now_s: float) -> dict[str, Array] | None:
        """Return silence for late pulses; None if there are none. Raises ExecutorError: the policy is ``abort``."""
        late = list(takewhile(lambda arrival: arrival.due_s <= now_s, self._not_owed()))
        if not late:
            return None
        pulses, frames = len(late), sum(arrival.frames for arrival in late)
        self._counters.pulses_late += pulses
        if self._policy.aborts:
            raise self._late_error(now_s - self.due_s + self._deadline_s)
        self._counters.frames_silent += frames
        self._counters.frames_out += frames
        self._owed += pulses
        return nonempty(self._output_trim.take([self._output_trim.silent_outputs()] * pulses, pulses))

    def end(self) -> None:
        """Submit what remains, after the last block, once all submitted pulses are taken.

        Raises InputError: an output is not defined for a stream of 0 frames
        """
        self._output_trim.check_end(self._input_blocks.frames_in - self._counters.frames_dropped)
        pulses = self._queue.end(self._input_blocks.pending_arrays())
        self._input_blocks.clear()
        self._output_trim.end_at(self._clock.end, self._clock.completed, self._clock.whole)
        frames_to_come = (self._clock.end or 0) - self._output_trim.pulses * self._pulse
        now_ns = time.monotonic_ns()
        for pulse in pulses:
            frames = min(max(frames_to_come, 0), self._pulse)
            self._tail.append((pulse, Arrival(now_ns, inf, frames)))
            frames_to_come -= frames
        self._submit_tail()

    @property
    def has_ended(self) -> bool:
        """Whether ``end`` has been called."""
        return self._clock.end is not None

    def take_last(self) -> dict[str, Array] | None:
        """Return the final outputs, after all results have been taken; None if the program has none."""
        outputs, final_outputs = self._output_trim.take((), 0), self._output_trim.final_outputs()
        return outputs | final_outputs if final_outputs else nonempty(outputs)

    def discard_all(self) -> None:
        """Count the frames in flight as discarded."""
        counters = self.update_counters()
        self._discarded = True
        counters.frames_discarded += counters.frames_in_flight
        counters.frames_in_flight = 0
        self._in_flight.clear()
        self._tail.clear()

    def _submit(self, pulse: Feed, arrival: Arrival) -> None:
        self._queue.submit(pulse)
        self._in_flight.append(arrival)

    def _submit_tail(self) -> None:
        while self._tail and self._queue.free_slots:
            self._submit(*self._tail.popleft())

    def _collect(self, count: int) -> Iterator[Mapping[str, Array]]:
        """Collect ``count`` finished pulses; yield the results that are not owed, each valid until the next."""
        now_ns = time.monotonic_ns()
        for result in self._queue.collect(count):
            arrival = self._in_flight.popleft()
            self._counters.record(arrival.at_ns, result.started_ns, result.ended_ns, now_ns)
            if self._owed:
                self._owed -= 1
            else:
                self._counters.frames_out += arrival.frames
                yield result.outputs

    def _not_owed(self) -> Iterator[Arrival]:
        return islice(self._in_flight, self._owed, None)

    def _late_error(self, waited_s: float) -> ExecutorError:
        pulse_index = self._output_trim.pulses
        first = pulse_index * self._pulse
        return ExecutorError(
            f"pulse {pulse_index} (frames {first} to {first + self._pulse}) is late: not ready {waited_s * 1e3:.1f} ms "
            f"after its last sample, and the deadline is {self._deadline_s * 1e3:g} ms; {len(self._in_flight)} pulses "
            "are in flight. Use a smaller model, another policy or a longer deadline_s"
        )


def nonempty(outputs: dict[str, Array]) -> dict[str, Array] | None:
    """Return the outputs if they have at least one frame, else None."""
    return outputs if any(array.size for array in outputs.values()) else None
