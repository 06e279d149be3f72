"""Engines: what runs the pulses of an executor's streams in one thread of its own."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from pulse.facts import Array
from pulse.jit.events import NativeEvent
from pulse.program.streams.feeds import Feed
from pulse.program.streams.state import State
from streaming.realtime import RealtimeSetting


class Result(NamedTuple):
    """A finished pulse: output name -> array, valid until the next result, and times by ``time.monotonic_ns``."""

    outputs: Mapping[str, Array]
    started_ns: int
    ended_ns: int


class PulseQueue(Protocol):
    """A queue of pulses of one stream in an engine; results come in the order of submission.

    event       set when a pulse has run after ``listen``, and when one fails
    failure     the error after which no more pulses run; None if there is none
    free_slots  the number of pulses that can be submitted now
    """

    event: NativeEvent

    @property
    def failure(self) -> Exception | None: ...

    @property
    def free_slots(self) -> int: ...

    def submit(self, pulse: Feed) -> None:
        """Submit a checked pulse; its arrays are copied. The queue must not be full."""
        ...

    def drop(self) -> int | None:
        """Withdraw the oldest pulse that has not started.

        Returns  its position among those submitted and not collected; None if all have started
        """
        ...

    def count_ready(self) -> int:
        """Return the number of pulses that can be collected."""
        ...

    def listen(self) -> int:
        """Return the number of pulses that can be collected; ``event`` is set when there is another."""
        ...

    def clear(self) -> None:
        """Clear ``event``."""
        ...

    def collect(self, count: int) -> Iterator[Result]:
        """Yield the oldest finished pulses; the slot of each is free when the next is requested."""
        ...

    def end(self, rest: Feed) -> list[dict[str, Array]]:
        """Return the pulses of ``State.end``, to be submitted. Earlier results must be collected.

        Raises InputError: the model does not take a stream of this length
        """
        ...

    def close(self) -> None:
        """Discard all pulses, without waiting for one that runs."""
        ...


class Engine(Protocol):
    """Runs pulses of any number of streams in one thread, one of each in turn."""

    @property
    def realtime_settings(self) -> list[RealtimeSetting]:
        """The real-time settings requested for the engine's thread, each with what the system granted."""
        ...

    def start(self) -> None:
        """Compile everything and start the thread."""
        ...

    def open(self, state: State, depth: int) -> PulseQueue:
        """Create the queue of a new stream, with slots for ``depth`` pulses."""
        ...

    async def stop(self) -> None:
        """End the thread after its current pulse. All queues must be closed.

        Raises ExecutorError: the thread does not end
        """
        ...
