"""Functions of two and more tensors, element by element."""

from collections.abc import Callable

import numpy as np

from pulse.facts import F32, F64
from pulse.graph import OutletId
from pulse.ops.elementwise import Cast
from pulse.ops.elementwise_functions import ELEMENTWISE
from pulse.tflite.codes import (
    NONE,
    activate,
    clamp_wide,
    fused_activation,
    quantized_output,
    requantize,
    rescale_codes,
)
from pulse.tflite.multipliers import multiply_rounding_twice
from pulse.tflite.node import TfliteNode
from pulse.tflite.operators.quantize import encode
from pulse.tflite.read.file import TENSOR_TYPES
from pulse.tflite.registry import tflite_op

BINARY = {row.names.tflite: kind for kind, row in ELEMENTWISE.items() if row.names.tflite and row.arity != 1}
"""Operator -> the function of the table, of two tensors."""
FUSED_ACTIVATION_OPERATORS = ("ADD", "SUB", "MUL", "DIV")


def finish_output(node: TfliteNode, y: OutletId) -> OutletId:
    """Convert numbers to the output: apply a fused activation, or quantise to its codes."""
    fuses = node.op_type in FUSED_ACTIVATION_OPERATORS
    if node.has_codes:
        return encode(node, y, fused_activation(node) if fuses else NONE)
    return activate(node, y) if fuses else node.name_result(y)


@tflite_op(*BINARY)
def binary(node: TfliteNode) -> OutletId:
    """Wire a function of two tensors that broadcast."""
    if node.has_codes and node.op_type in CODE_FUNCTIONS:
        return CODE_FUNCTIONS[node.op_type](node)
    return finish_output(
        node, node.apply(BINARY[node.op_type], node.values(0), node.values(1), suffix="value")
    )


SUM_SHIFT, INT16_SHIFT, DIFFERENCE_SHIFT = 20, 15, 7
"""Bits that codes gain before they are scaled: 8-bit and int16 codes of sums, 8-bit codes of squared differences."""
SUM_BITS = 21
"""The bits of the multipliers of XNNPACK's sums."""
SUM_SCALES = 2.0**-10, 2.0**8
"""The ratios of a term's scale to the sum's scale in XNNPACK's sums: from the first on, and below the second."""


def _sum(node: TfliteNode) -> OutletId:
    """Return the sum or difference of two terms in steps of the output."""
    tensor, quantization = quantized_output(node)
    ratios = [np.float32(node.quantization(slot).scale[0] / quantization.scale[0]) for slot in (0, 1)]
    if tensor.dtype == np.int16 or not all(SUM_SCALES[0] <= ratio < SUM_SCALES[1] for ratio in ratios):
        return _sum_in_fixed_point(node, INT16_SHIFT if tensor.dtype == np.int16 else SUM_SHIFT)
    shift = SUM_BITS - int(np.frexp(max(ratios))[1])
    terms: list[OutletId] = []
    for slot, ratio in enumerate(ratios):
        step = float(np.rint(np.ldexp(float(ratio), shift))) * 2.0**-shift
        sign = -1 if slot and node.op_type == "SUB" else 1
        wide = node.cast(node.codes(slot), F64, f"wide{slot}")
        terms.append(node.apply("mul", wide, sign * step, suffix=f"term{slot}"))
    total = node.apply("add", node.apply("add", *terms, suffix="sum"), 0.5, suffix="half")
    return clamp_wide(node, node.apply("floor", total, suffix="rounded"), fused_activation(node))


def _terms(node: TfliteNode, shift: int) -> tuple[OutletId, OutletId, float]:
    """Return both inputs in steps of twice the coarser scale over a power of two, f64, and that doubled scale."""
    scales = [float(node.quantization(slot).scale[0]) for slot in (0, 1)]
    coarse = 2 * max(scales)
    terms: list[OutletId] = []
    for slot, name in ((0, "left"), (1, "right")):
        x = node.cast(node.codes(slot), F64, f"{name}64")
        x = node.apply("mul", x, float(1 << shift), suffix=f"{name}.wide")
        terms.append(multiply_rounding_twice(node, x, np.asarray(scales[slot] / coarse), name))
    return terms[0], terms[1], coarse


def _sum_in_fixed_point(node: TfliteNode, shift: int) -> OutletId:
    """Return the sum of both terms by 31-bit multipliers."""
    _, quantization = quantized_output(node)
    left, right, coarse = _terms(node, shift)
    total = node.apply("sub" if node.op_type == "SUB" else "add", left, right, suffix="sum")
    factor = np.asarray(coarse / ((1 << shift) * float(quantization.scale[0])))
    return clamp_wide(node, multiply_rounding_twice(node, total, factor, "rescaled"), fused_activation(node))


def _product(node: TfliteNode) -> OutletId:
    tensor, quantization = quantized_output(node)
    if tensor.dtype == np.int16:
        wide = [node.cast(node.codes(slot), F64, f"wide{slot}") for slot in (0, 1)]
        y = node.apply("mul", *wide, suffix="product")
        factor = node.quantization(0).scale[0] * node.quantization(1).scale[0] / quantization.scale[0]
        return clamp_wide(node, multiply_rounding_twice(node, y, factor, "rescaled"), fused_activation(node))
    y = node.apply("mul", node.codes(0), node.codes(1), suffix="product")
    return rescale_codes(
        node,
        y,
        node.quantization(0).scale[0] * node.quantization(1).scale[0] / quantization.scale[0],
        fused_activation(node),
    )


def _apply_extreme(node: TfliteNode) -> OutletId:
    return node.apply(BINARY[node.op_type], requantize(node, 0, "left"), requantize(node, 1, "right"))


CODE_FUNCTIONS: dict[str, Callable[[TfliteNode], OutletId]] = {
    "ADD": _sum,
    "SUB": _sum,
    "MUL": _product,
    "MAXIMUM": _apply_extreme,
    "MINIMUM": _apply_extreme,
}


@tflite_op("NOT_EQUAL")
def not_equal(node: TfliteNode) -> OutletId:
    """Whether two tensors differ."""
    return node.apply("not", node.apply("equal", node.values(0), node.values(1), suffix="equal"))


@tflite_op("SQUARED_DIFFERENCE")
def squared_difference(node: TfliteNode) -> OutletId:
    if node.has_codes and quantized_output(node)[0].dtype != np.int16:
        return _squared_difference_of_codes(node)
    difference = node.apply("sub", node.values(0), node.values(1), suffix="difference")
    return finish_output(node, node.apply("mul", difference, difference, suffix="value"))


def _squared_difference_of_codes(node: TfliteNode) -> OutletId:
    """Both terms in steps of twice the coarser scale over 2**7, then the square in steps of the output."""
    _, quantization = quantized_output(node)
    left, right, coarse = _terms(node, DIFFERENCE_SHIFT)
    difference = node.apply("sub", left, right, suffix="difference")
    square = node.apply("mul", difference, difference, suffix="square")
    factor = np.asarray(coarse**2 / ((1 << 2 * DIFFERENCE_SHIFT) * float(quantization.scale[0])))
    return clamp_wide(node, multiply_rounding_twice(node, square, factor, "rescaled"))


@tflite_op("FLOOR_DIV")
def floor_div(node: TfliteNode) -> OutletId:
    """Wire the quotient rounded down; LiteRT divides floats in f64."""
    x, y = node.values(0), node.values(1)
    if node.graph.fact(x).dtype != F32:
        return node.floor_quotient(x, y)
    quotient = node.floor_quotient(node.cast(x, F64, "wide0"), node.cast(y, F64, "wide1"))
    return node.cast(quotient, F32, "rounded")


@tflite_op("FLOOR_MOD")
def floor_mod(node: TfliteNode) -> OutletId:
    """Wire the remainder of the quotient rounded down."""
    return node.apply("mod", node.values(0), node.values(1))


@tflite_op("RIGHT_SHIFT")
def right_shift(node: TfliteNode) -> OutletId:
    """Shift bits to the right; a negative number is no shift."""
    return node.apply("shift_right", node.values(0), node.apply("max", node.values(1), 0, suffix="bits"))


@tflite_op("ADD_N")
def add_n(node: TfliteNode) -> OutletId:
    """Add all inputs."""
    return node.apply("sum", *(node.values(slot) for slot in range(max(1, len(node.inputs)))))


@tflite_op("SELECT", "SELECT_V2")
def select(node: TfliteNode) -> OutletId:
    """Choose from two tensors, element by element; a condition of one axis chooses rows (SELECT)."""
    condition = node.condition(node.input(1), by_rows=node.op_type == "SELECT")
    if node.has_codes:
        y = node.apply("where", condition, requantize(node, 1, "yes"), requantize(node, 2, "no"))
        return node.name_result(y)
    return node.apply("where", condition, node.values(1), node.values(2))


@tflite_op("CAST")
def cast(node: TfliteNode) -> OutletId:
    """Cast to a type."""
    tensor = node.output_tensors[0]
    if tensor.dtype is None or tensor.dtype.kind == "c":
        raise node.error(f"a cast to {tensor.type_name} is not supported")
    dtype = TENSOR_TYPES["INT64"] if tensor.type_name == "INT32" else tensor.dtype
    x = node.values(0)
    return x if node.graph.fact(x).dtype == dtype else node.wire(Cast(dtype), [x])
