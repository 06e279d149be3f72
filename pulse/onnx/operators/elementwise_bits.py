"""Operators on the bits of integers."""

from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.onnx.tensors import onnx_dtype
from pulse.ops.elementwise import Elementwise
from pulse.ops.elementwise_bits import BitCast

SHIFTS = {"LEFT": "shift_left", "RIGHT": "shift_right"}


@onnx_op("BitShift")
def bit_shift(node: NodeContext) -> OutletId:
    """Bits moved to higher or lower places."""
    direction = node.text("direction")
    if direction not in SHIFTS:
        raise node.error(f"direction {direction!r} is not covered; use LEFT or RIGHT")
    return node.wire(Elementwise(SHIFTS[direction]), [node.input(0), node.input(1)])


@onnx_op("BitCast")
def bit_cast(node: NodeContext) -> OutletId:
    """The same bits read as another type."""
    dtype = onnx_dtype(node.integer("to"), f"{node.wire_name} (BitCast)")
    return node.input(0) if node.fact(0).dtype == dtype else node.wire(BitCast(dtype), [node.input(0)])
