"""Inputs of other lengths are made of the example's frames."""

from typing import Any

import numpy as np
import pytest

from pulse.facts import Array
from pulse.torch.inputs import SampledInputs, draw_inputs, lengths_of


def draw(samples: dict[str, SampledInputs], lengths: dict[str, int]) -> dict[str, Array]:
    return draw_inputs(samples, {**lengths_of(samples), **lengths}, np.random.default_rng(0))


def test_frames_stay_whole_and_inputs_of_a_symbol_together() -> None:
    """Token, mask and features of a frame belong together, and a table over two axes of one symbol follows on both."""
    frames = np.arange(20)
    samples = {
        "token": SampledInputs(frames[None], {1: "T"}),
        "mask": SampledInputs(frames % 3 == 0, {0: "T"}),
        "feature": SampledInputs(np.stack([frames, -frames]).astype(np.float32), {1: "T"}),
        "table": SampledInputs(100 * frames[:, None] + frames, {0: "T", 1: "T"}),
    }
    for length in (7, 51):
        drawn_inputs = draw(samples, {"T": length})
        token = drawn_inputs["token"][0]
        assert token.shape == (length,)
        assert token.dtype == frames.dtype
        assert set(token) <= set(frames)
        assert len(set(token)) > length // 4
        assert (np.diff(token) != 1).any()
        np.testing.assert_array_equal(drawn_inputs["mask"], token % 3 == 0)
        np.testing.assert_array_equal(drawn_inputs["feature"], np.stack([token, -token]).astype(np.float32))
        np.testing.assert_array_equal(drawn_inputs["table"], 100 * token[:, None] + token)


def test_symbols_are_apart() -> None:
    samples = {
        "x": SampledInputs(np.arange(60).reshape(2, 3, 10), {0: "B", 2: "T"}),
        "h": SampledInputs(np.arange(3.0), {}),
    }
    drawn_inputs = draw(samples, {"T": 7, "B": 5})
    assert drawn_inputs["x"].shape == (5, 3, 7)
    np.testing.assert_array_equal(drawn_inputs["h"], samples["h"].value)
    np.testing.assert_array_equal(draw(samples, {"B": 5})["x"] % 10, np.tile(np.arange(10), (5, 3, 1)))


def test_the_example_itself_is_drawn_without_lengths() -> None:
    value = np.random.default_rng(0).standard_normal((3, 20)).astype(np.float16)
    np.testing.assert_array_equal(draw({"x": SampledInputs(value, {1: "T"})}, {})["x"], value)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.25])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_that_are_all_alike_become_noise(level: float, dtype: Any) -> None:
    """The noise has the example's type, sign and scale."""
    drawn_input = draw({"x": SampledInputs(np.full((2, 30), level, dtype), {1: "T"})}, {"T": 50})["x"]
    assert drawn_input.shape == (2, 50)
    assert drawn_input.dtype == dtype
    assert np.unique(drawn_input).size > 20
    if level:
        assert (drawn_input * level >= 0).all()
        assert np.abs(drawn_input).max() <= 2 * abs(level)
    else:
        assert (drawn_input < 0).any()
        assert (drawn_input > 0).any()


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(np.zeros(30, np.int64), id="integers"),
        pytest.param(np.ones(30, np.bool_), id="truth values"),
        pytest.param(np.full(1, 0.5), id="single number"),
    ],
)
def test_integers_bools_and_scalars_are_not_replaced_by_noise(value: Array) -> None:
    np.testing.assert_array_equal(draw({"x": SampledInputs(value, {})}, {})["x"], value)
