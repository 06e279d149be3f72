"""Argmax: intervals in which a class is the most probable."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from streaming.events.detector import ClassDetector
from streaming.events.event import Event
from streaming.events.frame_clock import FrameClock
from streaming.events.parameters import class_names, require_seconds


@dataclass
class _State:
    """The current class, and another one that is the best at present.

    first, total           the frame at which the class began, and the sum of its values since
    other_first, others    the same for the other class
    total_before           ``total`` at ``other_first``
    """

    current: int | None = None
    first: int = 0
    total: float = 0.0
    other: int | None = None
    other_first: int = 0
    others: float = 0.0
    total_before: float = 0.0
    classes: int = 0


class Argmax(ClassDetector[_State]):
    """Detects changes of the best class: an event for each class, from its start to the start of the next.

    clock       the clock of the output, or its frames per second
    min_s       a class starts at the first frame of a run, at least this long, in which it is the best
    labels      names of the classes; their numbers by default
    background  the class that makes no events; None for none
    Raises      InputError: a parameter is not valid

    Of equal values, the first is the best. Shorter runs are ignored: the previous class continues. The last class
    lasts to the end of the audio. The score is the mean value of the class.
    """

    def __init__(
        self,
        clock: FrameClock | float,
        min_s: float = 0.0,
        labels: Sequence[str] = (),
        background: int | None = None,
    ) -> None:
        require_seconds(min_s=min_s)
        clock = FrameClock.of(clock)
        self._min_frames = clock.frames(min_s)
        super().__init__(clock, labels, background)

    def _begin(self) -> _State:
        return _State()

    def _process_frame(self, state: _State, frame: int, row: list[float]) -> Iterator[Event]:
        state.classes = len(row)
        best = max(range(len(row)), key=row.__getitem__)
        if best == state.current:
            state.other = None
        elif best != state.other:
            state.other, state.other_first, state.others, state.total_before = best, frame, 0.0, state.total
        state.total += 0.0 if state.current is None else row[state.current]
        if state.other is None:
            return
        state.others += row[state.other]
        if frame + 1 - state.other_first >= self._min_frames:
            yield from self._event(state, state.other_first, state.total_before, self.clock.known_s(frame))
            state.current, state.first, state.total = state.other, state.other_first, state.others
            state.other = None

    def _end(self, state: _State, frames: int) -> Iterator[Event]:
        return self._event(state, frames, state.total, self._known_at_end(frames))

    def _event(self, state: _State, end: int, total: float, known_s: float) -> Iterator[Event]:
        if state.current is not None and state.current != self._background:
            label = class_names(self._labels, state.classes)[state.current]
            start_s, end_s = self.clock.time_s(state.first), self.clock.time_s(end)
            yield Event(start_s, end_s, label, total / (end - state.first), known_s)
