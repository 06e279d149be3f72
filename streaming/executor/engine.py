"""Engines: what runs the pulses of an executor's streams in one thread of its own."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, Protocol

from pulse.facts import Array
from pulse.jit.events import NativeEvent
from pulse.program.streams.feeds import Feed
from pulse.program.streams.state import State
from streaming.realtime import RealtimeSetting


class Result(NamedTuple):
    """A pulse that has run: output name -> array, valid until the next; and when, by ``time.monotonic_ns``."""

    outputs: Mapping[str, Array]
    started_ns: int
    ended_ns: int


class Slots(Protocol):
    """The place of one stream in an engine: space for this many pulses, which come out in the order they went in.

    event    set when a pulse has run after ``listen``, and when one fails
    failure  why no more pulses will come; None if all is well
    free     pulses for which there is space
    """

    event: NativeEvent

    @property
    def failure(self) -> Exception | None: ...

    @property
    def free(self) -> int: ...

    def submit(self, pulse: Feed) -> None:
        """Have a checked pulse run; its arrays are copied. There must be space."""
        ...

    def drop(self) -> int | None:
        """Take back the oldest pulse that is not begun.

        returns  its place among those that were submitted and not collected; None if all are begun
        """
        ...

    def ready(self) -> int:
        """How many pulses can be collected."""
        ...

    def listen(self) -> int:
        """How many pulses can be collected; ``event`` is set at the next one."""
        ...

    def clear(self) -> None:
        """Clear ``event``."""
        ...

    def collect(self, count: int) -> Iterator[Result]:
        """The oldest pulses that are ready; the place of each is free when the next is requested."""
        ...

    def end(self, rest: Feed) -> list[dict[str, Array]]:
        """The pulses of ``State.end``, to submit; earlier results must have been collected. Raises InputError."""
        ...

    def close(self) -> None:
        """Forget all; a pulse that runs is not waited for."""
        ...


class Engine(Protocol):
    """Runs pulses of any number of streams, one of each in turn, in one thread."""

    @property
    def realtime_settings(self) -> list[RealtimeSetting]:
        """The real-time settings that the system granted to the engine's thread."""
        ...

    def start(self) -> None:
        """Begin; all is compiled then."""
        ...

    def open(self, state: State, depth: int) -> Slots:
        """Space for ``depth`` pulses of a new stream."""
        ...

    async def stop(self) -> None:
        """End the thread, after the pulse that it runs. All slots must be closed. Raises ExecutorError."""
        ...
