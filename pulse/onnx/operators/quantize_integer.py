"""Products of small integers, exact in f32: sums are split if they could leave 2**24.

An f32 holds every integer up to 2**24, so a sum of products that stays below is exact in any order, and the float
kernels compute it.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pulse.dim import TDim
from pulse.facts import F32, I32, MAX_EXACT_F32, U8, Array, DType, TypedFact
from pulse.graph import OutletId
from pulse.infer.node_context import NodeContext
from pulse.onnx.operators.conv import conv
from pulse.onnx.operators.quantize import (
    as_one,
    dynamic_quantize_linear,
    limit_codes,
    spread_row,
    subtract_zero,
)
from pulse.onnx.registry import onnx_op
from pulse.ops.elementwise import Cast
from pulse.ops.matmul import MatMul
from pulse.ops.shape import AddAxis, Transpose
from pulse.ops.slice import Slice
from pulse.support.record import record
from pulse.typed import known_value

BYTE_DTYPES = (U8, np.dtype(np.int8))
MAX_CODE = 255.0
"""The largest magnitude of an 8-bit number minus its zero point."""
MAX_PARTS = 32
"""Parts into which a sum is split."""


@record
class IntegerSums:
    """A wire of sums of products of integers, and the largest magnitude of the sums if f32 has all of them exactly.

    Such sums are f32, others are i32 and have no magnitude.
    """

    outlet: OutletId
    magnitude: float | None = None


@onnx_op("MatMulInteger")
def mat_mul_integer(node: NodeContext) -> OutletId:
    """Wire (a - zero of a) @ (b - zero of b) in i32."""
    a = _subtract_matrix_zero(node, 0, 2, "a")
    b = _subtract_matrix_zero(node, 1, 3, "b")
    return node.name_result(node.cast(_product(node, a, b).outlet, I32, "counts"))


@onnx_op("ConvInteger")
def conv_integer(node: NodeContext) -> OutletId:
    """Convolve x - zero of x with w - zero of w in i32; padding counts as the zero point."""
    return node.name_result(node.cast(_convolve(node, (0, 2), (1, 3)).outlet, I32, "counts"))


@onnx_op("QLinearMatMul")
def q_linear_mat_mul(node: NodeContext) -> OutletId:
    """Multiply quantised matrices, and quantise the product."""
    a = _subtract_matrix_zero(node, 0, 2, "a")
    b = _subtract_matrix_zero(node, 3, 5, "b")
    product = _product(node, a, b).outlet
    scales = [_row(node, 1, "a_scale", True), _row(node, 4, "b_scale", False)]
    return node.name_result(_requantize(node, product, scales))


@onnx_op("QLinearConv")
def q_linear_conv(node: NodeContext) -> OutletId:
    """Convolve quantised numbers, add an i32 bias, and quantise the sum."""
    sums = _convolve(node, (0, 2), (3, 5))
    y, fact = sums.outlet, node.graph.fact(sums.outlet)
    if node.has(8):
        y = _add_bias(node, sums, spread_row(node, node.input(8), fact, 1, "bias"))
    scales = [as_one(node, node.input(1), "x_scale"), _channels(node, 4, fact, "w_scale")]
    return node.name_result(_requantize(node, y, scales))


@onnx_op("com.microsoft::QGemm")
def q_gemm(node: NodeContext) -> OutletId:
    """Multiply quantised matrices, either transposed, add an i32 matrix, and quantise the sum if its scale is given.

    The third matrix has the scale of the product.
    """
    if node.fact(0).rank != 2 or node.fact(3).rank != 2:
        raise node.error(f"two matrices are needed, got {node.fact(0)} and {node.fact(3)}")
    operands = list(node.inputs)
    for slot, name in ((0, "A"), (3, "B")):
        if node.flag(f"trans{name}"):
            operands[slot] = node.wire(Transpose((1, 0)), [node.input(slot)], f"{name}_transposed")
    node = replace(node, inputs=tuple(operands))
    sums = _product(node, _subtract_matrix_zero(node, 0, 2, "a"), _subtract_matrix_zero(node, 3, 5, "b"))
    y = _add_bias(node, sums, node.input(6)) if node.has(6) else sums.outlet
    a_scale, b_scale = _row(node, 1, "a_scale", True), _row(node, 4, "b_scale", False)
    alpha = node.real("alpha", 1.0)
    if alpha != 1.0:
        a_scale = node.apply("mul", a_scale, alpha, suffix="alpha")
    if node.has(7):
        return node.name_result(_requantize(node, y, [a_scale, b_scale], 7))
    return _dequantize(node, y, a_scale, b_scale)


@onnx_op("com.microsoft::MatMulIntegerToFloat")
def mat_mul_integer_to_float(node: NodeContext) -> OutletId:
    """Multiply quantised matrices, and add a bias of floats to the product."""
    product = _product(
        node, _subtract_matrix_zero(node, 0, 4, "a"), _subtract_matrix_zero(node, 1, 5, "b")
    ).outlet
    a_scale, b_scale = _row(node, 2, "a_scale", True), _row(node, 3, "b_scale", False)
    return _dequantize(node, product, a_scale, b_scale, node.input(6) if node.has(6) else None)


@onnx_op("com.microsoft::DynamicQuantizeMatMul")
def dynamic_quantize_mat_mul(node: NodeContext) -> OutletId:
    """Quantise floats by their range, multiply them by a quantised matrix, and add a bias of floats."""
    names = tuple(f"{node.wire_name}.{name}" for name in ("codes", "a_scale", "a_zero"))
    part = replace(node, wire_name=names[0], outputs=names, inputs=node.inputs[:1])
    codes, a_scale, a_zero = dynamic_quantize_linear(part)
    b_zero, bias = (node.input(slot) if node.has(slot) else None for slot in (3, 4))
    operands = (codes, node.input(1), a_scale, node.input(2), a_zero, b_zero, bias)
    return mat_mul_integer_to_float(replace(node, inputs=operands))


def _dequantize(
    node: NodeContext, sums: OutletId, a_scale: OutletId, b_scale: OutletId, bias: OutletId | None = None
) -> OutletId:
    """Return sums of products times the scales of both operands, plus the bias."""
    factors = node.apply("mul", a_scale, b_scale, suffix="factors")
    counts = node.cast(sums, I32, "counts")  # so that the factors do not become part of the weights
    y = node.apply("mul", node.cast(counts, F32, "wide"), factors, suffix="scaled")
    return node.name_result(y if bias is None else node.apply("add", y, bias, suffix="biased"))


def _require_codes(node: NodeContext, fact: TypedFact, zero: DType | None) -> None:
    if fact.dtype not in BYTE_DTYPES or (zero is not None and zero != fact.dtype):
        raise node.error(f"{fact} and its zero point must be 8-bit integers")


def _subtract_matrix_zero(node: NodeContext, slot: int, zero: int, name: str) -> OutletId:
    """Return a matrix minus its zero point, which may differ for each row of the left or column of the right matrix."""
    has_zero = node.has(zero)
    _require_codes(node, node.fact(slot), node.fact(zero).dtype if has_zero else None)
    return subtract_zero(
        node, node.input(slot), _row(node, zero, f"{name}_zero", name == "a") if has_zero else None, name
    )


def _row(node: NodeContext, slot: int, name: str, rows: bool) -> OutletId:
    fact = node.fact(slot)
    if fact.rank == 0 or (fact.rank == 1 and fact.shape[0] == 1):
        return as_one(node, node.input(slot), name)
    if rows and fact.rank == 1:
        return node.wire(AddAxis(1), [node.input(slot)], f"{name}_rows")
    return node.input(slot)


def _channels(node: NodeContext, slot: int, x: TypedFact, name: str) -> OutletId:
    fact = node.fact(slot)
    if fact.rank == 0 or fact.shape[0] == 1:
        return as_one(node, node.input(slot), name)
    return spread_row(node, node.input(slot), x, 1, name)


def _largest_magnitude(node: NodeContext, outlet: OutletId) -> Array:
    """Return the largest magnitude of each number; the largest of the type if they are unknown."""
    value = known_value(node.graph, outlet)
    return np.array(MAX_CODE) if value is None else np.abs(value.astype(np.float64))


def _product(node: NodeContext, a: OutletId, b: OutletId) -> IntegerSums:
    """Return a matrix product of integers."""
    shape = node.graph.fact(a).shape
    if not shape[-1].is_const:
        return _product_of_i32(node, a, b)
    count = int(shape[-1])
    left = np.broadcast_to(_peaks(_largest_magnitude(node, a), -1), count)
    right = np.broadcast_to(
        _peaks(_largest_magnitude(node, b), -2 if node.graph.fact(b).rank > 1 else -1), count
    )
    starts = _parts(node, left * right)
    if starts is None:
        return _product_of_i32(node, a, b)
    if len(starts) == 1:
        return IntegerSums(node.wire(MatMul(), [a, b], "product0"), float((left * right).sum()))
    sums: list[OutletId] = []
    axes = (len(shape) - 1, max(0, node.graph.fact(b).rank - 2))
    for start, end in zip(starts, [*starts[1:], count]):
        pair = [
            node.wire(Slice(axis, TDim.of(start), TDim.of(end)), [x], f"{name}_{start}")
            for x, axis, name in ((a, axes[0], "a"), (b, axes[1], "b"))
        ]
        sums.append(node.wire(Cast(I32), [node.wire(MatMul(), pair, f"product{start}")], f"sum{start}"))
    return IntegerSums(node.apply("sum", *sums, suffix="total"))


def _add_bias(node: NodeContext, sums: IntegerSums, bias: OutletId) -> OutletId:
    """Add an i32 bias to sums of products: in f32 if it has all results exactly, else in i32."""
    value, dtype = known_value(node.graph, bias), I32
    if value is not None and sums.magnitude is not None:
        magnitude = sums.magnitude + float(np.abs(value.astype(np.float64)).max(initial=0))
        dtype = F32 if magnitude < MAX_EXACT_F32 else I32
    operands = node.cast(sums.outlet, dtype, "sums"), node.cast(bias, dtype, "bias")
    return node.apply("add", *operands, suffix="biased")


def _product_of_i32(node: NodeContext, a: OutletId, b: OutletId) -> IntegerSums:
    operands = [node.cast(a, I32, "a_i32"), node.cast(b, I32, "b_i32")]
    return IntegerSums(node.wire(MatMul(), operands, "product"))


def _peaks(largest: Array, axis: int) -> Array:
    """Return the largest magnitude at each index of an axis."""
    if largest.ndim == 0:
        return largest
    others = tuple(a for a in range(largest.ndim) if a != axis % largest.ndim)
    return largest.max(axis=others, initial=0)


def _parts(node: NodeContext, terms: Array) -> Sequence[int] | None:
    """Return the starts of the parts whose sums are exact; None if there are too many."""
    starts, total = [0], 0.0
    for index, term in enumerate(terms.tolist()):
        total += term
        if total >= MAX_EXACT_F32:
            starts.append(index)
            total = term
    return starts if len(starts) <= MAX_PARTS else None


def _convolve(node: NodeContext, x: tuple[int, int], w: tuple[int, int]) -> IntegerSums:
    """Return a convolution of integers; of each operand the slots of the numbers and of their zero points."""
    operands: list[OutletId] = []
    for (slot, zero), name in ((x, "x"), (w, "w")):
        has_zero = node.has(zero)
        fact = node.fact(slot)
        _require_codes(node, fact, node.fact(zero).dtype if has_zero else None)
        point = None
        if has_zero and node.fact(zero).rank and node.fact(zero).shape[0] != 1:
            point = spread_row(node, node.input(zero), fact, 0, f"{name}_zero")
        elif has_zero:
            point = as_one(node, node.input(zero), f"{name}_zero")
        operands.append(subtract_zero(node, node.input(slot), point, name))
    kernel = node.graph.fact(operands[1]).shape[1:]
    size = np.prod([int(dim) for dim in kernel]) if all(dim.is_const for dim in kernel) else MAX_EXACT_F32
    largest = _largest_magnitude(node, operands[1])
    largest_sum = (
        largest.reshape(largest.shape[0], -1).sum(axis=1).max(initial=0) if largest.ndim else largest * size
    )
    magnitude = MAX_CODE * float(largest_sum)
    wide = F32 if magnitude < MAX_EXACT_F32 else I32
    part = replace(
        node,
        wire_name=f"{node.wire_name}.sums",
        inputs=tuple(node.cast(operand, wide, f"operand{slot}") for slot, operand in enumerate(operands)),
    )
    return IntegerSums(conv(part), magnitude if wide == F32 else None)


def _requantize(node: NodeContext, sums: OutletId, scales: Sequence[OutletId], slot: int = 6) -> OutletId:
    """Return sums of products times the scales of both operands over the scale of the result, quantised.

    The result's scale and zero point are at ``slot``.
    """
    fact = node.graph.fact(sums)
    y_scale, point = (
        spread_row(node, node.input(place), fact, fact.rank - 1, name)
        if node.fact(place).rank > 1
        else as_one(node, node.input(place), name)
        for place, name in ((slot, "y_scale"), (slot + 1, "y_zero"))
    )
    factors = node.apply(
        "mul", *[node.cast(factor, F32, f"factor{i}") for i, factor in enumerate(scales)], suffix="factors"
    )
    ratio = node.apply("div", factors, node.cast(y_scale, F32, "y_factor"), suffix="ratio")
    rounded = node.apply("mul_round", node.cast(sums, F32, "wide"), ratio, suffix="rounded")
    return limit_codes(node, rounded, point, node.fact(slot + 1).dtype)
