"""Graphs are read as TensorFlow writes them, and refused where they are none."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import pulse
from pulse.errors import LoadError
from pulse.tensorflow.graph_node import NodeOutput
from pulse.tensorflow.messages import GraphDef, TensorProto
from pulse.tensorflow.tensors import tensor_value
from tests.noise import normal_noise
from tests.pulse.tensorflow.graphs import F32, I32, Call, GraphDefBuilder, Shape


def graph() -> GraphDefBuilder:
    builder = GraphDefBuilder()
    builder.place("x", 1, -1, 4)
    builder.const("w", normal_noise(4, 3))
    builder.const("shape", [-1, 4], np.int32)
    builder.node("flat", "Reshape", "x", "shape", T=F32, Tshape=I32)
    builder.node("y", "MatMul", "flat", "w", T=F32)
    return builder


def test_a_graph_is_read_in_a_process_that_has_read_nothing_else() -> None:
    """Its operators are wired by those of ONNX, which nothing else has loaded there."""
    builder = GraphDefBuilder()
    builder.place("x", 1, -1, 4, 1)
    builder.node("y", "MaxPool", "x", T=F32, ksize=[1, 2, 1, 1], strides=[1, 1, 1, 1], padding="VALID")
    code = "import pulse, sys; pulse.load(sys.stdin.buffer.read()).analyse()"
    subprocess.run([sys.executable, "-c", code], input=builder.data, check=True, timeout=60)


def test_a_graph_is_recognised_by_its_content() -> None:
    typed = pulse.load(graph().data).model.analyse()
    x = normal_noise(1, 5, 4, seed=1)
    assert list(typed.inputs) == ["x"]
    assert list(typed.outputs) == ["y"]
    assert str(typed.inputs["x"]) == "1,T,4,f32"
    np.testing.assert_allclose(typed.run({"x": x})["y"], x[0] @ normal_noise(4, 3), rtol=1e-6)


def test_names_may_have_a_slot() -> None:
    model = pulse.load(graph().data, inputs={"x:0": "1,N,4"})
    assert str(model.analyse().inputs["x"]) == "1,N,4,f32"
    x = normal_noise(1, 5, 4)
    typed = model.analyse()
    assert np.array_equal(typed.run({"x:0": x}, ["y:0"])["y:0"], typed.run(x)["y"])
    assert NodeOutput.parse("a:b:2") == NodeOutput("a:b", 2)


def test_a_shorter_list_repeats_its_last_element() -> None:
    proto = TensorProto(dtype=1)
    for size in (2, 3):
        proto.tensor_shape.dim.add(size=size)
    proto.float_val.extend([1.0, 2.0])
    assert tensor_value(proto, "c").tolist() == [[1, 2, 2], [2, 2, 2]]


def test_halves_and_complex_numbers_are_read() -> None:
    half = TensorProto(dtype=19)
    half.half_val.append(0x3C00)
    assert tensor_value(half, "c") == np.float16(1)
    pair = TensorProto(dtype=8)
    pair.scomplex_val.extend([1.0, -2.0])
    assert tensor_value(pair, "c") == 1 - 2j


def test_any_tensor_may_be_an_input() -> None:
    typed = pulse.load(graph().data, inputs={"flat": "T,4,f32"}).model.analyse()
    assert list(typed.inputs) == ["flat"]


def test_a_shape_that_the_file_leaves_open_is_inferred() -> None:
    builder = GraphDefBuilder()
    builder.node("x", "Placeholder", dtype=F32, shape=Shape(None))
    builder.const("w", normal_noise(4, 3))
    builder.node("relu", "Relu", "x", T=F32)
    builder.node("y", "MatMul", "relu", "w", T=F32)
    model = pulse.load(builder.data, inputs={"x": "T,4"})
    assert str(model.analyse().outputs["y"]) == "T,3,f32"
    assert str(pulse.load(builder.data).model.infer().inputs["x"]) == "?,4,f32"
    with pytest.raises(LoadError, match="the file states no"):
        pulse.load(builder.data).model.analyse()


def test_an_unknown_operator_matters_only_if_it_is_needed() -> None:
    builder = graph()
    builder.node("odd", "QuantumLeap", "x", T=F32)
    builder.node("silent", "NoOp", "^odd")
    builder.node("out", "Relu", "y", "^silent", T=F32)
    builder.node("seen", "Identity", "odd", T=F32)
    with pytest.raises(LoadError, match=r"QuantumLeap \(1 node, first odd\)"):
        pulse.load(builder.data).model.analyse()
    assert pulse.tensorflow.load(builder.data).session().run("out", {"x": normal_noise(1, 2, 4)}).shape == (
        2,
        3,
    )


def test_calls_of_functions_are_inlined() -> None:
    builder = GraphDefBuilder()
    builder.place("x", -1, 2)
    builder.function(
        "twice",
        [("a", F32)],
        [
            ("axis", "Const", (), {"dtype": I32, "value": np.array(1, np.int32)}),
            ("parts", "Split", ("axis:output:0", "a"), {"num_split": 2, "T": F32}),
            ("sum", "AddV2", ("parts:output:0", "parts:output:1"), {"T": F32}),
        ],
        {"result": "sum:z:0"},
    )
    builder.function(
        "outer",
        [("b", F32)],
        [("call", "PartitionedCall", ("b",), {"f": Call("twice")})],
        {"c": "call:output:0"},
    )
    builder.node("called", "StatefulPartitionedCall", "x", f=Call("outer"))
    builder.node("y", "Identity", "called", T=F32)
    x = normal_noise(3, 2)
    np.testing.assert_allclose(
        pulse.load(builder.data).model.analyse().run(x)["y"], x.sum(1, keepdims=True), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        pytest.param(
            lambda builder: builder.node("y2", "Relu", "nobody", T=F32),
            "but no node has this name",
            id="unknown input",
        ),
        pytest.param(
            lambda builder: builder.node("y", "Relu", "x", T=F32), "two nodes are called", id="name in use"
        ),
        pytest.param(
            lambda builder: builder.node("z", "PartitionedCall", "x", f=Call("nothing")),
            "does not define it",
            id="undefined function",
        ),
        pytest.param(
            lambda builder: (
                builder.node("a", "Relu", "b", T=F32),
                builder.node("b", "Relu", "a", T=F32),
                builder.node("c", "AddV2", "a", "x", T=F32),
            ),
            "own result",
            id="cycle",
        ),
    ],
)
def test_broken_graphs_are_refused_with_the_reason(
    spoil: Callable[[GraphDefBuilder], Any], reason: str
) -> None:
    builder = graph()
    spoil(builder)
    with pytest.raises(LoadError, match=reason):
        pulse.load(builder.data).model.analyse()


def test_functions_that_call_each_other_end() -> None:
    builder = GraphDefBuilder()
    builder.place("x", 2)
    builder.function(
        "round",
        [("a", F32)],
        [("again", "PartitionedCall", ("a",), {"f": Call("round")})],
        {"r": "again:output:0"},
    )
    builder.node("y", "PartitionedCall", "x", f=Call("round"))
    with pytest.raises(LoadError, match="deep"):
        pulse.load(builder.data)


def test_the_messages_meet_no_others_of_the_same_names() -> None:
    code = (
        "from google.protobuf import descriptor_pool, descriptor_pb2\n"
        "file = descriptor_pb2.FileDescriptorProto(name='t.proto', package='tensorflow', syntax='proto3')\n"
        "file.message_type.add(name='GraphDef')\n"
        "descriptor_pool.Default().AddSerializedFile(file.SerializeToString())\n"
        "from pulse.tensorflow.messages import GraphDef\n"
        "assert GraphDef.DESCRIPTOR.full_name == 'pulse_tensorflow.GraphDef'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    assert GraphDef().SerializeToString() == b""
