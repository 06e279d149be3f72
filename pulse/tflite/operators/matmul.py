"""Products of matrices."""

from functools import partial

import numpy as np

from pulse.dim import TDim
from pulse.facts import F64, MAX_EXACT_F32, Array
from pulse.graph import OutletId
from pulse.ops.matmul import MatMul
from pulse.ops.shape import Reshape, Transpose, matrix_transpose
from pulse.tflite.codes import (
    X_DIGIT,
    activate,
    clamp_wide,
    exact_sum,
    finish_sum,
    largest_code,
    multiply_rows,
    product_factor,
    quantized_output,
    rescale_codes,
)
from pulse.tflite.hybrid import dequantize_sums, row_codes
from pulse.tflite.multipliers import multiply_rounding_once, multiply_rounding_twice
from pulse.tflite.node import TfliteNode, subtract_zero
from pulse.tflite.operators.conv import read_bias, read_kernel
from pulse.tflite.registry import tflite_op


@tflite_op("FULLY_CONNECTED")
def fully_connected(node: TfliteNode) -> OutletId:
    """Multiply rows x [..., K] by weights [N, K] transposed; all leading axes become one unless the file keeps them."""
    if node.input_tensor(1).data is None:
        return _multiply_computed(node)
    if node.integer("WeightsFormat", 0):
        raise node.error("shuffled weights are not supported; convert the model again")
    weights, bias = read_kernel(node, 1, (1, 0), node.has_codes), read_bias(node, 2)
    if (
        node.input_tensor(1).dtype == np.int8
        and not node.has_codes
        and node.graph.fact(node.values(0)).dtype == np.float32
    ):
        return _multiply_hybrid(node, bias)
    if not node.has_codes:
        x = _rows(node, node.values(0), weights.shape[0])
        offsets = None if bias is None else bias.astype(np.float32)
        return activate(node, multiply_rows(node, x, weights, offsets, "dense"))
    x = _rows(node, node.codes(0), weights.shape[0])
    apply = partial(multiply_rows, node)
    total = exact_sum(node, x, weights, bias, 1, largest_code(node.input_tensor(0)), apply)
    factor = product_factor(node, node.quantization(0), node.quantization(1))
    return finish_sum(node, total, factor, (-1,), rescale=partial(_rescale_int16, node))


def _rescale_int16(node: TfliteNode, total: OutletId, factor: Array) -> OutletId:
    """Return sums of int16 codes: with a 64-bit bias rounded once, else twice."""
    if node.has(2) and node.input_tensor(2).type_name == "INT64":
        return multiply_rounding_once(node, total, factor, 31)
    if factor.size == 1:
        _, quantization = quantized_output(node)
        product = node.quantization(0).scale[0] * node.quantization(1).scale[0]
        factor = np.asarray(float(product) / float(quantization.scale[0]))
    return multiply_rounding_twice(node, total, factor, "rescaled", up=True)


def _multiply_hybrid(node: TfliteNode, bias: Array | None) -> OutletId:
    """Multiply floats by stored codes."""
    weights = read_kernel(node, 1, (1, 0), True).astype(np.float32)
    x = _rows(node, node.values(0), weights.shape[0])
    codes, step = row_codes(node, x, [node.graph.fact(x).rank - 1])
    total = node.wire(MatMul(), [codes, node.constant(weights, "codes")], "sum")
    return activate(
        node, dequantize_sums(node, total, step, None if bias is None else bias.astype(np.float32), (-1,))
    )


def _rows(node: TfliteNode, x: OutletId, size: int) -> OutletId:
    shape = node.graph.fact(x).shape
    if node.flag("KeepNumDims") or (len(shape) == 2 and shape[1] == size):
        return x
    return node.wire(Reshape((TDim.of(-1), TDim.of(size))), [x], "rows")


def _multiply_computed(node: TfliteNode) -> OutletId:
    """Multiply by weights that are computed while running."""
    node.require(not node.has_codes, "codes times weights that are computed while running are not supported")
    w = node.values(1)
    size = node.size(1, 1)
    transposed = node.wire(Transpose((1, 0)), [w], "transposed")
    y = node.wire(MatMul(), [_rows(node, node.values(0), int(size)), transposed], "product")
    return activate(node, node.apply("add", y, node.values(2), suffix="sum") if node.has(2) else y)


@tflite_op("BATCH_MATMUL")
def batch_matmul(node: TfliteNode) -> OutletId:
    """Multiply over the last two axes, either operand transposed first.

    XNNPACK takes those of codes whose second matrix has its zero at code 0; the others have 31-bit multipliers.
    """

    def operand(slot: int, name: str) -> OutletId:
        x = node.codes(slot) if node.has_codes else node.values(slot)
        if not node.flag(name):
            return x
        rank = node.graph.fact(x).rank
        return node.wire(Transpose(matrix_transpose(rank)), [x], f"transposed{slot}")

    a, b = operand(0, "AdjX"), operand(1, "AdjY")
    if not node.has_codes:
        return node.wire(MatMul(), [a, b])
    max_codes = [largest_code(node.input_tensor(slot)) for slot in (0, 1)]
    weights = node.input_tensor(1)
    if weights.data is not None:
        max_codes[1] = int(np.abs(subtract_zero(weights)).max(initial=0))
    depth = node.graph.fact(a).shape[-1]
    if not depth.is_const or int(depth) * max_codes[0] * max_codes[1] > MAX_EXACT_F32:
        raise node.error(
            f"a sum of {depth} products of codes cannot be proved exact below {MAX_EXACT_F32}; keep it in floats"
        )
    assert max(max_codes) <= X_DIGIT
    _, quantization = quantized_output(node)
    factor = node.quantization(0).scale[0] * node.quantization(1).scale[0] / quantization.scale[0]
    total = node.wire(MatMul(), [a, b], "sum")
    if node.quantization(1).zero[0] == 0:
        return rescale_codes(node, total, factor)
    wide = node.cast(total, F64, "wide")
    return clamp_wide(node, multiply_rounding_twice(node, wide, np.asarray(float(factor)), "rescaled"))
