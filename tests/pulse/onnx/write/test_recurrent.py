"""Recurrent layers, sums and scans in a file: the operators of ONNX, their state fed back, frames outside ignored."""

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

from tests.pulse.cases.build import floats, model, node
from tests.pulse.cases.recurrent import OUTPUTS, weights
from tests.pulse.onnx.write.file_proof import assert_model_streams, kinds, read_metadata

AHEAD = 2


def layer(op: str, ahead: int, finals: bool, initial: bool = False, **attributes: object) -> ModelProto:
    """A layer over x [T, B, 2], with the last states as outputs, after a convolution that looks ahead."""
    stored = weights(op, 1, 3, 2)
    x = floats(op, 6, 1, 2)
    nodes, source = [], "x"
    if ahead:
        kernel = floats("kernel", 2, 2, ahead + 1) * 0.5
        stored["kernel"] = kernel
        nodes = [
            node("Transpose", "x", "rows", perm=[1, 2, 0]),
            node("Conv", "rows kernel", "seen", pads=[0, ahead]),
            node("Transpose", "seen", "late", perm=[2, 0, 1]),
        ]
        source = "late"
    feeds = {"x": x}
    inputs = f"{source} w r b"
    if initial:
        feeds["h0"] = floats("h0", 1, 1, 3)
        inputs += " _ h0"
    outputs = OUTPUTS[op] if finals else "y"
    nodes.append(node(op, inputs, outputs, hidden_size=3, **attributes))
    constants = {name: value for name, value in stored.items() if name != "p"}
    return model(nodes, feeds, constants, 17, {"x": 0}, outputs)


@pytest.mark.parametrize("frames", [1, 2, 3, 4])
@pytest.mark.parametrize("finals", [False, True])
@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_states_see_frames_of_the_stream_alone(op: str, finals: bool, frames: int) -> None:
    """Two frames of delay end inside of a pulse of 3 or 4; the last states wait for the end."""
    proto = assert_model_streams(layer(op, AHEAD, finals), frames)
    scanned = op == "LSTM" and finals and frames > 1
    assert kinds(proto).count(op) == (0 if scanned else 2 if AHEAD % frames else 1)
    assert kinds(proto).count("Scan") == scanned
    names = [state.input for state in read_metadata(proto).states]
    assert [name for name in names if name.startswith("y.")] == (
        ["y.forward.h", "y.forward.c"] if op == "LSTM" else ["y.forward.state"]
    )


@pytest.mark.parametrize("op", ["RNN", "GRU", "LSTM"])
def test_a_causal_layer_is_one_operator(op: str) -> None:
    """The file has no clock, no end, and nothing around the operator but the axis of its direction."""
    proto = assert_model_streams(layer(op, 0, False), 3)
    assert kinds(proto) in ([op, "Squeeze"], [op, "Squeeze", "Unsqueeze"])
    assert read_metadata(proto).end is None
    assert all("pulses" not in state.input for state in read_metadata(proto).states)


@pytest.mark.parametrize("ahead", [0, AHEAD])
def test_an_initial_state_is_taken_with_the_first_pulse(ahead: int) -> None:
    """Later pulses do not take the initial state."""
    assert_model_streams(layer("GRU", ahead, True, initial=True, linear_before_reset=1), 3)


def test_attributes_are_written() -> None:
    """The file has activations with their parameters, the clip, and the coupled gates of an LSTM."""
    assert_model_streams(
        layer("RNN", 0, False, activations=["LeakyRelu"], activation_alpha=[0.2], clip=0.7), 2
    )
    assert_model_streams(layer("GRU", 0, False, activations=["HardSigmoid", "Tanh"], clip=1.5), 2)
    assert_model_streams(layer("LSTM", 0, False, input_forget=1), 2)


@pytest.mark.parametrize("frames", [1, 4])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_the_state_of_a_cumsum_is_kept_in_f64(exclusive: int, frames: int) -> None:
    """The state has double precision from pulse to pulse."""
    axis = {"axis": np.array(0)}
    sums = node("CumSum", "x axis", exclusive=exclusive)
    proto = assert_model_streams(model([sums], {"x": floats("x", 6, 2)}, axis, 17, {"x": 0}), frames)
    (state,) = read_metadata(proto).states
    assert (state.input, state.output) == ("y.state", "y.state.next")
    declared = {value.name: value.type.tensor_type.elem_type for value in proto.graph.input}
    assert declared["y.state"] == TensorProto.DOUBLE


@pytest.mark.parametrize("finals", [False, True])
@pytest.mark.parametrize("frames", [1, 3])
@pytest.mark.parametrize("ahead", [0, AHEAD])
def test_states_of_a_scan_carry_between_pulses(ahead: int, frames: int, finals: bool) -> None:
    """A leaky sum with a value that it captures; its last state where that is an output."""
    frame = helper.make_tensor_value_info("frame", TensorProto.FLOAT, [2])
    state = helper.make_tensor_value_info("state", TensorProto.FLOAT, [2])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("after", "twice")]
    body = helper.make_graph(
        [
            node("Mul", "state leak", "less"),
            node("Add", "less frame", "after"),
            node("Add", "after leak", "twice"),
        ],
        "body",
        [state, frame],
        ends,
    )
    nodes, source = [], "x"
    if ahead:
        window = [np.array([value]) for value in (ahead, 1 << 40, 0)]
        nodes, source = [node("Slice", "x start stop axis", "later")], "later"
        constants = dict(zip(("start", "stop", "axis"), window))
    else:
        constants = {}
    nodes.append(node("Scan", f"zero {source}", "last y", body=body, num_scan_inputs=1))
    constants |= {"zero": np.full(2, 0.5, np.float32), "leak": floats("leak", 2) * 0.5}
    outputs = "last y" if finals else "y"
    proto = assert_model_streams(
        model(nodes, {"x": floats("x", 9, 2)}, constants, 17, {"x": 0}, outputs), frames, (3, 4, 9, 16)
    )
    assert kinds(proto).count("Scan") == int(frames > 1)
    assert (read_metadata(proto).end is not None) == finals


@pytest.mark.parametrize("is_input", [False, True])
def test_the_first_state_of_a_scan_is_a_constant_or_an_input(is_input: bool) -> None:
    """A constant, or an input of the model that is taken with the first pulse."""
    frame, state, after = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("frame", "state", "after")
    )
    twice = helper.make_tensor_value_info("twice", TensorProto.FLOAT, [2])
    nodes = [node("Sub", "frame state", "after"), node("Add", "after after", "twice")]
    body = helper.make_graph(nodes, "body", [state, frame], [after, twice])
    feeds = {"x": floats("x", 9, 2)} | ({"zero": floats("zero", 2)} if is_input else {})
    constants = {} if is_input else {"zero": floats("zero", 2)}
    scan = node("Scan", "zero x", "last y", body=body, num_scan_inputs=1)
    proto = assert_model_streams(model([scan], feeds, constants, 17, {"x": 0}, "y last"), 2)
    assert ("Where" in kinds(proto)) == is_input
    assert bool(read_metadata(proto).states[0].initial) != is_input
