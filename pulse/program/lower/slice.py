"""Slices, as views."""

from pulse.graph import OutletId
from pulse.ops.slice import Decimate, Slice
from pulse.ops.slice_frames import Frames
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView
from pulse.pulsify.network import PulsedNode


@lowers(Slice)
def lower_slice(lowering: Lowering, node: PulsedNode, op: Slice) -> list[TensorView]:
    """Return a view; for negative steps a copy, since views of it need positive strides."""
    x = lowering.value(node.inputs[0])
    size = lowering.fact(OutletId(node.id)).sizes[op.axis]
    shape, strides = list(x.shape), list(x.strides)
    shape[op.axis], strides[op.axis] = size, strides[op.axis] * op.step
    start = int(op.start) * x.strides[op.axis]
    view = x.view(shape, strides, start)
    if op.step > 0:
        return [view]
    target = lowering.allocate_wire(OutletId(node.id))
    lowering.copy(view, target)
    return [target]


@lowers(Decimate)
def lower_decimate(lowering: Lowering, node: PulsedNode, op: Decimate) -> list[TensorView]:
    x = lowering.value(node.inputs[0])
    return [x.part(op.axis, op.first, x.shape[op.axis], op.step)]


@lowers(Frames)
def lower_frames(lowering: Lowering, node: PulsedNode, op: Frames) -> list[TensorView]:
    """Return a view in which frames overlap."""
    x = lowering.value(node.inputs[0])
    step = x.strides[op.axis]
    strides = [*x.strides[: op.axis], op.hop * step, *x.strides[op.axis :]]
    return [x.view(lowering.fact(OutletId(node.id)).sizes, strides)]
