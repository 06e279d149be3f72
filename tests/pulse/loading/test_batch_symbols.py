"""Which symbols of a model of chunks count streams, and which one its frames: by place, states, names and the user."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto

import pulse
from pulse.errors import PulsifyError
from tests.noise import normal_noise
from tests.pulse.cases.build import node
from tests.pulse.chunks import models
from tests.pulse.chunks.models import loop, pieces

Shape = Sequence[int | str]


def peak_with_state(x: Shape, h: Shape, kind: int = TensorProto.FLOAT) -> ModelProto:
    """A sum y of x, the peak of the chunk and the peak of h; hn is h + 1. So the result depends on the chunk."""
    nodes = [
        node("ReduceMax", "x", "peak", keepdims=0),
        node("ReduceMax", "h", "past", keepdims=0),
        node("Add", "x peak", "first"),
        node("Add", "first past", "y"),
        node("Add", "h one", "hn"),
    ]
    one = np.asarray(1, np.float32 if kind == TensorProto.FLOAT else np.int64)
    return models.build(nodes, {"x": x, "h": h}, {"y": x, "hn": h}, {"one": one}, kind)


def assert_streams(
    model: ModelProto, axis: int, shape: Sequence[int], frames: int = 4, **options: Any
) -> None:
    """The stream of chunks of 4 equals the author's loop."""
    x = normal_noise(*shape)
    h_shape = [
        dim.dim_value or 1
        for value in model.graph.input
        if value.name == "h"
        for dim in value.type.tensor_type.shape.dim
    ]
    expected = loop(
        model, [{"x": p} for p in pieces(x, axis, frames)], {"h": ("hn", np.zeros(h_shape, np.float32))}
    )
    program = models.stream(model, frames, backend="numpy", **options)
    assert program.model.chunks is not None
    assert (program.model.chunks.pulse, program.inputs[0].axis) == (frames, axis)
    state = program.spawn()
    for piece, step in zip(pieces(x, axis, frames), expected):
        np.testing.assert_allclose(state.step(piece)["y"], step["y"], 1e-6)


@pytest.mark.parametrize("name", ["n", "N", "b", "B", "bs", "batch", "num_batches", "T"])
@pytest.mark.parametrize(
    ("place", "options"),
    [
        ([1, "?", 5], {}),
        ([1, "?", 5], {"axes": {"x": 1}}),
        (["?", 1, 5], {"axes": {"x": 0}}),
        (["?", 5], {"axes": {"x": 0}}),
        (["?"], {}),
        (["?", 1, 5], {"symbol": "?"}),
    ],
    ids=["second axis", "second axis given", "first axis given", "two axes", "vector", "symbol given"],
)
def test_any_name_may_count_frames(name: str, place: Shape, options: dict[str, Any]) -> None:
    """A dim called like a batch counts frames if its place or the user says so."""
    shape = [name if size == "?" else size for size in place]
    named = {**options, **({"symbol": name} if "symbol" in options else {})}
    axis = shape.index(name)
    sizes = [20 if size == name else int(size) for size in shape]
    assert_streams(peak_with_state(shape, [1, 3]), axis, sizes, **named)


@pytest.mark.parametrize(
    ("x", "h", "axis", "options"),
    [
        (["T", "B", 5], [1, "B", 3], 0, {}),
        (["T", "streams", 5], [1, "streams", 3], 0, {}),
        (["n", "batch", 5], [1, "batch", 3], 0, {}),
        (["B", "T", 5], [1, "B", 3], 1, {}),
        (["streams", "T", 5], [1, "streams", 3], 1, {}),
        (["B", "N", 5], [1, "B", 3], 1, {}),
        (["B", "T", 5], [1, 1, 3], 1, {}),
        (["streams", "T", 5], [1, 1, 3], 1, {}),
        (["T", "B", 5], [1, 1, 3], 0, {"symbol": "T"}),
        (["T", "B", 5], [1, 1, 3], 0, {"axes": {"x": 0}}),
        (["N", "B", 5], [1, 1, 3], 0, {"axes": {"x": 0}}),
    ],
    ids=lambda value: ",".join(map(str, value)) if isinstance(value, list) else str(value),
)
def test_a_symbol_beside_time_counts_streams(x: Shape, h: Shape, axis: int, options: dict[str, Any]) -> None:
    """The time axis is first or second; the state, the names, the order or the user tells which."""
    sizes = [20 if number == axis else size if isinstance(size, int) else 1 for number, size in enumerate(x)]
    assert_streams(peak_with_state(x, h), axis, sizes, **options)


@pytest.mark.parametrize(
    ("x", "h", "pulse_frames"),
    [
        (["N", 4], [1, 3], 4),
        (["batch", 4], ["batch", 3], 8),
        (["N", 1, 4], [2, "N", 3], 3),
        (["B", 1, 4], [3], None),
    ],
    ids=["as long as the pulse", "of a state", "of a state's second axis", "no pulse"],
)
def test_a_lone_symbol_may_count_streams(x: Shape, h: Shape, pulse_frames: int | None) -> None:
    """The symbol comes first, and a state has it, or the other axes are a chunk of this pulse."""
    program = models.stream(peak_with_state(x, h), pulse_frames, backend="numpy")
    assert program.model.chunks is not None
    assert (program.inputs[0].axis, list(program.model.sizes.values())) == (1, [1])


@pytest.mark.parametrize("name", ["n", "B", "batch"])
@pytest.mark.parametrize("rest", [[1, 5], [5]], ids=["features", "sound"])
def test_a_lone_symbol_with_a_pulse_is_doubtful(name: str, rest: list[int]) -> None:
    """The symbol may count streams, each a chunk, or frames; both ways out of the message work."""
    model = peak_with_state([name, *rest], [1, 3])
    shape = ",".join(map(str, [1, *rest]))
    message = (
        f'x: its dim {name} may count .*no axis of 4 frames.*"x": 0}}.* frames, inputs={{"x": "{shape}"}} if'
    )
    with pytest.raises(PulsifyError, match=message):
        pulse.stream(model, pulse=4)
    with pytest.raises(PulsifyError, match=message):
        models.stream(model, pulse=4)
    assert_streams(model, 0, [20, *rest], axes={"x": 0})
    program = models.stream(model, inputs={"x": shape}, backend="numpy")
    assert program.inputs[0].axis == 1


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        (["T", "B", 5], {}, r"several dims of a chunk have names \(T, B\)"),
        ([1, "n", "b"], {}, r"several dims of a chunk have names \(n, b\)"),
        (["B", "T", "n"], {}, r"several dims of a chunk have names \(T, n\)"),
        ([1, "n", 4], {"axes": {"x": 2}}, "the dim n has no size; give it with inputs="),
        ([1, "T", "mics"], {"axes": {"x": 1}}, "the dim mics has no size"),
    ],
    ids=["time first", "features too", "three", "beside the axis", "beside the symbol"],
)
def test_undecided_symbols_are_refused(x: Shape, options: dict[str, Any], message: str) -> None:
    with pytest.raises(PulsifyError, match=message):
        models.stream(peak_with_state(x, [1, 1, 3]), 4, **options)


def test_symbols_of_states_may_count_streams() -> None:
    """Each input has a name for its streams, as some exporters write them; the way out of the message works."""
    model = peak_with_state([1, "T", 5], ["h_axis_0", 3])
    with pytest.raises(
        PulsifyError, match=r'the dim h_axis_0 has no size.*"h": "1,3".*if h_axis_0 counts streams'
    ):
        models.stream(model, 4)
    assert_streams(model, 1, [1, 20, 5], inputs={"h": "1,3"})


@pytest.mark.parametrize(
    ("h", "message"),
    [
        (
            [3, "k", "m"],
            "the dims k, m have no sizes; give them with inputs= if the state h has the same length",
        ),
        (["k", "b"], r'the dim k has no size; .*"h": "1,b"} if k counts streams'),
        (["k", "m"], "the dim m has no size; give it with inputs= if the state h has the same length"),
    ],
    ids=["two of a cache", "a batch by name", "a batch by place"],
)
def test_open_sizes_of_states_are_named(h: Shape, message: str) -> None:
    """At most one symbol of a state counts streams."""
    with pytest.raises(PulsifyError, match=message):
        models.stream(peak_with_state([1, "T", 5], h), 4)
