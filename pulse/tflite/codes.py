"""Arithmetic of codes as in LiteRT: exact sums, rounded once to the scale of the result.

A quantised wire holds ``code - zero`` in f32. A sum of products is exact as long as no partial sum can pass 2**24;
if one can, the operands are taken apart into small digits whose sums are exact, and these are joined in f64.

LiteRT runs int8 in XNNPACK: the sum as f32 times an f32 scale, halves to even. int16 activations go through its
own kernels: a 15-bit multiplier, halves up.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from pulse.facts import F32, F64, MAX_EXACT_F32, Array, DType
from pulse.graph import OutletId
from pulse.ops.matmul import MatMul
from pulse.tflite.multipliers import multiply_rounding_once, multiply_rounding_twice
from pulse.tflite.node import TfliteNode
from pulse.tflite.read.file import Quantization, Tensor

X_DIGIT, W_DIGIT = 256, 16
"""The factors of the high parts if codes or weights are split, so that their sums are exact in f32."""

NONE, RELU, RELU_N1_TO_1, RELU6, TANH = range(5)
"""Fused activations, by their numbers in the schema."""

WireProduct: TypeAlias = Callable[[OutletId, Array, Array | None, str], OutletId]
"""Wires a product of x with weights and a bias; the last argument is the suffix of its wires."""


def fused_activation(node: TfliteNode) -> int:
    """Return the number of the fused activation. Raises LoadError: it is not supported."""
    code = node.integer("FusedActivationFunction", NONE)
    node.require(code in range(5), f"fused activation {code} is not supported")
    return code


def activate(node: TfliteNode, x: OutletId, suffix: str = "") -> OutletId:
    """Apply the fused activation to floats; the result has the node's name, or one with a suffix."""
    activation = fused_activation(node)
    if activation == NONE:
        return x if suffix else node.name_result(x)
    if activation in (RELU, TANH):
        return node.apply("relu" if activation == RELU else "tanh", x, suffix=suffix)
    low, high = (-1.0, 1.0) if activation == RELU_N1_TO_1 else (0.0, 6.0)
    return node.clip(x, low, high, suffix)


def code_range(dtype: DType, zero: int) -> tuple[int, int]:
    """Return the smallest and the largest ``code - zero``."""
    info = np.iinfo(dtype)
    return int(info.min) - zero, int(info.max) - zero


def quantized_output(node: TfliteNode, slot: int = 0) -> tuple[Tensor, Quantization]:
    """Return an output and the meaning of its codes. Raises LoadError: the file does not state it."""
    tensor = node.output_tensors[slot]
    if tensor.quantization is None or not tensor.has_codes:
        raise node.error(
            f"its output {tensor.name} is {tensor.type_name} without a scale, but its inputs are codes"
        )
    if tensor.quantization.scale.size != 1:
        raise node.error(f"its output {tensor.name} has a scale for each channel, which is not supported")
    return tensor, tensor.quantization


def code_limits(node: TfliteNode, activation: int = NONE, slot: int = 0) -> tuple[float, float]:
    """Return the smallest and the largest ``code - zero`` of an output after a fused activation."""
    tensor, quantization = quantized_output(node, slot)
    assert tensor.dtype is not None
    low, high = code_range(tensor.dtype, int(quantization.zero[0]))
    scale = float(quantization.scale[0])
    if activation == TANH:
        raise node.error("a fused tanh on codes is not supported; convert the model with it apart")
    if activation in (RELU, RELU6):
        low = max(low, 0)
    if activation == RELU6:
        high = min(high, round(6 / scale))
    if activation == RELU_N1_TO_1:
        low, high = max(low, round(-1 / scale)), min(high, round(1 / scale))
    return float(low), float(high)


def clamp(node: TfliteNode, x: OutletId, activation: int = NONE, suffix: str = "", slot: int = 0) -> OutletId:
    """Keep codes inside the range of an output."""
    return node.clip(x, *code_limits(node, activation, slot), suffix)


def rescale_codes(
    node: TfliteNode, x: OutletId, factor: Array, activation: int = NONE, suffix: str = ""
) -> OutletId:
    """Rescale sums or codes to codes of the output: ``rint(x * factor)``, clipped to its range."""
    scale = node.constant(np.asarray(factor, np.float32), f"{suffix}factor")
    return clamp(node, node.apply("mul_round", x, scale, suffix=f"{suffix}rounded"), activation, suffix)


def clamp_wide(
    node: TfliteNode, x: OutletId, activation: int = NONE, suffix: str = "", slot: int = 0
) -> OutletId:
    """Keep f64 integers inside the range of the output; return them as f32."""
    return node.cast(node.clip(x, *code_limits(node, activation, slot), "limited"), F32, suffix)


def exact_sum(
    node: TfliteNode,
    x: OutletId,
    weights: Array,
    bias: Array | None,
    output_axis: int,
    largest: int,
    apply: WireProduct,
    spread: Sequence[int] = (-1,),
) -> OutletId:
    """Return an exact sum of products of codes: in f32 if that suffices, else in f64.

    weights, bias  integers; ``output_axis`` of the weights has the outputs
    largest        maximum of ``abs(x)``
    spread         the shape in which one number for each output broadcasts to the sums
    """
    summed = tuple(axis for axis in range(weights.ndim) if axis != output_axis % weights.ndim)

    def largest_sum(part: Array, largest_x: int, added: Array | None) -> float:
        sums = np.abs(part).sum(axis=summed) * largest_x
        return float((sums if added is None else sums + np.abs(added)).max(initial=0))

    if largest_sum(weights, largest, bias) <= MAX_EXACT_F32:
        return apply(x, weights.astype(np.float32), None if bias is None else bias.astype(np.float32), "sum")
    parts = [(weights, 1)]
    if largest_sum(weights, X_DIGIT - 1, None) > MAX_EXACT_F32:
        high = np.floor_divide(weights, W_DIGIT)
        parts = [(high, W_DIGIT), (weights - high * W_DIGIT, 1)]
    if any(largest_sum(part, X_DIGIT, None) > MAX_EXACT_F32 for part, _ in parts):
        raise node.error(
            "a sum of this many products of codes cannot be computed exactly; make the layer smaller"
        )
    digits = [(x, 1)]
    if largest >= X_DIGIT:
        scaled = node.apply("mul", x, 1 / X_DIGIT, suffix="shifted")
        high_x = node.apply("floor", scaled, suffix="high")
        low_x = node.apply(
            "sub", x, node.apply("mul", high_x, float(X_DIGIT), suffix="high_part"), suffix="low"
        )
        digits = [(high_x, X_DIGIT), (low_x, 1)]
    terms: list[OutletId] = []
    for i, (digit, weight) in enumerate(digits):
        for j, (part, part_weight) in enumerate(parts):
            name = f"sum{i}{j}"
            product = node.cast(apply(digit, part.astype(np.float32), None, name), F64, f"{name}.wide")
            terms.append(node.apply("mul", product, float(weight * part_weight), suffix=f"{name}.scaled"))
    total = terms[0]
    for index, term in enumerate(terms[1:]):
        total = node.apply("add", total, term, suffix=f"total{index}")
    if bias is None:
        return total
    return node.apply(
        "add", total, node.constant(bias.astype(np.float64).reshape(spread), "bias"), suffix="total"
    )


def multiply_rows(node: TfliteNode, x: OutletId, matrix: Array, bias: Array | None, suffix: str) -> OutletId:
    """Wire rows x [..., K] times a matrix [K, N], plus a bias: for one node, a ``WireProduct``."""
    operands = [x, node.constant(matrix, f"{suffix}.matrix")]
    if bias is None:
        return node.wire(MatMul(), operands, suffix)
    product = node.wire(MatMul(), operands, f"{suffix}.product")
    return node.apply("add", product, node.constant(bias, f"{suffix}.bias"), suffix=suffix)


def largest_code(tensor: Tensor) -> int:
    """Return the largest ``abs(code - zero)`` that a tensor can have."""
    assert tensor.dtype is not None and tensor.quantization is not None
    low, high = code_range(tensor.dtype, int(tensor.quantization.zero[0]))
    return max(-low, high)


def product_factor(node: TfliteNode, x: Quantization, weights: Quantization) -> Array:
    """Return the scale of a sum of products over the output's scale, for each channel: f32, of int16 codes f64."""
    tensor, quantization = quantized_output(node)
    if tensor.dtype == np.int16:
        return (
            x.scale[0].astype(np.float64)
            * weights.scale.astype(np.float64)
            / quantization.scale[0].astype(np.float64)
        )
    return (x.scale[0] * weights.scale / quantization.scale[0]).astype(np.float32)


def finish_sum(
    node: TfliteNode,
    total: OutletId,
    factor: Array,
    shape: Sequence[int],
    suffix: str = "",
    rescale: Callable[[OutletId, Array], OutletId] | None = None,
) -> OutletId:
    """Convert exact sums to codes of the output, after its activation; ``shape`` spreads the factors of channels.

    rescale   f64 sums times f64 factors as integers, of int16 codes; None: 15-bit multipliers
    """
    activation, tensor = fused_activation(node), node.output_tensors[0]
    spread = factor.reshape(shape) if factor.size > 1 else factor.reshape(())
    if tensor.dtype == np.int16:
        sums_f64 = node.cast(total, F64, "total64")
        if rescale is None:
            codes = multiply_rounding_once(node, sums_f64, spread, 15)
        else:
            codes = rescale(sums_f64, spread)
        return clamp_wide(node, codes, activation, suffix)
    return rescale_codes(node, node.cast(total, F32, "total32"), spread, activation, suffix)


MIN_RATIO, MAX_RATIO = 2.0**-8, 2.0**7
"""Factors between 8-bit codes that XNNPACK takes. The smallest one is also their step."""


def scale_by_slope(x: Array, factor: np.float32) -> Array:
    """Multiply codes by a factor in steps of 2**-8, and round halves up."""
    return np.floor(x * np.rint(factor / MIN_RATIO) * MIN_RATIO + 0.5)


def requantize(node: TfliteNode, slot: int, suffix: str = "", out: int = 0) -> OutletId:
    """Return the codes of an input as codes of the output, whose scale may differ."""
    input_quantization, (tensor, output_quantization) = node.quantization(slot), quantized_output(node, out)
    x, source = node.codes(slot), node.input_tensor(slot)
    if input_quantization.scale[0] == output_quantization.scale[0]:
        return shift_codes(node, x, source, tensor, suffix)
    ratio = np.float32(input_quantization.scale[0] / output_quantization.scale[0])
    if source.dtype == tensor.dtype != np.int16 and MIN_RATIO <= ratio <= MAX_RATIO:
        step = float(np.rint(ratio / MIN_RATIO) * MIN_RATIO)
        y = node.apply(
            "add", node.apply("mul", x, step, suffix=f"{suffix}steps"), 0.5, suffix=f"{suffix}half"
        )
        return clamp(node, node.apply("floor", y, suffix=f"{suffix}whole"), suffix=suffix, slot=out)
    factor = np.asarray(float(input_quantization.scale[0]) / float(output_quantization.scale[0]))
    up = np.int16 not in (source.dtype, tensor.dtype)
    y = multiply_rounding_twice(node, node.cast(x, F64, f"{suffix}wide"), factor, f"{suffix}rescaled", up)
    return clamp_wide(node, y, NONE, suffix, out)


def requantize_input(node: TfliteNode, slot: int = 0, suffix: str = "moved", out: int = 0) -> OutletId:
    """Return an input as the output has it: the codes of its scale, or numbers."""
    if node.output_tensors[out].has_codes:
        return requantize(node, slot, suffix, out)
    return node.values(slot) if node.input_tensor(slot).has_codes else node.input(slot)


def shift_codes(node: TfliteNode, x: OutletId, source: Tensor, result: Tensor, suffix: str) -> OutletId:
    """Convert codes to an output of the same scale, inside its range."""
    assert source.dtype is not None and source.quantization is not None and result.quantization is not None
    assert result.dtype is not None
    low, high = code_range(source.dtype, int(source.quantization.zero[0]))
    min_code, max_code = code_range(result.dtype, int(result.quantization.zero[0]))
    if low >= min_code and high <= max_code:
        return x
    return clamp(node, x, NONE, suffix)


def input_range(node: TfliteNode) -> tuple[int, int]:
    """Return the smallest and the largest ``code - zero`` of the first input. Raises LoadError: it has no codes."""
    source = node.input_tensor(0)
    if not source.has_codes or source.dtype is None:
        raise node.error(
            f"its input {source.name} is {source.type_name}, but its output is quantised; both must be"
        )
    return code_range(source.dtype, int(node.quantization(0).zero[0]))


RoundingFunction: TypeAlias = Callable[[Array, np.float32, np.float32], Array]
"""f32 values, the scale and the zero point of the output, as ``code - zero``."""


def round_half_even(y: Array, scale: np.float32, zero: np.float32) -> Array:
    """Return the nearest code, halves to even, as XNNPACK does."""
    return np.rint(y * (np.float32(1) / scale) + zero) - zero


def round_half_away(y: Array, scale: np.float32, zero: np.float32) -> Array:
    """Return the nearest code, halves away from the zero point."""
    x = y * (np.float32(1) / scale)
    return np.trunc(x + np.copysign(np.float32(0.5), x))


def round_to_zero_point(y: Array, scale: np.float32, zero: np.float32) -> Array:
    """Return the code, rounded towards the zero point."""
    return np.trunc(y / scale)


def function_codes_table(
    node: TfliteNode, function: Callable[[Array], Array], whole: RoundingFunction
) -> Array:
    """Return the output's ``code - zero`` for each code of the input, from the smallest one on.

    The function's values are f32.
    """
    input_quantization, (low, high) = node.quantization(0), input_range(node)
    tensor, quantization = quantized_output(node)
    assert tensor.dtype is not None
    x = np.arange(low, high + 1).astype(np.float32) * input_quantization.scale[0]
    min_code, max_code = code_range(tensor.dtype, int(quantization.zero[0]))
    with np.errstate(all="ignore"):
        y = whole(
            function(x.astype(np.float64)).astype(np.float32),
            quantization.scale[0],
            np.float32(quantization.zero[0]),
        )
        return np.clip(np.nan_to_num(y), min_code, max_code).astype(np.float32)
