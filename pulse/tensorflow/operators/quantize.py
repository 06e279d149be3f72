"""Rounding to the steps of a quantised type, as simulated in training."""

import numpy as np

from pulse.graph import OutletId
from pulse.ops.elementwise import Elementwise
from pulse.tensorflow.context import TensorflowNode
from pulse.tensorflow.registry import tensorflow_op


@tensorflow_op("FakeQuantWithMinMaxArgs", "FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def fake_quant(node: TensorflowNode) -> OutletId:
    """Round to the numbers of ``num_bits`` from ``min`` to ``max``, moved so that 0 is one of them."""
    bits = node.integer("num_bits", 8)
    if not 2 <= bits <= 16:
        raise node.error(f"num_bits {bits} is not in 2 … 16")
    if node.op_type == "FakeQuantWithMinMaxArgs":
        low, high = np.float32(node.real("min", -6.0)), np.float32(node.real("max", 6.0))
    else:
        low, high = (node.numbers(slot, name).astype(np.float32) for slot, name in ((1, "min"), (2, "max")))
    if not (np.all(low <= 0) and np.all(high >= 0) and np.all(low < high)):
        raise node.error(f"0 must be between min {low} and max {high}")
    least, most = np.float32(node.flag("narrow_range")), np.float32((1 << bits) - 1)
    scale = np.asarray((high - low) / (most - least), np.float32)
    zero = np.clip(np.floor(least - low / scale + np.float32(0.5)), least, most).astype(np.float32)
    bottom, top = ((least - zero) * scale).astype(np.float32), ((most - zero) * scale).astype(np.float32)
    constants = {
        name: node.constant(np.asarray(value, np.float32), name)
        for name, value in (
            ("bottom", bottom),
            ("top", top),
            ("inverse", np.float32(1) / scale),
            ("half", 0.5),
        )
    }
    x = node.wire(Elementwise("min"), [node.input(0), constants["top"]], "below")
    x = node.wire(Elementwise("max"), [x, constants["bottom"]], "between")
    x = node.wire(Elementwise("sub"), [x, constants["bottom"]], "above")
    x = node.wire(Elementwise("mul"), [x, constants["inverse"]], "steps")
    x = node.wire(
        Elementwise("floor"), [node.wire(Elementwise("add"), [x, constants["half"]], "more")], "whole"
    )
    x = node.wire(Elementwise("mul"), [x, node.constant(scale, "step")], "scaled")
    return node.wire(Elementwise("add"), [x, constants["bottom"]])
