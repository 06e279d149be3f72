"""Floats times stored codes: LiteRT makes codes of the floats first, one scale and zero point for each row.

scale = 255 / (max(x, 0) - min(x, 0));  code = rint(x * scale) + zero;  y = sum((code - zero) * w) / scale * w_scale

Source: the behaviour of XNNPACK's dynamically quantised products.
"""

from collections.abc import Sequence

from pulse.facts import F32, F64, Array
from pulse.graph import OutletId
from pulse.ops.reduce import Reduce
from pulse.tflite.node import TfliteNode

CODE_STEPS = 255.0
"""The steps from the smallest code to the largest one."""
LOW, HIGH = -128.0, 127.0
"""The smallest and the largest code."""


def row_codes(node: TfliteNode, x: OutletId, axes: Sequence[int]) -> tuple[OutletId, OutletId]:
    """Return ``code - zero`` of each row, and the reciprocal of its scale; a row is the elements along ``axes``."""
    along = tuple(axes)
    low = node.apply("min", node.wire(Reduce("min", along, True), [x], "least"), 0.0, suffix="row_min")
    high = node.apply("max", node.wire(Reduce("max", along, True), [x], "largest"), 0.0, suffix="row_max")
    extent = node.apply("sub", high, low, suffix="extent")
    empty = node.apply("equal", extent, 0.0, suffix="empty")
    safe = node.apply("where", empty, 1.0, extent, suffix="safe")
    steps = node.apply("div", CODE_STEPS, safe, suffix="row_steps")
    scale = node.apply("where", empty, 1.0, steps, suffix="row_scale")
    zero = _zero_point_of_rows(node, low, high, scale)
    codes = node.apply("mul_round", x, scale, suffix="rounded")
    min_code = node.apply("sub", LOW, zero, suffix="min_code")
    max_code = node.apply("sub", HIGH, zero, suffix="max_code")
    return node.clip(codes, min_code, max_code, "row_codes"), node.apply("div", 1.0, scale, suffix="row_step")


def frame_codes(node: TfliteNode, x: OutletId, asymmetric: bool) -> tuple[OutletId, OutletId]:
    """Return ``code - zero`` of each row, along the last axis, and its scale, as layers with state have them.

    scale = max(abs(x)) / 127, or (max(x, 0) - min(x, 0)) / 255 with a zero point; rounded halves away from zero
    """
    along = (node.graph.fact(x).rank - 1,)
    low = node.wire(Reduce("min", along, True), [x], "least")
    high = node.wire(Reduce("max", along, True), [x], "largest")
    if asymmetric:
        low, high = node.apply("min", low, 0.0, suffix="low"), node.apply("max", high, 0.0, suffix="high")
        extent, steps = node.apply("sub", high, low, suffix="extent"), CODE_STEPS
    else:
        size = node.apply("max", node.apply("neg", low, suffix="below"), high, suffix="size")
        extent, steps = size, HIGH
    empty = node.apply("equal", extent, 0.0, suffix="empty")
    exact = node.apply("div", node.cast(extent, F64, "extent64"), steps, suffix="scale64")
    step = node.apply("where", empty, 1.0, node.cast(exact, F32, "scale32"), suffix="row_scale")
    if not asymmetric:
        safe = node.apply("where", empty, 1.0, extent, suffix="safe")
        inverse = node.apply("div", HIGH, safe, suffix="inverse")
        codes = half_away(node, node.apply("mul", x, inverse, suffix="scaled"))
        return node.clip(codes, -HIGH, HIGH, "codes"), step
    zero = _zero_point_of_frames(node, low, high, exact, empty)
    scaled = node.apply("mul", x, node.apply("div", 1.0, step, suffix="inverse"), suffix="scaled")
    codes = half_away(node, node.apply("add", scaled, zero, suffix="moved"))
    return node.apply("sub", node.clip(codes, LOW, HIGH, "code"), zero, suffix="codes"), step


def _zero_point_of_frames(
    node: TfliteNode, low: OutletId, high: OutletId, scale: OutletId, empty: OutletId
) -> OutletId:
    """Return the code of 0 of rows that have a scale.

    It is computed from the end of the range at which the error is smaller.
    """
    safe = node.apply("where", empty, 1.0, scale, suffix="safe64")
    ends = [
        node.apply("div", node.cast(end, F64, f"{name}64"), safe, suffix=f"{name}_steps")
        for end, name in ((low, "low"), (high, "high"))
    ]
    by_low, by_high = (
        node.apply("sub", limit, end, suffix=f"by_{name}")
        for limit, end, name in ((LOW, ends[0], "low"), (HIGH, ends[1], "high"))
    )
    errors = [
        node.apply("add", node.apply("abs", end, suffix=f"size_{name}"), abs(limit), suffix=f"error_{name}")
        for limit, end, name in ((LOW, ends[0], "low"), (HIGH, ends[1], "high"))
    ]
    nearer = node.apply("less", *errors, suffix="nearer")
    zero = node.apply("where", nearer, by_low, by_high, suffix="zero_near")
    zero = node.clip(zero, LOW, HIGH, "zero_limited")
    zero = half_away(node.with_name(f"{node.wire_name}.zero"), zero)
    zero = node.apply("where", empty, 0.0, zero, suffix="zero64")
    return node.cast(zero, F32, "zero")


def half_away(node: TfliteNode, x: OutletId) -> OutletId:
    """Return the nearest integer, halves away from zero."""
    size = node.apply("add", node.apply("abs", x, suffix="away.size"), 0.5, suffix="away.half")
    size = node.apply("floor", size, suffix="away.whole")
    return node.apply("mul", node.apply("sign", x, suffix="away.sign"), size, suffix="away")


def dequantize_sums(
    node: TfliteNode, total: OutletId, step: OutletId, bias: Array | None, spread: Sequence[int]
) -> OutletId:
    """Convert sums of products of codes to floats, and add a bias; ``spread``: a shape that broadcasts to the sums."""
    scale = node.quantization(1).scale
    factor = node.constant(scale.reshape(spread if scale.size > 1 else ()), "scale")
    y = node.apply("mul", node.apply("mul", total, step, suffix="stepped"), factor, suffix="product")
    if bias is None:
        return y
    return node.apply("add", y, node.constant(bias.reshape(spread), "bias"), suffix="biased")


def _zero_point_of_rows(node: TfliteNode, low: OutletId, high: OutletId, scale: OutletId) -> OutletId:
    """Return the code of 0, computed from the end of the range at which the error is smaller."""
    low, high = (
        node.apply("mul", end, scale, suffix=f"{name}_scaled") for end, name in ((low, "low"), (high, "high"))
    )
    from_low = node.apply("add", low, LOW, suffix="from_low")
    error = node.apply("add", from_low, node.apply("add", high, HIGH, suffix="from_high"), suffix="error")
    begin = node.apply("sub", LOW, low, suffix="by_low")
    end = node.apply("sub", HIGH, high, suffix="by_high")
    by_low = node.apply("greater", error, 0.0, suffix="nearer")
    nearest = node.apply("where", by_low, begin, end, suffix="zero_near")
    return node.apply("round", node.clip(nearest, LOW, HIGH, "zero_limited"), suffix="zero")
