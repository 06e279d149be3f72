"""Entries written by index."""

from pulse.nnef.registry import writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import NodeWriter


@writes("ScatterElements")
def write_elements(w: NodeWriter) -> Name:
    how = str(w.attribute("reduction", "none"))
    axis = w.axis(0, len(w.sizes()))
    return w.emit("tract_core_scatter_elements", w.x(), w.x(1), w.x(2), axis=axis, reduction=how)


@writes("ScatterND")
def write_nd(w: NodeWriter) -> Name:
    how = str(w.attribute("reduction", "none"))
    return w.emit("tract_core_scatter_nd", w.x(), w.x(1), w.x(2), reduction=how)
