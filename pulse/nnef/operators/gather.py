"""Entries read by index."""

from collections.abc import Sequence

import numpy as np

from pulse.facts import I64
from pulse.nnef.read.node import NnefWire, NodeReader
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import OperationWriter


def from_the_start(w: OperationWriter, axes: Sequence[int]) -> Name:
    """Return the second input, indices into these axes along its last axis, counted from the start of each axis.

    Indices of one axis need no last axis.
    """
    value = w.known_value(1)
    if value is not None and not (value < 0).any():
        return w.tensor(value.astype(np.int64), "index")
    sizes = [w.size(axis) for axis in axes]
    lengths = np.array(sizes[0] if len(sizes) == 1 else sizes, np.int64)
    if value is not None:
        return w.tensor(np.where(value < 0, value + lengths, value).astype(np.int64), "index")
    rank, dtype = w.rank(1), w.dtype(1)
    added = w.tensor(lengths.astype(dtype).reshape([1] * (rank - lengths.ndim) + [*lengths.shape]), "sizes")
    below = w.emit("lt", w.x(1), w.number(0, dtype, "zero"), suffix="below")
    return w.emit("select", below, w.emit("add", w.x(1), added, suffix="wrapped"), w.x(1), suffix="index")


@writes("Gather", "GatherElements")
def write_gather(w: OperationWriter) -> Name:
    axis = w.axis(0, w.rank())
    operator = "tract_core_gather" if w.op_type == "Gather" else "tract_core_gather_elements"
    return w.emit(operator, w.x(), from_the_start(w, [axis]), axis=axis)


@writes("GatherND")
def write_gather_nd(w: OperationWriter) -> Name:
    batch = int(w.attribute("batch_dims", 0))
    index = from_the_start(w, range(batch, batch + w.sizes(1)[-1]))
    return w.emit("tract_core_gather_nd", w.x(), index, batch_dims=batch)


def read_index(node: NodeReader) -> NnefWire:
    """Return indices, which may be numbers in the text, as i64."""
    index = node.wire("indices", I64)
    return index if index.dtype == I64 else node.cast(index, I64, "index")


@reads("tract_core_gather", parameters="input indices axis output_type=''")
def read_gather(node: NodeReader) -> NnefWire:
    x, index = node.wire("input"), read_index(node)
    axis = node.axis("axis", x.rank)
    return node.add(
        "Gather", [x, index], x.dtype, [*x.sizes[:axis], *index.sizes, *x.sizes[axis + 1 :]], axis=axis
    )


@reads("tract_core_gather_elements", parameters="input indices axis")
def read_elements(node: NodeReader) -> NnefWire:
    x, index = node.wire("input"), read_index(node)
    return node.add("GatherElements", [x, index], x.dtype, index.sizes, axis=node.axis("axis", x.rank))


@reads("tract_core_gather_nd", parameters="input indices batch_dims=0")
def read_nd(node: NodeReader) -> NnefWire:
    x, index, batch = node.wire("input"), read_index(node), node.integer("batch_dims")
    width = index.sizes[-1] if index.rank else None
    if width is None or not 0 <= batch < index.rank or batch + width > x.rank:
        raise node.error("its indices do not fit its input")
    return node.add(
        "GatherND", [x, index], x.dtype, [*index.sizes[:-1], *x.sizes[batch + width :]], batch_dims=batch
    )
