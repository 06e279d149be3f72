"""Rows delayed by their index, as ``tf.signal.overlap_and_add`` writes them, in the form that a stream needs.

It flattens ``[..., n, F + n, s]`` to ``[..., n * (F + n), s]``, takes the first ``n * (F + n - 1)`` frames, and cuts
them into n rows of ``F + n - 1``. Row k is then the old row k, delayed by k frames, if the last n frames of each row
were zeros. That form interleaves frames of the whole stream; one padding for each row does not.
"""

from pulse.dim import ZERO, TDim
from pulse.facts import Shape
from pulse.graph import OutletId
from pulse.ops.concat import Concat
from pulse.ops.conv import NO_PAD
from pulse.ops.pad import Pad
from pulse.ops.shape import Reshape, Transpose
from pulse.ops.slice import Slice
from pulse.tensorflow.node import TensorflowNode
from pulse.typed import TypedGraph

MAX_DELAY_ROWS = 64
"""A reshape to more rows is kept as it is."""


def delay_rows(node: TensorflowNode, x: OutletId, target: Shape) -> OutletId | None:
    """Return a reshape to ``target`` that delays rows, as paddings; None for other reshapes."""
    graph = node.graph
    crop = graph.node(x)
    if not isinstance(crop.op, Slice) or crop.op.start != 0 or crop.op.step != 1:
        return None
    flat = graph.node(crop.inputs[0])
    if not isinstance(flat.op, Reshape):
        return None
    whole = flat.inputs[0]
    shape, axis = graph.fact(whole).shape, crop.op.axis
    if len(target) != len(shape) or len(shape) < axis + 2 or len(graph.fact(x).shape) != len(shape) - 1:
        return None
    rows, frames = shape[axis], shape[axis + 1]
    expected = (*shape[:axis], rows, frames - 1, *shape[axis + 2 :])
    if target != expected or not rows.is_const or not 1 < int(rows) <= MAX_DELAY_ROWS:
        return None
    if not (trailing_zeros(graph, whole, axis + 1) - (int(rows) - 1)).prove_ge(0).yes:
        return None
    delayed_rows: list[OutletId] = []
    for row in range(int(rows)):
        one_row = node.wire(Slice(axis, TDim.of(row), TDim.of(row + 1)), [whole], f"row{row}")
        if row:
            pads = [NO_PAD] * len(shape)
            pads[axis + 1] = (TDim.of(row), ZERO)
            one_row = node.wire(Pad(tuple(pads)), [one_row], f"delayed{row}")
        delayed_rows.append(node.wire(Slice(axis + 1, ZERO, frames - 1), [one_row], f"cropped{row}"))
    return node.wire(Concat(axis), delayed_rows)


def trailing_zeros(graph: TypedGraph, outlet: OutletId, axis: int) -> TDim:
    """Return the number of last frames of an axis that are certainly zeros of a padding."""
    while True:
        producer = graph.node(outlet)
        match producer.op:
            case Pad():
                if producer.op.mode == "constant" and producer.op.fill == 0:
                    return producer.op.pads[axis][1]
                return ZERO
            case Transpose():
                axis = producer.op.perm[axis]
            case Reshape():
                before, after = graph.fact(producer.inputs[0]).shape, graph.fact(outlet).shape
                if before[: axis + 1] != after[: axis + 1]:
                    return ZERO
            case _:
                return ZERO
        outlet = producer.inputs[0]
