"""Reductions of axes to one value."""

import math

import numpy as np

from pulse.facts import BOOL, F32, F64
from pulse.graph import OutletId
from pulse.ops.elementwise import Cast
from pulse.ops.reduce import ArgReduce, Reduce, ReduceKind
from pulse.tflite.codes import clamp, clamp_wide, quantized_output, requantize
from pulse.tflite.multipliers import multiply_rounding_twice, shift_right
from pulse.tflite.node import TfliteNode
from pulse.tflite.operators.elementwise import finish_output
from pulse.tflite.registry import tflite_op

REDUCE_KINDS: dict[str, ReduceKind] = {
    "MEAN": "mean",
    "SUM": "sum",
    "REDUCE_MAX": "max",
    "REDUCE_MIN": "min",
    "REDUCE_PROD": "prod",
}


@tflite_op(*REDUCE_KINDS)
def reduce(node: TfliteNode) -> OutletId:
    """Reduce some axes to one value each."""
    shape, keep = node.fact(0).shape, node.flag("KeepDims")
    axes = tuple(sorted({node.axis(axis, len(shape)) for axis in node.integers(1, "axes")}))
    kind = REDUCE_KINDS[node.op_type]
    sizes = [shape[axis] for axis in axes]
    if not node.has_codes or kind == "prod" or not all(size.is_const for size in sizes):
        return finish_output(node, node.wire(Reduce(kind, axes, keep), [node.values(0)], "value"))
    if kind in ("max", "min"):
        return node.wire(Reduce(kind, axes, keep), [requantize(node, 0, "codes")])
    _, quantization = quantized_output(node)
    count = math.prod(int(size) for size in sizes) if kind == "mean" else 1
    total = node.wire(Reduce("sum", axes, keep), [node.codes(0)], "sum")
    if node.output_tensors[0].dtype == np.int16 and kind == "mean":
        factor = np.asarray(float(node.quantization(0).scale[0]) / float(quantization.scale[0]))
        y = multiply_rounding_twice(
            node, node.cast(total, F64, "wide"), factor, "rescaled", count=max(1, count)
        )
        return clamp_wide(node, y)
    return _requantize(node, total, math.prod(int(size) for size in sizes), kind == "mean")


def _requantize(node: TfliteNode, total: OutletId, count: int, mean: bool) -> OutletId:
    """Return sums of ``code - zero`` as codes of the output: sums of codes times an f32 scale plus an f32 offset.

    Each step is rounded to f32, as in XNNPACK, so that halves are rounded alike: to even, those of int16 away from 0.
    """
    input_quantization, (_, output_quantization) = node.quantization(0), quantized_output(node)
    scale = np.float32(input_quantization.scale[0] / output_quantization.scale[0])
    if mean:
        scale = scale * (np.float32(1) / np.float32(max(1, count)))
    zeros, zero = float(input_quantization.zero[0]) * count, float(output_quantization.zero[0])
    offset = np.float32(-zeros) * scale + np.float32(zero)
    y = node.apply("mul", node.apply("add", total, zeros, suffix="stored"), float(scale), suffix="scaled")
    if node.output_tensors[0].dtype == np.int16:
        return clamp_wide(node, shift_right(node, node.cast(y, F64, "wide"), 0, "rescaled"))
    y = node.apply("round", node.apply("add", y, float(offset), suffix="line"), suffix="rounded")
    return clamp(node, node.apply("sub", y, zero, suffix="centred"))


@tflite_op("REDUCE_ANY", "REDUCE_ALL")
def logical(node: TfliteNode) -> OutletId:
    """Whether any, or all, are true."""
    axes = node.axes(node.integers(1, "axes"), node.fact(0).rank)
    kind: ReduceKind = "max" if node.op_type == "REDUCE_ANY" else "min"
    y = node.wire(
        Reduce(kind, axes, node.flag("KeepDims")), [node.cast(node.input(0), F32, "number")], "value"
    )
    return node.wire(Cast(BOOL), [y])


@tflite_op("ARG_MAX", "ARG_MIN")
def arg(node: TfliteNode) -> OutletId:
    """Wire the index of the largest or smallest entry; of equal ones, the first."""
    axis = node.axis(node.integer_at(1, "axis"), node.fact(0).rank)
    x = node.codes(0) if node.input_tensor(0).has_codes else node.values(0)
    return node.wire(ArgReduce("max" if node.op_type == "ARG_MAX" else "min", axis, False), [x])
