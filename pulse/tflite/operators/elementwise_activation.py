"""Functions of one tensor, element by element."""

from collections.abc import Callable

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.elementwise import ELEMENTWISE
from pulse.ops.quantize import CodeTable
from pulse.tflite.codes import code_range, limited, limits, rescaled, table_of, target
from pulse.tflite.int16_tables import squashed
from pulse.tflite.multipliers import multiplied
from pulse.tflite.node import TfliteNode
from pulse.tflite.operators.elementwise import plain
from pulse.tflite.registry import tflite_op

UNARY = {
    "LOGISTIC": "sigmoid",
    "TANH": "tanh",
    "EXP": "exp",
    "LOG": "log",
    "SQRT": "sqrt",
    "ABS": "abs",
    "NEG": "neg",
    "FLOOR": "floor",
    "CEIL": "ceil",
    "ROUND": "round",
    "SIN": "sin",
    "COS": "cos",
    "SIGN": "sign",
    "HARD_SWISH": "hard_swish",
    "LOGICAL_NOT": "not",
}


@tflite_op(*UNARY)
def unary(node: TfliteNode) -> OutletId:
    """A function of the table; of codes by a table of all that they can be."""
    return applied(node, UNARY[node.op_type])


@tflite_op("ELU")
def elu(node: TfliteNode) -> OutletId:
    """The input where it is positive, else e**x - 1."""
    return applied(node, "elu", (1.0,))


@tflite_op("LEAKY_RELU")
def leaky_relu(node: TfliteNode) -> OutletId:
    """The input where it is positive, else a share of it."""
    if node.coded and node.read(0).coded and node.read(0).dtype != np.int16:
        return picked(node, _leaky_codes(node))
    return applied(node, "leaky_relu", (node.attributes.get("Alpha", 0.0),))


SLOPE_BITS = 8
SLOPES = 2.0**-SLOPE_BITS, 2.0**7
"""The least and the largest slope of codes that XNNPACK takes."""


def _leaky_codes(node: TfliteNode) -> Array:
    """A table of LEAKY_RELU: slopes of 8 bits behind the point, or multipliers of 31 bits where XNNPACK has none."""
    source, ours = node.read(0), node.quantization(0)
    _, made = target(node)
    assert source.dtype is not None
    low, high = code_range(source.dtype, int(ours.zero[0]))
    x = np.arange(low, high + 1)
    alpha = node.attributes.get("Alpha", 0.0)
    slope = ours.scale[0] / made.scale[0]
    share = np.float32(alpha) * slope
    least, most = SLOPES
    if least <= slope <= most and least <= abs(share) <= most:
        steps = np.where(x >= 0, np.rint(slope / least), np.rint(share / least))
        y = np.floor(x * steps * least + 0.5)
    else:
        y = np.where(x >= 0, multiplied(x, float(slope)), multiplied(x, float(share)))
    return np.clip(y, *limits(node)).astype(np.float32)


@tflite_op("GELU")
def gelu(node: TfliteNode) -> OutletId:
    """The input times the normal distribution of it."""
    return applied(node, "gelu", (1.0 if node.flag("Approximate") else 0.0,))


def applied(node: TfliteNode, kind: str, params: tuple[float, ...] = ()) -> OutletId:
    """An elementwise function of floats; of 8-bit codes by a table."""
    tensor = node.read(0)
    if node.coded and tensor.coded and tensor.dtype != np.int16:
        return looked_up(node, lambda x: np.asarray(ELEMENTWISE[kind].run(x, *params)))
    if node.coded and tensor.coded and kind in ("sigmoid", "tanh"):
        return picked(node, squashed(kind, float(node.quantization(0).scale[0])))
    return plain(node, node.each(kind, node.values(0), suffix="value", params=params))


def looked_up(node: TfliteNode, function: Callable[[Array], Array]) -> OutletId:
    """8-bit codes by a table of the function."""
    return picked(node, table_of(node, function))


def picked(node: TfliteNode, table: Array) -> OutletId:
    """Codes by a table that begins with the least one."""
    source = node.read(0)
    assert source.dtype is not None
    low, _ = code_range(source.dtype, int(node.quantization(0).zero[0]))
    return node.wire(CodeTable(low), [node.codes(0), node.constant(table, "table")])


def _reciprocal_root(x: Array) -> Array:
    return 1 / np.sqrt(x)


@tflite_op("RSQRT", "SQUARE")
def power(node: TfliteNode) -> OutletId:
    """1 / sqrt(x), or x * x."""
    if node.coded:
        return looked_up(node, _reciprocal_root if node.op_type == "RSQRT" else np.square)
    x = node.values(0)
    if node.op_type == "SQUARE":
        return node.each("mul", x, x)
    return node.each("reciprocal", node.each("sqrt", x, suffix="root"))


RANGES = {"RELU": (0.0, None), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}


@tflite_op(*RANGES)
def relu(node: TfliteNode) -> OutletId:
    """The input inside of a range."""
    low, high = RANGES[node.op_type]
    if node.coded:
        ours, (_, made) = node.quantization(0), target(node)
        ratio = float(ours.scale[0] / made.scale[0])
        steps = node.each("add", node.each("mul", node.codes(0), ratio, suffix="steps"), 0.5, suffix="half")
        y = limited(node, node.each("floor", steps, suffix="rounded"), suffix="rescaled")
        y = node.each("max", y, float(np.rint(low / made.scale[0])), suffix="floor")
        return y if high is None else node.each("min", y, float(np.rint(high / made.scale[0])))
    if high is None:
        return node.each("relu", node.values(0))
    return node.each("min", node.each("max", node.values(0), low, suffix="floor"), high)


@tflite_op("PRELU")
def prelu(node: TfliteNode) -> OutletId:
    """The input where it is positive, else times a slope of its channel."""
    if not node.coded:
        return node.each("prelu", node.values(0), node.values(1))
    x, (_, made) = node.codes(0), target(node)
    ours, slopes = node.quantization(0), node.quantization(1)
    right = rescaled(node, x, ours.scale[0] / made.scale[0], suffix="positive")
    product = node.each("mul", x, node.codes(1), suffix="product")
    left = rescaled(node, product, ours.scale[0] * slopes.scale[0] / made.scale[0], suffix="negative")
    return node.each("where", node.each("less", x, 0.0, suffix="below"), left, right)
