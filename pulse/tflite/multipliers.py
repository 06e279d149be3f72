"""Whole numbers times multipliers of 31 bits, rounded twice, as LiteRT's kernels without floats have it."""

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.tflite.node import TfliteNode


def multiplier_of(factor: Array) -> tuple[Array, Array]:
    """Real multipliers as ``multiplier / 2**31 * 2**shift`` with multipliers of 31 bits."""
    mantissa, shift = np.frexp(np.asarray(factor, np.float64))
    multiplier = np.floor(mantissa * (1 << 31) + 0.5).astype(np.int64)
    over = multiplier == 1 << 31
    return np.where(over, multiplier // 2, multiplier), shift + over


def times(node: TfliteNode, x: OutletId, factor: Array, name: str) -> OutletId:
    """Whole f64 numbers times factors of 31 bits: rounded halves up, then over a power of two away from zero."""
    multiplier, shift = multiplier_of(factor)
    step = np.exp2(np.maximum(shift, 0) - 31) * multiplier
    y = node.each("mul", x, node.constant(step.astype(np.float64), f"{name}.factor"), suffix=f"{name}.scaled")
    y = node.each("floor", node.each("add", y, 0.5, suffix=f"{name}.half"), suffix=f"{name}.rounded")
    return shifted(node, y, np.maximum(-shift, 0), name)


def shifted(node: TfliteNode, x: OutletId, bits: "Array | int", name: str) -> OutletId:
    """Whole numbers over a power of two, halves away from zero."""
    step = node.constant(np.exp2(-np.asarray(bits, np.float64)), f"{name}.step")
    size = node.each("mul", node.each("abs", x, suffix=f"{name}.size"), step, suffix=f"{name}.stepped")
    size = node.each("floor", node.each("add", size, 0.5, suffix=f"{name}.halves"), suffix=f"{name}.whole")
    return node.each("mul", node.each("sign", x, suffix=f"{name}.sign"), size, suffix=f"{name}.signed")
