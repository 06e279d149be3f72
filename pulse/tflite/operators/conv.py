"""Convolutions, of channels that are last."""

from collections.abc import Sequence

import numpy as np

from pulse.dim import TDim
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.infer.nhwc import channels_first, channels_last, same_pair, window_pads
from pulse.ops.conv import Conv, ConvTranspose, kernel_spans
from pulse.ops.shape import Transpose
from pulse.support.wording import count_of
from pulse.tflite.codes import activate, exact_sum, finish_sum, largest_code, product_factor
from pulse.tflite.hybrid import dequantize_sums, row_codes
from pulse.tflite.node import TfliteNode, decode, subtract_zero
from pulse.tflite.registry import tflite_op

SAME = 0
"""The number of the padding SAME in the schema; VALID is 1."""
STRIDES = "StrideH", "StrideW"
CHANNEL_SHAPE = (-1, 1, 1)
"""The shape in which one number for each channel broadcasts to [N, C, X...]."""


def spatial_option(node: TfliteNode, height: str, width: str) -> tuple[int, int]:
    """Return an option of height and width, at least 1. Raises LoadError: one is less."""
    sizes = node.integer(height, 1), node.integer(width, 1)
    if min(sizes) < 1:
        raise node.error(
            f"{height}, {width} are {list(sizes)}; both must be at least 1, so the file is damaged: "
            "convert the model again"
        )
    return sizes


def read_kernel(node: TfliteNode, slot: int, perm: Sequence[int], codes: bool) -> Array:
    """Return constant weights with their axes in another order: codes as integers, others in f32."""
    tensor = node.input_tensor(slot)
    if codes and tensor.data is None:
        raise node.error("its kernel is not constant codes; convert the model again")
    value = subtract_zero(tensor) if codes else read_numbers(node, slot, "kernel")
    if value.ndim != len(perm):
        axes = count_of(value.ndim, "axis", "axes")
        raise node.error(f"its kernel has {axes}, not {len(perm)}; convert the model again")
    return value.transpose(perm) if codes else np.ascontiguousarray(value.transpose(perm))


def read_numbers(node: TfliteNode, slot: int, subject: str) -> Array:
    """Return a constant as f32: stored, or computed of stored ones, as f16 is decoded.

    Raises LoadError: it is not constant.
    """
    tensor = node.input_tensor(slot)
    if tensor.data is not None:
        return decode(tensor) if tensor.quantization is not None else tensor.data.astype(np.float32)
    value = node.value(slot)
    if value is None:
        raise node.error(f"its {subject} is computed while running; only a constant is supported")
    return value.astype(np.float32)


def read_bias(node: TfliteNode, slot: int) -> Array | None:
    """Return the bias as stored, or as f32, or None. Raises LoadError: it is not constant."""
    if not node.has(slot):
        return None
    data = node.input_tensor(slot).data
    return (read_numbers(node, slot, "bias") if data is None else data).ravel()


@tflite_op("CONV_2D", "DEPTHWISE_CONV_2D")
def conv(node: TfliteNode) -> OutletId:
    """Wire a convolution; kernels [O, H, W, C], depthwise [1, H, W, C*M]."""
    is_depthwise = node.op_type == "DEPTHWISE_CONV_2D"
    perm = (3, 0, 1, 2) if is_depthwise else (0, 3, 1, 2)
    kernel = read_kernel(node, 1, perm, node.has_codes)
    shape = node.fact(0).shape
    if len(shape) != 4 or not shape[3].is_const or int(shape[3]) % max(1, kernel.shape[1]):
        raise node.error(f"input of shape {list(map(str, shape))} does not fit kernel {list(kernel.shape)}")
    group = int(shape[3]) // kernel.shape[1] if kernel.shape[1] else 0
    strides = spatial_option(node, *STRIDES)
    dilations = spatial_option(node, "DilationHFactor", "DilationWFactor")
    spans = tuple(kernel_spans(kernel.shape[2:], dilations))
    pads = window_pads(node.integer("Padding", SAME) == SAME, tuple(shape[1:3]), spans, strides)
    return convolve(node, 0, perm, Conv(strides, dilations, pads, group), read_bias(node, 2))


def convolve(
    node: TfliteNode, slot: int, perm: Sequence[int], op: Conv | ConvTranspose, bias: Array | None
) -> OutletId:
    """Return a convolution of an input with channels last, after the activation, in floats or codes.

    perm  the axes of the stored kernel in the order of the op
    """

    def apply(x: OutletId, weights: Array, offsets: Array | None, suffix: str) -> OutletId:
        operands = [x, node.constant(weights, f"{suffix}.kernel")]
        if offsets is not None:
            operands.append(node.constant(offsets, f"{suffix}.bias"))
        return node.wire(op, operands, suffix)

    x = node.codes(slot) if node.has_codes else node.values(slot)
    x = node.wire(Transpose(channels_first(4)), [x], "channels_first")
    offset = None if bias is None else bias.astype(np.float32)
    if node.has_codes:
        kernel, largest = read_kernel(node, 1, perm, True), largest_code(node.input_tensor(slot))
        total = exact_sum(
            node=node,
            x=x,
            weights=kernel,
            bias=bias,
            output_axis=int(isinstance(op, ConvTranspose)),
            largest=largest,
            apply=apply,
            spread=CHANNEL_SHAPE,
        )
        factor = product_factor(node, node.quantization(slot), node.quantization(1))
        y = finish_sum(node, total, factor, CHANNEL_SHAPE, "codes")
    elif _quantises_activations(node, slot):
        codes, step = row_codes(node, x, (1, 2, 3))
        weights = read_kernel(node, 1, perm, True).astype(np.float32)
        y = dequantize_sums(node, apply(codes, weights, None, "sum"), step, offset, CHANNEL_SHAPE)
        y = activate(node, y, "channels")
    else:
        y = activate(node, apply(x, read_kernel(node, 1, perm, False), offset, "sum"), "channels")
    return node.wire(Transpose(channels_last(4)), [y])


def _quantises_activations(node: TfliteNode, slot: int) -> bool:
    """Return whether floats times stored codes come in calls of constant size: LiteRT then quantises the floats."""
    fact = node.fact(slot)
    return (
        fact.dtype == np.float32
        and node.input_tensor(1).dtype == np.int8
        and all(dim.is_const for dim in fact.shape)
    )


@tflite_op("TRANSPOSE_CONV")
def transpose_conv(node: TfliteNode) -> OutletId:
    """Wire a transposed convolution; inputs: the shape of the output, kernel [O, H, W, C], x, bias."""
    perm = (3, 0, 1, 2)
    kernel = read_kernel(node, 1, perm, node.has_codes)
    sizes, shape = node.dims(0, "output shape"), node.fact(2).shape
    if len(shape) != 4 or len(sizes) != 4:
        raise node.error(
            f"input of {count_of(len(shape), 'axis', 'axes')} for an output of {len(sizes)}; it takes 4"
        )
    strides, pads, extra = spatial_option(node, *STRIDES), list[tuple[TDim, TDim]](), list[int]()
    for axis, (size, stride) in enumerate(zip(kernel.shape[2:], strides)):
        frames = sizes[axis + 1]
        before = same_pair(frames, size, stride)[0] if node.integer("Padding", SAME) == SAME else TDim.of(0)
        missing = frames - ((shape[axis + 1] - 1) * stride + size - before)
        if not missing.is_const or not before.is_const:
            raise node.error(
                f"its output has {count_of(frames, 'frame')} on axis {axis + 1}, which {shape[axis + 1]} frames do "
                "not give"
            )
        pads.append((before, TDim.of(max(0, -int(missing)))))
        extra.append(max(0, int(missing)))
    op = ConvTranspose(strides, (1, 1), tuple(pads), tuple(extra))
    return convolve(node, 2, perm, op, read_bias(node, 3))
