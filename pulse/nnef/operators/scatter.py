"""Entries written by index."""

from pulse.nnef.operators.gather import from_the_start
from pulse.nnef.registry import writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import NodeWriter


@writes("ScatterElements")
def write_elements(w: NodeWriter) -> Name:
    axis = w.axis(0, len(w.sizes()))
    index = from_the_start(w, w.sizes()[axis : axis + 1])
    how = str(w.attribute("reduction", "none"))
    return w.emit("tract_core_scatter_elements", w.x(), index, w.x(2), axis=axis, reduction=how)


@writes("ScatterND")
def write_nd(w: NodeWriter) -> Name:
    index = from_the_start(w, w.sizes()[: w.sizes(1)[-1]])
    return w.emit("tract_core_scatter_nd", w.x(), index, w.x(2), reduction=str(w.attribute("reduction", "none")))
