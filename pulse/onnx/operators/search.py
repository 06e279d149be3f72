"""Searches, and tensors made from indices."""

import numpy as np

from pulse.dim import TDim
from pulse.graph import OutletId
from pulse.onnx.context import NodeContext
from pulse.onnx.registry import onnx_op
from pulse.ops.elementwise import Cast, Elementwise
from pulse.ops.position import Range
from pulse.ops.search import TopK
from pulse.ops.shape import AddAxis
from pulse.wiring import wire


@onnx_op("TopK")
def top_k(node: NodeContext) -> list[OutletId]:
    """The count is an attribute before opset 10; the result is in order whether or not that is asked for."""
    x = node.fact(0)
    axis = node.axis(node.integer("axis", -1), x.rank)
    count = node.integer("k") if node.opset < 10 else node.whole(1, "k")
    op = TopK(axis, count, node.flag("largest", True))
    return wire(node.graph, node.wire_name, op, [node.input(0)])


@onnx_op("OneHot")
def one_hot(node: NodeContext) -> OutletId:
    """A comparison with 0, 1, 2 … along a new axis; a negative index counts from the end."""
    indices = node.fact(0)
    depth = node.whole(1, "depth")
    values = node.numbers(2, "values").ravel()
    if len(values) != 2:
        raise node.error(f"its values must be two, off and on, got {len(values)}")
    axis = node.axis(node.integer("axis", -1), indices.rank + 1)
    places = node.input(0)
    if indices.dtype != np.int64:
        places = node.wire(Cast(np.dtype(np.int64)), [places], "indices")
    zero, size = (node.constant(np.array(n, np.int64), name) for n, name in ((0, "zero"), (depth, "depth")))
    below = node.wire(Elementwise("less"), [places, zero], "below")
    wrapped = node.wire(Elementwise("add"), [places, size], "wrapped")
    places = node.wire(Elementwise("where"), [below, wrapped, places], "places")
    column = node.wire(AddAxis(axis), [places], "column")
    steps = np.arange(node.count(depth, "depth")).reshape(-1, *(1,) * (indices.rank - axis))
    hit = node.wire(Elementwise("equal"), [column, node.constant(steps, "steps")], "hit")
    off, on = (node.constant(value, name) for value, name in zip(values, ("off", "on")))
    return node.wire(Elementwise("where"), [hit, on, off])


@onnx_op("Trilu")
def trilu(node: NodeContext) -> OutletId:
    """Zeros below the diagonal k (upper), or above it."""
    x = node.fact(0)
    if x.rank < 2:
        raise node.error(f"{x} is no matrix")
    k = node.whole(1, "k") if node.has(1) else 0
    rows, columns = (steps(node, x.shape[axis], name) for axis, name in ((-2, "rows"), (-1, "columns")))
    shifted = node.wire(Elementwise("add"), [rows, node.constant(np.array(k, np.int64), "k")], "diagonal")
    column = node.wire(AddAxis(1), [shifted], "column")
    kind = "greater_equal" if node.flag("upper", True) else "less_equal"
    kept = node.wire(Elementwise(kind), [columns, column], "kept")
    return node.wire(
        Elementwise("where"), [kept, node.input(0), node.constant(np.zeros((), x.dtype), "zero")]
    )


def steps(node: NodeContext, size: TDim, name: str) -> OutletId:
    """0, 1, 2 …, ``size`` of them."""
    if size.is_const and node.affords(int(size)):
        return node.constant(np.arange(int(size)), name)
    return node.wire(Range(0, 1, size, np.dtype(np.int64)), [], name)
