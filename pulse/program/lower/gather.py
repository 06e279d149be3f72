"""Gathers: entries are read as runs, or by their places in a flat tensor, in one pass."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from pulse.errors import CompileError
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.gather import Gather
from pulse.ops.gather_elements import GatherBatches, GatherElements
from pulse.program.kernels import gather as kernels
from pulse.program.lower.elementwise import Chain, store_chain
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.table.memory import Value, dense_strides


@lowers(Gather)
def lower_gather(cx: Lowering, node: PulsedNode, op: Gather) -> list[Value]:
    """Look up rows by constant or computed indices."""
    x, indices = (cx.value(outlet) for outlet in node.inputs)
    rank, width = len(x.shape), len(indices.shape)
    constant = cx.known_value(node.inputs[1])
    outlet = OutletId(node.id)
    if constant is not None and constant.size == 1:
        start = int(constant.ravel()[0]) % x.shape[op.axis]
        view = x.part(op.axis, start, start + 1)
        shape = [*x.shape[: op.axis], *[1] * width, *x.shape[op.axis + 1 :]]
        return [view.view(shape, [*x.strides[: op.axis], *[0] * width, *x.strides[op.axis + 1 :]])]
    if constant is not None and constant.ndim == 1 and _regular(constant % x.shape[op.axis]):
        rows = constant % x.shape[op.axis]
        step = int(rows[1] - rows[0])
        return [x.part(op.axis, int(rows[0]), int(rows[-1]) + 1, step)]
    return [_look_up(cx, outlet, x, indices, op.axis, rank, width)]


def _regular(indices: Array) -> bool:
    """Whether constant indices increase in equal steps."""
    steps = np.diff(indices)
    return len(indices) > 1 and steps[0] > 0 and bool((steps == steps[0]).all())


def _look_up(
    cx: Lowering, outlet: OutletId, x: Value, indices: Value, axis: int, rank: int, width: int
) -> Value:
    if indices.dtype not in (np.dtype(np.int64), np.dtype(np.int32)):
        raise CompileError(f"{cx.node}: indices must be i64 or i32")
    lead, rest = list(range(axis)), list(range(axis + 1, rank))
    x = cx.order_axes(x, [*_by_stride(x, lead), axis, *rest]) if not _suits(x, axis, lead, rest) else x
    order = [*_by_stride(x, lead), *range(axis, axis + width), *(a + width - 1 for a in rest)]
    target = cx.new(outlet, order)
    if not target.dense(order):
        target = cx.temporary(target.shape, target.dtype, order)
    indices = cx.order_axes(indices, range(width))
    run = int(np.prod([x.shape[a] for a in rest], dtype=np.int64))
    outer = int(np.prod([x.shape[a] for a in lead], dtype=np.int64))
    inner = [a for a in _by_stride(x, lead) if x.shape[a] != 1]
    source_step = x.strides[inner[-1]] if inner else 0
    count = indices.size
    cx.emit(
        kernels.GatherRow(
            src=x,
            indices=indices,
            dst=target,
            size=x.dtype.itemsize,
            index_size=indices.dtype.itemsize,
            outer=outer,
            count=count,
            run=run,
            src_outer=source_step,
            src_axis=x.strides[axis],
            dst_outer=count * run,
            dst_axis=run,
            axis=x.shape[axis],
        )
    )
    return target


def _by_stride(x: Value, axes: Sequence[int]) -> list[int]:
    return [axis for axis in x.order if axis in axes]


def _suits(x: Value, axis: int, lead: Sequence[int], rest: Sequence[int]) -> bool:
    """Whether the leading axes are one loop, and the trailing ones one run."""
    step = 1
    for other in reversed(rest):
        if x.shape[other] != 1 and x.strides[other] != step:
            return False
        step *= x.shape[other]
    lead_axes = [a for a in _by_stride(x, lead) if x.shape[a] != 1]
    return all(x.strides[outer] == x.strides[inner] * x.shape[inner] for outer, inner in pairwise(lead_axes))


@lowers(GatherElements)
def lower_gather_elements(cx: Lowering, node: PulsedNode, op: GatherElements) -> list[Value]:
    """Read single elements of the flat input."""
    x, indices = (cx.value(outlet) for outlet in node.inputs)
    return [_read(cx, x, element_places(cx, x.shape, indices, op.axis), indices.shape, 1)]


@lowers(GatherBatches)
def lower_gather_batches(cx: Lowering, node: PulsedNode, op: GatherBatches) -> list[Value]:
    """Read rows, which consist of the axes after the indexed ones."""
    x, indices = (cx.value(outlet) for outlet in node.inputs)
    depth = op.batch + indices.shape[-1]
    shape = (*indices.shape[:-1], *x.shape[depth:])
    return [_read(cx, x, row_places(cx, x.shape, indices, op.batch), shape, math.prod(x.shape[depth:]))]


def element_places(cx: Lowering, shape: Sequence[int], indices: Value, axis: int) -> Value:
    """Return the flat places of elements at the positions of their indices, except along one axis."""
    strides = dense_strides(shape, range(len(shape)))
    base = np.zeros(indices.shape, np.int64)
    for other, size in enumerate(indices.shape):
        if other != axis:
            column = (-1, *(1,) * (len(shape) - other - 1))
            base = base + (np.arange(size) * strides[other]).reshape(column)
    return _add(cx, base, [(indices, shape[axis], strides[axis])])


def row_places(cx: Lowering, shape: Sequence[int], indices: Value, batch: int) -> Value:
    """Return the flat places of rows by index, in the batch of the index."""
    outer, depth = indices.shape[:-1], indices.shape[-1]
    looked = shape[batch : batch + depth]
    steps = dense_strides(shape[: batch + depth], range(batch + depth))
    base = np.zeros(outer, np.int64)
    for axis in range(batch):
        base = base + (np.arange(outer[axis]) * steps[axis]).reshape(-1, *(1,) * (len(outer) - axis - 1))
    columns = [indices.view(outer, indices.strides[:-1], k * indices.strides[-1]) for k in range(depth)]
    return _add(cx, base, list(zip(columns, looked, steps[batch:])))


def _add(cx: Lowering, base: Array, columns: Sequence[tuple[Value, int, int]]) -> Value:
    """Return the base plus each index times its step; a negative index counts from the end of its axis."""
    total = cx.constant(base)
    for index, size, step in columns:
        chain = Chain()
        row = chain.apply("mod", (chain.load(index), chain.load(cx.constant(np.array(size, np.int64)))))
        offset = chain.apply("mulc", (row,), (float(step),))
        chain.apply("add", (offset, chain.load(total)))
        total = cx.temporary(base.shape, base.dtype)
        store_chain(cx, chain, total)
    return total


def _read(cx: Lowering, x: Value, places: Value, shape: Sequence[int], run: int) -> Value:
    x = cx.order_axes(x, range(len(x.shape)))
    y = cx.temporary(shape, x.dtype)
    cx.emit(
        kernels.GatherRow(
            src=x,
            indices=places,
            dst=y,
            size=x.dtype.itemsize,
            index_size=places.dtype.itemsize,
            outer=1,
            count=places.size,
            run=run,
            src_outer=0,
            src_axis=run,
            dst_outer=0,
            dst_axis=run,
            axis=x.size // run if run else 0,
        )
    )
    return y
