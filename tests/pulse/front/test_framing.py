"""Frames and their sum, against loops over samples."""

from functools import partial
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import InputError
from pulse.facts import Array
from pulse.front import frames, overlap_add
from pulse.front.windows import window_values
from tests.noise import next_noise, normal_noise
from tests.pulse.front.stream_checks import assert_near, assert_refused, assert_streams_agree, offline, sound

PADDING = {"constant": "constant", "edge": "edge", "reflect": "reflect", "replicate": "edge"}


def cut(x: Array, size: int, hop: int) -> Array:
    count = max(0, (x.shape[1] - size) // hop + 1)
    rows = [x[:, j * hop : j * hop + size] for j in range(count)]
    return np.stack(rows, 1) if rows else np.zeros((x.shape[0], 0, size), x.dtype)


def overlap_sum(y: Array, hop: int) -> Array:
    batch, count, size = y.shape
    total = np.zeros((batch, (count - 1) * hop + size))
    for j in range(count):
        total[:, j * hop : j * hop + size] += y[:, j]
    return total


@pytest.mark.parametrize(("size", "hop"), [(8, 4), (400, 160), (5, 3), (6, 6), (3, 5), (7, 1)])
def test_frames_are_slices_of_the_sound(size: int, hop: int) -> None:
    several = [sound(length) for length in (5, 399, 1003)]
    model = frames(size, hop)
    for x in several:
        np.testing.assert_array_equal(offline(model, x), cut(x, size, hop))
    assert_streams_agree(model, several)


@pytest.mark.parametrize("mode", list(PADDING))
@pytest.mark.parametrize(("start", "end"), [(6, 0), (3, 5), (0, 4)])
def test_padded_frames_equal_those_of_padded_sound(mode: str, start: int, end: int) -> None:
    x = sound(103)
    padded = np.pad(x, ((0, 0), (start, end)), mode=PADDING[mode])  # pyright: ignore
    model = frames(8, 4, pad_start=start, pad_end=end, pad_mode=mode)
    np.testing.assert_array_equal(offline(model, x), cut(padded, 8, 4))
    delays = assert_streams_agree(model, x)
    if mode == "constant" and not end:
        assert delays == {"frames": 0}, "leading zeros cost nothing"


def test_each_channel_is_cut_into_windowed_frames() -> None:
    x = sound(200, batch=2)
    model = frames(16, 8, window="hamming", shape="2,T")
    assert_near(offline(model, x), cut(x, 16, 8) * window_values("w", "hamming", 16))
    assert_streams_agree(model, x)


@pytest.mark.parametrize(
    ("size", "hop"), [(8, 4), (512, 128), (5, 3), (6, 6), (3, 5), (9, 1), (40, 2), (7, 4)]
)
def test_overlap_add_agrees_with_the_sum_of_numpy(size: int, hop: int) -> None:
    rng = np.random.default_rng(2)
    several = [next_noise(rng, 1, count, size) for count in (1, 2, 23)]
    model = overlap_add(size, hop)
    for y in several:
        assert_near(offline(model, y), overlap_sum(y, hop))
    assert assert_streams_agree(model, several) == {"sound": 0}


def test_overlap_add_windows_frames_and_trims_ends() -> None:
    y = normal_noise(2, 11, 12, seed=3)
    model = overlap_add(12, 4, window="sqrt_hann", trim_start=5, trim_end=8, shape="2,frames,12")
    expected = overlap_sum(y * window_values("w", "sqrt_hann", 12), 4)[:, 5:-8]
    assert_near(offline(model, y), expected)
    assert_streams_agree(model, y)


def test_verify_proves_frames_and_overlap_add() -> None:
    pulse.verify(frames(16, 8, pad_start=8, pad_end=8, pad_mode="reflect"), pulse=8).require()
    pulse.verify(overlap_add(16, 8), pulse=2).require()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (partial(frames, 0, 4), "frames: size=0 must be an integer from 1"),
        (partial(frames, 4, 1.5), "frames: hop=1.5 must be an integer"),
        (
            partial(frames, 4, 2, pad_mode="circular"),
            "pad_mode='circular' must be one of 'constant', 'zeros'",
        ),
        (partial(frames, 4, 2, shape="1,T,2"), "must have 2 axes, such as '1,T'"),
        (partial(frames, 4, 2, shape="1,T,i16"), "must be f32"),
        (partial(frames, 4, 2, shape="1,T+*"), "must be dims such as '1,80,T'"),
        (partial(frames, 4, 2, shape=7), "must be dims such as"),
        (partial(overlap_add, 4, 2, shape="1,frames,5"), "are not of size=4"),
        (partial(overlap_add, 4, 2, shape="1,frames,n"), "must be a number of at least 1"),
        (partial(overlap_add, 4, 2, trim_end=-1), "trim_end=-1 must be an integer from 0"),
    ],
)
def test_frames_and_overlap_add_refuse_bad_arguments(call: Any, message: str) -> None:
    assert_refused(call, message)


def test_a_stream_too_short_to_add_is_refused() -> None:
    with pytest.raises(InputError, match="frames"):
        overlap_add(8, 4).run(np.zeros((1, 0, 8), np.float32))
