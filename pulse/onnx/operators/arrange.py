"""Tensors cut, padded, turned and chosen from."""

import numpy as np

from pulse.dim import TDim, dim_max, dim_min
from pulse.facts import Array, is_symbolic
from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.operators.search import steps
from pulse.onnx.operators.slicing import look_up
from pulse.onnx.registry import onnx_op
from pulse.onnx.tensors import onnx_dtype
from pulse.ops.elementwise import Elementwise
from pulse.ops.lookup import GatherBatches
from pulse.ops.pad import Pad
from pulse.ops.shape import AddAxis, Reshape, Transpose, volume
from pulse.ops.slice import Slice
from pulse.ops.within import Within
from pulse.typed import known


@onnx_op("EyeLike")
def eye_like(node: NodeContext) -> OutletId:
    """Ones on a diagonal, in the shape of another matrix."""
    fact, k = node.fact(0), node.integer("k", 0)
    if fact.rank != 2:
        raise node.error(f"{fact} is no matrix")
    code = node.integer("dtype", 0)
    dtype = onnx_dtype(code, f"{node.wire_name} (EyeLike)") if code else fact.dtype
    rows, columns = (steps(node, dim, name) for dim, name in zip(fact.shape, ("rows", "columns")))
    shifted = node.wire(Elementwise("add"), [rows, node.constant(np.array(k), "k")], "diagonal")
    column = node.wire(AddAxis(1), [shifted], "column")
    hit = node.wire(Elementwise("equal"), [column, columns], "hit")
    return node.finished(node.cast(hit, dtype, "ones"))


@onnx_op("CenterCropPad")
def center_crop_pad(node: NodeContext) -> OutletId:
    """Axes cut, or padded with zeros, on both sides to a size."""
    x, fact = node.input(0), node.fact(0)
    goals = node.dims(1, "shape")
    listed = node.integer_list("axes", range(fact.rank))
    axes = [node.axis(axis, fact.rank) for axis in listed]
    if len(goals) != len(axes):
        raise node.error(f"{len(goals)} sizes for {len(axes)} axes")
    pads = [(TDim.of(0), TDim.of(0))] * fact.rank
    for axis, goal in zip(axes, goals):
        size = fact.shape[axis]
        first = dim_max(0, size - goal) // 2
        if not goal.prove_ge(size).yes:
            x = node.wire(Slice(axis, first, first + dim_min(goal, size)), [x], f"cut{axis}")
        missing = dim_max(0, goal - size)
        pads[axis] = missing // 2, missing - missing // 2
    if all(pad == (0, 0) for pad in pads):
        return node.finished(x)
    return node.wire(Pad(tuple(pads)), [x])


@onnx_op("ReverseSequence")
def reverse_sequence(node: NodeContext) -> OutletId:
    """The first frames of each batch from the last to the first, as many as are told; the others as they are."""
    fact = node.fact(0)
    time, batch = (
        node.axis(node.integer("time_axis", 0), fact.rank),
        node.axis(node.integer("batch_axis", 1), fact.rank),
    )
    if {time, batch} != {0, 1}:
        raise node.error(f"time_axis {time} and batch_axis {batch} must be 0 and 1")
    place = steps(node, fact.shape[time], "frames")
    lengths = node.cast(node.input(1), np.dtype(np.int64), "lengths")
    if fact.shape[time].is_const:
        lengths = node.wire(Within(0, int(fact.shape[time])), [lengths], "limited")
    column = node.wire(AddAxis(1), [lengths], "column")
    one = node.constant(np.array(1), "one")
    last = node.wire(Elementwise("sub"), [column, one], "last")
    turned = node.wire(Elementwise("sub"), [last, place], "turned")
    inside = node.wire(Elementwise("less"), [place, column], "inside")
    index = node.wire(Elementwise("where"), [inside, turned, place], "index")
    order = (batch, time, *range(2, fact.rank))
    x = node.wire(Transpose(order), [node.input(0)], "batches") if batch else node.input(0)
    places = node.wire(AddAxis(2), [index], "places")
    y = node.wire(GatherBatches(1), [x, places], "taken")
    return node.finished(node.wire(Transpose(order), [y]) if batch else y)


@onnx_op("NonZero")
def non_zero(node: NodeContext) -> OutletId:
    """Where a constant is not zero; of data the number of places is not known."""
    value = _constant(node, 0, "places")
    return node.constant(np.array(np.nonzero(np.atleast_1d(value)), np.int64))


@onnx_op("Compress")
def compress(node: NodeContext) -> OutletId:
    """The entries of an axis, or of all elements, that a constant condition chooses."""
    chosen = np.flatnonzero(_constant(node, 1, "chosen entries"))
    x, fact = node.input(0), node.fact(0)
    if "axis" in node.attributes:
        axis = node.axis(node.integer("axis"), fact.rank)
    else:
        axis, x = 0, node.wire(Reshape((volume(fact.shape),)), [x], "flat")
    return node.finished(look_up(node, x, axis, node.constant(chosen, "chosen")))


@onnx_op("Unique")
def unique(node: NodeContext) -> list[OutletId]:
    """The distinct entries of a constant, where they are first, which each one is, and how often."""
    value = _constant(node, 0, "distinct entries")
    axis = node.axis(node.integer("axis"), value.ndim) if "axis" in node.attributes else None
    y, first, inverse, counts = np.unique(value, True, True, True, axis=axis)
    if not node.flag("sorted", True):
        order = np.argsort(first)
        rank = np.argsort(order)
        y = np.take(y, order, axis or 0)
        first, inverse, counts = first[order], rank[inverse], counts[order]
    results: list[Array] = [y, *(np.asarray(part.ravel(), np.int64) for part in (first, inverse, counts))]
    return [node.named(name or node.wire_name).constant(one) for name, one in zip(node.outputs, results)]


def _constant(node: NodeContext, slot: int, what: str) -> Array:
    value = known(node.graph, node.input(slot))
    if value is None or is_symbolic(value):
        raise node.error(
            f"the number of {what} depends on data, so the shape of its output is not known; "
            "use a mask (Where) in place of a selection"
        )
    return value
