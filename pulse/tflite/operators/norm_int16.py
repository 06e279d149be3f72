"""The softmax of int16 codes as LiteRT has it: e**x and a reciprocal by tables of 513 entries, interpolated."""

from collections.abc import Callable

import numpy as np

from pulse.facts import F32, F64, Array
from pulse.graph import OutletId
from pulse.ops.quantize import CodeTable
from pulse.ops.reduce import Reduce
from pulse.tflite.int16_tables import MAX_CODE, MIN_CODE, interpolated_table
from pulse.tflite.multipliers import multiply_rounding_twice
from pulse.tflite.node import TfliteNode

MAX_ENTRIES = 512
"""Maximum number of entries whose sum of 15-bit numbers is exact in f32; a softmax of more is computed in floats."""
EXP_RANGE = 10.0
"""The table of e**x begins at minus this; smaller x count as this."""


def softmax_of_int16(node: TfliteNode, beta: float) -> OutletId:
    """Return softmax over the last axis, of up to ``MAX_ENTRIES`` entries, in steps of 2**-15."""
    x = node.codes(0)
    last = (node.graph.fact(x).rank - 1,)
    shifted = node.apply("sub", x, node.wire(Reduce("max", last, True), [x], "max"), suffix="shifted")
    factor = np.asarray(float(node.quantization(0).scale[0]) * beta / (EXP_RANGE / (MAX_CODE - MIN_CODE)))
    steps = multiply_rounding_twice(node, node.cast(shifted, F64, "shifted64"), factor, "steps")
    exp_code = node.apply("add", steps, float(MAX_CODE), suffix="exp_code")
    exps = _look_up(node, exp_code, np.exp, -EXP_RANGE, 0.0, "exp")
    total = node.cast(node.wire(Reduce("sum", last, True), [exps], "sum"), F64, "sum64")
    unit = _power_below(node, total, int(node.graph.fact(x).shape[-1]))
    mantissa = node.apply("div", total, unit, suffix="mantissa")
    scaled = node.apply("mul", mantissa, float(1 << 16), suffix="mantissa_scaled")
    nearest = node.apply(
        "floor", node.apply("add", scaled, 0.5, suffix="plus_half"), suffix="mantissa_rounded"
    )
    code = node.apply("sub", nearest, float(3 << 15), suffix="mantissa_code")
    reciprocal = _look_up(node, code, lambda v: 1 / (1 + v), 0.0, 1.0, "reciprocal")
    product = node.apply(
        "mul", node.cast(exps, F64, "exp64"), node.cast(reciprocal, F64, "reciprocal64"), suffix="product"
    )
    y = node.apply("add", node.apply("div", product, unit, suffix="ratio"), 0.5, suffix="ratio_plus_half")
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
    clamped = node.clip(x, float(MIN_CODE), float(MAX_CODE), f"{name}.clamped")
    table = node.constant(
        interpolated_table(function, np.float64(low), np.float64(high), np.float64(2.0**15)), f"{name}.table"
    )
    return node.wire(CodeTable(MIN_CODE), [node.cast(clamped, F32, f"{name}.code"), table], name)
