"""Rounding to the steps of a quantised type, as simulated in training."""

import numpy as np

from pulse.graph import OutletId
from pulse.tensorflow.node import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op


@tensorflow_op("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant(node: TensorflowNode) -> OutletId:
    """Round to the numbers of ``num_bits`` from ``min`` to ``max``, moved so that 0 is one of them."""
    bits = node.integer("num_bits", 8)
    node.require(2 <= bits <= 16, f"num_bits {bits} is not in 2 … 16")
    if node.op_type == "FakeQuantWithMinMaxArgs":
        low, high = np.float32(node.real("min", -6.0)), np.float32(node.real("max", 6.0))
    else:
        low, high = (node.numbers(slot, name).astype(np.float32) for slot, name in ((1, "min"), (2, "max")))
    if not (np.all(low <= 0) and np.all(high >= 0) and np.all(low < high)):
        raise node.error(f"0 must be between min {low} and max {high}")
    min_code, max_code = np.float32(node.flag("narrow_range")), np.float32((1 << bits) - 1)
    scale = np.asarray((high - low) / (max_code - min_code), np.float32)
    zero = np.clip(np.floor(min_code - low / scale + np.float32(0.5)), min_code, max_code).astype(np.float32)
    bottom, top = (np.asarray((end - zero) * scale, np.float32) for end in (min_code, max_code))
    lower, upper = node.constant(bottom, "bottom"), node.constant(top, "top")
    inverse = node.constant(np.asarray(np.float32(1) / scale, np.float32), "inverse")
    x = node.apply("max", node.apply("min", node.input(0), upper, suffix="below"), lower, suffix="between")
    x = node.apply("mul", node.apply("sub", x, lower, suffix="above"), inverse, suffix="steps")
    x = node.apply("floor", node.apply("add", x, 0.5, suffix="half_up"), suffix="whole")
    x = node.apply("mul", x, node.constant(scale, "step"), suffix="scaled")
    return node.apply("add", x, lower)
