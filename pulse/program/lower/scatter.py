"""Entries read and written at computed places: the places as rows of one flat tensor, then one pass over them."""

import math
from collections.abc import Sequence

import numpy as np

from pulse.errors import CompileError
from pulse.facts import Array
from pulse.graph import OutletId
from pulse.ops.lookup import GatherBatches, GatherElements
from pulse.ops.scatter import ScatterElements, ScatterND
from pulse.program.kernels.gather import Gather
from pulse.program.kernels.scatter import ScatterRows
from pulse.program.lower.elementwise import Chain, store_chain
from pulse.program.lowering import Lowering, PulsedNode, lowers
from pulse.program.memory import Value, dense_strides
from pulse.wording import spell


@lowers(GatherElements)
def lower_gather_elements(cx: Lowering, node: PulsedNode, op: GatherElements) -> list[Value]:
    """Single elements of the flat input."""
    x, indices = (cx.value(outlet) for outlet in node.inputs)
    return [_read(cx, x, _along(cx, x.shape, indices, op.axis), indices.shape, 1)]


@lowers(GatherBatches)
def lower_gather_batches(cx: Lowering, node: PulsedNode, op: GatherBatches) -> list[Value]:
    """Rows of the axes behind those that are looked up."""
    x, indices = (cx.value(outlet) for outlet in node.inputs)
    depth = op.batch + indices.shape[-1]
    shape = (*indices.shape[:-1], *x.shape[depth:])
    return [_read(cx, x, _rows(cx, x.shape, indices, op.batch), shape, math.prod(x.shape[depth:]))]


@lowers(ScatterElements)
def lower_scatter_elements(cx: Lowering, node: PulsedNode, op: ScatterElements) -> list[Value]:
    """A copy, and single elements of it."""
    x, indices, updates = (cx.value(outlet) for outlet in node.inputs)
    return [_write(cx, node, x, _along(cx, x.shape, indices, op.axis), updates, 1, op.reduction)]


@lowers(ScatterND)
def lower_scatter_nd(cx: Lowering, node: PulsedNode, op: ScatterND) -> list[Value]:
    """A copy, and rows of the axes behind those that are looked up."""
    x, indices, updates = (cx.value(outlet) for outlet in node.inputs)
    run = math.prod(x.shape[indices.shape[-1] :])
    return [_write(cx, node, x, _rows(cx, x.shape, indices, 0), updates, run, op.reduction)]


def _along(cx: Lowering, shape: Sequence[int], indices: Value, axis: int) -> Value:
    """Flat places of elements that are where their index is, but for one axis."""
    strides = dense_strides(shape, range(len(shape)))
    base = np.zeros(indices.shape, np.int64)
    for other, size in enumerate(indices.shape):
        if other != axis:
            column = (-1, *(1,) * (len(shape) - other - 1))
            base = base + (np.arange(size) * strides[other]).reshape(column)
    return _added(cx, base, [(indices, shape[axis], strides[axis])])


def _rows(cx: Lowering, shape: Sequence[int], indices: Value, batch: int) -> Value:
    """Flat places of rows that an index names, in the batch where the index is."""
    outer, depth = indices.shape[:-1], indices.shape[-1]
    looked = shape[batch : batch + depth]
    steps = dense_strides(shape[: batch + depth], range(batch + depth))
    base = np.zeros(outer, np.int64)
    for axis in range(batch):
        base = base + (np.arange(outer[axis]) * steps[axis]).reshape(-1, *(1,) * (len(outer) - axis - 1))
    columns = [indices.view(outer, indices.strides[:-1], k * indices.strides[-1]) for k in range(depth)]
    return _added(cx, base, list(zip(columns, looked, steps[batch:])))


def _added(cx: Lowering, base: Array, columns: Sequence[tuple[Value, int, int]]) -> Value:
    """The base plus each index times its step; an index below 0 counts from the end of its axis."""
    total = cx.constant(base)
    for index, size, step in columns:
        chain = Chain()
        wrapped = chain.apply("mod", (chain.load(index), chain.load(cx.constant(np.array(size, np.int64)))))
        moved = chain.apply("mulc", (wrapped,), (float(step),))
        chain.apply("add", (moved, chain.load(total)))
        total = cx.temporary(base.shape, base.dtype)
        store_chain(cx, chain, total)
    return total


def _read(cx: Lowering, x: Value, places: Value, shape: Sequence[int], run: int) -> Value:
    x = cx.ordered(x, range(len(x.shape)))
    y = cx.temporary(shape, x.dtype)
    cx.emit(
        Gather(
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


def _write(
    cx: Lowering, node: PulsedNode, x: Value, places: Value, updates: Value, run: int, reduction: str
) -> Value:
    if reduction != "none":
        raise CompileError(
            f"{node.name}: no kernel for the reduction {reduction}; use {spell('backend', 'numpy')}"
        )
    y = cx.new(OutletId(node.id), range(len(x.shape)))
    if not y.dense(range(len(x.shape))):
        y = cx.temporary(x.shape, x.dtype)
    cx.copy(x, y)
    updates = cx.ordered(updates, range(len(updates.shape)))
    rows = x.size // run if run else 0
    size, count = run * x.dtype.itemsize, places.size
    cx.emit(ScatterRows(dst=y, indices=places, src=updates, size=size, count=count, rows=rows))
    return y
