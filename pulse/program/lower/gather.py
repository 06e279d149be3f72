"""Gathers: entries are read as runs, or by their indices in a flat tensor, in one pass."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from pulse.errors import CompileError
from pulse.facts import I32, I64, Array
from pulse.graph import OutletId
from pulse.ops.gather import Gather
from pulse.ops.gather_elements import GatherBatches, GatherElements
from pulse.program.kernels import gather as kernels
from pulse.program.lower.elementwise import Chain, store_chain
from pulse.program.lowering import Lowering, lowers
from pulse.program.table.memory import TensorView, dense_strides
from pulse.pulsify.network import PulsedNode


@lowers(Gather)
def lower_gather(lowering: Lowering, node: PulsedNode, op: Gather) -> list[TensorView]:
    """Look up rows by constant or computed indices."""
    x, indices = (lowering.value(outlet) for outlet in node.inputs)
    rank, width = len(x.shape), len(indices.shape)
    constant = lowering.known_value(node.inputs[1])
    outlet = OutletId(node.id)
    if constant is not None and constant.size == 1:
        start = int(constant.ravel()[0]) % x.shape[op.axis]
        view = x.part(op.axis, start, start + 1)
        shape = [*x.shape[: op.axis], *[1] * width, *x.shape[op.axis + 1 :]]
        return [view.view(shape, [*x.strides[: op.axis], *[0] * width, *x.strides[op.axis + 1 :]])]
    if constant is not None and constant.ndim == 1 and _are_equally_spaced(constant % x.shape[op.axis]):
        rows = constant % x.shape[op.axis]
        step = int(rows[1] - rows[0])
        return [x.part(op.axis, int(rows[0]), int(rows[-1]) + 1, step)]
    return [_emit_lookup(lowering, outlet, x, indices, op.axis, rank, width)]


def _are_equally_spaced(indices: Array) -> bool:
    """Return whether constant indices increase in equal steps."""
    steps = np.diff(indices)
    return len(indices) > 1 and steps[0] > 0 and bool((steps == steps[0]).all())


def _emit_lookup(
    lowering: Lowering, outlet: OutletId, x: TensorView, indices: TensorView, axis: int, rank: int, width: int
) -> TensorView:
    """Gather entries of one axis; the axes of the indices, ``width`` of them, take its place."""
    if indices.dtype not in (I64, I32):
        raise CompileError(f"{lowering.node_name}: indices must be i64 or i32")
    leading_axes, trailing_axes = list(range(axis)), list(range(axis + 1, rank))
    if not _is_gatherable(x, leading_axes, trailing_axes):
        x = lowering.order_axes(x, [*_sort_by_stride(x, leading_axes), axis, *trailing_axes])
    order = [
        *_sort_by_stride(x, leading_axes),
        *range(axis, axis + width),
        *(a + width - 1 for a in trailing_axes),
    ]
    target = lowering.allocate_wire(outlet, order)
    if not target.is_dense(order):
        target = lowering.allocate_temporary(target.shape, target.dtype, order)
    indices = lowering.order_axes(indices, range(width))
    run = int(np.prod([x.shape[a] for a in trailing_axes], dtype=np.int64))
    outer = int(np.prod([x.shape[a] for a in leading_axes], dtype=np.int64))
    long_axes = [a for a in _sort_by_stride(x, leading_axes) if x.shape[a] != 1]
    source_step = x.strides[long_axes[-1]] if long_axes else 0
    count = indices.size
    lowering.emit(
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


def _sort_by_stride(x: TensorView, axes: Sequence[int]) -> list[int]:
    """Return the axes in the order of memory, the outermost first."""
    return [axis for axis in x.order if axis in axes]


def _is_gatherable(x: TensorView, leading_axes: Sequence[int], trailing_axes: Sequence[int]) -> bool:
    """Return whether the leading axes are one loop, and the trailing ones one run."""
    outer_axes = [a for a in _sort_by_stride(x, leading_axes) if x.shape[a] != 1]
    return x.is_dense(trailing_axes) and all(
        x.strides[outer] == x.strides[inner] * x.shape[inner] for outer, inner in pairwise(outer_axes)
    )


@lowers(GatherElements)
def lower_gather_elements(lowering: Lowering, node: PulsedNode, op: GatherElements) -> list[TensorView]:
    """Read single elements of the flat input."""
    x, indices = (lowering.value(outlet) for outlet in node.inputs)
    return [_emit_reads(lowering, x, element_indices(lowering, x.shape, indices, op.axis), indices.shape, 1)]


@lowers(GatherBatches)
def lower_gather_batches(lowering: Lowering, node: PulsedNode, op: GatherBatches) -> list[TensorView]:
    """Read rows, which consist of the axes after the indexed ones."""
    x, indices = (lowering.value(outlet) for outlet in node.inputs)
    depth = op.batch + indices.shape[-1]
    shape = (*indices.shape[:-1], *x.shape[depth:])
    rows = row_indices(lowering, x.shape, indices, op.batch)
    return [_emit_reads(lowering, x, rows, shape, math.prod(x.shape[depth:]))]


def element_indices(lowering: Lowering, shape: Sequence[int], indices: TensorView, axis: int) -> TensorView:
    """Return the flat indices of elements at the positions of their indices, except along one axis."""
    strides = dense_strides(shape, range(len(shape)))
    base = np.zeros(indices.shape, np.int64)
    for other, size in enumerate(indices.shape):
        if other != axis:
            column = (-1, *(1,) * (len(shape) - other - 1))
            base = base + (np.arange(size) * strides[other]).reshape(column)
    return _add_indices(lowering, base, [(indices, shape[axis], strides[axis])])


def row_indices(lowering: Lowering, shape: Sequence[int], indices: TensorView, batch: int) -> TensorView:
    """Return the flat indices of rows by index, in the batch of the index."""
    outer, depth = indices.shape[:-1], indices.shape[-1]
    sizes = shape[batch : batch + depth]
    steps = dense_strides(shape[: batch + depth], range(batch + depth))
    base = np.zeros(outer, np.int64)
    for axis in range(batch):
        base = base + (np.arange(outer[axis]) * steps[axis]).reshape(-1, *(1,) * (len(outer) - axis - 1))
    columns = [indices.view(outer, indices.strides[:-1], k * indices.strides[-1]) for k in range(depth)]
    return _add_indices(lowering, base, list(zip(columns, sizes, steps[batch:])))


def _add_indices(
    lowering: Lowering, base: Array, columns: Sequence[tuple[TensorView, int, int]]
) -> TensorView:
    """Return the base plus each index times its step; a negative index counts from the end of its axis."""
    total = lowering.add_constant(base)
    for index, size, step in columns:
        chain = Chain()
        row = chain.apply(
            "mod", (chain.load(index), chain.load(lowering.add_constant(np.array(size, np.int64))))
        )
        offset = chain.apply("mulc", (row,), (float(step),))
        chain.apply("add", (offset, chain.load(total)))
        total = lowering.allocate_temporary(base.shape, base.dtype)
        store_chain(lowering, chain, total)
    return total


def _emit_reads(
    lowering: Lowering, x: TensorView, indices: TensorView, shape: Sequence[int], run: int
) -> TensorView:
    """Read runs of the flat input by their indices; return a temporary."""
    x = lowering.order_axes(x, range(len(x.shape)))
    y = lowering.allocate_temporary(shape, x.dtype)
    lowering.emit(
        kernels.GatherRow(
            src=x,
            indices=indices,
            dst=y,
            size=x.dtype.itemsize,
            index_size=indices.dtype.itemsize,
            outer=1,
            count=indices.size,
            run=run,
            src_outer=0,
            src_axis=run,
            dst_outer=0,
            dst_axis=run,
            axis=x.size // run if run else 0,
        )
    )
    return y
