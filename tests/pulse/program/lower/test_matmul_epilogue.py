"""Elementwise ops that follow a product become part of its instruction; the outputs do not change."""

from typing import Any

import numpy as np
import onnx
import pytest

import pulse
from pulse.facts import Array
from pulse.program.native.native_program import NativeProgram
from tests.pulse.cases.build import floats, model, node

CHANNELS, FRAMES = 24, 40
LENGTHS = (1, 2, 5, 40, 131)
WEIGHTS = {
    "k": floats("k", CHANNELS, 5, 3) * 0.3,
    "k2": floats("k2", 2 * CHANNELS, 5, 3) * 0.3,
    "kb": floats("kb", CHANNELS, 5, 3) * 0.3,
    "kd": floats("kd", 5, 1, 3),
    "kg": floats("kg", 20, 1, 3),
    "t": floats("t", 5, CHANNELS, 4) * 0.3,
    "tb": floats("tb", 5, CHANNELS, 4) * 0.3,
    "td": floats("td", 5, 1, 3),
    "m": floats("m", 5, CHANNELS),
    "mb": floats("mb", 5, CHANNELS),
    "each": floats("each", CHANNELS, 1),
    "row": floats("row", CHANNELS),
    "slope": np.abs(floats("slope", CHANNELS, 1)),
    "zero": np.array([0]),
    "half": np.array([CHANNELS]),
    "whole": np.array([2 * CHANNELS]),
    "axis": np.array([1]),
}
CONV = node("Conv", "x k", "c", pads=[2, 0])
UNARY: dict[str, dict[str, Any]] = {
    "Relu": {},
    "Tanh": {},
    "Sigmoid": {},
    "LeakyRelu": {"alpha": 0.3},
    "Elu": {"alpha": 0.7},
}


def build_model(
    nodes: list[onnx.NodeProto], x: Array | None = None, axis: int = 2, outputs: str = "y"
) -> onnx.ModelProto:
    fed = floats("x", 1, 5, FRAMES) if x is None else x
    used = {name for proto in nodes for name in proto.input}
    constants = {name: value for name, value in WEIGHTS.items() if name in used}
    return model(nodes, {"x": fed}, constants, stream={"x": axis}, outputs=outputs)


def kernels_of_proved(proto: onnx.ModelProto) -> list[str]:
    """The kernels of a program that was proved to stream as offline."""
    pulse.verify(proto, pulse=2, lengths=LENGTHS).require()
    program = pulse.stream(proto, pulse=2)
    assert isinstance(program, NativeProgram)
    return [row.kernel for row in program.instructions]


@pytest.mark.parametrize("op", UNARY)
@pytest.mark.parametrize("kernel", ["k", "kd", "kg"])
def test_activations_join_the_product(op: str, kernel: str) -> None:
    group = 5 if kernel != "k" else 1
    conv = node("Conv", f"x {kernel}", "c", pads=[2, 0], group=group)
    assert "chain" not in kernels_of_proved(build_model([conv, node(op, "c", **UNARY[op])]))


@pytest.mark.parametrize("kernel", ["k", "kd"])
@pytest.mark.parametrize("product", ["c s", "s c"])
def test_a_tensor_times_its_sigmoid_joins_the_product(kernel: str, product: str) -> None:
    conv = node("Conv", f"x {kernel}", "c", pads=[2, 0], group=1 if kernel == "k" else 5)
    assert "chain" not in kernels_of_proved(
        build_model([conv, node("Sigmoid", "c", "s"), node("Mul", product)])
    )


@pytest.mark.parametrize(
    ("after", "chains"),
    [
        ([node("Mul", "s s")], 1),
        ([node("Mul", "c s", "p"), node("Add", "p s")], 2),
        ([node("Mul", "c s", "p"), node("Add", "p c")], 1),
    ],
    ids=["square", "the sigmoid again", "the tensor again"],
)
def test_other_products_of_a_sigmoid_stay_separate(after: list[onnx.NodeProto], chains: int) -> None:
    assert kernels_of_proved(build_model([CONV, node("Sigmoid", "c", "s"), *after])).count("chain") == chains


@pytest.mark.parametrize("stride", [1, 2, 4])
def test_steps_join_transposed_convolutions(stride: int) -> None:
    nodes = [
        node("ConvTranspose", "x t", "c", strides=[stride], pads=[0, 4 - stride]),
        node("Add", "c each", "biased"),
        node("PRelu", "biased slope", "bent"),
        node("Add", "before bent", "sum"),
        node("Tanh", "sum"),
    ]
    before = node("ConvTranspose", "x tb", "before", strides=[stride], pads=[0, 4 - stride])
    names = kernels_of_proved(build_model([before, *nodes]))
    assert "chain" not in names
    assert names.count("product") == 2


@pytest.mark.parametrize("frames", [1, 2])
def test_a_batch_of_transposed_convolutions_is_one_product(frames: int) -> None:
    nodes = [node("ConvTranspose", "x t", "c", strides=[2], pads=[0, 2]), node("Relu", "c")]
    proto = build_model(nodes, floats("x", 3, 5, FRAMES))
    report = pulse.verify(proto, pulse=frames, lengths=(1, 6, 11))
    assert report.equal, report
    assert kernels_of_proved(proto).count("product") == 1


def test_a_depthwise_transposed_convolution_is_one_row() -> None:
    transposed = node("ConvTranspose", "x td", "c", pads=[0, 2], group=5)
    assert kernels_of_proved(build_model([transposed, node("Relu", "c")])).count("depthwise") == 1


@pytest.mark.parametrize("exponent", [2.0, 0.5, 1.7, 0.1])
def test_a_power_of_one_constant_is_one_chain(exponent: float) -> None:
    x = np.abs(floats("x", 1, 5, FRAMES)) + np.float32(0.1)
    proto = model([node("Pow", "x p")], {"x": x}, {"p": np.float32([[[exponent]]])}, stream={"x": 2})
    assert kernels_of_proved(proto).count("chain") == 1


def test_slopes_biases_and_several_steps_join_the_convolution() -> None:
    nodes = [
        CONV,
        node("Add", "c each", "biased"),
        node("PRelu", "biased slope", "bent"),
        node("Add", "before bent", "sum"),
        node("Sigmoid", "sum"),
    ]
    before = node("Conv", "x kb", "before", pads=[2, 0])
    assert "chain" not in kernels_of_proved(build_model([before, *nodes]))


def test_a_bias_and_a_residual_join_the_matrix_product() -> None:
    nodes = [
        node("MatMul", "x mb", "first"),
        node("Add", "first row", "h"),
        node("MatMul", "x m", "second"),
        node("Add", "row second", "biased"),
        node("Relu", "biased", "r"),
        node("Add", "r h"),
    ]
    assert "chain" not in kernels_of_proved(build_model(nodes, floats("rows", 1, FRAMES, 5), axis=1))


def test_a_bias_after_the_sum_of_two_products_joins_one_of_them() -> None:
    """The gates of a recurrent layer that is written as its parts."""
    nodes = [
        node("MatMul", "x mb", "first"),
        node("MatMul", "x m", "second"),
        node("Add", "first second", "sum"),
        node("Add", "sum row", "biased"),
        node("Sigmoid", "biased"),
    ]
    names = kernels_of_proved(build_model(nodes, floats("rows", 1, FRAMES, 5), axis=1))
    assert names.count("product") == 2
    assert "chain" not in names


def test_a_bias_after_a_function_is_not_moved_before_it() -> None:
    nodes = [
        node("MatMul", "x mb", "first"),
        node("MatMul", "x m", "second"),
        node("Relu", "second", "r"),
        node("Add", "first r", "sum"),
        node("Add", "sum row"),
    ]
    assert "chain" in kernels_of_proved(build_model(nodes, floats("rows", 1, FRAMES, 5), axis=1))


@pytest.mark.parametrize(
    ("left", "right"), [("Tanh", "Sigmoid"), ("Sigmoid", "Tanh"), (None, "Sigmoid"), ("Sigmoid", None)]
)
def test_gates_join_the_convolution(left: str | None, right: str | None) -> None:
    nodes = [
        node("Conv", "x k2", "both", pads=[2, 0]),
        node("Slice", "both zero half axis", "a"),
        node("Slice", "both half whole axis", "b"),
        *([node(left, "a", "f")] if left else []),
        *([node(right, "b", "g")] if right else []),
        node("Mul", f"{'f' if left else 'a'} {'g' if right else 'b'}"),
    ]
    names = kernels_of_proved(build_model(nodes))
    assert "chain" not in names
    assert names.count("product") == 1


@pytest.mark.parametrize(
    "nodes",
    [
        [CONV, node("Mul", "c each")],
        [node("Conv", "x kb", "later", pads=[2, 0]), CONV, node("Add", "c later")],
    ],
    ids=["constant factors", "another product"],
)
def test_constant_factors_and_other_products_join_the_product(nodes: list[onnx.NodeProto]) -> None:
    assert "chain" not in kernels_of_proved(build_model(nodes))


@pytest.mark.parametrize(
    "nodes",
    [
        [CONV, node("Relu", "c", "r"), node("Add", "r c")],
        [
            node("Conv", "x kb", "p", pads=[2, 0]),
            CONV,
            node("Add", "c p", "s"),
            node("Tanh", "p", "q"),
            node("Mul", "s q"),
        ],
    ],
    ids=["the product", "another product"],
)
def test_steps_whose_operand_is_read_twice_stay_separate(nodes: list[onnx.NodeProto]) -> None:
    assert kernels_of_proved(build_model(nodes)).count("chain") == 1


def test_wires_that_are_outputs_are_computed() -> None:
    proto = build_model([CONV, node("Relu", "c", "r"), node("Tanh", "r")], outputs="y c r")
    assert kernels_of_proved(proto).count("product") == 1
