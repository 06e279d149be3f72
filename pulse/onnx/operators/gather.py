"""Entries read by index; constant indices become slices and lookups of one axis."""

from collections.abc import Iterator

import numpy as np

from pulse.dim import TDim
from pulse.facts import I64, Array, is_symbolic, volume
from pulse.graph import OutletId
from pulse.infer.inference_node import InferenceNode
from pulse.infer.node_context import NodeContext
from pulse.infer.relations import FactRelation, RankSum, SameRank, SameShape, SameType
from pulse.onnx.operators.gather_positions import gather_by_positions
from pulse.onnx.operators.gather_progression import gather_by_slices, is_count, limited_progression
from pulse.onnx.operators.gather_steady import unchanging_values
from pulse.onnx.registry import onnx_op, rule
from pulse.onnx.write.registry import writes
from pulse.ops.elementwise_within import RangeCheck
from pulse.ops.gather import Gather
from pulse.ops.gather_elements import GatherBatches, GatherElements
from pulse.ops.indices import index_depth, wrap_index
from pulse.ops.shape import RemoveAxis, Reshape
from pulse.ops.slice import Slice
from pulse.support.wording import spell
from pulse.typed import known_value


@onnx_op("GatherElements")
def gather_elements(node: NodeContext) -> OutletId:
    """Look up an index for each element; constant ones that only follow the axis are one lookup."""
    x, fact = node.fact(0), node.fact(1)
    axis = node.axis(node.integer("axis", 0), x.rank)
    op = GatherElements(axis)
    op.facts([x, fact])
    indices = unchanging_values(node.graph, node.input(1))
    others = [other for other in range(x.rank) if other != axis]
    if indices is None or not x.shape[axis].is_const or not fact.shape[axis].is_const:
        return node.wire(op, [node.input(0), node.input(1)])
    indices = wrap_indices(node, indices, int(x.shape[axis]))
    if all(indices.shape[other] == 1 for other in others):
        data = node.input(0)
        for other in others:
            if x.shape[other] != fact.shape[other]:
                data = node.wire(Slice(other, TDim.of(0), fact.shape[other]), [data], f"first{other}")
        row = np.broadcast_to(indices.ravel(), int(fact.shape[axis]))
        return node.name_result(look_up(node, data, axis, node.constant(row, "row")))
    if not all(dim.is_const for dim in (*x.shape, *fact.shape)):
        return node.wire(op, [node.input(0), node.input(1)])
    grid = np.indices(fact.sizes)
    grid[axis] = indices
    flat: Array = np.asarray(np.ravel_multi_index(tuple(grid), x.sizes))
    data = node.wire(Reshape((volume(x.shape),)), [node.input(0)], "flat")
    return node.wire(Gather(0), [data, node.constant(flat, "indices")])


def wrap_indices(node: NodeContext, index: Array, size: int) -> Array:
    """Return indices counted from the front. Raises LoadError: one is out of range."""
    try:
        return wrap_index(index.astype(np.int64), size)
    except IndexError as error:
        raise node.error(str(error)) from None


@onnx_op("GatherND")
def gather_nd(node: NodeContext) -> OutletId:
    """Look up slices: the indexed axes become one, on which there is one lookup; batches have an op."""
    batch = node.integer("batch_dims", 0)
    op = GatherBatches(batch)
    op.facts([node.fact(0), node.fact(1)])
    if batch == 0:
        slices = gather_by_positions(node, node.input(1))
        if slices is not None:
            return node.name_result(slices)
        return node.name_result(_look_up(node, node.input(1)))
    value, sizes = known_value(node.graph, node.input(1)), node.fact(0).shape[:batch]
    if value is None or not all(size.is_const for size in sizes):
        return node.wire(op, [node.input(0), node.input(1)])
    grid = np.indices(value.shape[:-1])[:batch]
    locations = np.concatenate([np.moveaxis(grid, 0, -1), value], -1)
    return node.name_result(_look_up(node, node.constant(locations, "indices")))


def _look_up(node: NodeContext, indices: OutletId) -> OutletId:
    x = node.fact(0)
    depth = index_depth(x, node.graph.fact(indices))
    sizes, trailing_shape = x.shape[:depth], x.shape[depth:]
    if not all(size.is_const for size in sizes[1:]):
        raise node.error(f"it looks up along axes of symbolic size in {x}; fix them with {spell('inputs')}")
    data = node.input(0)
    if depth > 1:
        data = node.wire(Reshape((volume(sizes), *trailing_shape)), [data], "flat")
    return look_up(node, data, 0, _flat_index(node, indices, sizes))


def _flat_index(node: NodeContext, indices: OutletId, sizes: tuple[TDim, ...]) -> OutletId:
    value = known_value(node.graph, indices)
    if value is not None and all(size.is_const for size in sizes):
        numbers = tuple(int(size) for size in sizes)
        parts = [wrap_indices(node, value[..., axis], size) for axis, size in enumerate(numbers)]
        flat: Array = np.asarray(np.ravel_multi_index(tuple(parts), numbers))
        return node.constant(flat, "index")
    last = node.graph.fact(indices).rank - 1
    indices = node.cast(indices, I64, "indices")
    if len(sizes) == 1:
        return node.wire(RemoveAxis(last), [indices], "index")
    total: OutletId | None = None
    for axis, size in enumerate(sizes):
        step = volume(sizes[axis + 1 :])
        index = node.entry(indices, last, axis, f"index{axis}")
        if size.is_const:
            index = node.wire(RangeCheck(-int(size), int(size) - 1), [index], f"inside{axis}")
        below = node.apply("less", index, 0, suffix=f"below{axis}")
        around = node.apply("add", index, node.dim_constant(size, f"size{axis}"), suffix=f"around{axis}")
        front = node.apply("where", below, around, index, suffix=f"front{axis}")
        offset = node.apply("mul", front, node.dim_constant(step, f"step{axis}"), suffix=f"scaled{axis}")
        total = offset if total is None else node.apply("add", total, offset, suffix=f"total{axis}")
    assert total is not None
    return total


@onnx_op("Gather")
def gather(node: NodeContext) -> OutletId:
    """Look up entries; constant negative indices are counted from the front, evenly spaced ones are slices."""
    shape = node.fact(0).shape
    axis = node.axis(node.integer("axis", 0), len(shape))
    indices = node.input(1)
    value, size = node.value(1), shape[axis]
    if value is not None and not is_symbolic(value) and size.is_const and (value < 0).any():
        indices = node.constant(np.where(value < 0, value + int(size), value).astype(value.dtype), "indices")
    return look_up(node, node.input(0), axis, indices)


def look_up(node: NodeContext, x: OutletId, axis: int, indices: OutletId) -> OutletId:
    """Return entries by index; slices if the indices are evenly spaced."""
    spaced = limited_progression(node.graph, indices)
    if spaced is not None and is_count(node.graph, x, spaced):
        return node.cast(indices, node.graph.fact(x).dtype)
    slices = None if spaced is None else gather_by_slices(node, x, axis, spaced)
    return slices if slices is not None else node.wire(Gather(axis), [x, indices])


@rule("Gather", uniform=True, parts=(0,))
def infer_gather(node: InferenceNode) -> Iterator[FactRelation]:
    """The axes of the indices take the place of one axis of the data."""
    x, indices, y = node.input(0), node.input(1), node.output
    yield SameType([x, y])
    yield RankSum(y, [x, indices], -1)


@rule("GatherElements")
def infer_gather_elements(node: InferenceNode) -> Iterator[FactRelation]:
    """An entry for each index."""
    x, indices, y = node.input(0), node.input(1), node.output
    yield SameType([x, y])
    yield SameRank([x, indices])
    yield SameShape([indices, y])


writes(Gather)(lambda w, op: w.emit("Gather", w.inputs, axis=op.axis))
writes(GatherElements)(lambda w, op: w.emit("GatherElements", w.inputs, axis=op.axis))
writes(GatherBatches)(lambda w, op: w.emit("GatherND", w.inputs, batch_dims=op.batch))
