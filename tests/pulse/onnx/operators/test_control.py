"""Branches and loops: what is chosen while loading, what is kept, and what is refused."""

import numpy as np
import pytest
from onnx import GraphProto, ModelProto, NodeProto, helper

import pulse
from pulse.errors import LoadError, PulsifyError
from pulse.ops.control import Loop
from tests.pulse.cases.build import floats, model, node
from tests.pulse.cases.control import BOOL, F32, I64, branches, graph, iterations

X = floats("x", 2, 5, 3)


def model_with_branch(then: str, other: str) -> ModelProto:
    """A branch that an input chooses."""
    return model([node("If", "c", **branches(then, other))], {"x": X, "c": np.array(True)})


def test_the_branch_that_is_not_taken_is_not_read() -> None:
    """The other branch may hold an unknown operator, or have another rank."""
    unknown = helper.make_node("Nothing", ["x"], ["r"], domain="my.sounds")
    bodies = {
        "then_branch": graph([node("Flatten", "x", "r")], [], [("r", F32)]),
        "else_branch": graph([unknown], [], [("r", F32)]),
    }
    proto = model([node("If", "c", **bodies)], {"x": X}, {"c": np.array(True)})
    typed = pulse.load(proto).analyse()
    assert [typed_node.op.name for typed_node in typed.graph.nodes if typed_node.inputs] == ["Reshape"]
    assert typed.graph.find("y") == typed.graph.outputs[0]


def test_a_fixed_input_chooses_the_branch() -> None:
    """An input that is given once makes the condition constant."""
    typed = pulse.load(model_with_branch("Flatten", "Relu"), constants={"c": False}).analyse()
    assert [node.op.name for node in typed.graph.nodes if node.inputs] == ["relu"]


def test_branches_that_differ_are_refused() -> None:
    with pytest.raises(
        LoadError, match=r"y \(If\): its condition c is only known while running, and the branches differ"
    ):
        pulse.load(model_with_branch("Flatten", "Relu")).analyse()


def test_a_branch_that_does_not_load_is_reported() -> None:
    with pytest.raises(LoadError, match=r"the else_branch does not load: .*Multinomial"):
        pulse.load(model_with_branch("Relu", "Multinomial")).analyse()


def loop_model(count: int, body: object, stream: dict[str, int] | None = None) -> ModelProto:
    half = {"n": np.int64(count), "go": np.array(True), "half": np.float32(0.5)}
    feeds = {"x": X[0], "s": X[1]}
    return model([node("Loop", "n go s", "last y", body=body)], feeds, half, 16, stream, "y")


def loop_body(nodes: list[NodeProto]) -> GraphProto:
    """The body of a loop: iteration, condition and state -> next condition, next state and a row."""
    ports = [("iteration", I64), ("go_in", BOOL), ("s_in", F32)]
    return graph(nodes, ports, [("go_out", BOOL), ("s_out", F32), ("row", F32)])


def test_a_long_loop_stays_a_loop() -> None:
    typed = pulse.load(loop_model(5000, iterations())).analyse()
    assert any(isinstance(node.op, Loop) for node in typed.graph.nodes)
    assert str(typed.outputs["y"]) == "5000,5,3,f32"


def test_an_unrolled_loop_streams_and_a_long_one_is_refused() -> None:
    stream = {"x": 0, "s": 0}
    assert (
        pulse.load(loop_model(3, iterations(), stream))
        .analyse()
        .declutter()
        .pulsify(pulse=2)
        .outputs[0]
        .delay
        == 0
    )
    with pytest.raises(PulsifyError, match=r"Loop.*export a loop over frames as Scan"):
        pulse.load(loop_model(5000, iterations(), stream)).analyse().pulsify(pulse=2)


def test_a_loop_over_frames_is_refused_in_a_stream() -> None:
    """Its trip count is the length of the stream: it runs offline only."""
    body = loop_body(
        [
            node("Gather", "x iteration", "frame", axis=0),
            node("Add", "s_in frame", "s_out"),
            node("Identity", "go_in", "go_out"),
            node("Identity", "s_out", "row"),
        ]
    )
    nodes = [
        node("Shape", "x", "shape"),
        node("Gather", "shape first", "n"),
        node("Loop", "n go zero", "last y", body=body),
    ]
    constants = {"first": np.int64(0), "go": np.array(True), "zero": np.zeros(3, np.float32)}
    typed = pulse.load(model(nodes, {"x": X[0]}, constants, 16, {"x": 0}, "y")).analyse()
    assert str(typed.outputs["y"]) == "T,3,f32"
    np.testing.assert_allclose(typed.run(X[0])["y"], np.cumsum(X[0], 0), atol=1e-5)
    with pytest.raises(PulsifyError, match=r"Loop.*export a loop over frames as Scan"):
        typed.pulsify(pulse=2)


def test_a_loop_that_data_ends_keeps_its_computed_state() -> None:
    """Its first iteration, wired before this is known, reads a node that nothing else reads."""
    nodes = [
        node("Add", "s_in x", "s_out"),
        node("ReduceSum", "s_out", "total", keepdims=0),
        node("Less", "total limit", "go_out"),
    ]
    ports = [("iteration", I64), ("go_in", BOOL), ("s_in", F32)]
    body = graph(nodes, ports, [("go_out", BOOL), ("s_out", F32)])
    constants = {"n": np.int64(50), "go": np.array(True), "limit": np.float32(100)}
    outer = [node("Neg", "x", "first"), node("Loop", "n go first", "y", body=body)]
    x = np.ones((5, 3), np.float32)
    typed = pulse.load(model(outer, {"x": x}, constants)).analyse()
    assert np.array_equal(typed.run(x)["y"], 7 * x)


def test_outputs_of_a_loop_of_unknown_length_are_refused() -> None:
    body = loop_body(
        [
            node("ReduceMax", "s_in", "most", keepdims=0),
            node("Less", "most half", "go_out"),
            node("Identity", "s_in", "s_out"),
            node("Neg", "s_in", "row"),
        ]
    )
    with pytest.raises(LoadError, match="how often it runs depends on data"):
        pulse.load(loop_model(5, body)).analyse()
