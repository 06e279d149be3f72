"""Whole numbers times 31-bit multipliers, rounded twice, as LiteRT's kernels without floats have it."""

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.tflite.node import TfliteNode


def make_multiplier(factor: Array) -> tuple[Array, Array]:
    """Return real multipliers as ``multiplier / 2**31 * 2**shift`` with 31-bit multipliers."""
    mantissa, shift = np.frexp(np.asarray(factor, np.float64))
    multiplier = np.floor(mantissa * (1 << 31) + 0.5).astype(np.int64)
    over = multiplier == 1 << 31
    return np.where(over, multiplier // 2, multiplier), shift + over


def multiply(x: Array, factor: float) -> Array:
    """Multiply integers by a factor and round, as ``multiply_rounding_twice`` does."""
    multiplier, shift = make_multiplier(np.asarray(factor))
    y = np.floor(x * (np.exp2(np.maximum(shift, 0) - 31) * multiplier) + 0.5)
    return np.sign(y) * np.floor(np.abs(y) * np.exp2(np.minimum(shift, 0)) + 0.5)


def make_mean_multiplier(factor: float, count: int) -> tuple[Array, Array]:
    """Return the multiplier of sums over ``count`` numbers: the multiplier of a code itself, divided without a rest."""
    multiplier, shift = make_multiplier(np.asarray(factor))
    extra_bits = min(count.bit_length() - 1, 31 + int(shift))
    return (multiplier << extra_bits) // count, shift - extra_bits


def multiply_rounding_twice(
    node: TfliteNode, x: OutletId, factor: Array, name: str, up: bool = False, count: int = 1
) -> OutletId:
    """Multiply f64 integers by 31-bit factors, round halves up, then divide by a power of two, away from zero.

    up     halves up there too
    count  a factor of sums over this many numbers
    """
    multiplier, shift = make_multiplier(factor) if count == 1 else make_mean_multiplier(float(factor), count)
    y = _round(node, x, np.exp2(np.maximum(shift, 0) - 31) * multiplier, name)
    right = np.maximum(-shift, 0)
    if up:
        return _round(node, y, np.exp2(-right.astype(np.float64)), f"{name}.up")
    return shift_right(node, y, right, name)


def multiply_rounding_once(node: TfliteNode, x: OutletId, factor: Array, bits: int) -> OutletId:
    """Multiply f64 integers by factors of 15 or 31 bits, rounded once, halves up."""
    multiplier, shift = make_multiplier(factor)
    if bits == 15:
        multiplier = np.where(multiplier < 0x7FFF0000, (multiplier + 0x8000) >> 16, 0x7FFF)
    return _round(node, x, multiplier * np.exp2(shift - bits), "rescaled")


def _round(node: TfliteNode, x: OutletId, step: Array, name: str) -> OutletId:
    """Multiply by the steps and round to the nearest integer, halves up."""
    y = node.apply(
        "mul", x, node.constant(step.astype(np.float64), f"{name}.factor"), suffix=f"{name}.scaled"
    )
    return node.apply("floor", node.apply("add", y, 0.5, suffix=f"{name}.half"), suffix=f"{name}.rounded")


def shift_right(node: TfliteNode, x: OutletId, bits: "Array | int", name: str) -> OutletId:
    """Divide integers by a power of two, rounding halves away from zero."""
    step = node.constant(np.exp2(-np.asarray(bits, np.float64)), f"{name}.step")
    size = node.apply("mul", node.apply("abs", x, suffix=f"{name}.size"), step, suffix=f"{name}.stepped")
    size = node.apply("floor", node.apply("add", size, 0.5, suffix=f"{name}.halves"), suffix=f"{name}.whole")
    return node.apply("mul", node.apply("sign", x, suffix=f"{name}.sign"), size, suffix=f"{name}.signed")
