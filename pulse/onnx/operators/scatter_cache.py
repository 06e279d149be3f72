"""Frames written into a cache."""

import numpy as np

from pulse.dim import TDim
from pulse.facts import I64, Array, TypedFact
from pulse.graph import OutletId
from pulse.infer.inference_node import same_type_and_shape
from pulse.infer.node_context import NodeContext
from pulse.onnx.operators.scatter import PlaceRange, paste
from pulse.onnx.registry import onnx_op, rule
from pulse.ops.dims import unify
from pulse.ops.elementwise_within import RangeCheck
from pulse.ops.shape import Reshape
from pulse.ops.slice import Slice
from pulse.typed import known_value

MAX_WRITTEN_FRAMES = 64
"""Maximum number of frames that are written to places computed while running."""


@onnx_op("TensorScatter")
def tensor_scatter(node: NodeContext) -> OutletId:
    """Write new frames into the cache, from an index of each batch on; round the end if it is circular."""
    cache, update = node.fact(0), node.fact(1)
    axis = node.axis(node.integer("axis", -2), cache.rank)
    mode = node.text("mode", "linear")
    if axis == 0 or update.rank != cache.rank or mode not in ("linear", "circular"):
        raise node.error(f"axis {axis} and mode {mode!r} do not fit {cache} and {update}")
    for other in range(cache.rank):
        if other != axis:
            unify(cache.shape[other], update.shape[other], f"{node.wire_name} (TensorScatter): axis {other}")
    starts = np.zeros(1, np.int64) if not node.has(2) else known_value(node.graph, node.input(2))
    if starts is not None and starts.size and (starts == starts.flat[0]).all():
        start, available = TDim.of(int(starts.flat[0])), cache.shape[axis] - update.shape[axis]
        if mode == "linear" or available.prove_ge(start).yes:
            written = PlaceRange((*[TDim.of(0)] * axis, start), update.shape[: axis + 1])
            return node.name_result(paste(node, node.input(0), node.input(1), written, ""))
    return _choose(node, axis, mode == "circular")


def _choose(node: NodeContext, axis: int, circular: bool) -> OutletId:
    """Wire a choice for each new frame: the new frame where its place in the cache is, elsewhere the cache."""
    cache, update = node.fact(0), node.fact(1)
    size, count = cache.shape[axis], update.shape[axis]
    if not size.is_const or not count.is_const or int(count) > MAX_WRITTEN_FRAMES:
        raise node.error(
            f"{count} frames are written at computed places; only up to {MAX_WRITTEN_FRAMES} are supported"
        )
    start = _start_index(node, cache)
    if not circular:
        start = node.wire(RangeCheck(0, int(size) - int(count)), [start], "inside")
    columns: Array = np.arange(int(size)).reshape(-1, *(1,) * (cache.rank - axis - 1))
    column = node.constant(columns, "indices")
    y = node.input(0)
    for offset in range(int(count)):
        index = node.apply("add", start, offset, suffix=f"at{offset}")
        if circular:
            index = node.apply("mod", index, int(size), suffix=f"round{offset}")
        hit = node.apply("equal", column, index, suffix=f"hit{offset}")
        frame = node.wire(
            Slice(axis, TDim.of(offset), TDim.of(offset + 1)), [node.input(1)], f"frame{offset}"
        )
        y = node.apply("where", hit, frame, y, suffix=f"written{offset}")
    return node.name_result(y)


def _start_index(node: NodeContext, cache: TypedFact) -> OutletId:
    """Return the index of the first new frame, an i64 for each batch, [batch, 1 …]."""
    if not node.has(2):
        return node.constant(np.zeros((1,) * cache.rank, np.int64), "begin")
    start = node.cast(node.input(2), I64, "index")
    shape = (*node.fact(2).shape, *(TDim.of(1),) * (cache.rank - 1))
    return node.wire(Reshape(shape), [start], "begin")


rule("TensorScatter")(same_type_and_shape)
