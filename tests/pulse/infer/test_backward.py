"""Inputs that follow from outputs, weights and attributes."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from pulse.errors import LoadError
from pulse.loading.onnx_files import read_onnx
from tests.pulse.cases.build import floats, node
from tests.pulse.infer.partial_models import inferred_facts, proto

ANY = "...,f32"
W = floats("w", 8, 4, 3)
UNARY = (
    *("Relu", "Sigmoid", "Tanh", "Exp", "Neg", "Elu", "LeakyRelu", "Gelu"),
    *("Softmax", "CumSum", "Identity", "Dropout"),
)
FAR = 2**63 - 1


def input_of(
    op: str,
    output: str,
    stated: str = ANY,
    constants: dict[str, object] | None = None,
    opset: int = 17,
    **attributes: Any,
) -> str:
    """The fact of x after y is stated, for ``y = op(x, constants...)``."""
    wires = " ".join(["x", *(constants or {})])
    return inferred_facts(
        [node(op, wires, **attributes)], {"x": stated}, {"y": output}, constants, opset=opset
    )["x"]


@pytest.mark.parametrize("op", UNARY)
def test_elementwise_inputs_have_the_shape_of_the_output(op: str) -> None:
    more = {"axis": np.array(0)} if op == "CumSum" else None
    assert input_of(op, "2,3,f32", constants=more, opset=20) == "2,3,f32"


def test_the_type_of_an_input_may_be_open() -> None:
    assert input_of("Relu", "2,3,f32", "2,?,?") == "2,3,f32"
    assert input_of("Add", "2,3,?", "2,3,?", {"w": floats("w", 3)}) == "2,3,f32"


def test_a_cast_keeps_the_shape_alone() -> None:
    assert input_of("Cast", "2,3,i64", "...,?", to=TensorProto.INT64) == "2,3,?"


@pytest.mark.parametrize(
    ("output", "other", "stated", "expected"),
    [
        ("2,3,f32", (3,), ANY, "2,?,f32"),  # the last size may be 1
        ("2,3,f32", (1,), ANY, "2,3,f32"),
        ("2,3,f32", (2, 1), ANY, "…,f32"),  # it may have fewer axes
        ("2,3,f32", (2, 1), "?,?,f32", "?,3,f32"),
        ("1,1,f32", (1, 1), "?,?,f32", "1,1,f32"),
        ("1,3,f32", (3,), "?,?,f32", "1,?,f32"),
        ("2,3,f32", (), ANY, "2,3,f32"),
    ],
)
def test_broadcast_inputs_follow_from_the_output(
    output: str, other: tuple[int, ...], stated: str, expected: str
) -> None:
    assert input_of("Mul", output, stated, {"w": floats("w", *other)}) == expected


def test_concat_inputs_follow_from_a_constant_and_the_output() -> None:
    assert input_of("Concat", "2,9,f32", constants={"w": floats("w", 2, 4)}, axis=1) == "2,5,f32"
    assert input_of("Concat", "?,9,f32", constants={"w": floats("w", 2, 4)}, axis=-1) == "2,5,f32"


# convolutions and pools: channels and time


def test_channels_follow_from_the_kernel() -> None:
    assert input_of("Conv", "...,f32", constants={"w": W}) == "?,4,?,f32"
    assert input_of("Conv", "...,f32", constants={"w": W}, group=2) == "?,8,?,f32"
    assert input_of("ConvTranspose", "...,f32", constants={"w": W}) == "?,8,?,f32"


@pytest.mark.parametrize(
    ("attributes", "time"),
    [
        ({}, "12"),
        ({"pads": [1, 1]}, "10"),
        ({"dilations": [3]}, "16"),
        ({"auto_pad": "SAME_UPPER"}, "10"),
        ({"strides": [2]}, "?"),
    ],
)
def test_the_length_of_the_input_follows_from_that_of_the_output(
    attributes: dict[str, Any], time: str
) -> None:
    assert input_of("Conv", "1,8,10,f32", constants={"w": W}, **attributes) == f"1,4,{time},f32"


def test_a_unique_length_before_a_deconvolution_is_inferred() -> None:
    assert input_of("ConvTranspose", "1,4,21,f32", constants={"w": W}, strides=[2]) == "1,8,10,f32"
    assert input_of("ConvTranspose", "1,4,22,f32", constants={"w": W}, strides=[2]) == "1,8,?,f32"


def test_a_negative_length_is_warned_of_and_not_inferred() -> None:
    with pytest.warns(UserWarning, match=r"y \(Conv, node Conv_y\).*would have the size -2"):
        assert input_of("Conv", "1,8,2,f32", constants={"w": W}, pads=[3, 3]) == "?,4,?,f32"


def test_the_kernel_follows_from_input_and_output() -> None:
    nodes = [node("Conv", "x w", group=2)]
    inferred = inferred_facts(nodes, {"x": "1,6,10,f32", "w": "?,?,3,f32"}, {"y": "1,8,8,f32"})
    assert inferred["w"] == "8,3,3,f32"


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_pools_have_inputs_of_the_same_rank(op: str) -> None:
    assert input_of(op, "1,8,10,f32", kernel_shape=[3]) == "1,8,12,f32"
    assert input_of(op, "1,8,10,f32", kernel_shape=[3], strides=[2]) == "1,8,?,f32"


# MatMul and Gemm


def test_matmul_inputs_follow_from_the_output() -> None:
    assert input_of("MatMul", "2,3,f32", constants={"w": floats("w", 4, 3)}) == "2,4,f32"
    assert input_of("MatMul", "5,2,3,f32", constants={"w": floats("w", 4, 3)}) == "5,2,4,f32"


def test_matmul_inputs_follow_from_a_weight_on_the_left() -> None:
    inferred = inferred_facts([node("MatMul", "w x")], {"x": ANY}, {"y": "4,3,f32"}, {"w": floats("w", 4, 2)})
    assert inferred["x"] == "2,3,f32"


def test_products_with_vectors_have_inputs_of_more_axes() -> None:
    assert input_of("MatMul", "2,f32", constants={"w": floats("w", 4)}) == "2,4,f32"
    assert input_of("MatMul", "3,f32", constants={"w": floats("w", 4, 3)}) == "4,f32"


def test_batches_may_be_broadcast() -> None:
    assert input_of("MatMul", "5,2,3,f32", "?,2,?,f32", {"w": floats("w", 5, 4, 3)}) == "?,2,4,f32"
    assert input_of("MatMul", "5,2,3,f32", "?,2,?,f32", {"w": floats("w", 1, 4, 3)}) == "5,2,4,f32"


def test_gemm_inputs_follow_from_the_output() -> None:
    assert input_of("Gemm", "2,3,f32", constants={"w": floats("w", 4, 3)}) == "2,4,f32"
    assert input_of("Gemm", ANY, constants={"w": floats("w", 3, 4)}, transA=1, transB=1) == "4,?,f32"


# axes that move, come and go


def test_transpose_inputs_follow_from_the_output() -> None:
    assert input_of("Transpose", "2,3,4,f32", perm=[2, 0, 1]) == "3,4,2,f32"
    assert input_of("Transpose", "2,3,4,f32") == "4,3,2,f32"
    assert input_of("Transpose", ANY, perm=[1, 0]) == "?,?,f32"


def test_squeeze_and_unsqueeze_inputs_follow_from_the_output() -> None:
    assert input_of("Squeeze", "2,3,f32", constants={"a": np.array([0, -1])}) == "1,2,3,1,f32"
    assert input_of("Squeeze", "2,3,f32", opset=11, axes=[1]) == "2,1,3,f32"
    assert input_of("Squeeze", "2,3,f32") == "…,f32"
    assert input_of("Unsqueeze", "2,1,3,f32", constants={"a": np.array([-2])}) == "2,3,f32"
    assert input_of("Unsqueeze", "2,1,3,f32", opset=11, axes=[1]) == "2,3,f32"


@pytest.mark.parametrize(
    ("stated", "target", "output", "expected"),
    [
        ("?,6,f32", [2, -1], ANY, "?,6,f32"),
        ("?,6,f32", [2, -1], "2,9,f32", "3,6,f32"),
        ("?,6,f32", [3, 4], ANY, "2,6,f32"),
        ("?,6,f32", [0, 2, 3], "5,?,?,f32", "5,6,f32"),
        ("?,?,f32", [3, 4], ANY, "?,?,f32"),
    ],
)
def test_reshape_inputs_follow_from_the_output(
    stated: str, target: list[int], output: str, expected: str
) -> None:
    assert input_of("Reshape", output, stated, {"s": np.array(target)}) == expected


def test_flatten_inputs_follow_from_the_output() -> None:
    assert input_of("Flatten", "10,12,f32", "?,5,3,?,f32", axis=2) == "2,5,3,4,f32"


def test_pad_inputs_follow_from_the_output() -> None:
    assert input_of("Pad", "2,9,f32", constants={"p": np.array([0, 1, 0, 3])}) == "2,5,f32"
    assert input_of("Pad", "2,9,f32", opset=10, pads=[0, 1, 0, 3]) == "2,5,f32"


@pytest.mark.parametrize(
    ("start", "end", "step", "expected"),
    [(2, FAR, 1, "7"), (0, -3, 1, "8"), (0, 5, 1, "?"), (0, 9, 1, "5"), (0, FAR, 2, "?")],
)
def test_slice_inputs_follow_from_the_output(start: int, end: int, step: int, expected: str) -> None:
    bounds = {"s": np.array([start]), "e": np.array([end]), "a": np.array([1]), "d": np.array([step])}
    assert input_of("Slice", "3,5,f32", constants=bounds) == f"3,{expected},f32"


@pytest.mark.parametrize(
    ("opset", "attributes", "second"),
    [(17, {}, "?,3,f32"), (18, {"num_outputs": 2}, "?,3,f32"), (17, {}, ANY)],
    ids=["opset 17", "opset 18", "one output known"],
)
def test_split_inputs_follow_from_the_outputs(opset: int, attributes: dict[str, int], second: str) -> None:
    nodes = [node("Split", "x", "y z", axis=1, **attributes)]
    outputs = {"y": "2,3,f32", "z": second}
    assert inferred_facts(nodes, {"x": ANY}, outputs, opset=opset)["x"] == "2,6,f32"


def test_split_inputs_and_outputs_follow_from_the_given_sizes() -> None:
    nodes = [node("Split", "x s", "y z", axis=1)]
    inferred = inferred_facts(nodes, {"x": "2,?,f32"}, {"y": ANY, "z": ANY}, {"s": np.array([1, 4])})
    assert (inferred["x"], inferred["y:0"], inferred["y:1"]) == ("2,5,f32", "2,1,f32", "2,4,f32")


def test_gather_inputs_follow_from_the_output() -> None:
    assert input_of("Gather", "2,5,3,f32", constants={"i": np.arange(5)}, axis=1) == "2,?,3,f32"
    assert input_of("Gather", "2,3,f32", constants={"i": np.array(0)}, axis=-1) == "2,3,?,f32"


def test_expand_inputs_follow_from_the_output() -> None:
    assert input_of("Expand", ANY, "?,1,f32", {"s": np.array([5, 3])}) == "?,1,f32"
    assert input_of("Expand", "2,4,3,f32", "?,?,f32", {"s": np.array([2, 1, 1])}) == "4,3,f32"


def test_reduction_inputs_follow_from_the_output() -> None:
    assert input_of("ReduceMean", "2,1,f32", axes=[1]) == "2,?,f32"
    assert input_of("ReduceMean", "2,3,f32", axes=[1], keepdims=0) == "2,?,3,f32"
    assert input_of("ReduceSum", "2,3,f32", constants={"a": np.array([-1])}, keepdims=0) == "2,3,?,f32"
    assert input_of("ArgMax", "2,3,i64", axis=1, keepdims=0) == "2,?,3,f32"


# layers: channels from parameters


def test_channels_follow_from_a_batch_normalization() -> None:
    stored: dict[str, object] = {name: floats(name, 8) for name in "smvb"}
    assert input_of("BatchNormalization", ANY, constants=stored) == "?,8,…,f32"
    assert input_of("BatchNormalization", "1,8,9,f32", constants=stored) == "1,8,9,f32"


def test_channels_follow_from_a_layer_normalization() -> None:
    stored: dict[str, object] = {"s": floats("s", 8), "b": floats("b", 8)}
    assert input_of("LayerNormalization", ANY, "1,?,?,f32", stored) == "1,?,8,f32"
    assert input_of("LayerNormalization", "1,5,8,f32", constants=stored) == "1,5,8,f32"


@pytest.mark.parametrize(("op", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_recurrent_inputs_follow_from_the_output(op: str, gates: int) -> None:
    stored: dict[str, object] = {"w": floats("w", 1, gates * 5, 7), "r": floats("r", 1, gates * 5, 5)}
    nodes = [node(op, "x w r", "y h", hidden_size=5)]
    inferred = inferred_facts(nodes, {"x": ANY}, {"y": "9,?,?,?,f32", "h": "?,2,?,f32"}, stored)
    assert (inferred["x"], inferred["y:0"], inferred["y:1"]) == ("9,2,7,f32", "9,1,2,5,f32", "1,2,5,f32")


def test_batch_first_recurrent_inputs_follow_from_the_output() -> None:
    stored: dict[str, object] = {"w": floats("w", 2, 15, 7), "r": floats("r", 2, 15, 5)}
    nodes = [node("GRU", "x w r", "y h", hidden_size=5, layout=1, direction="bidirectional")]
    inferred = inferred_facts(nodes, {"x": ANY}, {"y": "2,9,?,?,f32", "h": ANY}, stored)
    assert (inferred["x"], inferred["y:0"], inferred["y:1"]) == ("2,9,7,f32", "2,9,2,5,f32", "2,2,5,f32")


# chains, and what ``analyse`` makes of them


def test_weights_and_an_output_give_the_input() -> None:
    nodes = [
        node("Transpose", "x", "t", perm=[0, 2, 1]),
        node("Conv", "t w", "c"),
        node("Relu", "c", "r"),
        node("Transpose", "r", "b", perm=[0, 2, 1]),
        node("MatMul", "b v"),
    ]
    model = proto(nodes, {"x": ANY}, {"y": "1,10,2,f32"}, {"w": W, "v": floats("v", 8, 2)})
    typed = read_onnx(model).analyse()
    assert str(typed.inputs["x"]) == "1,12,4,f32"
    assert typed.run(floats("x", 1, 12, 4))["y"].shape == (1, 10, 2)
    with pytest.raises(LoadError, match=r'input x \(\?,\?,4,f32\).*axis 0, 1.*"x": "1,T,4"'):
        read_onnx(model, ignore_value_info=True).analyse()


def test_two_inputs_give_each_other() -> None:
    nodes = [node("Concat", "a b", "c", axis=1), node("Conv", "c w")]
    inferred = inferred_facts(nodes, {"a": "1,?,T,f32", "b": "1,1,?,f32"}, {"y": ANY}, {"w": W})
    assert (inferred["a"], inferred["b"], inferred["y"]) == ("1,3,T,f32", "1,1,T,f32", "1,8,T-2,f32")


def test_chains_of_shapes_pass_unknown_sizes_on() -> None:
    nodes = [
        node("Shape", "x", "s"),
        node("Gather", "s zero", "n"),
        node("Unsqueeze", "n front", "u"),
        node("Concat", "u rest", "t", axis=0),
        node("Reshape", "x t", "h"),
        node("MatMul", "h v"),
    ]
    stored = {
        "zero": np.array(0),
        "front": np.array([0]),
        "rest": np.array([-1, 4]),
        "v": floats("v", 4, 2),
    }
    inferred = inferred_facts(nodes, {"x": "?,T,8,f32"}, {"y": ANY}, stored)
    assert (inferred["s"], inferred["t"]) == ("3,i64 = [?, T, 8]", "3,i64 = [?, -1, 4]")
    assert inferred["y"] == "?,?,2,f32"


def test_names_of_outputs_reach_inputs_without_names() -> None:
    assert input_of("Relu", "batch,3,f32", "?,?,f32") == "batch,3,f32"
