"""Entries read by index."""

import numpy as np

from pulse.nnef.registry import writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import NodeWriter


def _index(w: NodeWriter, size: int) -> Name:
    """Indices that count from the start."""
    value = w.known(1)
    if value is not None:
        return w.tensor(np.where(value < 0, value + size, value).astype(np.int64), "index")
    zero, length = w.number(0, w.dtype(1), "zero"), w.number(size, w.dtype(1), "size")
    index = w.x(1)
    below = w.emit("lt", index, zero, suffix="below")
    return w.emit("select", below, w.emit("add", index, length, suffix="wrapped"), index, suffix="index")


@writes("Gather", "GatherElements")
def write_gather(w: NodeWriter) -> Name:
    axis = w.axis(0, len(w.sizes()))
    operator = "tract_core_gather" if w.kind == "Gather" else "tract_core_gather_elements"
    return w.emit(operator, w.x(), _index(w, w.sizes()[axis]), axis=axis)


@writes("GatherND")
def write_gather_nd(w: NodeWriter) -> Name:
    value = w.known(1)
    if value is None:
        index = w.x(1)
    else:
        batch = int(w.attribute("batch_dims", 0))
        sizes = np.array(w.sizes()[batch : batch + value.shape[-1]])
        index = w.tensor(np.where(value < 0, value + sizes, value).astype(np.int64), "index")
    return w.emit("tract_core_gather_nd", w.x(), index, batch_dims=int(w.attribute("batch_dims", 0)))
