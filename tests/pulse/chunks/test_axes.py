"""The time axes of outputs: by the input, by a longer chunk, by the shape, or the user is asked."""

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from pulse.chunks.axes import output_axes
from pulse.errors import PulsifyError
from tests.noise import normal_noise
from tests.pulse.cases.build import node
from tests.pulse.chunks import models
from tests.pulse.chunks.models import loop, pieces

F = np.dtype(np.float32)


@pytest.mark.parametrize(
    ("shape", "chunk", "axis", "frames", "expected"),
    [
        ([1, 1], [1, 512], 1, 512, [1]),
        ([1, 256], [1, 256], 1, 256, [1]),
        ([1, 256], [1, 512], 1, 512, [1]),
        ([1, 22], [1, 42], 1, 42, [1]),
        ([1, 1, 256], [1, 1, 512], 2, 256, [2]),
        ([1, 1, 256], [1, 256], 1, 256, [2]),
        ([1, 8], [1, 8, 40], 1, 8, [1]),
        ([1, 8, 1], [1, 8, 80], 1, 8, [1]),
        ([1, 64, 4], [1, 80, 32], 2, 32, [2]),
        ([1, 16, 64], [1, 67, 80], 1, 32, [1]),
        ([1, 1, 64], [1, 9, 80], 1, 4, [1]),
        ([1, 16, 50], [1, 80, 16], 2, 16, [1]),
        ([1, 4, 64], [1, 1, 4, 32], 2, 4, [1]),
        ([1, 257, 1], [1, 1, 80], 1, 1, [2]),
        ([1, 1, 1], [1, 1, 1, 32], 2, 1, [1]),
        ([1, 1, 1], [1, 1, 4, 32], 2, 4, [1]),
        ([1, 1, 1, 1], [1, 1, 80], 1, 1, [1]),
        ([1, 80, 3], [1, 1, 1, 8], 2, 1, [0]),
        ([2, 3], [1, 1, 8], 1, 1, []),
        ([], [1, 1, 8], 1, 1, []),
        ([1, 512, 1], [1, 1, 512], 2, 512, [1, 2]),
        ([1, 512, 1], [1, 512], 1, 512, [1, 2]),
        ([1, 16, 64], [1, 67, 80], 1, 64, [1, 2]),
        ([1, 16, 64], [1, 80, 16], 2, 16, [1, 2]),
        ([1, 1, 64], [1, 80, 8], 2, 8, [1, 2]),
        ([1, 8, 1], [1, 32, 80], 1, 32, [1, 2]),
        ([1, 8, 8], [1, 80, 3, 8], 3, 8, [1, 2]),
    ],
    ids=str,
)
def test_possible_axes_of_an_output(
    shape: list[int], chunk: list[int], axis: int, frames: int, expected: list[int]
) -> None:
    """The axis is the input's, or found by the frames or the shape; there is none, or several are plausible."""
    assert sorted(axis for axis, _ in output_axes(shape, F, chunk, axis, frames)) == expected


def encoder(frames: int | str, features: int = 8, turned: bool = False) -> ModelProto:
    """Audio x [1, 1, frames] to y [1, features, frames / 8] or turned, with a state h that is added."""
    nodes = [
        node("Conv", "x taps", "coded", strides=[8]),
        node("Add", "coded h", "sum"),
        node("ReduceMean", "sum", "hn", keepdims=1),
        node("Transpose", "sum", "y", perm=[0, 2, 1] if turned else [0, 1, 2]),
    ]
    size = frames // 8 if isinstance(frames, int) else "out"
    shape = [1, size, features] if turned else [1, features, size]
    constants = {"taps": normal_noise(features, 1, 8, seed=1)}
    return models.build(
        nodes, {"x": [1, 1, frames], "h": [1, 1, 1]}, {"y": shape, "hn": [1, 1, 1]}, constants
    )


def assert_encodes(model: ModelProto, frames: int, axis: int, samples: int, **options: Any) -> None:
    """The stream equals the author's loop, joined along ``axis``."""
    x = normal_noise(1, 1, samples)
    first = {"h": ("hn", np.zeros((1, 1, 1), np.float32))}
    steps = loop(model, [{"x": piece} for piece in pieces(x, 2, frames)], first)
    program = models.stream(model, frames, backend="numpy", **options)
    state = program.spawn()
    assert program.outputs[0].axis == axis
    for piece, step in zip(pieces(x, 2, frames), steps):
        np.testing.assert_allclose(state.step(piece)["y"], step["y"], 1e-5, 1e-6)


@pytest.mark.parametrize("turned", [False, True], ids=["features first", "time first"])
@pytest.mark.parametrize("frames", [8, 16, 64])
def test_a_longer_chunk_shows_the_time_axis(turned: bool, frames: int) -> None:
    """A file of any length is right even if it has as many features as frames."""
    model = encoder("time", frames, turned)
    assert_encodes(model, frames, 1 if turned else 2, 4 * frames)


@pytest.mark.parametrize("frames", [8, 16, 64])
def test_an_ambiguous_axis_is_asked_for(frames: int) -> None:
    """A file of one length with as many features as frames: the way out works."""
    model = encoder(frames, frames)
    shape = f"1,{frames},{frames // 8}"
    message = rf'y: its shape {shape} does not tell.*axis 1 \({frames} in a chunk\) or axis 2.*{{"y": 2}}'
    with pytest.raises(PulsifyError, match=message):
        models.stream(model, axes={"x": 2})
    assert_encodes(model, frames, 2, 4 * frames, axes={"x": 2, "y": 2})


@pytest.mark.parametrize("classes", [2, 5, 8])
def test_an_output_of_constant_shape_is_one_frame(classes: int) -> None:
    """Classes [1, classes] of a chunk of any length are joined along the first axis; equal sizes are asked for."""
    nodes = [
        node("ReduceMean", "x", "mean", keepdims=1, axes=[1]),
        node("Mul", "mean weights", "scores"),
        node("Add", "scores h", "y"),
        node("ReduceMean", "y", "hn", keepdims=1),
    ]
    inputs, outputs = {"x": [1, "time"], "h": [1, 1]}, {"y": [1, classes], "hn": [1, 1]}
    model = models.build(nodes, inputs, outputs, {"weights": normal_noise(1, classes, seed=2)})
    assert models.stream(model, 16, backend="numpy").outputs[0].axis == 0
    with pytest.raises(PulsifyError, match=r'y: its shape .* axis 0 .*or axis 1 .*axes={"y": 1}'):
        models.stream(model, classes, backend="numpy")
    assert models.stream(model, classes, backend="numpy", axes={"y": 0}).outputs[0].axis == 0


def test_a_model_of_one_length_has_no_longer_chunk() -> None:
    """The file leaves the length open, but a state fixes it: the shape decides."""
    nodes = [node("Add", "x h", "y"), node("Identity", "y", "hn")]
    shapes = {"x": [1, "time"], "h": [1, 6]}, {"y": [1, 6], "hn": [1, 6]}
    assert models.stream(models.build(nodes, *shapes), 6, backend="numpy").outputs[0].axis == 1


@pytest.mark.parametrize("axes", [None, {"mask": 2}], ids=["given once", "a stream"])
def test_a_mask_streams_only_if_its_axis_is_given(axes: dict[str, int] | None) -> None:
    """The features x [1, 2, 4] count the frames, though a mask [1, 1, 4] is the first input."""
    nodes = [
        node("Cast", "mask", "factors", to=TensorProto.FLOAT),
        node("Add", "x h", "sum"),
        node("Mul", "sum factors", "y"),
        node("ReduceMean", "sum", "hn", keepdims=1, axes=[1]),
    ]
    model = models.build(nodes, {"x": [1, 2, 4], "h": [1, 1, 4]}, {"y": [1, 2, 4], "hn": [1, 1, 4]})
    mask = helper.make_tensor_value_info("mask", TensorProto.BOOL, [1, 1, 4])
    model.graph.input.insert(0, mask)
    values = np.array([[[True, False, True, True]]])
    loaded = {"constants": {"mask": values}} if axes is None else {}
    x = normal_noise(1, 8, 4)
    first = {"h": ("hn", np.zeros((1, 1, 4), np.float32))}
    feeds = [{"x": piece, "mask": values} for piece in pieces(x, 1, 2)]
    program = models.stream(
        model, 2 if axes is None else 4, backend="numpy", axes={"x": 1, **(axes or {})}, **loaded
    )
    assert program.outputs[0].axis == 1
    state = program.spawn()
    for feed, step in zip(feeds, loop(model, feeds, first)):
        streams = {name: feed[name] for name in feed if axes is not None or name != "mask"}
        np.testing.assert_allclose(state.step(streams)["y"], step["y"], 1e-5, 1e-6)
