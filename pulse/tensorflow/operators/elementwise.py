"""Elementwise operators: mostly a table, as the ops are."""

import math

import numpy as np

from pulse.dim import TDim
from pulse.facts import is_symbolic
from pulse.graph import OutletId
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.ops.shape import Expand, Reshape
from pulse.tensorflow.context import TensorflowNode
from pulse.tensorflow.operators.spectral import complex_product, pair
from pulse.tensorflow.registry import tensorflow_op

FUNCTIONS = {name: kind for kind, row in ELEMENTWISE.items() for name in row.names.tensorflow.split()}
"""Operator -> the function of the table."""
GUARDED = {
    "DivNoNan": ("div", 1),
    "Xdivy": ("div", 0),
    "Xlogy": ("log", 0),
    "Xlog1py": ("log1p", 0),
    "MulNoNan": ("mul", 1),
}
"""Operator -> its function, and the operand whose zeros make the result 0."""
SAME = (
    "Identity",
    "StopGradient",
    "PreventGradient",
    "Snapshot",
    "ReadVariableOp",
    "EnsureShape",
    "DeepCopy",
    "LoopCond",
)


@tensorflow_op(*FUNCTIONS)
def plain(node: TensorflowNode) -> OutletId:
    """A row of the table; its parameters have their defaults."""
    kind = FUNCTIONS[node.op_type]
    params = tuple(ELEMENTWISE[kind].names.params.values())
    return node.wire(Elementwise(kind, params), node.alike(node.given_inputs()))


@tensorflow_op("Mul")
def mul(node: TensorflowNode) -> OutletId:
    """A product, of complex numbers too."""
    if node.is_complex():
        return complex_product(node)
    return node.wire(Elementwise("mul"), node.alike(node.given_inputs()))


@tensorflow_op("Exp")
def exp(node: TensorflowNode) -> OutletId:
    """The exponential, of complex numbers a + bi too: cos b + i sin b, times exp of a."""
    if not node.is_complex():
        return node.wire(Elementwise("exp"), [node.input(0)])
    size = node.wire(Elementwise("exp"), [node.as_real(node.input(0), 0)], "size")
    phase = node.as_real(node.input(0), 1)
    parts = [node.wire(Elementwise(kind), [phase], kind) for kind in ("cos", "sin")]
    real, imaginary = (
        node.wire(Elementwise("mul"), [size, part], f"part_{index}") for index, part in enumerate(parts)
    )
    return pair(node, real, imaginary)


@tensorflow_op("LeakyRelu")
def leaky_relu(node: TensorflowNode) -> OutletId:
    """The slope is an attribute."""
    return node.wire(Elementwise("leaky_relu", (node.real("alpha", 0.2),)), [node.input(0)])


@tensorflow_op(*SAME, "IdentityN")
def identity(node: TensorflowNode) -> list[OutletId]:
    """Return the inputs unchanged."""
    return node.given_inputs()


@tensorflow_op("CheckNumerics")
def check_numerics(node: TensorflowNode) -> OutletId:
    """Return the input unchanged, without checking that its numbers are finite."""
    return node.input(0)


@tensorflow_op("Relu6")
def relu6(node: TensorflowNode) -> OutletId:
    """Between 0 and 6."""
    x = node.wire(Elementwise("relu"), [node.input(0)], "positive")
    return node.wire(Elementwise("min"), [x, node.number(6, node.fact(0).dtype, "most")])


@tensorflow_op("Rsqrt")
def rsqrt(node: TensorflowNode) -> OutletId:
    """1 / sqrt(x)."""
    return node.wire(Elementwise("reciprocal"), [node.wire(Elementwise("sqrt"), [node.input(0)], "root")])


@tensorflow_op("Square")
def square(node: TensorflowNode) -> OutletId:
    """``x * x``."""
    return node.wire(Elementwise("mul"), [node.input(0), node.input(0)])


@tensorflow_op("SquaredDifference")
def squared_difference(node: TensorflowNode) -> OutletId:
    """(x - y) squared."""
    difference = node.wire(Elementwise("sub"), node.alike(node.given_inputs()), "difference")
    return node.wire(Elementwise("mul"), [difference, difference])


@tensorflow_op("Erfc")
def erfc(node: TensorflowNode) -> OutletId:
    """1 - erf(x)."""
    one = node.number(1, node.fact(0).dtype, "one")
    return node.wire(Elementwise("sub"), [one, node.wire(Elementwise("erf"), [node.input(0)], "erf")])


@tensorflow_op("Log1p")
def log1p(node: TensorflowNode) -> OutletId:
    """log(1 + x)."""
    one = node.number(1, node.fact(0).dtype, "one")
    return node.wire(Elementwise("log"), [node.wire(Elementwise("add"), [node.input(0), one], "more")])


@tensorflow_op("Expm1")
def expm1(node: TensorflowNode) -> OutletId:
    """exp(x) - 1."""
    one = node.number(1, node.fact(0).dtype, "one")
    return node.wire(Elementwise("sub"), [node.wire(Elementwise("exp"), [node.input(0)], "exp"), one])


@tensorflow_op("NotEqual")
def not_equal(node: TensorflowNode) -> OutletId:
    """Whether two numbers differ."""
    same = node.wire(Elementwise("equal"), node.alike(node.given_inputs()), "same")
    return node.wire(Elementwise("not"), [same])


@tensorflow_op("IsInf")
def is_inf(node: TensorflowNode) -> OutletId:
    """Whether a number is an infinity."""
    return node.as_onnx("IsInf", [node.input(0)])


@tensorflow_op("IsFinite")
def is_finite(node: TensorflowNode) -> OutletId:
    """Whether a number is neither infinite nor none."""
    size = node.wire(Elementwise("abs"), [node.input(0)], "size")
    limit = node.number(math.inf, node.fact(0).dtype, "limit")
    return node.wire(Elementwise("less"), [size, limit])


@tensorflow_op("ClipByValue")
def clip_by_value(node: TensorflowNode) -> OutletId:
    """Between two tensors."""
    x = node.wire(Elementwise("min"), [node.input(0), node.input(2)], "upper")
    return node.wire(Elementwise("max"), [x, node.input(1)])


@tensorflow_op("FloorDiv")
def floor_div(node: TensorflowNode) -> OutletId:
    """The quotient rounded down."""
    x, y = node.alike(node.given_inputs())
    facts = [node.graph.fact(x), node.graph.fact(y)]
    if np.issubdtype(facts[0].dtype, np.floating):
        return node.wire(Elementwise("floor"), [node.wire(Elementwise("div"), [x, y], "quotient")])
    if any(fact.value is not None and is_symbolic(fact.value) for fact in facts):
        return node.wire(Elementwise("div"), [x, y])
    rest = node.wire(Elementwise("mod"), [x, y], "rest")
    return node.wire(Elementwise("div"), [node.wire(Elementwise("sub"), [x, rest], "whole"), y])


@tensorflow_op("DivNoNan", "Xdivy", "Xlogy", "Xlog1py", "MulNoNan")
def no_nan(node: TensorflowNode) -> OutletId:
    """A quotient or product that is 0 if one operand is: the divisor, or the factor that the names begin with."""
    x, y = node.given_inputs()
    kind, operand = GUARDED[node.op_type]
    guard = (x, y)[operand]
    dtype = node.graph.fact(y).dtype
    zero = node.number(0, dtype, "zero")
    empty = node.wire(Elementwise("equal"), [guard, node.number(0, dtype, "none")], "empty")
    if kind == "log1p":
        y = node.wire(Elementwise("add"), [y, node.number(1, dtype, "one")], "more")
    if kind.startswith("log"):
        y = node.wire(Elementwise("log"), [y], "log")
    if guard == node.input(1) and kind == "div":
        y = node.wire(Elementwise("where"), [empty, node.number(1, dtype, "one"), y], "divisor")
    result = node.wire(Elementwise("div" if kind == "div" else "mul"), [x, y], "value")
    return node.wire(Elementwise("where"), [empty, zero, result])


@tensorflow_op("Cast")
def cast(node: TensorflowNode) -> OutletId:
    """Convert to the type of an attribute."""
    fact, dtype = node.fact(0), node.dtype_of("DstT")
    if node.is_complex("DstT"):
        if node.is_complex("SrcT"):
            return node.input(0)
        return complex_of(node)
    if node.is_complex("SrcT"):
        return node.wire(Cast(dtype), [node.as_real(node.input(0), 0)])
    symbolic = fact.value is not None and is_symbolic(fact.value)
    if fact.dtype == dtype or (symbolic and np.issubdtype(dtype, np.integer)):
        return node.input(0)
    return node.wire(Cast(dtype), [node.input(0)])


def complex_of(node: TensorflowNode) -> OutletId:
    """Return a real tensor as a complex one."""
    real = node.cast(node.input(0), np.dtype(np.float32), "real")
    zero = node.wire(Elementwise("sub"), [real, real], "zero")
    return pair(node, real, zero)


@tensorflow_op("Select", "SelectV2")
def select(node: TensorflowNode) -> OutletId:
    """One of two tensors, by a condition; a condition of one axis chooses rows (Select)."""
    condition, x, y = node.given_inputs()
    x, y = node.alike([x, y])
    fact, rank = node.fact(0), node.graph.fact(x).rank
    if node.op_type == "Select" and fact.rank == 1 and rank > 1:
        shape = (*fact.shape, *(TDim.of(1),) * (rank - 1))
        condition = node.wire(Reshape(shape), [condition], "rows")
    return node.wire(Elementwise("where"), [condition, x, y])


@tensorflow_op("ZerosLike", "OnesLike")
def filled_like(node: TensorflowNode) -> OutletId:
    """One number everywhere, in the shape of a tensor."""
    fact = node.fact(0)
    number = node.number(int(node.op_type == "OnesLike"), fact.dtype, "number")
    return node.wire(Expand(fact.shape), [number])
