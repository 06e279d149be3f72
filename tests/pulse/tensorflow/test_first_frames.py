"""The first frames of a stream as values: joined before others, and where a loop begins."""

import numpy as np
import pytest

import pulse
from pulse.errors import PulseError
from pulse.facts import Array
from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import F32, I32, Call, GraphDefBuilder, Type

VARIANT = Type("variant")
SLICES = {"T": F32, "Index": I32}


def joined_differences(end: int) -> GraphDefBuilder:
    """Concat(x[:end], x[1:] - x[:-1] / 2), pre-emphasis where ``end`` is 1."""
    builder = GraphDefBuilder()
    builder.place("x", 1, -1, 3)
    numbers = {"a": [0, 0, 0], "b": [0, end, 0], "one": [0, 1, 0], "back": [0, -1, 0], "step": [1, 1, 1]}
    for name, value in numbers.items():
        builder.const(name, value, np.int32)
    builder.const("axis", 1, np.int32)
    builder.const("half", 0.5)
    builder.node("head", "StridedSlice", "x", "a", "b", "step", begin_mask=5, end_mask=5, **SLICES)
    builder.node("later", "StridedSlice", "x", "one", "one", "step", begin_mask=5, end_mask=7, **SLICES)
    builder.node("before", "StridedSlice", "x", "one", "back", "step", begin_mask=7, end_mask=5, **SLICES)
    builder.node("part", "Mul", "before", "half", T=F32)
    builder.node("rest", "Sub", "later", "part", T=F32)
    builder.node("y", "ConcatV2", "head", "rest", "axis", N=2, T=F32, Tidx=I32)
    return builder


def averaging_loop(bare: bool) -> GraphDefBuilder:
    """The state becomes (s + x) / 2; it begins as the first frame, by a lookup, or by a slice that is scaled twice."""
    builder = GraphDefBuilder()
    builder.place("x", -1, 3)
    for name, value in {"zero": [0], "one": [1], "none": 0, "element": [3]}.items():
        builder.const(name, value, np.int32)
    builder.const("two", 2.0)
    builder.node("shape", "Shape", "x", T=F32, out_type=I32)
    builder.node("time", "StridedSlice", "shape", "zero", "one", "one", T=I32, Index=I32, shrink_axis_mask=1)
    if bare:
        builder.node("s", "GatherV2", "x", "none", "none", Tparams=F32, batch_dims=0)
    else:
        builder.node("cut", "StridedSlice", "x", "zero", "one", "one", shrink_axis_mask=1, **SLICES)
        builder.node("twice", "Mul", "cut", "two", T=F32)
        builder.node("s", "RealDiv", "twice", "two", T=F32)
    builder.node("made", "TensorListReserve", "element", "time", element_dtype=F32, shape_type=I32)
    return add_loop(builder, "none", "made")


def from_the_second(writes_first: bool = True) -> GraphDefBuilder:
    """The same over the frames from the second on, the first one being the first result: a scan without beginning."""
    builder = averaging_loop(False)
    for node in builder.proto.node:
        if node.name == "while":
            node.input[0] = "begin"
            node.input[2] = "filled"
    builder.const("begin", 1, np.int32)
    place = "none" if writes_first else "begin"
    builder.node("filled", "TensorListSetItem", "made", place, "s", element_dtype=F32)
    return builder


def add_loop(builder: GraphDefBuilder, begin: str, counter: str) -> GraphDefBuilder:
    """The loop over x, whose state begins as s."""
    arguments = [("i", I32), ("n", I32), ("out", VARIANT), ("s", F32), ("list", VARIANT)]
    builder.function("cond", arguments, [("less", "Less", ("i", "n"), {"T": I32})], {"go": "less:z:0"})
    item = ("list", "i", "element:output:0")
    builder.function(
        "body",
        arguments,
        [
            ("element", "Const", (), {"dtype": I32, "value": np.array([3], np.int32)}),
            ("one", "Const", (), {"dtype": I32, "value": np.array(1, np.int32)}),
            ("half", "Const", (), {"dtype": F32, "value": np.array(0.5, np.float32)}),
            ("frame", "TensorListGetItem", item, {"element_dtype": F32}),
            ("sum", "AddV2", ("s", "frame:item:0"), {"T": F32}),
            ("new", "Mul", ("sum:z:0", "half:output:0"), {"T": F32}),
            ("write", "TensorListSetItem", ("out", "i", "new:z:0"), {"element_dtype": F32}),
            ("next", "AddV2", ("i", "one:output:0"), {"T": I32}),
        ],
        {"a": "next:z:0", "b": "n", "c": "write:output_handle:0", "d": "new:z:0", "e": "list"},
    )
    builder.node("list", "TensorListFromTensor", "x", "element", element_dtype=F32, shape_type=I32)
    builder.node("while", "While", begin, "time", counter, "s", "list", cond=Call("cond"), body=Call("body"))
    builder.node("y", "TensorListStack", "while:2", "element", element_dtype=F32)
    return builder


def average(x: Array, first: int) -> Array:
    state, frames = x[0], list(x[:first])
    for frame in x[first:]:
        state = (state + frame) * np.float32(0.5)
        frames.append(state)
    return np.stack(frames)


@pytest.mark.parametrize("end", [1, 3])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_first_frames_before_later_ones_stream(end: int, backend: str) -> None:
    model = pulse.load(joined_differences(end).data).model.analyse()
    x = normal_noise(1, 7, 3)
    expected = np.concatenate([x[:, :end], x[:, 1:] - x[:, :-1] / 2], 1)
    np.testing.assert_allclose(model.run(x)["y"], expected, rtol=1e-6, atol=1e-6)
    if end > 1:  # y would be longer than x
        with pytest.raises(PulseError, match="the second stream begins where the first one ends"):
            pulse.verify(model, pulse=2, backend=backend)
    else:
        pulse.verify(model, pulse=2, backend=backend).require()


@pytest.mark.parametrize("bare", [False, True])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_loop_whose_state_begins_as_the_first_frame_streams(bare: bool, backend: str) -> None:
    model = pulse.load(averaging_loop(bare).data).model.analyse()
    x = normal_noise(6, 3)
    np.testing.assert_allclose(model.run(x)["y"], average(x, 0), rtol=1e-6, atol=1e-6)
    pulse.verify(model, pulse=2, lengths=(1, 2, 7), backend=backend).require()


def test_a_loop_from_the_second_frame_on_streams() -> None:
    model = pulse.load(from_the_second().data).model.analyse()
    x = normal_noise(6, 3)
    np.testing.assert_allclose(model.run(x)["y"], average(x, 1), rtol=1e-6, atol=1e-6)
    pulse.verify(model, pulse=2, lengths=(1, 2, 7), backend="numpy").require()


def test_a_list_without_its_first_element_runs_offline_only() -> None:
    model = pulse.load(from_the_second(False).data).model.analyse()
    x = normal_noise(6, 3)
    expected = average(x, 1)
    expected[0] = 0
    np.testing.assert_allclose(model.run(x)["y"], expected, rtol=1e-6, atol=1e-6)
    with pytest.raises(PulseError, match="cannot be streamed"):
        pulse.verify(model, backend="numpy")


def test_running_products_of_features_stream() -> None:
    builder = GraphDefBuilder()
    builder.place("x", 1, -1, 5)
    builder.const("axis", 2, np.int32)
    builder.node("y", "Cumprod", "x", "axis", T=F32, Tidx=I32, exclusive=True)
    pulse.verify(pulse.load(builder.data), pulse=2, backend="numpy").require()


def test_frames_that_are_channels_are_normalised_in_streams() -> None:
    """LayerNormalization as Keras 2 writes it: frames as channels, and the statistics of the batch."""
    builder = GraphDefBuilder()
    builder.place("x", 1, -1, 4)
    for name, value in {"one": [1], "two": [2], "frames": [1, -1, 4, 1], "back": [1, -1, 4]}.items():
        builder.const(name, value, np.int32)
    for name, value in {"ones": 1.0, "zeros": 0.0}.items():
        builder.const(f"{name}/value", value)
    builder.const("none", [], np.float32)
    builder.node("shape", "Shape", "x", T=F32, out_type=I32)
    builder.node("time", "StridedSlice", "shape", "one", "two", "one", T=I32, Index=I32)
    for name in ("ones", "zeros"):
        builder.node(name, "Fill", "time", f"{name}/value", T=F32, index_type=I32)
    builder.node("wide", "Reshape", "x", "frames", T=F32, Tshape=I32)
    how = {"is_training": True, "epsilon": 0.001, "data_format": "NCHW", "T": F32}
    builder.node("norm", "FusedBatchNormV3", "wide", "ones", "zeros", "none", "none", **how)
    builder.node("y", "Reshape", "norm", "back", T=F32, Tshape=I32)
    model = pulse.load(builder.data).model.analyse()
    x = normal_noise(1, 6, 4)
    expected = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 0.001)
    np.testing.assert_allclose(model.run(x)["y"], expected, rtol=1e-5, atol=1e-5)
    pulse.verify(model, pulse=2, backend="numpy").require()
