"""Triggers: the moments at which a keyword, or another short signal, is recognised."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from streaming.events.detector import ClassDetector
from streaming.events.event import Event
from streaming.events.frame_clock import FrameClock
from streaming.events.mean import TrailingMean
from streaming.events.parameters import class_names, require_finite, require_seconds


@dataclass
class _State:
    """The means of the classes, and the first frame that may trigger again."""

    means: list[TrailingMean] = field(default_factory=list[TrailingMean])
    first_trigger_frame: int = 0


class Triggers(ClassDetector[_State]):
    """Keyword spotting: one event when the mean probability of a class reaches a threshold.

    clock         the clock of the output, or its frames per second
    threshold     a mean at or above it triggers; of several classes the one with the highest, or the first of equals
    smooth_s      the mean is over this time, at the start over the frames that exist
    refractory_s  the minimum time between two events
    labels        names of the classes; their numbers by default
    background    the class without meaning; None if there is none
    Raises        InputError: a parameter is not valid

    An event is as long as the smoothing; its score is the mean. It is known with its last frame.
    """

    def __init__(
        self,
        clock: FrameClock | float,
        threshold: float = 0.5,
        *,
        smooth_s: float = 0.0,
        refractory_s: float = 1.0,
        labels: Sequence[str] = (),
        background: int | None = None,
    ) -> None:
        require_finite("threshold", threshold)
        require_seconds(smooth_s=smooth_s, refractory_s=refractory_s)
        clock = FrameClock.of(clock)
        self._threshold = threshold
        self._smooth_frames, self._refractory_frames = clock.frames(smooth_s), clock.frames(refractory_s)
        super().__init__(clock, labels, background)

    def _begin(self) -> _State:
        return _State()

    def _process_frame(self, state: _State, frame: int, row: list[float]) -> Iterator[Event]:
        if not state.means:
            state.means = [TrailingMean(self._smooth_frames) for _ in row]
        means = [mean.add(value) for mean, value in zip(state.means, row)]
        watched = [index for index in range(len(row)) if index != self._background]
        if not watched or frame < state.first_trigger_frame:
            return
        best = max(watched, key=means.__getitem__)
        if means[best] >= self._threshold:
            state.first_trigger_frame = frame + self._refractory_frames
            label = class_names(self._labels, len(row))[best]
            start_s = self.clock.time_s(max(frame + 1 - self._smooth_frames, 0))
            yield Event(start_s, self.clock.time_s(frame + 1), label, means[best], self.clock.known_s(frame))

    def _end(self, state: _State, frames: int) -> Iterator[Event]:
        return iter(())
