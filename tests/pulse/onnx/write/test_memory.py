"""Delays, last frames, ends and positions in a file."""

from collections.abc import Callable

import numpy as np
import pytest

import pulse
from pulse.dim import SymbolScope, TDim
from pulse.facts import TypedFact
from pulse.graph import Graph
from pulse.models import TypedModel
from pulse.onnx.write.model import to_onnx
from pulse.ops.concat import Concat
from pulse.ops.conv import NO_PAD
from pulse.ops.elementwise import Elementwise
from pulse.ops.op import Op
from pulse.ops.pad import Pad
from pulse.ops.slice import Slice
from pulse.ops.source import Source
from pulse.typed import TypedGraph, add_constant
from pulse.wiring import wire
from tests.pulse.cases.build import floats, model, node
from tests.pulse.onnx.write.file_proof import assert_file_streams, assert_model_streams, kinds, read_metadata

CHANNELS = 2


def typed_model(build: Callable[[TypedGraph, TDim], tuple[Op, list[object]]]) -> TypedModel:
    """A model of x [2, T] and one more op over it; what it reads is x where None stands, else a constant."""
    scope = SymbolScope()
    length = TDim.of(scope.symbol("T"))
    scope.assume("T >= 1")
    graph: TypedGraph = Graph()
    fact = TypedFact(np.dtype(np.float32), (TDim.of(CHANNELS), length))
    graph.inputs = graph.add("x", Source(fact), (), [fact])
    op, reads = build(graph, length)
    inputs = [
        graph.inputs[0] if value is None else add_constant(graph, "c", np.asarray(value)) for value in reads
    ]
    graph.set_outputs(wire(graph, "y", op, inputs), ["y"])
    return TypedModel(graph, scope, "small")


def pads(before: int, after: int, **how: object) -> Pad:
    return Pad((NO_PAD, (TDim.of(before), TDim.of(after))), **how)


@pytest.mark.parametrize("frames", [1, 2, 3, 7])
@pytest.mark.parametrize("kernel", [2, 3, 8])
def test_windows_move_no_more_than_they_must(kernel: int, frames: int) -> None:
    """Past frames are joined to the pulse; of a pulse as long as the past, the pulse itself is the next state."""
    weight = {"w": floats("w", 2, 2, kernel) * 0.4}
    conv = node("Conv", "x w", pads=[kernel - 1, 0])
    proto = assert_model_streams(model([conv], {"x": floats("x", 1, 2, 9)}, weight, 17, {"x": 2}), frames)
    past = kernel - 1
    assert kinds(proto) == ["Concat", *([] if past == frames else ["Slice"]), "Conv"] + ["Identity"] * (
        past == frames
    )
    (state,) = read_metadata(proto).states
    assert state.output == "y.window.state.next"
    assert not state.initial


@pytest.mark.parametrize("frames", [1, 2, 4])
def test_the_earlier_of_two_ways_waits_in_a_queue(frames: int) -> None:
    conv = node("Conv", "x w", "later", pads=[0, 2])
    nodes = [conv, node("Add", "later x")]
    weight = {"w": floats("w", 2, 2, 3) * 0.4}
    proto = assert_model_streams(model(nodes, {"x": floats("x", 1, 2, 9)}, weight, 17, {"x": 2}), frames)
    assert read_metadata(proto).outputs[0].delay == 2
    assert any(state.input.endswith("delay.state") for state in read_metadata(proto).states)


@pytest.mark.parametrize("frames", [1, 2, 5])
@pytest.mark.parametrize("ahead", [0, 2])
def test_the_last_frames_are_an_output(ahead: int, frames: int) -> None:
    """A cache of the newest frames as an output; zeros where there were fewer, none of the delay's."""
    weight = {"w": floats("w", 2, 2, ahead + 1) * 0.4}
    weight |= {name: np.array([value]) for name, value in (("start", -3), ("stop", 1 << 40), ("axis", 2))}
    nodes = [node("Conv", "x w", "seen", pads=[0, ahead]), node("Slice", "seen start stop axis", "cache")]
    nodes.append(node("Relu", "seen"))
    source = model(nodes, {"x": floats("x", 1, 2, 9)}, weight, 17, {"x": 2}, "y cache")
    proto = assert_model_streams(source, frames, (3, 4, 9, 16))
    assert read_metadata(proto).end == "end"
    assert [awaited.length for awaited in read_metadata(proto).awaits] == ["T"]


@pytest.mark.parametrize("frames", [1, 3, 4])
@pytest.mark.parametrize(
    "op",
    [
        pads(3, 2, fill=0.5),
        pads(0, 2),
        pads(2, 1, mode="edge"),
        pads(2, 3, mode="reflect"),
        pads(0, 2, mode="reflect"),
        pads(2, 3, mode="symmetric"),
    ],
    ids=["fill", "at the end", "edge", "reflect", "mirrored-end", "symmetric"],
)
def test_padding_is_written(op: Pad, frames: int) -> None:
    """Constants are chosen by position, edge and mirrored frames looked up."""
    source = typed_model(lambda graph, length: (op, [None]))
    proto = assert_file_streams(source, source.pulsify(pulse=frames), (1, 4, 5, 6, 16))
    assert read_metadata(proto).end == "end"
    assert read_metadata(proto).outputs[0].length in ("T+5", "T+2", "T+3")


@pytest.mark.parametrize("frames", [1, 3, 4])
@pytest.mark.parametrize(("head", "tail"), [(2, 0), (0, 3), (2, 3)])
@pytest.mark.parametrize("ahead", [0, 2])
def test_constants_at_the_ends_are_written(ahead: int, head: int, tail: int, frames: int) -> None:
    """Tables before and after; frames before a stream without delay are the first state."""
    constants = {
        "w": floats("w", 2, 2, ahead + 1),
        "h": floats("h", 1, 2, head),
        "t": floats("t", 1, 2, tail),
    }
    parts = " ".join(["h"] * (head > 0) + ["seen"] + ["t"] * (tail > 0))
    nodes = [node("Conv", "x w", "seen", pads=[0, ahead]), node("Concat", parts, axis=2)]
    assert_model_streams(model(nodes, {"x": floats("x", 1, 2, 9)}, constants, 17, {"x": 2}), frames)


def test_the_first_state_is_in_the_file() -> None:
    """Frames known before the stream begins, in the type and shape of the state."""
    source = typed_model(lambda graph, length: (Concat(1), [floats("head", CHANNELS, 3), None]))
    (state,) = read_metadata(assert_file_streams(source, source.pulsify(pulse=2))).states
    value = state.value()
    assert value is not None
    np.testing.assert_array_equal(value, floats("head", CHANNELS, 3))


@pytest.mark.parametrize("frames", [1, 3])
def test_a_table_by_position_is_added_to_a_late_stream(frames: int) -> None:
    """A constant cut to the stream's length, added to a stream that is late."""
    table = floats("table", 1, 2, 40)
    single, zero = np.array([1]), np.array([0])
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape two", "length"),
        node("Slice", "table zero length two", "rows"),
        node("Conv", "x w", "later", pads=[0, 1]),
        node("Add", "later rows"),
    ]
    constants = {"table": table, "one": single, "zero": zero, "two": np.array([2]), "w": floats("w", 2, 2, 2)}
    proto = assert_model_streams(model(nodes, {"x": floats("x", 1, 2, 9)}, constants, 17, {"x": 2}), frames)
    assert [state.input for state in read_metadata(proto).states if state.input == "pulses"]


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int64, np.int32])
def test_states_keep_the_type_of_the_model(dtype: type) -> None:
    """The file computes in the model's own types."""
    feeds = {"x": (floats("x", 9, 2) * 4).astype(dtype)}
    nodes = [
        node("Concat", "zero x", "padded", axis=0),
        node("Slice", "padded from to", "past"),
        node("Sub", "x past"),
    ]
    constants = {"zero": np.ones((2, 2), dtype), "from": np.array([0]), "to": np.array([-2])}
    source = model(nodes, feeds, constants, 17, {"x": 0})
    simplified = pulse.load(source).model.analyse().declutter()
    proto = assert_file_streams(simplified, simplified.pulsify(pulse=3), backends=("numpy",))
    (state,) = read_metadata(proto).states
    value = state.value()
    assert value is not None
    assert value.dtype == dtype


def test_an_input_that_does_not_stream_stays_an_input() -> None:
    """The input is fed with every pulse."""
    feeds = {"x": floats("x", 9, 2), "gain": floats("gain", 2)}
    proto = assert_model_streams(model([node("Mul", "x gain")], feeds, None, 17, {"x": 0}), 3)
    assert [(port.name, port.axis) for port in read_metadata(proto).inputs] == [("x", 0), ("gain", None)]
    assert [value.name for value in proto.graph.input] == ["x", "gain"]


def test_outputs_of_one_wire_keep_their_own_names() -> None:
    """Each has its own name in the file, and its old one in the stream that is read back."""
    scope = SymbolScope()
    fact = TypedFact(np.dtype(np.float32), (TDim.of(scope.symbol("T")),))
    graph: TypedGraph = Graph()
    graph.inputs = graph.add("x", Source(fact), (), [fact])
    (y,) = wire(graph, "y", Elementwise("tanh"), graph.inputs)
    (late,) = wire(graph, "late", Slice(0, TDim.of(1), fact.shape[0]), [y])
    graph.set_outputs([graph.inputs[0], y, y, late], ["x", "first", "second", "late"])
    source = TypedModel(graph, scope, "names")
    proto = assert_file_streams(source, source.pulsify(pulse=2))
    assert [value.name for value in proto.graph.output][:4] == ["x.1", "first", "second", "late"]
    assert read_metadata(proto).outputs[0].port == "x"


def test_equal_constants_are_stored_once() -> None:
    """Two equal weights are one tensor of the file."""
    weight = floats("w", 2, 2, 3)
    nodes = [node("Conv", "x w", "a"), node("Conv", "a v")]
    source = model(nodes, {"x": floats("x", 1, 2, 9)}, {"w": weight, "v": weight.copy()}, 17, {"x": 2})
    proto = to_onnx(pulse.load(source).analyse().declutter().pulsify(pulse=2))
    assert sum(tuple(tensor.dims) == weight.shape for tensor in proto.graph.initializer) == 1
