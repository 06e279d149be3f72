"""Reductions of types that have no kernel of their own are computed in f64."""

import numpy as np
import onnx
import pytest

import pulse
from pulse.errors import CompileError
from pulse.program.native.native_program import NativeProgram
from tests.failed_cases import in_one_test
from tests.pulse.cases.build import model, node

X = np.zeros((2, 9, 3), np.float32)
OF_ALL_TYPES = ("Sum", "Mean", "Max", "Min", "L1", "L2", "SumSquare")
FLOATS_ONLY = ("Prod", "LogSum", "LogSumExp")


def reduction_model(kind: str, dtype: int, axis: int, keepdims: int) -> onnx.ModelProto:
    """Values of a type, whose sizes are at most some hundreds, reduced along one axis: [T, 9, 3] to f32."""
    axes, inputs = {"axes": [axis]}, "values"
    if kind == "Sum":
        axes, inputs = {}, "values axis"
    nodes = [
        node("Tanh", "x", "small"),
        node("Mul", "small nine", "larger"),
        *([node("Abs", "larger", "positive")] if "Log" in kind else [node("Identity", "larger", "positive")]),
        node("Cast", "positive", "values", to=dtype),
        node(f"Reduce{kind}", inputs, "reduced", keepdims=keepdims, **axes),
        node("Cast", "reduced", to=onnx.TensorProto.FLOAT),
    ]
    constants = {"nine": np.array(9, np.float32), **({"axis": np.array([axis])} if kind == "Sum" else {})}
    return model(nodes, {"x": X}, constants, stream={"x": 0})


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        *((kind, dtype) for kind in OF_ALL_TYPES for dtype in ("INT64", "INT32", "DOUBLE")),
        *((kind, "DOUBLE") for kind in FLOATS_ONLY),
    ],
)
@in_one_test("axis", [1, 2])
@in_one_test("keepdims", [0, 1])
def test_reductions_of_other_types_are_exact(kind: str, dtype: str, axis: int, keepdims: int) -> None:
    proto = reduction_model(kind, onnx.TensorProto.DataType.Value(dtype), axis, keepdims)
    pulse.verify(proto, pulse=4, lengths=(1, 11)).require()
    program = pulse.stream(proto, pulse=4)
    assert isinstance(program, NativeProgram)
    kernels = [row.kernel for row in program.instructions]
    assert ("reduce64" in kernels) == (axis == 1), "three elements are the operands of elementwise functions"


@pytest.mark.parametrize("kind", FLOATS_ONLY)
def test_reductions_of_integers_that_f64_may_round_are_refused(kind: str) -> None:
    proto = reduction_model(kind, onnx.TensorProto.INT64, 1, 1)
    with pytest.raises(
        CompileError, match=r"reduced \(reduce_\w+\): no kernel for this reduction of i64; use backend"
    ):
        pulse.stream(proto, pulse=4)
    assert pulse.stream(proto, pulse=4, backend="numpy").pulse == 4


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("dtype", ["INT64", "INT32", "DOUBLE", "UINT8"])
@in_one_test("axis", [1, 2])
def test_searches_of_other_types_are_exact(kind: str, dtype: str, axis: int) -> None:
    nodes = [
        node("Mul", "x nine", "scaled"),
        node("Abs", "scaled", "sizes"),
        node("Cast", "sizes", "values", to=onnx.TensorProto.DataType.Value(dtype)),
        node(kind, "values", axis=axis, keepdims=0),
    ]
    proto = model(nodes, {"x": X}, {"nine": np.array(9, np.float32)}, stream={"x": 0})
    pulse.verify(proto, pulse=4, lengths=(1, 11)).require()
    program = pulse.stream(proto, pulse=4)
    assert isinstance(program, NativeProgram)
    assert "arg_reduce64" in [row.kernel for row in program.instructions]
