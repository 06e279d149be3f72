"""Entries read by index."""

from collections.abc import Sequence

import numpy as np

from pulse.nnef.registry import writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import NodeWriter


def from_the_start(w: NodeWriter, sizes: Sequence[int]) -> Name:
    """The second input, indices into axes of these sizes along its last axis, counted from the start of each axis.

    One size stands for all indices.
    """
    lengths = np.array(sizes[0] if len(sizes) == 1 else [*sizes], np.int64)
    value = w.known(1)
    if value is not None:
        return w.tensor(np.where(value < 0, value + lengths, value).astype(np.int64), "index")
    rank, dtype = len(w.sizes(1)), w.dtype(1)
    added = w.tensor(lengths.astype(dtype).reshape([1] * (rank - lengths.ndim) + [*lengths.shape]), "sizes")
    below = w.emit("lt", w.x(1), w.number(0, dtype, "zero"), suffix="below")
    return w.emit("select", below, w.emit("add", w.x(1), added, suffix="wrapped"), w.x(1), suffix="index")


@writes("Gather", "GatherElements")
def write_gather(w: NodeWriter) -> Name:
    axis = w.axis(0, len(w.sizes()))
    operator = "tract_core_gather" if w.kind == "Gather" else "tract_core_gather_elements"
    return w.emit(operator, w.x(), from_the_start(w, w.sizes()[axis : axis + 1]), axis=axis)


@writes("GatherND")
def write_gather_nd(w: NodeWriter) -> Name:
    batch = int(w.attribute("batch_dims", 0))
    index = from_the_start(w, w.sizes()[batch : batch + w.sizes(1)[-1]])
    return w.emit("tract_core_gather_nd", w.x(), index, batch_dims=batch)
