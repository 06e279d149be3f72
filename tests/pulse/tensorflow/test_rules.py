"""The rules of inference of TensorFlow's operators."""

import pytest

import pulse
from pulse.infer.inference_node import same_type_and_shape
from pulse.tensorflow.operators.elementwise import infer_arithmetic
from pulse.tensorflow.registry import RULES
from tests.pulse.tensorflow.graphs import F32, GraphDefBuilder, Shape

UNARY = (
    "Abs Neg Exp Log Sqrt Rsqrt Square Floor Ceil Round Sign Erf Sin Cos Relu Relu6 LeakyRelu Elu Selu Sigmoid Tanh "
    "Softplus Softsign Softmax LogSoftmax Identity StopGradient Cumsum Tan Reciprocal Invert"
)
BINARY = "AddV2 Add Sub Mul Div RealDiv Maximum Minimum SquaredDifference Pow FloorMod BitwiseAnd"


def test_operators_of_one_input_keep_type_and_shape() -> None:
    assert {name for name in UNARY.split() if RULES[name].relations is not same_type_and_shape} == set()


def test_operators_of_two_inputs_broadcast() -> None:
    assert {name for name in BINARY.split() if RULES[name].relations is not infer_arithmetic} == set()


def test_comparisons_have_no_rule_of_equal_types() -> None:
    assert RULES.keys().isdisjoint(("Less", "Equal", "LogicalAnd", "IsNan"))


@pytest.mark.parametrize("operator", ["Tan", "Reciprocal"])
def test_a_shape_is_inferred_through_a_function(operator: str) -> None:
    builder = GraphDefBuilder()
    builder.node("x", "Placeholder", dtype=F32, shape=Shape(None))
    builder.node("f", operator, "x", T=F32)
    builder.const("w", [[1.0, 2, 3]] * 4)
    builder.node("y", "MatMul", "f", "w", T=F32, transpose_a=False, transpose_b=False)
    assert str(pulse.load(builder.data).model.infer().inputs["x"]) == "?,4,f32"
