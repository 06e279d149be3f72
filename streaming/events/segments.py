"""Segments: intervals of activity, by a threshold with hysteresis and minimum durations."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction

from pulse.errors import InputError
from pulse.support.record import record
from streaming.events.detector import Detector, only_column, value_at
from streaming.events.event import Event
from streaming.events.frame_clock import FrameClock
from streaming.events.mean import TrailingMean
from streaming.events.parameters import require_finite, require_one_of, require_seconds

ONSETS = ("length", "run")


@record
class _Gap:
    """A silence inside a segment: frames ``first`` to ``end - 1``, and sums of probabilities up to both."""

    first: int
    end: int
    sum_before: float
    sum_at_end: float


@dataclass
class _State:
    """The current segment.

    start      its first frame; None if there is no segment
    silence    the first frame of a silence that may end it
    total      the sum of all probabilities so far, also as it was at ``start`` and ``silence``
    certain    whether it is long enough
    reported   whether its start was reported
    cut        whether it continues one that was cut
    last_end   the end of the previous segment, in frames
    """

    mean: TrailingMean
    start: int | None = None
    silence: int | None = None
    total: float = 0.0
    start_total: float = 0.0
    silence_total: float = 0.0
    certain: bool = False
    reported: bool = False
    cut: bool = False
    last_end: Fraction = Fraction(0)
    gaps: list[_Gap] = field(default_factory=list[_Gap])


class Segments(Detector[_State]):
    """Detects segments of speech, or of another class with a probability.

    clock            the clock of the output, or its frames per second
    threshold        a frame at or above it is speech
    off_threshold    a frame below it is silence, one between them is like the frame before it; ``threshold`` by default
    min_speech_s     a shorter segment is dropped
    min_silence_s    a shorter silence does not end a segment
    onset            what ``min_speech_s`` measures: ``length``, the segment; ``run``, its first frames, all speech
    pad_before_s     padding before, limited by the previous segment and the start of the audio
    pad_after_s      padding after; at most ``min_silence_s``
    max_s            a segment that is this long, without padding, is cut; None: never
    split_silence_s  it is cut in its longest silence of at least this length, which is left out; None, or if there
                     is none: after the frame that makes it this long
    smooth_s         each probability is replaced by the mean over this time
    column           the class to use, if there are several
    label            the label of the events
    starts           also return an event without an end as soon as a start is certain
    Raises           InputError: a parameter is not valid

    A silence begins with a frame below ``off_threshold``, ends with one at or above ``threshold``, and ends the
    segment at the first frame below ``off_threshold`` with which it is long enough. Durations are rounded up to whole
    frames. A segment that has not ended ends with the audio. A cut is made at a frame of speech, and not padded. The
    score is the mean probability, without padding.
    """

    def __init__(
        self,
        clock: FrameClock | float,
        threshold: float = 0.5,
        *,
        off_threshold: float | None = None,
        min_speech_s: float = 0.0,
        min_silence_s: float = 0.0,
        onset: str = "length",
        pad_before_s: float = 0.0,
        pad_after_s: float = 0.0,
        max_s: float | None = None,
        split_silence_s: float | None = None,
        smooth_s: float = 0.0,
        column: int | None = None,
        label: str = "speech",
        starts: bool = False,
    ) -> None:
        off_threshold = threshold if off_threshold is None else off_threshold
        require_finite("threshold", threshold)
        require_finite("off_threshold", off_threshold)
        require_seconds(min_speech_s=min_speech_s, min_silence_s=min_silence_s, smooth_s=smooth_s)
        require_seconds(pad_before_s=pad_before_s, pad_after_s=pad_after_s)
        require_seconds(max_s=max_s, split_silence_s=split_silence_s)
        require_one_of("onset", onset, ONSETS)
        if off_threshold > threshold:
            raise InputError(f"off_threshold={off_threshold:g}: must not be above threshold={threshold:g}")
        clock = FrameClock.of(clock)
        self._threshold, self._off_threshold = threshold, off_threshold
        self._min_speech_frames = clock.frames(min_speech_s)
        self._min_silence_frames = clock.frames(min_silence_s)
        self._max_frames = None if max_s is None else clock.frames(max_s)
        self._split_silence_frames = None if split_silence_s is None else clock.frames(split_silence_s)
        self._pad_before_frames = _in_frames(clock, pad_before_s)
        self._pad_after_frames = _in_frames(clock, pad_after_s)
        _check_padding("pad_after_s", clock, pad_after_s, min_silence_s, self._min_silence_frames)
        if self._max_frames is not None and self._max_frames <= self._min_speech_frames:
            raise InputError(f"max_s={max_s:g}: must be longer than min_speech_s={min_speech_s:g}")
        if self._split_silence_frames is not None and self._max_frames is None:
            raise InputError(
                f"split_silence_s={split_silence_s:g}: applies to segments that are cut; give max_s too"
            )
        self._onset_is_run, self._smooth_frames, self._column = onset == "run", clock.frames(smooth_s), column
        self._label, self._starts = label, starts
        super().__init__(clock)

    @classmethod
    def silero(
        cls,
        clock: FrameClock | float,
        threshold: float = 0.5,
        *,
        off_threshold: float | None = None,
        min_speech_s: float = 0.25,
        min_silence_s: float = 0.1,
        pad_s: float = 0.03,
        column: int | None = None,
        label: str = "speech",
        starts: bool = False,
    ) -> "Segments":
        """Return the rules of ``get_speech_timestamps`` of Silero VAD, without a longest segment.

        Its silence is counted from the start of one frame to the start of another, so it takes a frame more.
        """
        require_finite("threshold", threshold)
        require_seconds(min_silence_s=min_silence_s, pad_s=pad_s)
        if off_threshold is None:
            off_threshold = max(threshold - 0.15, min(0.01, threshold))
        clock = FrameClock.of(clock)
        silence_s = min_silence_s + clock.time_s(1)
        _check_padding("pad_s", clock, pad_s, min_silence_s, clock.frames(silence_s))
        return cls(
            clock,
            threshold,
            off_threshold=off_threshold,
            min_speech_s=min_speech_s,
            min_silence_s=silence_s,
            pad_before_s=pad_s,
            pad_after_s=pad_s,
            column=column,
            label=label,
            starts=starts,
        )

    @classmethod
    def fireredvad(
        cls,
        clock: FrameClock | float,
        threshold: float = 0.5,
        *,
        smooth_s: float = 0.05,
        min_speech_s: float = 0.08,
        min_silence_s: float = 0.2,
        pad_s: float = 0.05,
        max_s: float = 20.0,
        column: int | None = None,
        label: str = "speech",
        starts: bool = False,
    ) -> "Segments":
        """Return the rules of the stream of FireRedVAD: the silence that ends a segment belongs to it."""
        require_seconds(min_silence_s=min_silence_s, pad_s=pad_s)
        clock = FrameClock.of(clock)
        return cls(
            clock,
            threshold,
            min_speech_s=min_speech_s,
            min_silence_s=min_silence_s,
            onset="run",
            pad_before_s=max(pad_s, smooth_s),
            pad_after_s=min_silence_s,
            max_s=max_s,
            smooth_s=smooth_s,
            column=column,
            label=label,
            starts=starts,
        )

    def _begin(self) -> _State:
        return _State(TrailingMean(self._smooth_frames))

    def _check_classes(self, classes: int) -> None:
        only_column(self._column, classes)

    def _process_frame(self, state: _State, frame: int, row: list[float]) -> Iterator[Event]:
        value = value_at(row, self._column)
        level, total_before = state.mean.add(value), state.total
        state.total += value
        speech = level >= self._threshold
        if state.start is None:
            if not speech:
                return
            state.start, state.start_total = frame, total_before
        if speech:
            self._resume(state, frame, total_before)
        elif self._onset_is_run and not state.certain:
            self._forget(state)
            return
        elif level < self._off_threshold and state.silence is None:
            state.silence, state.silence_total = frame, total_before
        yield from self._emit_start(state, frame)
        if (
            level < self._off_threshold
            and state.silence is not None
            and frame + 1 - state.silence >= self._min_silence_frames
        ):
            end = state.silence + self._pad_after_frames
            yield from self._segment(
                state, state.silence, state.silence_total, end, self.clock.known_s(frame)
            )
            self._forget(state)
        elif speech:
            yield from self._cut(state, frame)

    def _end(self, state: _State, frames: int) -> Iterator[Event]:
        if state.start is not None:
            state.certain = state.certain or (
                not self._onset_is_run and frames - state.start >= self._min_speech_frames
            )
            end = Fraction(frames)
            yield from self._segment(state, frames, state.total, end, self._known_at_end(frames))
            self._forget(state)

    def _resume(self, state: _State, frame: int, total_before: float) -> None:
        """End a silence at a frame of speech."""
        if state.silence is None:
            return
        if self._split_silence_frames is not None and frame - state.silence >= self._split_silence_frames:
            state.gaps.append(_Gap(state.silence, frame, state.silence_total, total_before))
        state.silence = None

    def _emit_start(self, state: _State, frame: int) -> Iterator[Event]:
        """Report the start of a segment when no later frame can change it."""
        start = state.start or 0
        speech_frames = (frame + 1 if state.silence is None else state.silence) - start
        state.certain = state.certain or speech_frames >= self._min_speech_frames
        if state.certain and speech_frames > 0 and not state.reported:
            state.reported = True
            if self._starts:
                score = (state.total - state.start_total) / (frame + 1 - start)
                known_s = self.clock.known_s(frame)
                yield Event(self.clock.time_s(self._padded_start(state)), None, self._label, score, known_s)

    def _cut(self, state: _State, frame: int) -> Iterator[Event]:
        """Cut a segment that is too long, at a frame of speech."""
        known_s = self.clock.known_s(frame)
        while (
            self._max_frames is not None
            and state.start is not None
            and frame + 1 - state.start >= self._max_frames
        ):
            no_gap = _Gap(frame + 1, frame + 1, state.total, state.total)
            gap = max(state.gaps, key=lambda gap: gap.end - gap.first, default=no_gap)
            yield from self._segment(state, gap.first, gap.sum_before, Fraction(gap.first), known_s)
            state.start, state.start_total = gap.end, gap.sum_at_end
            state.cut, state.reported = True, False
            state.gaps = [later for later in state.gaps if later.first > gap.first]
        yield from self._emit_start(state, frame) if state.cut else ()

    def _segment(
        self, state: _State, stop: int, total: float, end: Fraction, known_s: float
    ) -> Iterator[Event]:
        """Yield the segment before frame ``stop``, if it is long enough; its end may be padded."""
        start = state.start or 0
        if state.certain and stop > start:
            score = (total - state.start_total) / (stop - start)
            first = self._padded_start(state)
            yield Event(self.clock.time_s(first), self.clock.time_s(end), self._label, score, known_s)
            state.last_end = end

    def _padded_start(self, state: _State) -> Fraction:
        start = Fraction(state.start or 0)
        return start if state.cut else max(start - self._pad_before_frames, state.last_end)

    @staticmethod
    def _forget(state: _State) -> None:
        state.start = state.silence = None
        state.certain = state.reported = state.cut = False
        state.gaps = []


def _check_padding(
    name: str, clock: FrameClock, pad_s: float, min_silence_s: float, silence_frames: int
) -> None:
    """Raise InputError if padding after a segment is longer than the silence that ends it."""
    if _in_frames(clock, pad_s) > silence_frames:
        raise InputError(
            f"{name}={pad_s:g}: longer than min_silence_s={min_silence_s:g}, so segments could overlap; "
            "give a longer min_silence_s"
        )


def _in_frames(clock: FrameClock, seconds: float) -> Fraction:
    """Convert seconds to frames, treating the seconds as an exact decimal."""
    return Fraction(seconds).limit_denominator(10**9) * clock.rate_hz
