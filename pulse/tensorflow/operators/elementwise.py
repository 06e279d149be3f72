"""Elementwise operators: mostly a table, as the ops are."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from pulse.facts import F32, is_symbolic
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode, same_type_and_shape
from pulse.infer.relations import FactRelation, HasType
from pulse.infer.shapes import Broadcasting
from pulse.onnx.wiring import wire_onnx
from pulse.ops.elementwise import Cast
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.ops.shape import Expand
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.operators.spectral import complex_product, pair
from pulse.tensorflow.registry import rule, tensorflow_op
from pulse.tensorflow.tensors import TensorType

FUNCTIONS = {name: kind for kind, row in ELEMENTWISE.items() for name in row.names.tensorflow.split()}
"""Operator -> the function of the table."""
_ROWS = {name: ELEMENTWISE[function] for name, function in FUNCTIONS.items()}
_SAME_TYPE = [name for name, row in _ROWS.items() if row.result == "same"]
GUARDED = {
    "DivNoNan": ("div", 1),
    "Xdivy": ("div", 0),
    "Xlogy": ("log", 0),
    "Xlog1py": ("log1p", 0),
    "MulNoNan": ("mul", 1),
}
"""Operator -> its function, and the operand whose zeros make the result 0."""


@tensorflow_op(*(name for name, row in _ROWS.items() if row.signs), complex_numbers=True)
@tensorflow_op(*(name for name, row in _ROWS.items() if not row.signs))
def wire_table_function(node: TensorflowNode) -> OutletId:
    """Wire the function of a row of the table; its parameters have their defaults."""
    function = FUNCTIONS[node.op_type]
    params = tuple(ELEMENTWISE[function].names.params.values())
    return node.apply(function, *node.to_one_type(node.given_inputs()), params=params)


rule(*(name for name in _SAME_TYPE if _ROWS[name].arity == 1))(same_type_and_shape)
rule("Exp", "Rsqrt", "Square", "Relu6", "LeakyRelu", "Identity", "StopGradient")(same_type_and_shape)


@rule(*(name for name in _SAME_TYPE if _ROWS[name].arity != 1), "Mul", "SquaredDifference")
def infer_arithmetic(node: InferenceNode) -> Iterator[FactRelation]:
    """One type of floats, while integers are widened; shapes are broadcast."""
    type_ = node.attributes.get("T")
    if isinstance(type_, TensorType) and type_.known_type is not None and type_.known_type.kind == "f":
        yield HasType([*node.given_inputs(), node.output], type_.known_type)
    yield Broadcasting(node.output, node.given_inputs())


@tensorflow_op("Mul", complex_numbers=True)
def mul(node: TensorflowNode) -> OutletId:
    """Wire a product, of complex numbers too."""
    if node.is_complex():
        return complex_product(node)
    return node.apply("mul", *node.to_one_type(node.given_inputs()))


@tensorflow_op("Exp", complex_numbers=True)
def exp(node: TensorflowNode) -> OutletId:
    """Wire the exponential, of complex numbers a + bi too: cos b + i sin b, times exp of a."""
    if not node.is_complex():
        return node.apply("exp", node.input(0))
    size = node.apply("exp", node.complex_part(node.input(0), 0), suffix="size")
    phase = node.complex_part(node.input(0), 1)
    parts = [node.apply(function, phase, suffix=function) for function in ("cos", "sin")]
    real, imaginary = (
        node.apply("mul", size, part, suffix=f"part_{index}") for index, part in enumerate(parts)
    )
    return pair(node, real, imaginary)


@tensorflow_op("LeakyRelu")
def leaky_relu(node: TensorflowNode) -> OutletId:
    """Wire LeakyRelu; the slope is an attribute."""
    return node.apply("leaky_relu", node.input(0), params=(node.real("alpha", 0.2),))


@tensorflow_op("Identity", "IdentityN", "StopGradient", "ReadVariableOp", complex_numbers=True)
@tensorflow_op("PreventGradient", "Snapshot", "DeepCopy", "EnsureShape", "LoopCond", "CheckNumerics")
def identity(node: TensorflowNode) -> list[OutletId]:
    """Return the inputs unchanged; CheckNumerics does not check that its numbers are finite."""
    return node.given_inputs()


Apply: TypeAlias = Callable[..., OutletId]
COMPOSED: Mapping[str, Callable[[Apply, Sequence[OutletId]], OutletId]] = {
    "Relu6": lambda f, inputs: f("min", f("relu", *inputs), 6),
    "Rsqrt": lambda f, inputs: f("reciprocal", f("sqrt", *inputs)),
    "Square": lambda f, inputs: f("mul", *inputs, *inputs),
    "NotEqual": lambda f, inputs: f("not", f("equal", *inputs)),
}
"""Operator -> the functions of the table that it is made of; ``f`` wires one."""


@tensorflow_op(*COMPOSED)
def composed_function(node: TensorflowNode) -> OutletId:
    """Wire a function that is made of others, such as 1 / sqrt(x) for Rsqrt."""

    def apply(function: str, *operands: OutletId | float) -> OutletId:
        return node.apply(function, *operands, suffix=function)

    return node.name_result(COMPOSED[node.op_type](apply, node.to_one_type(node.given_inputs())))


@tensorflow_op("SquaredDifference")
def squared_difference(node: TensorflowNode) -> OutletId:
    """Wire (x - y) squared."""
    difference = node.apply("sub", *node.to_one_type(node.given_inputs()), suffix="difference")
    return node.apply("mul", difference, difference)


@tensorflow_op("IsInf")
def is_inf(node: TensorflowNode) -> OutletId:
    """Whether a number is an infinity."""
    return wire_onnx(node, "IsInf", [node.input(0)])


@tensorflow_op("IsFinite")
def is_finite(node: TensorflowNode) -> OutletId:
    """Whether a number is neither infinite nor NaN."""
    node.require_floats(0)
    return node.apply("less", node.apply("abs", node.input(0), suffix="size"), math.inf)


@tensorflow_op("ClipByValue")
def clip_by_value(node: TensorflowNode) -> OutletId:
    """Limit to a range between two tensors."""
    x = node.apply("min", node.input(0), node.input(2), suffix="upper")
    return node.apply("max", x, node.input(1))


@tensorflow_op("FloorDiv")
def floor_div(node: TensorflowNode) -> OutletId:
    """Wire the quotient rounded down."""
    return node.floor_quotient(*node.to_one_type([node.input(0), node.input(1)]))


@tensorflow_op(*GUARDED)
def guarded_function(node: TensorflowNode) -> OutletId:
    """Wire a quotient or product that is 0 if one operand is: the divisor, or the factor that the names begin with."""
    x, y = node.input(0), node.input(1)
    function, operand = GUARDED[node.op_type]
    guard = (x, y)[operand]
    empty = node.apply("equal", guard, 0, suffix="empty")
    if function.startswith("log"):
        y = node.apply(function, y, suffix="log")
    if guard == node.input(1) and function == "div":
        y = node.apply("where", empty, 1, y, suffix="divisor")
    result = node.apply("div" if function == "div" else "mul", x, y, suffix="value")
    return node.apply("where", empty, 0, result)


@tensorflow_op("Cast", complex_numbers=True)
def cast(node: TensorflowNode) -> OutletId:
    """Convert to the type of an attribute."""
    fact, dtype = node.fact(0), node.require_dtype("DstT")
    if node.is_complex("DstT"):
        if node.is_complex("SrcT"):
            return node.input(0)
        return complex_of(node)
    if node.is_complex("SrcT"):
        return node.wire(Cast(dtype), [node.complex_part(node.input(0), 0)])
    symbolic = fact.value is not None and is_symbolic(fact.value)
    if fact.dtype == dtype or (symbolic and np.issubdtype(dtype, np.integer)):
        return node.input(0)
    return node.wire(Cast(dtype), [node.input(0)])


def complex_of(node: TensorflowNode) -> OutletId:
    """Return a real tensor as a complex one."""
    return pair(node, node.cast(node.input(0), F32, "real"), node.number(0, F32, "zero"))


@tensorflow_op("Select", "SelectV2")
def select(node: TensorflowNode) -> OutletId:
    """Choose from two tensors by a condition; a condition of one axis chooses rows (Select)."""
    x, y = node.to_one_type([node.input(1), node.input(2)])
    return node.apply("where", node.condition(x, by_rows=node.op_type == "Select"), x, y)


@tensorflow_op("ZerosLike", "OnesLike")
def filled_like(node: TensorflowNode) -> OutletId:
    """Repeat one number to the shape of a tensor."""
    fact = node.fact(0)
    number = node.number(int(node.op_type == "OnesLike"), fact.dtype, "number")
    return node.wire(Expand(fact.shape), [number])
