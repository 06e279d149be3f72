"""Floats times stored codes: LiteRT makes codes of the floats first, one scale and zero point for each row.

scale = 255 / (max(x, 0) - min(x, 0));  code = rint(x * scale) + zero;  y = sum((code - zero) * w) / scale * w_scale

Source: the behaviour of XNNPACK's dynamically quantized products.
"""

from collections.abc import Sequence

from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.reduce import Reduce
from pulse.tflite.node import TfliteNode

STEPS = 255.0
LOW, HIGH = -128.0, 127.0


def row_codes(node: TfliteNode, x: OutletId, axes: Sequence[int]) -> tuple[OutletId, OutletId]:
    """``code - zero`` of each row, and the reciprocal of its scale; a row is what lies along ``axes``."""
    along = tuple(axes)
    low = node.each("min", node.wire(Reduce("min", along, True), [x], "least"), 0.0, suffix="row_min")
    high = node.each("max", node.wire(Reduce("max", along, True), [x], "largest"), 0.0, suffix="row_max")
    extent = node.each("sub", high, low, suffix="extent")
    empty = node.each("equal", extent, 0.0, suffix="empty")
    one = node.scalar_constant(1.0, node.graph.fact(x), "one")
    steps = node.scalar_constant(STEPS, node.graph.fact(x), "steps")
    safe = node.each("where", empty, one, extent, suffix="safe")
    scale = node.each(
        "where", empty, one, node.each("div", steps, safe, suffix="row_steps"), suffix="row_scale"
    )
    zero = _zero(node, low, high, scale)
    codes = node.each("mul_round", x, scale, suffix="rounded")
    least = node.each("sub", _number(node, LOW, x, "low"), zero, suffix="least_code")
    most = node.each("sub", _number(node, HIGH, x, "high"), zero, suffix="largest_code")
    codes = node.each("min", node.each("max", codes, least, suffix="floor"), most, suffix="row_codes")
    return codes, node.each("div", one, scale, suffix="row_step")


def joined(
    node: TfliteNode, total: OutletId, step: OutletId, bias: Array | None, spread: Sequence[int]
) -> OutletId:
    """Sums of products of codes as floats, plus a bias; ``spread`` is how numbers of the outputs meet the sums."""
    scale = node.quantization(1).scale
    factor = node.constant(scale.reshape(spread if scale.size > 1 else ()), "scale")
    y = node.each("mul", node.each("mul", total, step, suffix="stepped"), factor, suffix="product")
    if bias is None:
        return y
    return node.each("add", y, node.constant(bias.reshape(spread), "bias"), suffix="biased")


def _number(node: TfliteNode, value: float, like: OutletId, suffix: str) -> OutletId:
    return node.scalar_constant(value, node.graph.fact(like), suffix)


def _zero(node: TfliteNode, low: OutletId, high: OutletId, scale: OutletId) -> OutletId:
    """The code of 0, from the end of the range that it makes the smaller error at."""
    low, high = (
        node.each("mul", end, scale, suffix=f"{name}_scaled") for end, name in ((low, "low"), (high, "high"))
    )
    from_low = node.each("add", low, LOW, suffix="from_low")
    error = node.each("add", from_low, node.each("add", high, HIGH, suffix="from_high"), suffix="error")
    begin = node.each("sub", _number(node, LOW, low, "begin"), low, suffix="by_low")
    end = node.each("sub", _number(node, HIGH, low, "end"), high, suffix="by_high")
    chosen = node.each(
        "where", node.each("greater", error, 0.0, suffix="nearer"), begin, end, suffix="zero_near"
    )
    limited = node.each(
        "min", node.each("max", chosen, LOW, suffix="zero_floor"), HIGH, suffix="zero_limited"
    )
    return node.each("round", limited, suffix="zero")
