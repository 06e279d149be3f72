"""Running sums."""

from pulse.nnef.registry import writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import NodeWriter


@writes("CumSum")
def write_sum(w: NodeWriter) -> Name:
    (axis,) = w.integers(1, "axis")
    how = {name: bool(w.attribute(name, 0)) for name in ("exclusive", "reverse")}
    return w.emit("tract_core_cumsum", w.x(), axis=axis % len(w.sizes()), **how)
