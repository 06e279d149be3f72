"""Running sums."""

import numpy as np

from pulse.nnef.read.node import NodeReader, Wire
from pulse.nnef.registry import reads, writes
from pulse.nnef.syntax import Name
from pulse.nnef.write.node import NodeWriter


@writes("CumSum")
def write_sum(w: NodeWriter) -> Name:
    (axis,) = w.integers(1, "axis")
    exclusive, reverse = (bool(w.attribute(name, 0)) for name in ("exclusive", "reverse"))
    return w.emit("tract_core_cumsum", w.x(), axis=axis % w.rank(), exclusive=exclusive, reverse=reverse)


@reads("tract_core_cumsum", takes="input axis exclusive=False reverse=False")
def read_sum(node: NodeReader) -> Wire:
    x = node.wire("input")
    axis = node.graph.constant(np.array(node.axis("axis", x.rank), np.int64), f"{node.targets[0]}.axis")
    exclusive, reverse = (int(node.truth(name)) for name in ("exclusive", "reverse"))
    return node.add("CumSum", [x, axis], x.dtype, x.sizes, exclusive=exclusive, reverse=reverse)
