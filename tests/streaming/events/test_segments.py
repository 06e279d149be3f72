"""The detector ``Segments`` in any blocks, against its definition over the whole sequence."""

import re
from collections.abc import Callable
from math import ceil
from typing import Any

import numpy as np
import pytest

from pulse.errors import InputError
from pulse.facts import Array
from streaming.events import FrameClock, Segments
from tests.failed_cases import in_one_test
from tests.streaming.events.blocks import blocks, walk, whole

HZ = 100


def segments_by_definition(
    p: Array,
    threshold: float,
    off_threshold: float,
    min_speech_frames: int,
    min_silence_frames: int,
    onset_is_run: bool,
    pad_before_frames: int,
    pad_after_frames: int,
    max_frames: int | None,
    split_silence_frames: int | None,
    smooth_frames: int,
) -> list[tuple[int, int]]:
    """The definition as a pattern over letters: S speech, N silence, M between; frames of start and end."""
    level = [np.mean(p[max(0, j + 1 - smooth_frames) : j + 1]) for j in range(len(p))]
    letters = "".join("S" if x >= threshold else "N" if x < off_threshold else "M" for x in level)
    ending = "N" if min_silence_frames == 1 else f"N[NM]{{{min_silence_frames - 2},}}?N"
    onset = f"S{{{min_speech_frames}}}" if onset_is_run else "S"
    segments, last = [], 0
    for match in re.finditer(f"({onset}.*?)(?:{ending}|$)", letters):
        start, stop = match.span(1)
        if stop - start < min_speech_frames:
            continue
        at_end = match.end() == len(letters) and match.end(1) == len(letters)
        first, gaps = start, []
        for frame in range(start, stop):
            gap = re.search("N[NM]*$", letters[start:frame])
            if letters[frame] == "S" and gap and split_silence_frames and len(gap[0]) >= split_silence_frames:
                gaps.append((frame - len(gap[0]), frame))
            while max_frames and letters[frame] == "S" and frame + 1 - first >= max_frames:
                cut = max(gaps, key=lambda gap: gap[1] - gap[0], default=(frame + 1, frame + 1))
                segments.append((first if first > start else max(first - pad_before_frames, last), cut[0]))
                last, first = cut
                gaps = [gap for gap in gaps if gap[0] > cut[0]]
                last = segments[-1][1]
        if stop > first:
            end = stop if at_end else stop + pad_after_frames
            segments.append((first if first > start else max(first - pad_before_frames, last), end))
            last = end
    return segments


@in_one_test("seed", range(150))
def test_segments_equal_their_definition_in_any_blocks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = walk(rng, int(rng.integers(0, 300)))
    threshold = rng.uniform(0.3, 0.8)
    off_threshold = threshold - rng.choice([0, 0.1, 0.3])
    min_speech_frames, min_silence_frames, smooth_frames = (int(n) for n in rng.integers(1, [12, 12, 5]))
    onset_is_run, pad_before_frames, pad_after_frames = (
        bool(rng.integers(2)),
        int(rng.integers(6)),
        int(rng.integers(0, min_silence_frames + 1)),
    )
    max_frames = int(rng.integers(min_speech_frames + 1, 40)) if rng.integers(2) else None
    split_silence_frames = (
        int(rng.integers(1, min_silence_frames + 1)) if max_frames and rng.integers(2) else None
    )
    detector = Segments(
        HZ,
        threshold,
        off_threshold=off_threshold,
        min_speech_s=min_speech_frames / HZ,
        min_silence_s=min_silence_frames / HZ,
        onset="run" if onset_is_run else "length",
        pad_before_s=pad_before_frames / HZ,
        pad_after_s=pad_after_frames / HZ,
        max_s=max_frames and max_frames / HZ,
        split_silence_s=split_silence_frames and split_silence_frames / HZ,
        smooth_s=smooth_frames / HZ,
    )
    events = whole(detector, p)
    expected = segments_by_definition(
        p=p,
        threshold=threshold,
        off_threshold=off_threshold,
        min_speech_frames=min_speech_frames,
        min_silence_frames=min_silence_frames,
        onset_is_run=onset_is_run,
        pad_before_frames=pad_before_frames,
        pad_after_frames=pad_after_frames,
        max_frames=max_frames,
        split_silence_frames=split_silence_frames,
        smooth_frames=smooth_frames,
    )
    assert [(event.start_s, event.end_s) for event in events] == [(a / HZ, b / HZ) for a, b in expected]
    assert blocks(detector, p, seed) == events
    assert all(event.end_s <= event.known_s for event in events)


@pytest.mark.parametrize("seed", range(40))
def test_starts_are_reported_once_and_kept(seed: int) -> None:
    rng = np.random.default_rng(seed)
    p = walk(rng, 200)
    onset = ("length", "run")[seed % 2]
    settings = {
        "min_speech_s": 0.05,
        "min_silence_s": 0.06,
        "onset": onset,
        "pad_before_s": 0.03,
        "max_s": 0.3,
    }
    detector = Segments(HZ, 0.6, off_threshold=0.5, **settings, starts=True)
    events = whole(detector, p)
    assert blocks(detector, p, seed) == events
    starts = [event for event in events if event.end_s is None]
    segments = [event for event in events if event.end_s is not None]
    assert segments == whole(Segments(HZ, 0.6, off_threshold=0.5, **settings), p)
    assert [start.start_s for start in starts] == [segment.start_s for segment in segments]
    assert all(start.known_s <= segment.known_s for start, segment in zip(starts, segments))


def test_a_score_is_the_mean_without_padding() -> None:
    p = [0, 0, 0.8, 0.6, 1.0, 0, 0, 0]
    (event,) = whole(
        Segments(HZ, min_silence_s=0.02, pad_before_s=0.01, pad_after_s=0.02, label="laughter"), p
    )
    assert (event.start_s, event.end_s, event.label, event.known_s) == (0.01, 0.07, "laughter", 0.07)
    assert event.score == pytest.approx(0.8)


def test_silero_counts_from_start_to_start_of_a_frame() -> None:
    """A silence of 100 ms is four frames of 512 samples at 16 kHz and a deciding fifth."""
    clock = 16000 / 512
    speech, silence = [0.9] * 20, [0.1] * 5
    (event,) = whole(Segments.silero(clock), silence + speech + silence + [0.1])
    assert event.start_s == 5 * 0.032 - 0.03
    assert event.end_s == 0.83
    assert event.known_s == 30 * 0.032
    between = Segments.silero(clock)
    assert len(whole(between, speech + [0.4] * 50 + speech)) == 1
    assert len(whole(between, speech + [0.1] * 4 + speech)) == 1
    assert len(whole(between, speech + silence + speech)) == 2
    assert len(whole(between, silence + [0.9] * 7 + silence)) == 0
    assert len(whole(between, silence + [0.9] * 8 + silence)) == 1


def test_fireredvad_keeps_the_silence_that_ends_a_segment() -> None:
    p = [0.0] * 30 + [1.0] * 40 + [0.0] * 60
    (event,) = whole(Segments.fireredvad(HZ, smooth_s=0.0), p)
    assert (event.start_s, event.end_s, event.known_s) == (0.25, 0.9, 0.9)
    long = whole(Segments.fireredvad(HZ, smooth_s=0.0, max_s=0.5), np.ones(120))
    assert [(event.start_s, event.end_s) for event in long] == [(0, 0.5), (0.5, 1.0), (1.0, 1.2)]


def test_one_column_of_several_classes_must_be_chosen() -> None:
    p = np.zeros((30, 3))
    p[10:20, 2] = 1
    (event,) = whole(Segments(HZ, column=2), p)
    assert (event.start_s, event.end_s) == (0.1, 0.2)
    with pytest.raises(InputError, match="3 classes, but one probability is expected; give column=0 … 2"):
        Segments(HZ).push(p)
    with pytest.raises(InputError, match="column=3: the output has 3 classes"):
        Segments(HZ, column=3).push(p)


@pytest.mark.parametrize("delay", [0, 3, 17])
@pytest.mark.parametrize("pulse", [1, 4])
def test_the_delay_is_in_known_s_only(delay: int, pulse: int) -> None:
    p = walk(np.random.default_rng(4), 200)
    plain = whole(Segments(FrameClock.of(HZ)), p)
    late = whole(Segments(FrameClock(FrameClock.of(HZ).rate_hz, delay, pulse)), p)
    assert [(event.start_s, event.end_s, event.score) for event in late] == [
        (event.start_s, event.end_s, event.score) for event in plain
    ]
    for early, other in zip(plain[:-1], late[:-1]):
        assert other.known_s == ceil((round(early.known_s * HZ) + delay) / pulse) * pulse / HZ


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": float("nan")}, "threshold=nan: must be a finite number"),
        ({"off_threshold": 0.6}, "off_threshold=0.6: must not be above threshold=0.5"),
        ({"min_speech_s": -1.0}, "min_speech_s=-1.0: must be 0 or more seconds"),
        ({"onset": "any"}, "onset=any: must be length or run"),
        ({"pad_after_s": 0.2}, "pad_after_s=0.2: longer than min_silence_s=0"),
        ({"max_s": 0.1, "min_speech_s": 0.2}, "max_s=0.1: must be longer than min_speech_s=0.2"),
        ({"split_silence_s": 0.1}, "split_silence_s=0.1: applies to segments that are cut; give max_s too"),
        ({"smooth_s": float("inf")}, "smooth_s=inf: must be 0 or more seconds"),
    ],
)
def test_segments_refuse_bad_parameters(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}") as caught:
        Segments(HZ, **settings)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("rules", [Segments.silero, Segments.fireredvad])
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"threshold": float("nan")}, "threshold=nan: must be a finite number"),
        ({"min_speech_s": -1.0}, "min_speech_s=-1.0: must be 0 or more seconds"),
        ({"min_silence_s": -0.005}, "min_silence_s=-0.005: must be 0 or more seconds"),
        ({"pad_s": -0.01}, "pad_s=-0.01: must be 0 or more seconds"),
    ],
    ids=["threshold", "speech", "silence", "padding"],
)
def test_rules_of_other_projects_refuse_bad_parameters(
    rules: Callable[..., Segments], settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(message)}"):
        rules(HZ, **settings)


def test_padding_longer_than_the_silence_is_named_as_given() -> None:
    message = (
        "pad_s=0.5: longer than min_silence_s=0.1, so segments could overlap; give a longer min_silence_s"
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        Segments.silero(HZ, pad_s=0.5)


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ([0, np.nan], r"frame 4, class 0: nan is not a probability"),
        ([np.inf], r"frame 3, class 0: inf"),
        (
            np.zeros((1, 2, 1)),
            r"float64 \[1, 2, 1\]: probabilities are numbers \[frames\] or \[frames, classes\]",
        ),
        (np.zeros((2, 2)), "2 classes after frames of 1"),
        (np.zeros((3, 0)), r"float64 \[3, 0\]: probabilities are numbers"),
        (["a"], "probabilities are numbers"),
    ],
    ids=["NaN", "infinity", "too many axes", "too many classes", "no classes", "text"],
)
def test_bad_frames_leave_a_detector_as_it_was(frames: Any, message: str) -> None:
    detector = Segments(HZ)
    detector.push([0, 1, 1])
    with pytest.raises(InputError, match=message):
        detector.push(frames)
    (event,) = detector.push([1, 0])
    assert (event.start_s, event.end_s) == (0.01, 0.04)
    assert detector.flush() == []


@pytest.mark.parametrize(
    "call", [lambda detector: detector.flush(), lambda detector: detector.push([1])], ids=["flush", "push"]
)
def test_a_detector_that_has_ended_refuses(call: Callable[[Segments], object]) -> None:
    detector = Segments(HZ)
    detector.flush()
    with pytest.raises(InputError, match=r"has ended; call reset\(\)"):
        call(detector)


def test_a_detector_needs_a_rate() -> None:
    with pytest.raises(InputError, match="rate_hz=0: must be more than 0"):
        Segments(0)
