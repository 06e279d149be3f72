"""Functions of one tensor, element by element."""

from collections.abc import Callable

import numpy as np

from pulse.facts import F64, Array
from pulse.graph import OutletId
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.ops.quantize import CodeTable
from pulse.tflite import fixed_point
from pulse.tflite.codes import (
    MAX_RATIO,
    MIN_RATIO,
    clamp,
    clamp_wide,
    code_limits,
    function_codes_table,
    input_range,
    quantized_output,
    round_half_away,
    round_half_even,
    round_to_zero_point,
    scale_by_slope,
)
from pulse.tflite.int16_tables import activation_table, interpolate
from pulse.tflite.multipliers import multiply, multiply_rounding_twice
from pulse.tflite.node import TfliteNode
from pulse.tflite.operators.elementwise import finish_output
from pulse.tflite.registry import tflite_op

UNARY = {row.names.tflite: kind for kind, row in ELEMENTWISE.items() if row.names.tflite and row.arity == 1}
"""Operator -> the function of the table, of one tensor."""


@tflite_op("ABS")
def absolute(node: TfliteNode) -> OutletId:
    """Remove the sign."""
    if not node.has_codes:
        return wire_function(node, "abs")
    ratio = float(node.quantization(0).scale[0] / quantized_output(node)[1].scale[0])
    return look_up_codes(node, codes_table(node, lambda x: multiply(np.abs(x), ratio)))


@tflite_op("HARD_SWISH")
def hard_swish(node: TfliteNode) -> OutletId:
    """Multiply by a line from 0 at -3 to 1 at 3, flat outside; 8-bit codes in fixed point."""
    if not node.has_codes or node.input_tensor(0).dtype == np.int16:
        return wire_function(node, "hard_swish")
    scales = float(node.quantization(0).scale[0]), float(quantized_output(node)[1].scale[0])
    return look_up_codes(node, codes_table(node, lambda x: fixed_point.hard_swish(x, *scales)))


@tflite_op("SQRT")
def root(node: TfliteNode) -> OutletId:
    """Wire the square root; for codes the step below it."""
    if node.has_codes:
        return look_up_codes(node, function_codes_table(node, np.sqrt, round_to_zero_point))
    return wire_function(node, "sqrt")


@tflite_op(*UNARY)
def unary(node: TfliteNode) -> OutletId:
    """Wire a function of the table; for codes a table of all their values."""
    return wire_function(node, UNARY[node.op_type])


@tflite_op("ELU")
def elu(node: TfliteNode) -> OutletId:
    """Keep the input if it is positive, else e**x - 1."""
    return wire_function(node, "elu", (1.0,))


@tflite_op("LEAKY_RELU")
def leaky_relu(node: TfliteNode) -> OutletId:
    """Keep the input if it is positive, else a share of it."""
    alpha = node.attributes.get("Alpha", 0.0)
    if not node.has_codes:
        return wire_function(node, "leaky_relu", (alpha,))
    slope = node.quantization(0).scale[0] / quantized_output(node)[1].scale[0]
    share = np.float32(alpha) * slope
    allowed = all(MIN_RATIO <= factor <= MAX_RATIO for factor in (slope, abs(share)))
    eight = allowed and node.input_tensor(0).dtype != np.int16

    def rescale(x: Array, factor: np.float32) -> Array:
        return scale_by_slope(x, factor) if eight else multiply(x, float(factor))

    return look_up_codes(
        node, codes_table(node, lambda x: np.where(x >= 0, rescale(x, slope), rescale(x, share)))
    )


@tflite_op("GELU")
def gelu(node: TfliteNode) -> OutletId:
    """Multiply the input by the normal distribution of it."""
    return wire_function(node, "gelu", (1.0 if node.flag("Approximate") else 0.0,))


XNNPACK = ("sigmoid", "tanh", "elu")
"""Functions of 8-bit codes that it has tables for; LiteRT's own tables round halves away from the zero point."""
INTERPOLATED = ("exp", "gelu", "log")
"""Functions of int16 codes that LiteRT has a table of 513 entries for, made when the file is read."""


def wire_function(node: TfliteNode, name: str, params: tuple[float, ...] = ()) -> OutletId:
    """Return an elementwise function for floats; for 8-bit codes a table."""
    tensor = node.input_tensor(0)
    if not (node.has_codes and tensor.has_codes):
        return finish_output(node, node.apply(name, node.values(0), suffix="value", params=params))

    def function(x: Array) -> Array:
        return np.where((x > 0) | (name != "log"), ELEMENTWISE[name].run(x, *params), -np.inf)

    if tensor.dtype != np.int16:
        return look_up_codes(
            node,
            function_codes_table(node, function, round_half_even if name in XNNPACK else round_half_away),
        )
    if name in ("sigmoid", "tanh"):
        return look_up_codes(node, activation_table(name, float(node.quantization(0).scale[0])))
    if name in INTERPOLATED:
        return look_up_codes(node, interpolated_codes_table(node, function))
    return finish_output(node, node.apply(name, node.values(0), suffix="value", params=params))


def interpolated_codes_table(node: TfliteNode, function: Callable[[Array], Array]) -> Array:
    """Return a table of int16 codes: straight lines between 513 values of the function."""
    return interpolate(
        function, float(node.quantization(0).scale[0]), float(quantized_output(node)[1].scale[0])
    )


def look_up_codes(node: TfliteNode, table: Array) -> OutletId:
    """Return codes by a table that begins with the smallest one."""
    low, _ = input_range(node)
    return node.wire(CodeTable(low), [node.codes(0), node.constant(table, "table")])


def codes_table(node: TfliteNode, function: Callable[[Array], Array]) -> Array:
    """Return a table: a function from each ``code - zero`` of the input to one of the output, kept inside its range."""
    low, high = input_range(node)
    return np.clip(function(np.arange(low, high + 1)), *code_limits(node)).astype(np.float32)


@tflite_op("SQUARE")
def square(node: TfliteNode) -> OutletId:
    """Wire the square."""
    if node.has_codes:
        return look_up_codes(node, function_codes_table(node, np.square, round_half_away))
    return node.apply("mul", node.values(0), node.values(0))


ROOT_BITS = 20
"""The fractional bits of the reciprocal root of an 8-bit code."""


@tflite_op("RSQRT")
def reciprocal_root(node: TfliteNode) -> OutletId:
    """Wire 1 / sqrt(x); the largest code for codes that are not above the zero point."""
    if not node.has_codes:
        return node.apply("reciprocal", node.apply("sqrt", node.values(0), suffix="root"))
    if node.input_tensor(0).dtype == np.int16:
        return look_up_codes(
            node, interpolated_codes_table(node, lambda x: np.where(x > 0, 1 / np.sqrt(x), np.inf))
        )
    step = 1 / (np.sqrt(float(node.quantization(0).scale[0])) * float(quantized_output(node)[1].scale[0]))

    def scale(x: Array) -> Array:
        reciprocal = np.rint(2.0**ROOT_BITS / np.sqrt(np.maximum(x, 1)))
        return np.where(x > 0, multiply(reciprocal, step / 2.0**ROOT_BITS), np.inf)

    return look_up_codes(node, codes_table(node, scale))


RANGES = {"RELU": (0.0, None), "RELU6": (0.0, 6.0), "RELU_N1_TO_1": (-1.0, 1.0), "RELU_0_TO_1": (0.0, 1.0)}


@tflite_op(*RANGES)
def relu(node: TfliteNode) -> OutletId:
    """Limit the input to a range."""
    low, high = RANGES[node.op_type]
    if node.has_codes:
        input_quantization, (_, output_quantization) = node.quantization(0), quantized_output(node)
        floor = float(np.rint(low / output_quantization.scale[0]))
        ceiling = None if high is None else float(np.rint(high / output_quantization.scale[0]))
        if input_quantization.scale[0] != output_quantization.scale[0]:
            ratio = float(input_quantization.scale[0] / output_quantization.scale[0])
            return look_up_codes(
                node, codes_table(node, lambda x: np.clip(multiply(x, ratio), floor, ceiling))
            )
        y = clamp(node, node.codes(0), suffix="limited")
        y = node.apply("max", y, floor, suffix="floor" if ceiling is not None else "")
        return y if ceiling is None else node.apply("min", y, ceiling)
    if high is None:
        return node.apply("relu", node.values(0))
    return node.clip(node.values(0), low, high)


@tflite_op("PRELU")
def prelu(node: TfliteNode) -> OutletId:
    """Keep the input if it is positive, else multiply it by a slope of its channel."""
    if not node.has_codes:
        return node.apply("prelu", node.values(0), node.values(1))
    x_scale, slope_scale = (node.quantization(slot).scale[0] for slot in (0, 1))
    y_scale = quantized_output(node)[1].scale[0]
    x = node.cast(node.codes(0), F64, "wide")
    positive = multiply_rounding_twice(node, x, np.asarray(float(x_scale / y_scale)), "positive")
    product = node.apply("mul", x, node.cast(node.codes(1), F64, "slopes"), suffix="product")
    factor = np.asarray(float(x_scale * slope_scale / y_scale))
    negative = multiply_rounding_twice(node, product, factor, "negative")
    below = node.apply("less", x, 0.0, suffix="below")
    return clamp_wide(node, node.apply("where", below, negative, positive, suffix="selected"))
