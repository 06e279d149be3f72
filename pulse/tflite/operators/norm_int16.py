"""The softmax of int16 codes as LiteRT has it: e**x and a reciprocal by tables of 513 entries, interpolated."""

from collections.abc import Callable

import numpy as np

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.quantize import CodeTable
from pulse.ops.reduce import Reduce
from pulse.tflite.int16_tables import lines
from pulse.tflite.multipliers import multiply_rounding_twice
from pulse.tflite.node import F32, F64, TfliteNode

MIN_CODE, MAX_CODE = -(1 << 15), (1 << 15) - 1
"""The smallest and the largest 16-bit code."""
MAX_ENTRIES = 512
"""Maximum number of entries whose sum of 15-bit numbers is exact in f32; a softmax of more is computed in floats."""
REACH = 10.0
"""How far below the largest e**x is more than 0."""


def softmax_of_int16(node: TfliteNode, beta: float) -> OutletId:
    """Return softmax over the last axis, of up to ``MAX_ENTRIES`` entries, in steps of 2**-15."""
    x = node.codes(0)
    last = (node.graph.fact(x).rank - 1,)
    below = node.apply("sub", x, node.wire(Reduce("max", last, True), [x], "largest"), suffix="below")
    factor = np.asarray(float(node.quantization(0).scale[0]) * beta / (REACH / (MAX_CODE - MIN_CODE)))
    steps = multiply_rounding_twice(node, node.cast(below, F64, "below64"), factor, "steps")
    powers = _look_up(
        node, node.apply("add", steps, float(MAX_CODE), suffix="moved"), np.exp, -REACH, 0.0, "grown"
    )
    total = node.cast(node.wire(Reduce("sum", last, True), [powers], "total"), F64, "total64")
    unit = _power_below(node, total, int(node.graph.fact(x).shape[-1]))
    within = node.apply("div", total, unit, suffix="within")
    spread = node.apply("add", node.apply("mul", within, float(1 << 16), suffix="wide"), 0.5, suffix="half")
    index = node.apply("sub", node.apply("floor", spread, suffix="whole"), float(3 << 15), suffix="place")
    share = _look_up(node, index, lambda v: 1 / (1 + v), 0.0, 1.0, "share")
    product = node.apply(
        "mul", node.cast(powers, F64, "grown_64"), node.cast(share, F64, "share64"), suffix="product"
    )
    y = node.apply("add", node.apply("div", product, unit, suffix="ratio"), 0.5, suffix="halves")
    y = node.apply("min", node.apply("floor", y, suffix="rounded"), float(MAX_CODE), suffix="limited")
    return node.name_result(node.cast(y, F32, "codes"))


def _power_below(node: TfliteNode, total: OutletId, count: int) -> OutletId:
    """Return the largest power of two that is not above a sum of ``count`` entries."""
    unit = node.scalar_constant(float(1 << 14), node.graph.fact(total), "min_power")
    for power in range(15, 15 + count.bit_length() + 1):
        is_above = node.apply("less", 2.0**power - 0.5, total, suffix=f"above{power}")
        unit = node.apply("where", is_above, 2.0**power, unit, suffix=f"unit{power}")
    return unit


def _look_up(
    node: TfliteNode, x: OutletId, function: Callable[[Array], Array], low: float, high: float, name: str
) -> OutletId:
    clamped = node.apply(
        "min",
        node.apply("max", x, float(MIN_CODE), suffix=f"{name}.low"),
        float(MAX_CODE),
        suffix=f"{name}.clamped",
    )
    table = node.constant(
        lines(function, np.float64(low), np.float64(high), np.float64(2.0**15)), f"{name}.table"
    )
    return node.wire(CodeTable(MIN_CODE), [node.cast(clamped, F32, f"{name}.code"), table], name)
