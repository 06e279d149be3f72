"""The time axis is found by trying other lengths; on plain functions, so that none needs PyTorch."""

import numpy as np
import pytest

from pulse.errors import InputError
from pulse.facts import Array
from pulse.torch.axes import describe_time, find_time

Feeds = dict[str, Array]


def strided_channels(feeds: Feeds) -> Feeds:
    """Channels are fixed; a length must be a multiple of 4."""
    x = feeds["x"]
    if x.shape[1] != 2 or x.shape[2] % 4:
        raise InputError("RuntimeError: shape")
    return {"y": x.reshape(1, 2, -1, 4).sum(-1)}


def test_the_time_axis_is_found_among_several() -> None:
    axes = find_time("M", strided_channels, {"x": np.ones((1, 2, 40), np.float32)})
    assert axes == {"x": {2: "T"}}
    assert describe_time(axes).startswith("time (T) is axis 2 of x: ")


def test_the_time_axis_is_found_in_each_input() -> None:
    def add_inputs(feeds: Feeds) -> Feeds:
        if feeds["a"].shape != feeds["b"].shape or feeds["a"].shape[1] != 3:
            raise InputError("RuntimeError: sizes differ")
        return {"y": feeds["a"] + feeds["b"]}

    x = np.ones((1, 3, 40), np.float32)
    assert find_time("M", add_inputs, {"a": x, "b": x}) == {"a": {2: "T"}, "b": {2: "T"}}


def test_other_inputs_of_the_length_that_is_found_are_time_too() -> None:
    """A loop over the frames of ``a`` reads as many of ``b``, which may be longer."""

    def pair_frames(feeds: Feeds) -> Feeds:
        if feeds["a"].shape[1] > feeds["b"].shape[1]:
            raise InputError("IndexError: out of range")
        return {"y": feeds["a"] + feeds["b"][:, : feeds["a"].shape[1]]}

    x = np.ones((1, 40, 1), np.float32)
    assert find_time("M", pair_frames, {"a": x, "b": x}) == {"a": {1: "T"}, "b": {1: "T"}}

    def add_constant(feeds: Feeds) -> Feeds:
        if feeds["b"].shape != (1, 40, 1):
            raise InputError("RuntimeError: shape")
        return {"y": feeds["a"] * feeds["b"].sum()}

    assert find_time("M", add_constant, {"a": x, "b": x}) == {"a": {1: "T"}}


def test_lengths_that_are_multiples_are_found() -> None:
    """Features, and 32 samples for each frame."""

    def upsample_features(feeds: Feeds) -> Feeds:
        if feeds["features"].shape[1] != 80 or feeds["sound"].shape[1] != 32 * feeds["features"].shape[2]:
            raise InputError("RuntimeError: shape")
        return {"y": feeds["sound"] * 2}

    feeds = {"sound": np.ones((1, 640), np.float32), "features": np.ones((1, 80, 20), np.float32)}
    assert find_time("M", upsample_features, feeds) == {"sound": {1: "32*T"}, "features": {2: "T"}}


def test_multiples_of_a_length_that_no_input_has_are_not_guessed() -> None:
    def join(feeds: Feeds) -> Feeds:
        x, y = feeds["x"], feeds["y"]
        if x.shape[:2] != (1, 4) or 3 * x.shape[2] != 2 * y.shape[1]:
            raise InputError("RuntimeError: shape")
        return {"y": y * 2}

    assert (
        find_time("M", join, {"x": np.ones((1, 4, 8), np.float32), "y": np.ones((1, 12), np.float32)}) == {}
    )


def test_several_axes_are_not_guessed() -> None:
    with pytest.raises(
        InputError, match=r'along several axes; .*dynamic=\{"x": \{0: "T"\}\}; .*none is: dynamic=\{\}'
    ):
        find_time("M", lambda feeds: {"y": feeds["x"] * 2}, {"x": np.ones((3, 40), np.float32)})


def test_a_module_of_one_length_has_no_time_axis() -> None:
    def same_feeds(feeds: Feeds) -> Feeds:
        if feeds["x"].shape != (1, 40):
            raise InputError("RuntimeError: shape")
        return feeds

    assert find_time("M", same_feeds, {"x": np.ones((1, 40), np.float32)}) == {}
    assert find_time("M", lambda feeds: {"y": np.ones(3)}, {"x": np.ones((1, 40), np.float32)}) == {}
    with pytest.raises(InputError, match="M does not run on the example: RuntimeError: shape"):
        find_time("M", same_feeds, {"x": np.ones((1, 41), np.float32)})
